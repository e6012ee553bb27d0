"""What a stranger to GraphCRF and GridCRF meets: pairs of labels, claims that must be true, data of all kinds."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest

from crfkit import Graph, GraphCRF, GridCRF


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
