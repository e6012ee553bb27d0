"""Attributes of chains that are selected as they are trained, on a cluster.

A weight that is zero changes nothing, so the loss of the selected attributes is the loss of all of them with zeros
elsewhere, and its gradient has those of all candidates. The shards evaluate that; what is selected is known here only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats, Ints
from crfkit.chain.attribute_index import block_norms
from crfkit.distributed.loss import ShardedEvaluation, ShardedLoss
from crfkit.distributed.shards import Shards
from crfkit.errors import ParameterError
from crfkit.names import check_name
from crfkit.protocols import BlockNorm, Capability, Evaluation, GrowingLoss

KINDS = ("state", "pair")  # of attributes


class ShardedCandidates(GrowingLoss):
    """The sharded likelihood of selected attributes; all others are candidates.

    The id of a candidate is the number of its attribute; pair attributes come after the others.
    """

    name: str
    active_ids: Ints
    capabilities = frozenset({Capability.SMOOTH, Capability.HESSP, Capability.CANDIDATES})

    def __init__(self, whole: ShardedLoss, active: ArrayLike = ()) -> None:
        if whole.field.label_classes is not None:
            raise ParameterError("attributes that score classes of labels cannot be selected: leave label_classes out")
        self.whole = whole
        self.name = whole.name
        self.convex = whole.convex
        self.active_ids = np.unique(np.asarray(active, dtype=np.int64))

    @property
    def shards(self) -> Shards:
        return self.whole.shards

    # --- what is on

    @cached_property
    def blocks(self) -> Ints:
        """Return for every weight of the whole field the id of its attribute, or −1 if it is always on."""
        field = self.whole.field
        ids = np.full(field.size, -1, dtype=np.int64)
        ids[field.layout["state"]] = field.state_ids()[0]
        ids[field.layout["pair"]] = field.n_attributes + field.pair_ids()[0].astype(np.int64)
        return ids

    @property
    def n_ids(self) -> int:
        return int(self.whole.field.n_attributes + self.whole.field.n_pair_attributes)

    @cached_property
    def _on(self) -> Any:
        on = np.zeros(self.n_ids + 1, dtype=bool)  # the last is of weights that are always on
        on[self.active_ids] = True
        on[-1] = True
        return on

    @cached_property
    def full_places(self) -> Ints:
        """Return the place of every weight in the vector of all attributes."""
        return np.flatnonzero(self._on[self.blocks])

    @property
    def size(self) -> int:
        return len(self.full_places)

    @cached_property
    def layout(self) -> Mapping[str, slice]:
        parts = {}
        for name, block in self.whole.field.layout.items():
            begin, end = np.searchsorted(self.full_places, [block.start, block.stop]).tolist()
            parts[name] = slice(begin, end)
        return parts

    @property
    def growing(self) -> tuple[str, ...]:
        field = self.whole.field
        counts = (field.n_attributes, field.n_pair_attributes)
        return tuple(kind for kind, n in zip(KINDS, counts, strict=True) if n)

    @property
    def n_candidates(self) -> int:
        return self.n_ids - len(self.active_ids)

    @property
    def block_index(self) -> Ints:
        return self.blocks[self.full_places]

    def activate(self, ids: ArrayLike) -> tuple[ShardedCandidates, Ints]:
        wanted = np.unique(np.asarray(ids, dtype=np.int64))
        if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < self.n_ids:
            raise ParameterError(f"the ids of candidates are 0 to {self.n_ids - 1}")
        larger = ShardedCandidates(self.whole, np.union1d(self.active_ids, wanted))
        larger.__dict__["blocks"] = self.blocks  # the same for all that have grown from one
        return larger, np.searchsorted(larger.full_places, self.full_places)

    # --- evaluations

    def at(self, w: Floats, warm: Evaluation | None = None) -> CandidateSum:
        return CandidateSum(self, w, self.whole.at(self.in_full(w)))

    def candidates(self, evaluation: Any, norm: str = BlockNorm.MAX, above: float = 0.0) -> tuple[Ints, Floats]:
        check_name("norm", norm, BlockNorm)
        field, gradient = self.whole.field, evaluation.whole.grad
        norms = np.zeros(self.n_ids)
        for kind, first, n in (
            ("state", 0, field.n_attributes),
            ("pair", field.n_attributes, field.n_pair_attributes),
        ):
            ends = np.searchsorted(self.blocks[field.layout[kind]], first + np.arange(n + 1))
            norms[first : first + n] = block_norms(gradient[field.layout[kind]], ends, norm)
        norms[self.active_ids] = -np.inf
        ids = np.flatnonzero(norms > above)
        order = np.lexsort((ids, -norms[ids]))
        return ids[order], norms[ids][order]

    def carry(self, evaluation: Any, place: Ints) -> CandidateSum:
        return CandidateSum(self, evaluation.whole.w[self.full_places], evaluation.whole)

    def in_full(self, w: Floats) -> Floats:
        full = np.zeros(self.whole.size)
        full[self.full_places] = w
        return full

    def used_ids(self, full: Floats) -> Ints:
        """Return the ids of attributes that have a weight other than zero in a vector of all attributes."""
        used = np.unique(self.blocks[full != 0])
        return used[used >= 0]


class CandidateSum:
    """The sum at the selected weights, from one at all weights."""

    def __init__(self, loss: ShardedCandidates, w: Floats, whole: ShardedEvaluation) -> None:
        self.w = w
        self.whole = whole
        self._loss = loss

    @property
    def value(self) -> float:
        return self.whole.value

    @cached_property
    def grad(self) -> Floats:
        return self.whole.grad[self._loss.full_places]

    def hessp(self, v: Floats) -> Floats:
        return self.whole.hessp(self._loss.in_full(v))[self._loss.full_places]

    def hess_diag(self) -> Floats:
        return self.whole.hess_diag()[self._loss.full_places]
