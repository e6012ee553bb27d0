"""Cuts of sets in which some edges are repulsive: the proved part is right, the rest does not spoil it."""

import numpy as np
import pytest
from graph_cases import random_field
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crfkit import GridCRF
from crfkit.errors import CapabilityError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.cuts import attractive_graphs, graph_cut, is_attractive
from crfkit.graph.inference.decoding import decode
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.qpbo import open_part, persistent_states

seeds = st.integers(0, 2**32 - 1)


def clamped(potentials, states):
    return potentials.clamp(states) if (states >= 0).any() else potentials


@settings(max_examples=80)
@given(seed=seeds, scale=st.sampled_from((1e-3, 1.0, 1e3)), impossible=st.sampled_from((0.0, 0.3)))
def test_some_best_labelling_has_the_proved_states(seed, scale, impossible):
    field = random_field(seed, n_graphs=3, scale=scale, impossible=impossible, max_labellings=256)
    states = persistent_states(field)
    best = field.score(Enumerate().decode(field))
    given_them = Enumerate().decode(clamped(field, states))
    assert_allclose(field.score(given_them), best, rtol=1e-9, atol=1e-9 * scale)


@settings(max_examples=60)
@given(seed=seeds, n_states=st.sampled_from((2, 3)))
def test_the_open_part_is_the_field_given_the_rest(seed, n_states):
    field = random_field(seed, n_states, n_graphs=3, impossible=0.2, max_labellings=256)
    labels = Enumerate().decode(field)
    states = np.where(np.random.default_rng(seed).random(len(labels)) < 0.5, labels, -1).astype(np.int32)
    rest, ids = open_part(field, states)
    assert rest.graph.n_graphs == field.graph.n_graphs
    expected = Enumerate().run(clamped(field, states)).nodes[ids]
    assert_allclose(Enumerate().run(rest).nodes, expected, atol=1e-9)


@settings(max_examples=60)
@given(seed=seeds, scale=st.sampled_from((1e-3, 1.0, 1e3)))
def test_what_is_called_optimal_is(seed, scale):
    field = random_field(seed, n_graphs=4, scale=scale, max_labellings=256)
    best = field.score(Enumerate().decode(field))
    for found in (decode(field, "qpbo"), decode(field)):
        assert found.optimal == found.optimal_graphs.all()
        assert_allclose(found.score[found.optimal_graphs], best[found.optimal_graphs], rtol=1e-9, atol=1e-9 * scale)
        assert (found.score <= best + 1e-9 * scale + 1e-9 * abs(best)).all()


def test_a_checkerboard_is_solved():
    """Repulsive edges everywhere, but half of the nodes can swap their states."""
    rng = np.random.default_rng(1)
    graph = Graph.grid((60, 60))
    field = Potentials.from_tables(graph, rng.normal(size=(graph.n_nodes, 2)), -0.7 * np.eye(2))
    odd = (np.indices((60, 60)).sum(axis=0) % 2 == 1).ravel()
    swapped = np.where(odd[:, None], field.unary[:, ::-1], field.unary)
    mirror = Potentials.from_tables(graph, swapped, 0.7 * (np.eye(2) - 1))
    found = decode(field)
    assert found.optimal
    assert_array_equal(found.labels ^ odd, graph_cut(mirror))


def mixed_set():
    """Three large grids; one edge of the second is repulsive. Too wide for exact inference."""
    rng = np.random.default_rng(0)
    graph = Graph.grid((40, 40)).repeat(3)
    tables = np.broadcast_to(0.8 * np.eye(2), (graph.n_edges, 2, 2)).copy()
    tables[graph.edge_offsets[1] + 7] = [[0, 2], [2, 0]]
    return Potentials.from_tables(graph, rng.normal(size=(graph.n_nodes, 2)), tables)


@pytest.mark.parametrize("method", ["auto", "graph-cut"])
def test_one_repulsive_edge_leaves_the_other_graphs_their_cut(method):
    field = mixed_set()
    assert attractive_graphs(field).tolist() == [True, False, True]
    assert not is_attractive(field)
    found = decode(field, method)
    assert found.optimal_graphs[[0, 2]].all()
    for g in range(3):
        graph, nodes, edges = field.graph.take([g])
        one = Potentials(graph, field.unary[nodes], field.coefficients[edges], field.basis)
        if g != 1:
            assert_allclose(found.score[g], one.score(graph_cut(one))[0], rtol=1e-12)
        assert found.score[g] >= decode(one, "icm").score[0] - 1e-9
    assert len(found.methods) == 3


def test_three_states_are_split_by_graph():
    rng = np.random.default_rng(2)
    graph = Graph.grid((25, 25)).repeat(3)
    signs = np.repeat([1.0, -1.0, 1.0], np.diff(graph.edge_offsets))[:, None]
    field = Potentials(graph, rng.normal(size=(graph.n_nodes, 3)), 0.5 * signs, np.eye(3)[None])
    found = decode(field)
    assert found.methods == ("alpha-expansion", "max-product", "alpha-expansion")
    assert found.method == "alpha-expansion + max-product"
    graph, nodes, edges = field.graph.take([0, 2])
    two = Potentials(graph, field.unary[nodes], field.coefficients[edges], field.basis)
    assert_allclose(found.score[[0, 2]], decode(two, "alpha-expansion").score)


def test_a_set_without_a_graph_to_cut_is_refused():
    square = Potentials.from_tables(Graph.grid((2, 2)).repeat(2), np.zeros((8, 2)), -np.eye(2))
    with pytest.raises(CapabilityError, match=r"use .*'qpbo'"):
        decode(square, "graph-cut")
    with pytest.raises(CapabilityError, match="2 states, this one has 3"):
        decode(Potentials.from_tables(Graph.path(2), np.zeros((2, 3))), "qpbo")


def test_an_estimator_says_which_images_are_optimal():
    rng = np.random.default_rng(0)
    truth = np.zeros((6, 6), dtype=int)
    truth[:, 3:] = 1
    crf = GridCRF().fit([(truth + rng.normal(0, 0.3, truth.shape))[..., None]], [truth])
    crf.predict([rng.normal(size=(6, 6, 1)), rng.normal(size=(5, 4, 1))])
    assert crf.decoding_.optimal_graphs.tolist() == [True, True]
