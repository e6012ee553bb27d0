"""Pairwise fields on graphs: which weights there are, the score map and its adjoint.

    U_i = Σ_b (θ_{t(i),b}·h_i) · N_b          t(i): type of node i, h_i: its features
    P_ij = Σ_b (φ_{s(ij),b}·g_ij) · T_b       s(ij): type of edge ij, g_ij: its features

N_b ∈ R^K and T_b ∈ R^{K×K} are fixed tables. Unit tables give every state (pair) its own weights, the identity is
Potts, ±1 Ising. One type: tied weights; a type per variable: untied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from crfkit._checks import check_count, whole_numbers
from crfkit._types import Features, Flags, Floats, Ids
from crfkit.errors import DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.basis import projected, unit_tables
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.fields.score_map import coefficients, distinct_coefficients, transposed
from crfkit.names import check_name
from crfkit.wording import counted

MOST_STATES = 46_340  # K² < 2³¹
MOST_SYMMETRIC = 128  # states: 0.5·K⁴ numbers
MOST_UNSCORED = 64  # states of a variable without scores among others with scores: K⁴ numbers
NODE_FORMS = ("full", "reference", "ising")
EDGE_FORMS = ("full", "symmetric", "potts", "ising", "reference", "minimal", "ordinal")


@dataclass(frozen=True, eq=False)
class GraphField:
    """The parameter set of a pairwise field.

    n_states: of each type of node. node_form: "full" (weights for every state), "reference" (none for the last state,
    v_K = 0), "ising" (one set of weights, scores ∓ for the two states). edge_form: "full" (for every ordered pair of
    states), "symmetric" (every unordered pair), "potts" (one set, for equal states), "ising" (one set, + for equal
    and − for different), "reference" (all ordered pairs but the last: K²−1, w_KK = 0), "minimal" ((K−1)², none with a
    last state), "ordinal" (one set, times the scores of both states, equally spaced from −1 to 1; at an end without
    scores, a set for each of its states). edge_ends: the types at the two ends of each type of edge, needed where
    numbers of states differ. scored: which types of nodes have scores in the ordinal form; None for all.

    >>> field = GraphField([3], n_node_features=2, n_edge_features=1, node_form="reference", edge_form="minimal")
    >>> field.n_node_weights, field.n_edge_weights  # 2 features · (3 − 1), (3 − 1)²
    (4, 4)
    """

    n_states: Ids  # [T]
    n_node_features: int
    n_edge_features: int
    n_edge_types: int = 1
    node_form: str = "full"
    edge_form: str = "full"
    edge_ends: Ids | None = None  # [S, 2]
    scored: Flags | None = None  # [T]

    def __post_init__(self) -> None:
        states = np.atleast_1d(whole_numbers(self.n_states, "numbers of states"))
        object.__setattr__(self, "n_states", states)
        if states.ndim != 1 or not len(states):
            raise ParameterError("a field needs at least one type of node")
        for name in ("n_node_features", "n_edge_features", "n_edge_types"):
            check_count(0, **{name: getattr(self, name)})
        if self.edge_ends is not None:
            ends = whole_numbers(self.edge_ends, "edge_ends", (self.n_edge_types, 2))
            if ends.size and (ends.min() < 0 or ends.max() >= len(states)):
                raise ParameterError(f"edge_ends must be types of nodes, 0 … {len(states) - 1}")
            object.__setattr__(self, "edge_ends", ends)
        if (bad := np.flatnonzero(states < 2)).size:
            where = f"node {bad[0]}" if len(states) > 1 else "a node"
            raise DataError(f"{where} has {counted(int(states[bad[0]]), 'state')}; a field needs at least 2")
        for what, form, forms in (("node", self.node_form, NODE_FORMS), ("edge", self.edge_form, EDGE_FORMS)):
            check_name(f"{what} form", form, forms)
        if "ising" in (self.node_form, self.edge_form) and (states != 2).any():
            raise ParameterError(f"the Ising form is for two states, not {int(states.max())}; use 'potts'")
        if (states != states[0]).any():
            if self.edge_form not in ("full", "reference", "minimal", "ordinal"):
                raise ParameterError(f"the edge form {self.edge_form!r} needs the same states at all nodes")
            if self.edge_ends is None:
                raise ParameterError("where numbers of states differ, edge_ends must name the types at both ends")
        most = int(states.max())
        if most > MOST_STATES:
            raise DataError(f"{most:,} states; a field can have at most {MOST_STATES:,}: pairs are 32-bit numbers")
        if self.scored is not None:
            self._check_scored(most)
        if self.edge_form == "symmetric" and most > MOST_SYMMETRIC:
            raise DataError(
                f"the edge form 'symmetric' is for at most {MOST_SYMMETRIC} states, not {most}: its tables would take "
                f"{4 * most**4 / 1e9:.0f} GB; use 'potts' or 'full'"
            )

    def _check_scored(self, most: int) -> None:
        scored = np.asarray(self.scored)
        if self.edge_form != "ordinal" or scored.dtype != np.bool_ or scored.shape != self.n_states.shape:
            raise ParameterError("scored is for the ordinal form, with True or False for each type of node")
        if self.edge_ends is None and not scored.all():
            raise ParameterError("where some types of nodes have no scores, edge_ends must name the types at both ends")
        object.__setattr__(self, "scored", scored)
        plain = int(self.n_states[~scored].max(initial=0))
        if plain > MOST_UNSCORED:
            raise DataError(
                f"{plain} states without an order; the ordinal form is for at most {MOST_UNSCORED}: their tables would "
                f"take {8 * most**2 * plain**2 / 1e9:.0f} GB; use 'full'"
            )

    def __getstate__(self) -> dict[str, object]:
        return {item.name: getattr(self, item.name) for item in fields(self)}  # without what was made from them

    # --- the weights

    @property
    def max_states(self) -> int:
        return int(self.n_states.max())

    @property
    def n_types(self) -> int:
        return len(self.n_states)

    @cached_property
    def node_basis(self) -> Floats:
        """Return an array [B, K]."""
        return np.array([[-1.0, 1.0]]) if self.node_form == "ising" else np.eye(self.max_states)

    @cached_property
    def edge_basis(self) -> Floats:
        """Return an array [B, K, K]."""
        K = self.max_states
        if self.edge_form == "potts":
            return np.eye(K)[None]
        if self.edge_form == "ising":
            return np.array([[[1.0, -1.0], [-1.0, 1.0]]])
        if self.edge_form == "ordinal":
            return np.concatenate([_products(K, *kind) for kind in self._kinds[0].tolist()])
        if self.edge_form == "symmetric":
            a, b = np.tril_indices(K)
            tables = np.zeros((len(a), K, K))
            tables[np.arange(len(a)), a, b] = tables[np.arange(len(a)), b, a] = 1.0
            return tables
        return unit_tables(K)

    @cached_property
    def _kinds(self) -> tuple[Ids, Ids]:
        """Return (different kinds of edges [n, 4], [S] which of them each type of edge is), in the ordinal form.

        A kind has the numbers of states at both ends, and whether they have scores.
        """
        if self.edge_ends is None or not self.n_edge_types:
            kind = [self.max_states, self.max_states, 1, 1]
            return np.array([kind], dtype=np.int32), np.zeros(self.n_edge_types, dtype=np.int32)
        scored = np.ones(self.n_types, dtype=bool) if self.scored is None else self.scored
        each = np.concatenate([self.n_states[self.edge_ends], scored[self.edge_ends]], axis=1)
        kinds, which = np.unique(each, axis=0, return_inverse=True)
        return kinds.astype(np.int32), which.reshape(-1).astype(np.int32)

    @cached_property
    def has_one_weight(self) -> Flags:
        """Return an array [S]: which types of edges have one weight for each feature."""
        found: Flags = self.edge_active.sum(axis=1) == 1
        return found

    @cached_property
    def node_active(self) -> Flags:
        """Return an array [T, B]: which node weights exist."""
        if self.node_form == "ising":
            return np.ones((self.n_types, 1), dtype=bool)
        end = self.n_states - (self.node_form == "reference")
        return np.arange(self.max_states) < end[:, None]

    @cached_property
    def edge_active(self) -> Flags:
        """Return an array [S, B]: which edge weights exist."""
        S, K = self.n_edge_types, self.max_states
        if self.edge_form in ("potts", "ising", "symmetric"):
            return np.ones((S, len(self.edge_basis)), dtype=bool)
        if self.edge_form == "ordinal":
            kinds, which = self._kinds
            sizes = np.where(kinds[:, 2:], 1, kinds[:, :2]).prod(axis=1)
            return np.equal(np.repeat(np.arange(len(kinds)), sizes), which[:, None])
        ends = np.full((S, 2), K) if self.edge_ends is None else self.n_states[self.edge_ends]
        a, b = np.indices((K, K))
        first, second = ends[:, 0, None, None], ends[:, 1, None, None]
        if self.edge_form == "minimal":
            first, second = first - 1, second - 1
        active = (a < first) & (b < second)
        if self.edge_form == "reference":
            active &= ~((a == first - 1) & (b == second - 1))
        return active.reshape(S, K * K)

    @property
    def n_node_weights(self) -> int:
        return int(self.node_active.sum()) * self.n_node_features

    @property
    def n_edge_weights(self) -> int:
        return int(self.edge_active.sum()) * self.n_edge_features

    @property
    def size(self) -> int:
        return self.n_node_weights + self.n_edge_weights

    @property
    def layout(self) -> Mapping[str, slice]:
        return {"node": slice(0, self.n_node_weights), "edge": slice(self.n_node_weights, self.size)}

    def unpack(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (node weights [T, B, d], edge weights [S, B, g]); 0 where there is none."""
        nodes = np.zeros((*self.node_active.shape, self.n_node_features))
        edges = np.zeros((*self.edge_active.shape, self.n_edge_features))
        nodes[self.node_active] = w[self.layout["node"]].reshape(int(self.node_active.sum()), self.n_node_features)
        edges[self.edge_active] = w[self.layout["edge"]].reshape(int(self.edge_active.sum()), self.n_edge_features)
        return nodes, edges

    def pack(self, nodes: Floats, edges: Floats) -> Floats:
        """Return the inverse of unpack; entries without a weight are dropped."""
        return np.concatenate([nodes[self.node_active].ravel(), edges[self.edge_active].ravel()])

    # --- the score map

    def check(self, data: GraphData) -> None:
        """Raise DataError unless the data fit this field."""
        for kind, width in (("node", self.n_node_features), ("edge", self.n_edge_features)):
            found = getattr(data, f"{kind}_features").shape[1]
            if found != width:
                raise DataError(f"{found} {kind} features; the field has weights for {width}")
        for kind, given, end in (("node", data.node_types, self.n_types), ("edge", data.edge_types, self.n_edge_types)):
            if given is None and end > 1:
                raise DataError(
                    f"the field has {end} types of {kind}s, but the data do not give the type of each {kind}"
                )
            if given is not None and len(given) and given.max() >= end:
                i = int(given.argmax())
                raise DataError(f"{kind} {i} has type {given[i]}; the field has {end}")
        types = np.zeros(data.graph.n_nodes, dtype=np.int32) if data.node_types is None else data.node_types
        if self.edge_ends is not None and data.graph.n_edges:
            edge_types = np.zeros(data.graph.n_edges, dtype=np.int32) if data.edge_types is None else data.edge_types
            found, expected = types[data.graph.edges], self.edge_ends[edge_types]
            if (bad := np.flatnonzero((found != expected).any(axis=1))).size:
                e = int(bad[0])
                raise DataError(
                    f"edge {e} joins nodes of the types {tuple(found[e].tolist())}; its type, {edge_types[e]}, is for "
                    f"{tuple(expected[e].tolist())}"
                )
        if data.labels is not None and (bad := np.flatnonzero(data.labels >= self.n_states[types])).size:
            i = int(bad[0])
            states = self.n_states[types[i]]
            raise DataError(f"node {i} has label {data.labels[i]}; its states are 0 … {states - 1}")
        if data.node_counts is not None:
            K = data.node_counts.shape[1]
            if self.max_states != K:
                raise DataError(f"counts of {K} states; the field has {self.max_states}")
            counted = (data.node_counts != 0) & (np.arange(K) >= self.n_states[types][:, None])
            if (places := np.argwhere(counted)).size:
                i, state = places[0].tolist()
                raise DataError(
                    f"node {i} has counts of state {state}; its states are 0 … {self.n_states[types[i]] - 1}"
                )

    def potentials(self, data: GraphData, w: Floats) -> Potentials:
        """Return the (unary, pairwise) log-potentials of w, which are linear in w."""
        node_weights, edge_weights = self.unpack(w)
        unary = coefficients(data, "node", node_weights)
        if self.node_form == "ising":
            unary = unary @ self.node_basis
        if (self.n_states < self.max_states).any():
            types = np.zeros(len(unary), dtype=np.int32) if data.node_types is None else data.node_types
            unary[np.arange(self.max_states) >= self.n_states[types][:, None]] = -np.inf
        rows, places = distinct_coefficients(data, "edge", edge_weights)
        if places is not None and len(rows) >= len(places):
            rows, places = rows[places], None
        return Potentials(data.graph, unary, rows, self.edge_basis, places)

    def adjoint(self, data: GraphData, nodes: Floats, edges: Floats) -> Floats:
        """Return the transposed map: (node values [n, K], edge values [E, B] along the basis) → a vector of weights."""
        node_values = nodes @ self.node_basis.T if self.node_form == "ising" else nodes
        return self.pack(
            transposed(data, "node", node_values, self.n_types), transposed(data, "edge", edges, self.n_edge_types)
        )

    def shares_edges(self, data: GraphData) -> bool:
        """Return whether edges of a type have the same potentials everywhere: they have one row of features."""
        one = isinstance(data.edge_features, np.ndarray) and len(data.edge_features) == 1
        return one and data.edge_rows is not None

    def adjoint_of_sums(self, data: GraphData, nodes: Floats, edges: Floats) -> Floats:
        """Return the adjoint where edges have one row of features, from edge values [S, B] summed by type."""
        node_values = nodes @ self.node_basis.T if self.node_form == "ising" else nodes
        features: Features = data.edge_features
        return self.pack(transposed(data, "node", node_values, self.n_types), edges[:, :, None] * features[0])

    def observed_weights(self, data: GraphData) -> Floats:
        """Return the vector F with Σ weight · score(labels) = w · F: the adjoint of :meth:`observed`."""
        if data.labels is None or not self.shares_edges(data) or (data.labels < 0).any():
            return self.adjoint(data, *self.observed(data))
        K = self.max_states
        i, j = data.labels[data.graph.edges].T
        types = np.zeros(len(i), dtype=np.int64) if data.edge_types is None else data.edge_types.astype(np.int64)
        counts = np.bincount((types * K + i) * K + j, data.edge_weights, self.n_edge_types * K * K)
        sums = projected(counts.reshape(-1, K, K).astype(np.float64), self.edge_basis)
        return self.adjoint_of_sums(data, self.observed_nodes(data), sums)

    def observed_nodes(self, data: GraphData) -> Floats:
        """Return [n, K]: the weight of its graph at the label of each node; all labels must be known."""
        nodes = np.zeros((data.graph.n_nodes, self.max_states))
        nodes[np.arange(len(nodes)), data.labels] = data.node_weights
        return nodes

    def observed(self, data: GraphData) -> tuple[Floats, Floats]:
        """Return (node [n, K], edge [E, B]) values of the labels of the data, times the weights of their graphs."""
        if data.node_counts is not None and data.edge_counts is not None:
            return data.node_counts, projected(data.edge_counts, self.edge_basis)
        if data.labels is None:
            raise DataError("the data have no labels")
        if (unknown := np.flatnonzero(data.labels < 0)).size:
            raise DataError(f"the label of node {unknown[0]} is not known")
        nodes = self.observed_nodes(data)
        i, j = data.labels[data.graph.edges].T
        edges: Floats = self.edge_basis[:, i, j].T * data.edge_weights[:, None]
        return nodes, edges


def ordinal_scores(n_states: int) -> Floats:
    """Return the scores of the states of an ordinal variable: equally spaced, from −1 to 1.

    >>> ordinal_scores(5).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    return np.linspace(-1.0, 1.0, n_states)


def _products(K: int, first: int, second: int, first_scored: int, second_scored: int) -> Floats:
    """Return the tables [·, K, K] of an edge in the ordinal form: products of scores, or indicators of states."""
    rows = ordinal_scores(first)[None] if first_scored else np.eye(first)
    columns = ordinal_scores(second)[None] if second_scored else np.eye(second)
    tables = np.zeros((len(rows), len(columns), K, K))
    tables[:, :, :first, :second] = rows[:, None, :, None] * columns[None, :, None, :]
    return tables.reshape(-1, K, K)


def tied_field(data: GraphData, n_states: int, node_form: str = "full", edge_form: str = "full") -> GraphField:
    """Return a field with one set of weights for all nodes and one for all edges of these data.

    >>> from crfkit.graph.graph import Graph
    >>> tied_field(GraphData.make(Graph.grid((4, 5))), 3, edge_form="potts").size
    4
    """
    return GraphField(
        np.array([n_states]),
        data.node_features.shape[1],
        data.edge_features.shape[1],
        node_form=node_form,
        edge_form=edge_form,
    )


def untied_field(
    data: GraphData,
    n_states: ArrayLike,
    node_form: str = "reference",
    edge_form: str = "reference",
) -> GraphField:
    """Return a set of weights for every variable and every edge of a table (GraphData.table, GraphData.counts).

    >>> from crfkit.graph.graph import Graph
    >>> untied_field(GraphData.table(9, Graph.complete(3)), [2, 2, 3]).size  # 1 + 1 + 2, 3 + 5 + 5
    17
    """
    if data.node_types is None or data.edge_types is None:
        raise DataError("an untied field is for tables: the data must name the variable of each node")
    if not len(data):
        raise DataError("an untied field needs at least one row of a table, to see its structure")
    first = data.graph.take([0])[0]
    ends = first.edges if first.n_edges else np.empty((0, 2), dtype=np.int32)
    states = np.broadcast_to(np.asarray(n_states, dtype=np.int32), (first.n_nodes,))
    return GraphField(
        states,
        data.node_features.shape[1],
        data.edge_features.shape[1],
        first.n_edges,
        node_form,
        edge_form,
        ends,
    )
