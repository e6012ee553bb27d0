"""Graphs: which edges are accepted, the builders, and the laws of joining, taking and repeating."""

import copy
import pickle
from itertools import product

import networkx as nx
import numpy as np
import pytest
from graph_data_cases import PATH, assert_same_graph, graph_sets
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crfkit.errors import CrfkitError, DataError, ParameterError
from crfkit.graph.graph import Graph

# --- Graph: bad input


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1], [2, 2]], "edge 1 joins node 2 to itself"),
        ([[0, 1], [1, 2], [0, 1]], "edges 0 and 2 both join nodes 0 and 1"),
        ([[0, 1], [1, 2], [1, 0]], "edges 0 and 2 both join nodes 1 and 0"),
        ([[0, 1], [1, 3]], r"edge 1 \(1, 3\) is dangling: nodes are numbered 0 … 2"),
        ([[0, -1]], "dangling"),
        ([[2**32, 1]], "dangling"),
        ([[0, 1.5]], "pairs of node numbers"),
        ([[0, np.nan]], "pairs of node numbers"),
        ([[0, 1, 2]], r"shape \(1, 3\)"),
        ([0, 1], "pairs of node numbers"),
        ([[0], [1, 2]], "pairs of node numbers"),
        ([["a", "b"]], "pairs of node numbers"),
        (None, "pairs of node numbers"),
    ],
)
def test_bad_edges(edges, message):
    with pytest.raises(DataError, match=message):
        Graph(3, edges)


@pytest.mark.parametrize(
    ("node_offsets", "edge_offsets", "message"),
    [
        ([0, 2, 4], [0, 1, 2], r"edge 1 \(1, 2\) leaves its graph 1, nodes 2 … 3"),
        ([0, 4, 4], [0, 1, 2], "edge 1 .* leaves its graph 1"),
        ([0, 3, 4], [0, 2], "2 graphs by their nodes, 1 by their edges"),
        ([0, 3], None, "node offsets must ascend from 0 to 4"),
        ([0, 3, 2, 4], [0, 2, 2, 2], "ascend"),
        ([1, 4], [0, 2], "ascend"),
        ([], [], "ascend"),
        ([[0, 4]], [0, 2], "ascend"),
    ],
)
def test_bad_offsets(node_offsets, edge_offsets, message):
    with pytest.raises(DataError, match=message):
        Graph(4, [[0, 1], [1, 2]], node_offsets, edge_offsets)


@pytest.mark.parametrize("n", [-1, 1.5, "3", True, None, 2**31])
def test_bad_numbers_of_nodes(n):
    for make in (lambda n: Graph(n, []), Graph.path, Graph.complete, lambda n: Graph.grid((n, 2)), PATH.repeat):
        with pytest.raises(ParameterError):
            make(n)


def test_arrays_are_read_only():
    for array in (PATH.edges, PATH.node_offsets, PATH.edge_offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_whole_floats_are_node_numbers():
    assert Graph(3, [[0.0, 2.0]]).edges.tolist() == [[0, 2]]


def test_a_graph_does_not_change_with_the_arrays_it_was_made_from():
    edges = np.array([[0, 1], [1, 2]], dtype=np.int32)
    graph = Graph(3, edges)
    edges[0, 0] = 99
    assert graph.edges.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
@pytest.mark.parametrize("used", [False, True])
def test_a_graph_can_be_copied_and_pickled(clone, used):
    graph = Graph.grid((2, 3))
    if used:
        assert graph.native.n_nodes == 6
    assert_same_graph(clone(graph), graph)


def test_offsets_are_whole_numbers():
    with pytest.raises(DataError):
        Graph(4, [], [0, 1.5, 4], [0, 0, 0])


# --- Graph: builders


def brute_grid(shape, diagonal):
    nodes = list(product(*map(range, shape)))
    ids = {node: i for i, node in enumerate(nodes)}
    near = max if diagonal else sum
    pairs = product(nodes, repeat=2)
    return {frozenset((ids[a], ids[b])) for a, b in pairs if near(abs(x - y) for x, y in zip(a, b, strict=True)) == 1}


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 1), (2, 2), (3, 4), (1, 1, 1), (2, 1, 3), (2, 3, 2), (3, 3, 3)])
@pytest.mark.parametrize("diagonal", [False, True])
def test_grids(shape, diagonal):
    neighbours = {2: (4, 8), 3: (6, 26)}[len(shape)][diagonal]
    graph = Graph.grid(shape, neighbours)
    edges = [frozenset(edge) for edge in graph.edges.tolist()]
    assert len(set(edges)) == len(edges)
    assert set(edges) == brute_grid(shape, diagonal)
    assert_same_graph(graph, Graph(graph.n_nodes, graph.edges))  # passes the check
    if not diagonal:
        assert_same_graph(graph, Graph.grid(shape))
        assert graph.n_edges == nx.grid_graph(shape).number_of_edges()


@pytest.mark.parametrize(("shape", "neighbours"), [((2, 2), 6), ((2, 2, 2), 4), ((2, 2, 2), 8), ((2, 2), 5)])
def test_grids_have_the_neighbours_of_their_dimension(shape, neighbours):
    with pytest.raises(ParameterError, match="neighbours"):
        Graph.grid(shape, neighbours)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 2, 2, 2), ()])
def test_grids_have_two_or_three_axes(shape):
    with pytest.raises(ParameterError, match="2 or 3 axes"):
        Graph.grid(shape)


def test_a_grid_needs_a_shape():
    with pytest.raises(ParameterError):
        Graph.grid(5)


@pytest.mark.parametrize("n", range(6))
def test_paths_and_complete_graphs(n):
    for graph, same in ((Graph.path(n), nx.path_graph(n)), (Graph.complete(n), nx.complete_graph(n))):
        assert {frozenset(edge) for edge in graph.edges.tolist()} == {frozenset(edge) for edge in same.edges}
        assert_same_graph(graph, Graph(n, graph.edges))


@given(parts=graph_sets(max_graphs=1), seed=st.integers(0, 99))
def test_from_networkx(parts, seed):
    graph = Graph.join(parts)
    names = [f"node {i}" for i in np.random.default_rng(seed).permutation(graph.n_nodes)]
    theirs = nx.Graph()
    theirs.add_nodes_from(names)
    theirs.add_edges_from((names[i], names[j]) for i, j in graph.edges)
    ours, order = Graph.from_networkx(theirs)
    assert order == names
    assert {frozenset(e) for e in ours.edges.tolist()} == {frozenset(e) for e in graph.edges.tolist()}


def test_networkx_graphs_with_loops_are_refused_by_name():
    with pytest.raises(DataError, match="node 'b' is joined to itself"):
        Graph.from_networkx(nx.Graph([("a", "b"), ("b", "b")]))


def test_directed_edges_keep_their_order():
    assert Graph.from_networkx(nx.DiGraph([(0, 1), (2, 1)]))[0].edges.tolist() == [[0, 1], [2, 1]]


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph])
def test_networkx_graphs_with_parallel_edges_are_refused_by_name(kind):
    with pytest.raises(DataError, match="'a'"):
        Graph.from_networkx(kind([("a", "b"), ("b", "a")]))


# --- Graph: laws


@given(parts=graph_sets())
def test_take_undoes_join(parts):
    joined = Graph.join(parts)
    assert joined.n_graphs == len(parts)
    assert_same_graph(joined, Graph(joined.n_nodes, joined.edges, joined.node_offsets, joined.edge_offsets))
    for g, part in enumerate(parts):
        taken, nodes, edges = joined.take([g])
        assert_same_graph(taken, part)
        assert_array_equal(nodes, np.arange(*joined.node_offsets[g : g + 2]))
        assert_array_equal(edges, np.arange(*joined.edge_offsets[g : g + 2]))


@given(parts=graph_sets(), seed=st.integers(0, 99))
def test_take_is_join_of_what_is_taken(parts, seed):
    """In any order, some more than once, some not at all."""
    ids = np.random.default_rng(seed).integers(0, max(1, len(parts)), size=5 if parts else 0)
    taken, nodes, edges = Graph.join(parts).take(ids)
    assert_same_graph(taken, Graph.join(parts[g] for g in ids))
    assert len(nodes) == taken.n_nodes
    assert len(edges) == taken.n_edges


@given(parts=graph_sets(), times=st.integers(0, 3))
def test_repeat_is_join_of_copies(parts, times):
    graph = Graph.join(parts)
    assert_same_graph(graph.repeat(times), Graph.join([graph] * times))


@given(parts=graph_sets())
def test_components_and_forests_are_those_of_networkx(parts):
    graph = Graph.join(parts)
    theirs = nx.Graph()
    theirs.add_nodes_from(range(graph.n_nodes))
    theirs.add_edges_from(graph.edges.tolist())
    groups = {frozenset(np.flatnonzero(graph.components == c).tolist()) for c in set(graph.components.tolist())}
    assert groups == set(map(frozenset, nx.connected_components(theirs)))
    assert graph.is_forest == (graph.n_nodes == 0 or nx.is_forest(theirs))


@given(parts=graph_sets(), seed=st.integers(0, 99))
def test_sums_by_graph(parts, seed):
    graph = Graph.join(parts)
    rng = np.random.default_rng(seed)
    nodes, edges = rng.normal(size=(graph.n_nodes, 2)), rng.normal(size=graph.n_edges)
    for g in range(len(parts)):
        assert_allclose(graph.sum_nodes(nodes)[g], nodes[slice(*graph.node_offsets[g : g + 2])].sum(axis=0), atol=1e-14)
        assert_allclose(graph.sum_edges(edges)[g], edges[slice(*graph.edge_offsets[g : g + 2])].sum(), atol=1e-14)
    assert graph.sum_nodes(nodes).shape == (len(parts), 2)


@given(parts=graph_sets())
def test_no_two_neighbours_have_one_colour(parts):
    graph = Graph.join(parts)
    bounds, members = graph.native.colours()
    assert sorted(members.tolist()) == list(range(graph.n_nodes))
    colour = np.empty(graph.n_nodes, dtype=int)
    colour[members] = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    assert (colour[graph.edges[:, 0]] != colour[graph.edges[:, 1]]).all()


@pytest.mark.parametrize("ids", [[-1], [9], [False, True], [0.5]])
def test_take_refuses_what_is_no_graph(ids):
    with pytest.raises(CrfkitError):
        Graph(4, [], [0, 1, 4], [0, 0, 0]).take(ids)
