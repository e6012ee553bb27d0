"""The pseudo-likelihood of tables in one pass: the same as node by node and edge by edge."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import EDGE_FORMS, NODE_FORMS, untied_field
from crfkit.graph.graph import Graph
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.synthetic import random_pairwise


def long_way(loss):
    """The same loss, through potentials: parts of data make no tables."""
    whole = loss.subset(np.arange(len(loss.data)))
    assert whole._table is None
    return whole


def same(a, b, rtol=1e-12):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(b).max(initial=0.0)))


def table(n_samples, n, states, d, seed, own, node_form="full", edge_form="full"):
    """Features of the samples, shared by all nodes (own=False), or of nodes, and of edges those of their ends."""
    rng = np.random.default_rng(seed)
    structure = Graph(n, [pair for pair in np.ndindex(n, n) if pair[0] < pair[1] and rng.random() < 0.7])
    Y = np.stack([rng.integers(0, k, n_samples) for k in states], axis=1)
    weights = rng.uniform(0, 2, n_samples) * (rng.random(n_samples) < 0.9)
    data = GraphData.table(n_samples, structure, rng.standard_normal((n_samples, d)), Y, weights)
    if own:
        X = rng.standard_normal((n_samples, n, d))
        i, j = structure.edges.T
        pairs = np.concatenate([X[:, i], X[:, j], rng.standard_normal((n_samples, len(i), 1))], axis=2)
        data = GraphData(
            data.graph,
            X.reshape(n_samples * n, d),
            pairs.reshape(n_samples * len(i), 2 * d + 1),
            node_types=data.node_types,
            edge_types=data.edge_types,
            labels=data.labels,
            weights=weights,
        )
    return PseudoLikelihood(data, untied_field(data, states, node_form, edge_form), n_threads=1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(2, 4),
    st.integers(0, 6),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from([0.1, 3.0, 300.0]),
)
def test_tables_equal_graphs(n_samples, n, K, d, seed, own, scale):
    rng = np.random.default_rng(seed)
    states = rng.integers(2, K + 1, n)
    ragged = (states != states[0]).any()
    forms = (
        ["full", "reference", "minimal", "ordinal"]
        if ragged
        else [f for f in EDGE_FORMS if f != "ising" or states[0] == 2]
    )
    node_forms = [f for f in NODE_FORMS if f != "ising" or (states == 2).all()]
    loss = table(n_samples, n, states, d, seed, own, rng.choice(node_forms), rng.choice(forms))
    assert loss._table is not None
    w = scale * rng.standard_normal(loss.size)
    quick, slow = loss.at(w), long_way(loss).at(w)
    same(quick.value, slow.value)
    same(quick.grad, slow.grad)
    same(quick.conditionals, slow.conditionals)


@pytest.mark.parametrize("kernels", ["generic", "avx2", "avx512"])
def test_kernels_and_threads(kernels):
    """More samples than a chunk, or a span, has; the same bits for any number of threads."""
    loss = table(1100, 6, [3] * 6, 9, 0, True)
    w = 0.3 * np.random.default_rng(1).standard_normal(loss.size)
    try:
        value, gradient = loss._table.value(w, 1, kernels)
    except ValueError:
        pytest.skip(f"this processor has no {kernels} instructions")
    slow = long_way(loss).at(w)
    same(value, slow.value)
    same(gradient, slow.grad)
    for n_threads in (2, 3, 8):
        other, gradient_too = loss._table.value(w, n_threads, kernels)
        assert other == value
        assert np.array_equal(gradient_too, gradient)


def test_certain_labels():
    """The loss of labels that are all but certain keeps its digits: log1p, not log."""
    structure = Graph(2, [(0, 1)])
    data = GraphData.table(3, structure, None, [[0, 0]] * 3)
    loss = PseudoLikelihood(data, untied_field(data, 2, "reference", "potts"), 1)
    at = loss.at(np.array([40.0, 40.0, 5.0]))
    assert at.value == pytest.approx(6 * np.exp(-45.0), rel=1e-12)
    assert at.grad[0] == pytest.approx(-3 * np.exp(-45.0), rel=1e-12)
    assert not np.isfinite(loss.at(np.array([np.nan, 0.0, 0.0])).value)


def test_equal_columns_are_kept_once():
    drawn = random_pairwise(6, 4, 50)
    data = drawn.data()
    loss = PseudoLikelihood(data, untied_field(data, 2), 1)
    from crfkit.graph.losses.pseudo_table import _Bank

    bank = _Bank()
    bank.add(data.node_features, data.node_rows, 50, 6)
    bank.add(data.edge_features, data.edge_rows, 50, 15)
    assert len(bank.columns) == 1 + 6 * 4
    w = np.random.default_rng(0).standard_normal(loss.size)
    same(loss.at(w).grad, long_way(loss).at(w).grad)


def test_what_is_no_table():
    drawn = random_pairwise(4, 2, 9)
    data = drawn.data()
    field = untied_field(data, 2)
    mixed = GraphData.join([data.take([0, 1]), GraphData(Graph(1, []), np.zeros((1, 3)), np.zeros((0, 5)),
                            node_types=[2], edge_types=[], labels=[1])])  # fmt: skip
    assert PseudoLikelihood(data, field)._table is not None
    assert PseudoLikelihood(mixed, field)._table is None


def test_copies():
    loss = table(9, 3, [2, 2, 2], 2, 0, True)
    w = np.ones(loss.size)
    value = loss.at(w).value
    assert pickle.loads(pickle.dumps(loss)).at(w).value == value
    assert copy.deepcopy(loss).at(w).value == value
