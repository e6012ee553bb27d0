"""Chains as plain arrays: all that a loss on tensors needs of a training set and its field.

They come from encoded data and a field, or from a file that was written where the compiled core is: a machine that
trains need not have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._types import Array
from crfkit.chain.fields.block import WeightBlock, layout
from crfkit.errors import CapabilityError, DataError

if TYPE_CHECKING:
    from crfkit.chain.data import SequenceData
    from crfkit.chain.fields.field import ChainField

_OF_DATA = ("starts", "offsets", "attributes", "values", "labels", "weights", "targets", "token_weights")
_OF_FIELD = ("state_offsets", "state_labels", "transition_codes", "allowed", "allowed_start", "allowed_end")


@dataclass(frozen=True, eq=False)
class ChainArrays:
    """N sequences of T positions, and which weights a chain of order 1 has.

    The arrays are those of :class:`~crfkit.chain.data.SequenceData` and :class:`~crfkit.chain.fields.field.ChainField`.
    """

    n_labels: int
    n_attributes: int
    n_transition: int
    starts: Array  # [N+1]
    offsets: Array  # [T+1]
    attributes: Array
    values: Array | None = None
    labels: Array | None = None  # [T]
    weights: Array | None = None  # [N]
    targets: Array | None = None  # [T, L]
    token_weights: Array | None = None  # [T]
    state_offsets: Array | None = None
    state_labels: Array | None = None
    transition_codes: Array | None = None
    allowed: Array | None = None  # [L, L]
    allowed_start: Array | None = None  # [L]
    allowed_end: Array | None = None  # [L]

    @classmethod
    def of(cls, data: SequenceData, field: ChainField) -> ChainArrays:
        """Return the arrays of encoded data and a field; raise CapabilityError for fields that tensors do not have."""
        check_field(field)
        return cls(
            field.n_labels,
            field.n_attributes,
            field.n_transition,
            **{name: getattr(data, name) for name in _OF_DATA},
            **{name: getattr(field, name) for name in _OF_FIELD},
        )

    @classmethod
    def load(cls, path: str | Path) -> ChainArrays:
        """Return the arrays of a file that `save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            given: dict[str, Any] = {name: stored[name] for name in stored.files}
        names = {item.name for item in fields(cls)}
        if not {"n_labels", "starts", "attributes"} <= set(given) <= names:
            raise DataError("this file holds no chains; write one with ChainArrays.save", path)
        for name in ("n_labels", "n_attributes", "n_transition"):
            given[name] = int(given[name])
        return cls(**given)

    def save(self, path: str | Path) -> None:
        """Write the arrays to a file of NumPy's (.npz)."""
        np.savez(path, **{name: value for name, value in vars(self).items() if name in _NAMES and value is not None})

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_positions(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def blocks(self) -> Mapping[str, WeightBlock]:
        """Return the blocks of weights in their order; see :class:`~crfkit.chain.fields.field.ChainField`."""
        L = self.n_labels
        codes = self.transition_codes
        if codes is None:
            transition = WeightBlock(int(self.n_transition > 0), L * L)
        else:
            transition = WeightBlock(1, L * L, np.array([0, len(codes)]), codes)
        return {
            "state": WeightBlock(self.n_attributes, L, self.state_offsets, self.state_labels),
            "transition": transition,
        }

    @property
    def layout(self) -> Mapping[str, slice]:
        return layout(self.blocks)

    @property
    def size(self) -> int:
        """Return the number of weights."""
        return sum(block.size for block in self.blocks.values())

    def without_labels(self) -> ChainArrays:
        return replace(self, labels=None, targets=None, weights=None, token_weights=None)


_NAMES = frozenset(item.name for item in fields(ChainArrays))


def check_field(field: ChainField) -> None:
    """Raise CapabilityError for a field with weights that tensors do not have."""
    remedy = "drop the device to train on the CPU with the compiled core"
    if field.order != 1:
        raise CapabilityError(f"chains on tensors are of order 1, not {field.order}; {remedy}")
    if field.n_pair_attributes:
        raise CapabilityError(
            "chains on tensors have no attributes of label pairs (bigram rules with columns, such as B01:%x[0,0]); "
            f"{remedy}, or drop those rules"
        )
    if field.label_classes is not None:
        raise CapabilityError(f"chains on tensors have no label_classes; {remedy}")
