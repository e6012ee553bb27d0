"""Inputs of GraphCRF and GridCRF: names of columns, stacks of images, graphs of all kinds."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from crfkit import GraphCRF, GridCRF
from crfkit.errors import DataError


def table(n=30, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X @ rng.normal(size=(2, k)) + rng.normal(size=(n, k)) > 0).astype(int)


def images(sizes, seed=0):
    rng = np.random.default_rng(seed)
    truth = [(np.add.outer(np.arange(h), np.arange(w)) // 3) % 2 for h, w in sizes]
    return [(t + rng.normal(0, 0.5, t.shape))[..., None] for t in truth], truth


# --- names of columns


class Frame:
    """What is used of a data frame."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = np.asarray(values), columns, np.shape(values)

    def to_numpy(self):
        return self.values

    def __len__(self):
        return len(self.values)


def test_columns_of_labels_go_by_their_names():
    X, Y = table()
    crf = GraphCRF([("p", "q")]).fit(X, Frame(Y, ["p", "q", "r"]))
    turned = Frame(Y[:, ::-1], ["r", "q", "p"])
    assert crf.score(X, turned) == crf.score(X, Y)
    np.testing.assert_allclose(crf.log_likelihood(X, turned), crf.log_likelihood(X, Y))
    np.testing.assert_array_equal(crf.predict(X, observed=turned), Y)
    with pytest.raises(DataError, match="the labels have no column 'p', which the model was trained on"):
        crf.score(X, Frame(Y, ["q", "r", "s"]))


def test_columns_without_names_go_by_their_order():
    X, Y = table()
    crf = GraphCRF().fit(X, Y)
    np.testing.assert_array_equal(crf.predict(Frame(X, ["u", "v"])), crf.predict(X))
    assert crf.score(X, Frame(Y, ["p", "q", "r"])) == crf.score(X, Y)


def test_star_import():
    names = {}
    exec("from crfkit import *", names)
    assert names["GraphCRF"] is GraphCRF


# --- forms of data


def test_a_stack_of_images():
    X, Y = images([(3, 4), (3, 4)])
    crf = GridCRF().fit(np.stack(X), np.stack(Y))
    np.testing.assert_array_equal(crf.coef_, GridCRF().fit(X, Y).coef_)
    assert [p.shape for p in crf.predict(np.stack(X))] == [(3, 4), (3, 4)]
    assert crf.score(np.stack(X), np.stack(Y)) == crf.score(X, Y)
    assert crf.predict_marginals(np.stack(X))[0].shape == (3, 4, 2)
    assert len(cross_val_score(GridCRF(), np.stack(X * 2), np.stack(Y * 2), cv=2)) == 2


def test_graphs_in_an_array_of_objects():
    X = np.empty(2, dtype=object)
    X[:] = [{"features": np.eye(2), "edges": [(0, 1)]}] * 2
    crf = GraphCRF().fit(X, [[0, 1], [0, 1]])
    assert [y.tolist() for y in crf.predict(X)] == [[0, 1], [0, 1]]


def test_labels_of_nodes_that_are_not_there():
    with pytest.raises(DataError, match="graph 1 has no node '2', but a label for it"):
        GraphCRF().fit([nx.path_graph(3)] * 2, [{0: "a", 1: "b", 2: "a"}, {0: "a", 1: "b", "2": "a"}])


def test_directed_graphs():
    with pytest.raises(DataError, match=r"graph 0: nodes .* are joined twice; edges have no direction here"):
        GraphCRF().fit([nx.path_graph(3).to_directed()], [["a", "b", "a"]])


def test_shapes_that_do_not_fit():
    X, Y = table()
    with pytest.raises(DataError, match="X has 5 rows, Y has 30"):
        GraphCRF().fit(X[:5], Y)
    with pytest.raises(DataError, match=r"for one variable give Y\[:, None\]"):
        GraphCRF().fit(X, Y[:, 0])
