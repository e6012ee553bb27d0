"""The common part of losses whose edges can be switched on: which are on, which could be, and their names.

An edge between variables i < j has the id i·p + j. Weights are those of nodes, then those of active edges in the
order in which they were switched on, so a larger loss begins with the weights of the smaller one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._types import Entries, Flags, Floats, Ids, Ints
from crfkit.errors import DataError, ParameterError
from crfkit.graph.fields.field import GraphField
from crfkit.graph.graph import Graph
from crfkit.names import check_name
from crfkit.protocols import BlockNorm, Evaluation, GrowingLoss
from crfkit.protocols.field_loss import FieldLoss
from crfkit.structure.observations import Observations

Self = TypeVar("Self", bound="EdgeLoss")


class EdgeLoss(FieldLoss, GrowingLoss):
    """A loss of a table of variables whose edges can be switched on.

    `pairs` are the edges that may be on ([M, 2], or a mask [p, p] of i < j; None: all), `active` the ids of those that
    are.
    """

    @classmethod
    def example(cls) -> EdgeLoss:
        from crfkit.structure.losses.examples import table_example

        return cls(table_example())

    def __init__(self, table: Observations, pairs: ArrayLike | None = None, active: ArrayLike = ()) -> None:
        p = table.n_variables
        if p == 0 or not len(table.states):
            raise DataError("there is nothing to learn from: the table is empty")
        self.table = table
        self._allowed = np.triu(np.ones((p, p), dtype=bool), 1) if pairs is None else _mask(pairs, p)
        self.active_ids: Ints = np.array(active, dtype=np.int64).reshape(-1)
        i, j = self.active_ids // p, self.active_ids % p
        on = np.zeros((p, p), dtype=bool)
        ok = (self.active_ids >= 0) & (i < p)
        ok[ok] = self._allowed[i[ok], j[ok]]
        if not ok.all():
            raise ParameterError(f"edge {self.active_ids[~ok][0]} is not a candidate")
        on[i, j] = True
        if on.sum() != len(i):
            raise ParameterError("an edge is switched on twice")
        self._inactive = self._allowed & ~on
        self.edges: Ids = np.stack([i, j], axis=1).astype(np.int32)  # [E, 2] of variables
        width, edge_width = table.widths
        node_form, edge_form = _forms(table)
        self.field = GraphField(
            table.n_states,
            width,
            edge_width,
            len(i),
            node_form=node_form,
            edge_form=edge_form,
            edge_ends=self.edges,
            scored=scored(table),
        )

    # --- the capability "candidates"

    growing: ClassVar[tuple[str, ...]] = ("edge",)

    @property
    def n_candidates(self) -> int:
        """Return how many edges could still be switched on."""
        return int(self._inactive.sum())

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Return [p, p] which pairs i < j may be edges."""
        return self._allowed

    @property
    def candidate_ids(self) -> Ints:
        """Return the ids of the edges that could still be switched on, ascending."""
        return np.flatnonzero(self._inactive).astype(np.int64)

    @cached_property
    def block_index(self) -> Ints:
        """Return [size] the id of each weight's edge, −1 for weights of nodes."""
        sizes = self.field.edge_active.sum(axis=1) * self.field.n_edge_features
        nodes = np.full(self.field.n_node_weights, -1, dtype=np.int64)
        return np.concatenate([nodes, np.repeat(self.active_ids, sizes)])

    def candidates(
        self, evaluation: Evaluation, norm: str = BlockNorm.MAX, above: float = 0.0, scales: Floats | None = None
    ) -> tuple[Ints, Floats]:
        """Return (ids, scores) of the inactive edges whose gradient has a norm > above; the highest score first.

        With `scales` [p] the norm is divided by those of both variables.
        """
        check_name("norm", norm, BlockNorm)
        scores = self._norms(self._pair_gradient(evaluation), norm)
        if scales is not None:
            scores = scores / np.outer(scales, scales)
        ids = np.flatnonzero(self._inactive & (scores > above))
        found = scores.ravel()[ids]
        order = np.lexsort((ids, -found))
        return ids[order].astype(np.int64), found[order]

    def activate(self: Self, ids: ArrayLike) -> tuple[Self, Ints]:
        """Return (the loss with these edges switched on as well, the place of each old weight in its vector)."""
        larger = self.with_active(np.concatenate([self.active_ids, np.asarray(ids, dtype=np.int64).reshape(-1)]))
        return larger, np.arange(self.size, dtype=np.int64)

    def with_active(self: Self, ids: ArrayLike) -> Self:
        """Return the same loss with these edges on, in this order, and no others."""
        return self._like(self._allowed, ids)

    def add_candidates(self: Self, pairs: ArrayLike) -> Self:
        """Return the same loss with more edges [M, 2] that could be switched on."""
        return self._like(self._allowed | _mask(pairs, self.table.n_variables), self.active_ids)

    def among(self: Self, pairs: ArrayLike) -> Self:
        """Return the same loss with these edges to choose from, and none switched on."""
        return self._like(_mask(pairs, self.table.n_variables), ())

    def on(self: Self, table: Observations) -> Self:
        """Return the loss of other rows of the same variables, with the same edges."""
        return self.maker()(table)

    def maker(self: Self) -> Callable[[Observations], Self]:
        """Return a function from a table of the same variables to its loss with these edges; it refers to no table."""
        return partial(type(self), pairs=self._allowed, active=self.active_ids, **self._options())

    def keep(self: Self, ids: ArrayLike, w: Floats) -> tuple[Self, Floats]:
        """Return the loss with those of its edges that are among `ids`, and their weights."""
        kept = np.isin(self.block_index, ids) | (self.block_index < 0)
        return self.with_active(self.active_ids[np.isin(self.active_ids, ids)]), w[kept]

    def nonzero_ids(self, w: Floats) -> Ints:
        """Return the edges with a weight that is not zero, ascending."""
        found = np.unique(self.block_index[w != 0])
        return found[found >= 0]

    def _like(self: Self, allowed: NDArray[np.bool_], active: ArrayLike) -> Self:
        return type(self)(self.table, allowed, active, **self._options())

    def _options(self) -> Entries:
        return {}

    @abstractmethod
    def at(self, w: Floats, warm: Evaluation | None = None) -> Evaluation: ...

    @abstractmethod
    def _pair_gradient(self, evaluation: Any) -> Floats:
        """Return [F, S, S] the gradient by all couplings, of active edges or not; right above the diagonal."""

    def _norms(self, gradient: Floats, norm: str) -> Floats:
        """Return [p, p] the norm of the gradient by each edge."""
        sizes = np.square(gradient) if norm == BlockNorm.L2 else np.abs(gradient)
        add = np.maximum if norm == BlockNorm.MAX else np.add
        reduced = add.reduce(sizes, axis=0)
        if not self.table.single:
            starts = self.table.starts
            reduced = add.reduceat(add.reduceat(reduced, starts, axis=0), starts, axis=1)
        found: Floats = np.sqrt(reduced) if norm == BlockNorm.L2 else reduced
        return found

    @property
    def graph(self) -> Graph:
        """Return the active edges."""
        return Graph(self.table.n_variables, self.edges)


def _forms(table: Observations) -> tuple[str, str]:
    """Return the form of nodes and that of edges."""
    if table.ising:
        return "ising", "ising"
    if table.reference:
        return "reference", "reference"
    return "full", "ordinal" if table.ordinal else "full"


def scored(table: Observations) -> Flags | None:
    """Return which variables have scores, for a field; None unless some have and some have not."""
    return table.scored if table.ordinal and not table.single else None


def _mask(pairs: ArrayLike, p: int) -> NDArray[np.bool_]:
    """Return [p, p] which pairs i < j are among `pairs`, in either order."""
    given = np.asarray(pairs)
    if given.dtype == np.bool_ and given.shape == (p, p) and not np.tril(given).any():
        return given
    mask = np.zeros((p, p), dtype=bool)
    if given.size == 0:
        return mask
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ParameterError(f"candidates must be pairs of variables; got {given.dtype} of shape {given.shape}")
    low, high = given.min(axis=1), given.max(axis=1)
    if (bad := np.flatnonzero((low < 0) | (high >= p) | (low == high))).size:
        pair = tuple(given[bad[0]].tolist())
        raise ParameterError(f"candidate {bad[0]} is {pair}; expected two different variables of 0 … {p - 1}")
    mask[low, high] = True
    return mask
