"""Decoding by minimum cuts: exact for two states, by expansion moves for more.

A field of two states is attractive if P(0,0) + P(1,1) ≥ P(0,1) + P(1,0) on every edge. Its best labelling is then a
minimum cut (Kolmogorov & Zabih, What energy functions can be minimized via graph cuts?). With more states, one cut
finds the best way for any set of nodes to switch to state α (Boykov, Veksler & Zabih, Fast approximate energy
minimization via graph cuts); the best of such moves are made until none helps.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._types import Flags, Floats, Ids, Ints
from crfkit.errors import CapabilityError
from crfkit.extras import is_installed, load
from crfkit.graph.fields.potentials import Potentials, check_states
from crfkit.graph.graph import Graph
from crfkit.graph.inference.icm import icm

ROUNDING = 1e-12  # relative; a table this close to attractive is taken as such
CHUNK = 1 << 20  # table entries looked at in one go


def cuts_installed() -> bool:
    """Return whether PyMaxflow can be imported."""
    return is_installed("maxflow")


def graph_cut(potentials: Potentials) -> Ids:
    """Return an array [n]: the best labelling of an attractive field of two states; CapabilityError for other fields.

    >>> field = Potentials.from_tables(Graph.path(3), [[1, 0], [0, 0.5], [1, 0]], np.eye(2))
    >>> graph_cut(field).tolist()
    [0, 0, 0]
    """
    maxflow = import_maxflow()
    if potentials.n_states != 2:
        raise CapabilityError(
            f"a graph cut decodes fields of 2 states, this one has {potentials.n_states}; use 'alpha-expansion'"
        )
    tables = tables_between(potentials, *np.indices((2, 2)))
    free = potentials.allowed.all(axis=1)
    fixed = potentials.allowed[:, 1].astype(np.int32)  # the state of those that are not free

    def refuse(edge: int) -> CapabilityError:
        return _refuse_cut(edge, tables[edge], potentials.graph)

    return _cut(maxflow, potentials.graph, potentials.unary, tables, free, fixed, refuse)


def alpha_expansion(potentials: Potentials, start: ArrayLike | None = None, n_threads: int | None = None) -> Ids:
    """Return an array [n]: a labelling that no expansion improves: any set of nodes going over to one state.

    Starts from `start` or the result of ICM and never gets worse. Every move needs P(α,α) + P(β,γ) ≥ P(β,α) + P(α,γ)
    at the states β, γ that an edge has then; CapabilityError if not. For Potts, how much the score lacks of every
    node's and every edge's best is at most twice what it lacks in the best labelling.

    >>> field = Potentials.from_tables(Graph.path(3), [[1, 0, 0], [0, 0.5, 0], [1, 0, 0]], np.eye(3))
    >>> alpha_expansion(field).tolist()
    [0, 0, 0]
    """
    maxflow = import_maxflow()
    labels = icm(potentials, n_threads=n_threads) if start is None else check_states(start, potentials)
    alpha, failures = 0, 0
    while failures < potentials.n_states:
        moved = _expand(maxflow, potentials, labels, alpha)
        failures = failures + 1 if moved is None else 1  # after a move, another to the same state cannot help
        labels = labels if moved is None else moved
        alpha = (alpha + 1) % potentials.n_states
    return labels


def is_attractive(potentials: Potentials) -> bool:
    """Return whether graph_cut (two states) or every move of alpha_expansion (more) can decode this field.

    P(α,α) + P(β,γ) ≥ P(β,α) + P(α,γ) for all α, β, γ and edges; with two states, edges at nodes of one state
    do not count.
    """
    return not _repulsive_edges(potentials).any()


def attractive_graphs(potentials: Potentials) -> NDArray[np.bool_]:
    """Return an array [G]: which graphs are attractive by themselves (`is_attractive` is for all together).

    >>> pair = Graph.path(2)
    >>> both = Potentials.from_tables(Graph.join([pair, pair]), np.zeros((4, 2)), [np.eye(2), -np.eye(2)])
    >>> attractive_graphs(both).tolist()
    [True, False]
    """
    bad: NDArray[np.bool_] = potentials.graph.sum_edges(_repulsive_edges(potentials)) == 0
    return bad


def _repulsive_edges(potentials: Potentials) -> NDArray[np.bool_]:
    """Return an array [E]: which edges no cut can have."""
    K, E = potentials.n_states, potentials.graph.n_edges
    if K == 2:
        free = potentials.allowed.all(axis=1)[potentials.graph.edges].all(axis=1)
        return np.asarray(_repulsive(tables_between(potentials, *np.indices((2, 2)))) & free)
    if len(potentials.basis) == 1:  # the condition is linear in the coefficient: its sign decides
        c = potentials.coefficients[:, 0]
        bad_above, bad_below = (~_is_metric(sign * potentials.basis)[0] for sign in (1.0, -1.0))
        return np.asarray(((c > 0) & bad_above) | ((c < 0) & bad_below))
    step = max(1, CHUNK // K**2)
    parts = [_is_metric(potentials.tables[e : e + step]) for e in range(0, E, step)]
    return ~np.concatenate([np.zeros(0, dtype=bool), *parts])


def _is_metric(tables: Floats) -> NDArray[np.bool_]:
    """Return an array [E]: which tables [E, K, K] allow every expansion."""
    metric = np.ones(len(tables), dtype=bool)
    for a in range(tables.shape[1]):
        same = tables[:, a, a, None, None]
        to, back = tables[:, :, a, None], tables[:, None, a, :]  # P(β,α), P(α,γ)
        slack = ROUNDING * (abs(same) + abs(tables) + abs(to) + abs(back))
        metric &= ~(same + tables < to + back - slack).any(axis=(1, 2))
    return metric


def _expand(maxflow: ModuleType, potentials: Potentials, labels: Ids, alpha: int) -> Ids | None:
    """Return the labels after the best expansion of α, or None if it is none; graph by graph."""
    graph = potentials.graph
    nodes = np.arange(graph.n_nodes)
    free = potentials.allowed[:, alpha] & (labels != alpha)
    if not free.any():
        return None
    choices = np.stack([labels, np.full_like(labels, alpha)], axis=1)  # [n, 2] to stay or to go
    first, second = choices[graph.edges[:, 0]], choices[graph.edges[:, 1]]
    tables = tables_between(potentials, first[:, :, None], second[:, None, :])
    unary = np.stack([potentials.unary[nodes, labels], potentials.unary[:, alpha]], axis=1)

    def refuse(edge: int) -> CapabilityError:
        return _refuse_expansion(edge, tables[edge], graph, alpha, first[edge, 0], second[edge, 0])

    goes = _cut(maxflow, graph, unary, tables, free, np.zeros(graph.n_nodes, dtype=np.int32), refuse)
    i, j = goes[graph.edges].T
    edge_ids = np.flatnonzero(i | j)
    node_ids = np.flatnonzero(goes)
    gains, sizes = np.zeros(graph.n_graphs), np.zeros(graph.n_graphs)
    for ids, offsets, now, then in (
        (node_ids, graph.node_offsets, unary[node_ids, 0], unary[node_ids, 1]),
        (edge_ids, graph.edge_offsets, tables[edge_ids, 0, 0], tables[edge_ids, i[edge_ids], j[edge_ids]]),
    ):
        owner = np.searchsorted(offsets, ids, side="right") - 1
        gains += np.bincount(owner, weights=then - now, minlength=graph.n_graphs)
        sizes += np.bincount(owner, weights=abs(then) + abs(now), minlength=graph.n_graphs)
    improved = gains > ROUNDING * sizes  # more than rounding, so that the moves end
    if not improved.any():
        return None
    accepted = np.repeat(improved, np.diff(graph.node_offsets))
    return np.where((goes == 1) & accepted, np.int32(alpha), labels)


Refuse = Callable[[int], CapabilityError]  # of an edge that no cut can have


def _cut(
    maxflow: ModuleType, graph: Graph, unary: Floats, tables: Floats, free: Flags, fixed: Ids, refuse: Refuse
) -> Ids:
    """Return the best of two choices per node [n] by a minimum cut; nodes that are not free have the choice `fixed`."""
    inner, costs, capacities = costs_of_choices(graph, unary, tables, free, fixed)
    if (bad := np.flatnonzero(_repulsive(tables[inner]))).size:
        raise refuse(int(inner[bad[0]]))
    n = int(np.count_nonzero(free))
    choice = fixed.astype(np.int32)
    if n == 0:
        return choice
    places = np.cumsum(free) - 1  # [n] among the free nodes
    i, j = places[graph.edges[inner]].T
    capacities = np.maximum(capacities, 0.0)
    flow = maxflow.GraphFloat(n, len(inner))
    nodes = flow.add_grid_nodes((n,))
    flow.add_edges(i, j, capacities, capacities)
    flow.add_grid_tedges(nodes, np.maximum(costs[free], 0.0), np.maximum(-costs[free], 0.0))
    flow.maxflow()
    choice[free] = flow.get_grid_segments(nodes)  # true on the sink's side, where the source's arc is cut
    return choice


def costs_of_choices(
    graph: Graph, unary: Floats, tables: Floats, free: Flags, fixed: Ids
) -> tuple[Ints, Floats, Floats]:
    """Return (edges between free nodes [M], cost of choice 1 minus that of choice 0 [n], cost of a difference [M]).

    On an edge between free nodes, with x the choice of its first and y of its second,

        −P(x, y) = const + a·x + b·y + c·[x ≠ y],    2c = P(0,0) + P(1,1) − P(0,1) − P(1,0)
                                                     2a = P(0,0) + P(0,1) − P(1,0) − P(1,1), b with P transposed

    An edge with one fixed end is a unary term of the other: forbidden states need no large capacities.
    """
    i, j = graph.edges.T
    both = free[i] & free[j]
    inner = np.flatnonzero(both)
    p00, p01, p10, p11 = tables[inner].reshape(-1, 4).T
    costs = np.zeros(graph.n_nodes)
    costs[free] = unary[free, 0] - unary[free, 1]
    left, right = np.flatnonzero(free[i] & ~both), np.flatnonzero(free[j] & ~both)
    for ids, terms in (
        (i[inner], ((p00 - p11) + (p01 - p10)) / 2),
        (j[inner], ((p00 - p11) - (p01 - p10)) / 2),
        (i[left], tables[left, 0, fixed[j[left]]] - tables[left, 1, fixed[j[left]]]),
        (j[right], tables[right, fixed[i[right]], 0] - tables[right, fixed[i[right]], 1]),
    ):
        costs += np.bincount(ids, weights=terms, minlength=graph.n_nodes)
    return inner, costs, ((p00 - p01) + (p11 - p10)) / 2


def _repulsive(tables: Floats) -> Any:
    """Return an array [E]: whether P(0,0) + P(1,1) < P(0,1) + P(1,0), by more than rounding."""
    p00, p01, p10, p11 = tables.reshape(-1, 4).T
    return (p00 - p01) + (p11 - p10) < -ROUNDING * abs(tables).sum(axis=(1, 2))


def tables_between(potentials: Potentials, first: Ids, second: Ids) -> Floats:
    """Return [E, 2, 2] P_ij at two states of the first node (along axis 1) and two of the second (along axis 2)."""
    shape = (potentials.graph.n_edges, 2, 2)
    if len(potentials.basis) == 1:
        table = np.broadcast_to(potentials.basis[0][first, second], shape)
        shared: Floats = potentials.coefficients[:, :1, None] * table
        return shared
    own: Floats = potentials.tables[np.arange(shape[0])[:, None, None], first, second]
    return own


def _refuse_cut(edge: int, table: Floats, graph: Graph) -> CapabilityError:
    return CapabilityError(
        f"edge {edge} {tuple(graph.edges[edge].tolist())} has the table {table.tolist()}, which prefers different "
        "states (P00 + P11 < P01 + P10): no graph cut decodes it; use 'max-product', 'junction', 'qpbo' or 'icm'"
    )


def _refuse_expansion(edge: int, table: Floats, graph: Graph, alpha: int, b: int, c: int) -> CapabilityError:
    return CapabilityError(
        f"edge {edge} {tuple(graph.edges[edge].tolist())} has P({alpha},{alpha}) + P({b},{c}) < "
        f"P({b},{alpha}) + P({alpha},{c}) ({table[1, 1]:g} + {table[0, 0]:g} < {table[0, 1]:g} + {table[1, 0]:g}): "
        f"state {alpha} cannot be expanded; use 'max-product', 'junction' or 'icm'"
    )


def import_maxflow() -> ModuleType:
    """Return the module of PyMaxflow."""
    return load("maxflow", "graph cuts need")
