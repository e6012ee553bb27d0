"""Elimination orders: how wide they are, and that every order gives the same answers."""

import numpy as np
import pytest
from graph_cases import random_graph, random_potentials
from numpy.testing import assert_allclose

from crfkit import _core
from crfkit.errors import ParameterError
from crfkit.graph.graph import Graph
from crfkit.graph.inference.decoding import decode
from crfkit.graph.inference.defaults import default_engine
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.junction import Junction
from crfkit.graph.inference.tree import native_arrays

UNBOUNDED = (1 << 63) - 1


def order(graph: Graph, n_states: int) -> _core.Elimination:
    return _core.Elimination(graph.native, n_states, UNBOUNDED, UNBOUNDED)


@pytest.mark.parametrize(
    ("shape", "neighbours", "n_states", "width"),
    [
        ((16, 16), 4, 2, 16),
        ((12, 12), 4, 2, 12),
        ((8, 100), 4, 3, 8),
        ((100, 8), 4, 4, 8),
        ((10, 30), 4, 2, 10),
        ((8, 100), 8, 2, 9),
        ((12, 12), 8, 2, 13),
    ],
)
def test_a_grid_is_as_wide_as_its_shorter_side(shape, neighbours, n_states, width):
    assert Junction().table_size(Graph.grid(shape, neighbours), n_states) == n_states ** (width + 1)


def test_the_order_with_fewer_table_entries_is_taken():
    """On 8 × 100 min-fill needs fewer entries with 2 states, though its largest table is larger; a sweep with 3."""
    graph = Graph.grid((8, 100))
    by_two, by_three = order(graph, 2), order(graph, 3)
    assert by_two.width > by_three.width == 8
    assert by_two.most_entries(2)[1] < by_three.most_entries(2)[1]
    assert by_three.most_entries(3)[1] < by_two.most_entries(3)[1]


def test_a_narrow_order_is_found_where_min_fill_gives_up():
    """Min-fill needs a table of 2^24 entries for 16 × 16 nodes; a sweep 2^17, and 7.5 million in all."""
    assert Junction(max_table=1 << 20).fits(Graph.grid((16, 16)), 2)
    assert not Junction(max_table=1 << 16).fits(Graph.grid((16, 16)), 2)
    assert default_engine(Graph.grid((16, 16)), 2) == "junction"


@pytest.mark.parametrize("n_states", [2, 3])
def test_orders_of_many_shapes_agree_with_enumeration(n_states):
    rng = np.random.default_rng(n_states)
    most = {2: 12, 3: 9}[n_states]
    graphs = [Graph.grid((3, most // 3)), Graph.grid((2, most // 2), 8), Graph(most, [(0, 1), (5, 6), (6, 7), (7, 5)])]
    graphs += [random_graph(rng, most, density) for density in (0.1, 0.3, 0.6)]
    for graph in graphs:
        potentials = random_potentials(rng, graph, n_states, impossible=0.1)
        expected = Enumerate().run(potentials)
        for k in (2, 1000):  # many states: the smallest width wins
            plan = _core.JunctionPlan(order(graph, k), n_states)
            log_z, nodes, edges = plan.marginals(*native_arrays(potentials), 1)
            assert_allclose(log_z, expected.log_z, rtol=1e-10)
            assert_allclose(nodes, expected.nodes, atol=1e-10)
            assert_allclose(edges, expected.edges, atol=1e-10)
            labels = plan.decode(*native_arrays(potentials), 1)
            assert_allclose(potentials.score(labels), potentials.score(Enumerate().decode(potentials)), rtol=1e-10)


def test_a_sweep_and_min_fill_have_one_log_partition():
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph.grid((8, 30)), Graph.grid((3, 4), 8), Graph(7, [(0, 3), (4, 5)])])
    potentials = random_potentials(rng, graph, 2)
    plans = [_core.JunctionPlan(order(graph, k), 2) for k in (2, 3)]
    assert plans[0].max_size != plans[1].max_size
    found = [plan.marginals(*native_arrays(potentials), 1) for plan in plans]
    for one, other in zip(*found, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("use", [lambda p: make_engine("enumerate").run(p), lambda p: decode(p, "enumerate")])
def test_enumeration_of_a_large_grid_is_refused_in_words(use):
    potentials = random_potentials(np.random.default_rng(0), Graph.grid((100, 100)), 2)
    with pytest.raises(ParameterError, match=r"graph 0 has 10000 nodes and about 10\^3010 labellings, .*use 'tree'"):
        use(potentials)
