"""Decoding of any field of two states by a cut with two copies of each node (roof duality, QPBO).

Node i has a copy i' that stands for its negation. An attractive edge (i, j) joins i with j and i' with j', a repulsive
one i with j' and i' with j, so that all capacities are positive. Where a minimum cut separates a node from its copy,
some best labelling has the node's state; the others stay open (Boros & Hammer 2002; Kolmogorov & Rother, Minimizing
non-submodular functions with graph cuts, 2007).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.errors import CapabilityError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.cuts import costs_of_choices, import_maxflow, tables_between


def persistent_states(potentials: Potentials) -> Ids:
    """Return the states [n] that one best labelling has at these nodes; −1 where the cut does not decide.

    On attractive fields, and on those that become so when some nodes swap their states (a checkerboard), all states
    are found but for ties; with many repulsive edges in cycles few or none.

    >>> square = Potentials.from_tables(Graph.grid((2, 2)), [[1, 0], [0, 0], [0, 0], [0, 0]], -np.eye(2))
    >>> persistent_states(square).tolist()  # neighbours differ
    [0, 1, 1, 0]
    """
    maxflow = import_maxflow()
    if potentials.n_states != 2:
        raise CapabilityError(f"QPBO decodes fields of 2 states, this one has {potentials.n_states}; use 'max-product'")
    graph = potentials.graph
    free = potentials.allowed.all(axis=1)
    states = np.where(free, -1, potentials.allowed[:, 1]).astype(np.int32)
    n = int(np.count_nonzero(free))
    if n == 0:
        return states
    tables = tables_between(potentials, *np.indices((2, 2)))
    inner, costs, differences = costs_of_choices(graph, potentials.unary, tables, free, np.maximum(states, 0))
    places = np.cumsum(free) - 1
    i, j = places[graph.edges[inner]].T
    # A copy is n further on. Every term is in the cut twice.
    repels = differences < 0
    first, second = np.concatenate([i, i + n]), np.concatenate([j + n * repels, j + n * ~repels])
    capacities = np.tile(np.abs(differences), 2)
    flow = maxflow.GraphFloat(2 * n, len(first))
    nodes = flow.add_grid_nodes((2 * n,))
    flow.add_edges(first, second, capacities, capacities)
    more, less = np.maximum(costs[free], 0.0), np.maximum(-costs[free], 0.0)
    flow.add_grid_tedges(nodes, np.concatenate([more, less]), np.concatenate([less, more]))
    flow.maxflow()
    side = flow.get_grid_segments(nodes)
    states[free] = np.where(side[:n] != side[n:], side[:n], -1)
    return states


def open_part(potentials: Potentials, states: Ids) -> tuple[Potentials, Ids]:
    """Return (the field of the nodes whose state is −1, given the others; their ids), graph by graph."""
    graph = potentials.graph
    unknown = states < 0
    ids: Ids = np.flatnonzero(unknown).astype(np.int32)
    i, j = graph.edges.T
    inside = unknown[i] & unknown[j]
    unary: Floats = potentials.unary.copy()
    for here, there, axis in ((i, j, 1), (j, i, 0)):
        edges = np.flatnonzero(unknown[here] & ~unknown[there])
        known = states[there[edges]]
        shape = (len(edges), potentials.n_states)
        all_states = np.broadcast_to(np.arange(potentials.n_states), shape)
        given = np.broadcast_to(known[:, None], shape)
        pair = (all_states, given) if axis == 1 else (given, all_states)
        terms = np.einsum("eb,bek->ek", potentials.coefficients[edges], potentials.basis[:, pair[0], pair[1]])
        np.add.at(unary, here[edges], terms)
    places = np.cumsum(unknown) - 1
    kept = np.flatnonzero(inside)

    def offsets(chosen: Ids, old: Ids) -> Ids:
        return np.searchsorted(chosen, old).astype(np.int64)

    part = Graph(
        len(ids),
        places[graph.edges[kept]].astype(np.int32),
        offsets(ids, graph.node_offsets),  # type: ignore[arg-type]
        offsets(kept, graph.edge_offsets),  # type: ignore[arg-type]
        checked=True,
    )
    return replace(potentials, unary=unary).part(part, ids, kept), ids
