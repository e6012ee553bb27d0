"""Marginals of GraphCRF: those of edges, and what is said of inference that is approximate or has not converged."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import networkx as nx
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from crfkit import L2, Graph, GraphCRF, GraphModel, GridCRF
from crfkit.graph.inference.belief_propagation import BeliefPropagation
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.graph.training.train import concerns
from crfkit.result import Result, Status


def table(n=30, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X @ rng.normal(size=(2, k)) + rng.normal(size=(n, k)) > 0).astype(int)


def images(sizes, seed=0):
    rng = np.random.default_rng(seed)
    truth = [(np.add.outer(np.arange(h), np.arange(w)) // 3) % 2 for h, w in sizes]
    return [(t + rng.normal(0, 0.5, t.shape))[..., None] for t in truth], truth


# --- marginals of edges


def test_marginals_of_edges_are_sums_over_labellings():
    X, Y = table()
    words = np.array(["low", "mid", "top"])[np.clip(Y.sum(axis=1), 0, 2)]
    mixed = [[*map(bool, row[:2]), word] for row, word in zip(Y, words, strict=True)]
    crf = GraphCRF([(2, 0), (0, 1)]).fit(X, mixed)
    found = crf.predict_edge_marginals(X[:2])
    assert found.shape == (2, 2, 3, 3)
    expected = np.zeros_like(found)
    for states in product(range(2), range(2), range(3)):
        labels = [crf.classes_[i][k] for i, k in enumerate(states)]
        p = np.exp(crf.log_likelihood(X[:2], [labels, labels]))
        for e, (i, j) in enumerate([(2, 0), (0, 1)]):
            expected[:, e, states[i], states[j]] += p
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("inference", ["junction", "bp"])
def test_marginals_of_edges_and_nodes_agree(inference):
    X, Y = images([(3, 4), (2, 5)])
    crf = GridCRF(neighbours=8, inference=inference).fit(X, Y)
    observed = [np.full(y.shape, -1) for y in Y]
    observed[1][0, 0] = 1
    nodes = crf.predict_marginals(X, observed)
    edges = crf.predict_edge_marginals(X, observed)
    for image, p, q in zip(X, nodes, edges, strict=True):
        i, j = Graph.grid(image.shape[:2], 8).edges.T
        p = p.reshape(-1, 2)
        np.testing.assert_allclose(q.sum(axis=2), p[i], atol=1e-4)
        np.testing.assert_allclose(q.sum(axis=1), p[j], atol=1e-4)
    assert edges[1][0, 0].sum() == pytest.approx(0, abs=1e-9)  # the first edge begins at the pixel that is known


def test_marginals_of_edges_of_graphs_without_some():
    path = nx.path_graph(3)
    nx.set_node_attributes(path, {v: [float(v)] for v in path}, "features")
    alone = nx.empty_graph(2)
    nx.set_node_attributes(alone, {v: [1.0] for v in alone}, "features")
    crf = GraphCRF().fit([path, alone], [["a", "b", "b"], ["a", "b"]])
    assert [q.shape for q in crf.predict_edge_marginals([path, alone, path])] == [(2, 2, 2), (0, 2, 2), (2, 2, 2)]
    assert crf.predict_edge_marginals([]) == []


def test_marginals_of_edges_without_inputs_are_frequencies():
    _, Y = table(200)
    crf = GraphCRF(penalty=None, tolerance=1e-10).fit(None, Y)
    q = crf.predict_edge_marginals(observed=np.full((3, 3), -1))
    np.testing.assert_allclose(q[0], q[2])
    np.testing.assert_allclose(q[0], crf.predict_edge_marginals()[0], atol=1e-12)
    both = [
        [((Y[:, i] == a) & (Y[:, j] == b)).mean() for a, b in product(range(2), repeat=2)]
        for i, j in Graph.complete(3).edges
    ]
    np.testing.assert_allclose(q[0].reshape(3, 4), both, atol=0.02)


# --- what is claimed


def strong_pairs(n=60, k=14, seed=0):
    """Labels that nearly always agree: the Bethe approximation on the complete graph is far off."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, 1)) < 0.5) ^ (rng.random((n, k)) < 0.1)


def test_probabilities_above_one_are_said():
    crf = GraphCRF(inference="bp")
    with pytest.warns(ConvergenceWarning) as said:
        crf.fit(None, strong_pairs())
    assert crf.result_.value < 0
    assert any("a probability above one" in str(w.message) for w in said)


def test_inference_that_does_not_settle_is_said():
    X, Y = table()
    crf = GraphCRF(inference="enumerate").fit(X, Y)
    crf.set_params(inference=BeliefPropagation(max_iterations=1))
    for ask in (
        lambda: crf.predict_marginals(X),
        lambda: crf.predict_edge_marginals(X),
        lambda: crf.log_partition(X),
        lambda: crf.log_likelihood(X, Y),
    ):
        with pytest.warns(ConvergenceWarning, match="inference has not converged") as said:
            ask()
        assert said[0].filename == __file__
        assert not crf.inference_status_.settled


def test_the_status_of_a_likelihood_is_that_of_both_inferences(monkeypatch):
    """log p of some labels is a difference of two log Z; one that did not converge spoils it."""
    X, Y = table()
    crf = GraphCRF(inference="enumerate").fit(X, Y)
    infer = GraphModel.infer

    def unsettled(self, data, observed=None):
        found = infer(self, data, observed)
        return found if observed is None else replace(found, status=InferenceStatus.NOT_CONVERGED)

    monkeypatch.setattr(GraphModel, "infer", unsettled)
    with pytest.warns(ConvergenceWarning, match="not converged"):
        crf.log_likelihood(X, np.where(X[:, :1] > 0, -1, Y))


def test_failed_line_searches_under_approximate_inference_do_not_blame_the_gradient():
    result = Result(np.zeros(1), 1.0, 1.0, Status.LINE_SEARCH_FAILED, (), {}, "x", 1, 1.0)
    for status in (InferenceStatus.CONVERGED, InferenceStatus.NOT_CONVERGED):
        said = concerns(result, status)
        assert "approximate inference jumps" in said[0]
        assert "the gradient is wrong" not in "".join(said)
    assert "the gradient is wrong" in concerns(result, InferenceStatus.EXACT)[0]


def test_exact_inference_is_automatic_only_where_it_is_cheap():
    rng = np.random.default_rng(0)
    for side, exact in ((6, True), (14, True), (18, False)):
        truth = rng.integers(0, 2, (side, side))
        crf = GridCRF(n_threads=1, max_iterations=1, penalty=L2(100))
        with pytest.warns(ConvergenceWarning):
            crf.fit([truth[..., None] + 0.0], [truth])
        assert (crf.inference_status_ is InferenceStatus.EXACT) == exact
        assert ("junction" in crf.result_.objective) == exact
