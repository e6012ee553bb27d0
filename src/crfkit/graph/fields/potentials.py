"""Log-potentials of a pairwise field: what every inference engine reads, whatever the weights were.

score(y) = Σ_i U_i(y_i) + Σ_{(i,j)} P_ij(y_i, y_j),    P_ij = Σ_b c_ij,b · T_b
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._checks import unmasked, whole_numbers
from crfkit._types import Floats, Ids, Ints
from crfkit.errors import DataError
from crfkit.graph.fields.basis import expanded, is_unit, unit_tables
from crfkit.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class Potentials:
    """Unary log-potentials, and pairwise ones as coefficients of a few tables.

    ``unary[i, k]`` is −inf where node i cannot have state k (it has fewer states, or its label is known). Pairwise
    coefficients are finite. Edges may share rows of coefficients, as the rows of a data table do: ``places`` then has
    the row of each edge, ``coefficients`` has them written out, and ``tables`` the whole pairwise part.

    >>> pair = Potentials.from_tables(Graph.path(2), [[0, 1], [0, 2]], [[3, 0], [0, 3]])
    >>> pair.score([1, 1]).tolist(), pair.clamp([0, -1]).unary.tolist()
    ([6.0], [[0.0, -inf], [0.0, 2.0]])
    """

    graph: Graph
    unary: Floats  # [n, K]
    rows: Floats  # [R, B] different coefficients
    basis: Floats  # [B, K, K]
    places: Ids | None = None  # [E] the row of each edge; None: row e belongs to edge e

    def __post_init__(self) -> None:
        for name, what in (("unary", "unary"), ("rows", "coefficients"), ("basis", "basis")):
            object.__setattr__(self, name, np.asarray(unmasked(getattr(self, name), what), dtype=np.float64))
        n, E = self.graph.n_nodes, self.graph.n_edges if self.places is None else len(self.rows)
        K, B = self.unary.shape[-1] if self.unary.ndim else 0, len(self.basis) if self.basis.ndim else 0
        shapes = self.unary.shape, self.rows.shape, self.basis.shape
        if shapes != ((n, K), (E, B), (B, K, K)) or K < 1 or B < 1:
            raise DataError(
                f"unary, coefficients and basis have the shapes {shapes}; expected ({n}, K), ({E}, B) and (B, K, K)"
            )
        if self.places is not None and self.places.shape != (self.graph.n_edges,):
            raise DataError(f"places have the shape {self.places.shape}; expected ({self.graph.n_edges},)")

    @classmethod
    def from_tables(cls, graph: Graph, unary: ArrayLike, tables: ArrayLike | None = None) -> Potentials:
        """Return the field with a unary row per node and a table [K, K] per edge (or one for all edges, or none)."""
        unary, tables = unmasked(unary, "unary"), unmasked(tables, "tables")
        try:
            U = np.array(unary, dtype=np.float64)
            P = np.zeros((U.shape[1],) * 2) if tables is None else np.asarray(tables, dtype=np.float64)
        except (TypeError, ValueError, IndexError):
            raise DataError("unary must be a matrix [nodes, states], tables an array [edges, states, states]") from None
        if U.ndim != 2 or len(U) != graph.n_nodes or U.shape[1] < 1:
            raise DataError(f"unary has shape {U.shape}; expected a row for each of {graph.n_nodes} nodes")
        K = U.shape[1]
        if P.shape not in ((K, K), (graph.n_edges, K, K)):
            raise DataError(f"tables have shape {P.shape}; expected ({K}, {K}) or ({graph.n_edges}, {K}, {K})")
        if P.ndim == 2:
            made = cls(graph, U, np.ones((graph.n_edges, 1)), P[None].copy())
        else:
            made = cls(graph, U, P.reshape(graph.n_edges, K * K).copy(), unit_tables(K))
        made.check()
        return made

    def check(self) -> None:
        """Raise DataError with the node or edge whose score is not finite."""
        top = self.unary.max(axis=1)  # NaN where there is one
        bad = ~np.isfinite(top)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise DataError(f"the potentials of node {i} are {self.unary[i].tolist()}; expected finite ones")
        if not is_unit(self.basis) and not np.isfinite(self.basis).all():
            raise DataError("the table that edges share is not finite")
        wrong = np.flatnonzero(~np.isfinite(self.rows).all(axis=1))
        if self.places is not None and wrong.size:
            wrong = np.flatnonzero(np.isin(self.places, wrong))
        if wrong.size:
            e = int(wrong[0])
            raise DataError(f"the potentials of edge {e} {tuple(self.graph.edges[e].tolist())} are not finite")

    @property
    def n_states(self) -> int:
        """Return K, the largest number of states of a node."""
        return int(self.unary.shape[1])

    @cached_property
    def coefficients(self) -> Floats:
        """Return an array [E, B]."""
        return self.rows if self.places is None else self.rows[self.places]

    @cached_property
    def tables(self) -> Floats:
        """Return an array [E, K, K]."""
        return expanded(self.coefficients, self.basis)

    @cached_property
    def allowed(self) -> Any:
        """Return an array [n, K]: which states a node can have."""
        return self.unary > -np.inf

    def clamp(self, labels: ArrayLike) -> Potentials:
        """Return the field with known labels (−1: unknown). Its log Z sums over the labellings that agree with them."""
        known = check_states(labels, self, unknown=True)
        unary = self.unary.copy()
        i = np.flatnonzero(known >= 0)
        kept = unary[i, known[i]]
        unary[i] = -np.inf
        unary[i, known[i]] = kept
        return replace(self, unary=unary)

    def score(self, labels: ArrayLike) -> Floats:
        """Return an array [G]: the score of a labelling, by graph."""
        y = check_states(labels, self)
        edges = self.graph.edges
        nodes = self.unary[np.arange(len(y)), y]
        return self.graph.sum_nodes(nodes) + self.graph.sum_edges(self.pair_scores(y[edges[:, 0]], y[edges[:, 1]]))

    def pair_scores(self, first: Ids, second: Ids) -> Floats:
        """Return [E] P_ij(first, second)."""
        row = np.arange(len(first)) if self.places is None else self.places
        if is_unit(self.basis):
            found: Floats = self.rows[row, first.astype(np.int64) * self.n_states + second]
            return found
        return np.asarray(np.einsum("eb,eb->e", self.coefficients, self.basis[:, first, second].T))

    def part(self, graph: Graph, nodes: Ids | Ints | slice, edges: Ids | Ints | slice) -> Potentials:
        """Return the field of some nodes and edges (numbers or a slice), which make up `graph`."""
        if self.places is None:
            return Potentials(graph, self.unary[nodes], self.rows[edges], self.basis)
        return Potentials(graph, self.unary[nodes], self.rows, self.basis, self.places[edges])


def check_states(labels: ArrayLike, potentials: Potentials, unknown: bool = False) -> Ids:
    """Return the labels as state numbers; raise DataError for a label that is not a state of its node."""
    y = whole_numbers(labels, "labels", (potentials.graph.n_nodes,))
    ok = (y >= 0) & (y < potentials.n_states)
    ok[ok] = potentials.unary[np.flatnonzero(ok), y[ok]] > -np.inf
    if unknown:
        ok |= y == -1
    if not ok.all():
        i = int(np.flatnonzero(~ok)[0])
        states = np.flatnonzero(potentials.allowed[i]).tolist()
        raise DataError(f"node {i} has label {y[i]}; its states are {states}")
    return y
