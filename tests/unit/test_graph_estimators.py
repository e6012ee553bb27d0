"""GraphCRF and GridCRF: laws of training and prediction on tables, graphs and images; files; what is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from crfkit import L1, L2, ChainCRF, Graph, GraphCRF, GraphSample, GridCRF
from crfkit.errors import DataError, ModelFileError, ParameterError, StopTraining
from crfkit.graph.inference.belief_propagation import BeliefPropagation
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.graph.losses.composite import CompositeLikelihood
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.graph.model import GraphModel
from crfkit.graph.training.train import concerns
from crfkit.result import Status

EXACT = {"inference": "junction", "decode": "enumerate", "n_threads": 1, "standardize": False}
TIGHT = {**EXACT, "tolerance": 1e-9, "max_iterations": 500}


class Frame:
    """What the estimators use of a data frame."""

    def __init__(self, values, columns):
        self.values, self.columns = np.asarray(values), list(columns)

    def to_numpy(self):
        return self.values

    def __len__(self):
        return len(self.values)


def table(n=36, d=3, variables=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noise = rng.normal(size=(n, variables)) + rng.normal(size=(n, 1))
    return X, (X @ rng.normal(size=(d, variables)) + noise > 0).astype(int)


def graphs(n=8, seed=0, edge_features=True):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        size = int(rng.integers(3, 6))
        pairs = [(i, j) for i in range(size) for j in range(i) if j == i - 1 or rng.random() < 0.3]
        labels = np.sort(rng.integers(0, 3, size))
        features = np.eye(3)[labels] + rng.normal(0, 0.8, (size, 3))
        sample = {"features": features, "edges": pairs}
        if edge_features:
            sample["edge_features"] = rng.normal(size=(len(pairs), 2))
        X.append(sample)
        Y.append(labels)
    return X, Y


def images(n=3, seed=0):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for k in range(n):
        truth = np.zeros((3, 3 + k % 2), dtype=int)
        truth[:, 1 + k % 2 :] = 1
        X.append((truth + rng.normal(0, 0.5, truth.shape))[..., None])
        Y.append(truth)
    return X, Y


def fitted(crf, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return crf.fit(*data, **options)


# --- tables


@pytest.mark.parametrize("strength", [0.3, 5.0])
@pytest.mark.parametrize("form", [np.asarray, csr_array, lambda X: X.tolist()], ids=["dense", "sparse", "list"])
def test_without_edges_it_is_logistic_regression(strength, form):
    X, Y = table()
    crf = GraphCRF("none", penalty=L2(strength), **TIGHT).fit(form(X), Y)
    ones = np.hstack([np.ones((len(X), 1)), X])
    for i, p in enumerate(crf.predict_marginals(form(X))):
        peer = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-10, max_iter=1000).fit(ones, Y[:, i])
        np.testing.assert_allclose(p, peer.predict_proba(ones), atol=1e-4)
    assert crf.edge_weights_ == {}
    np.testing.assert_array_equal(
        crf.predict(form(X)), (np.stack([m[:, 1] for m in crf.predict_marginals(X)], 1) > 0.5)
    )


def test_without_inputs_counts_are_enough():
    _, Y = table(200)
    short = GraphCRF(penalty=L2(0.1), **TIGHT).fit(None, Y)
    long = GraphCRF(penalty=L2(0.1), loss=lambda data, field: GraphLikelihood(data, field, Enumerate()), **TIGHT)
    long.fit(None, Y)
    np.testing.assert_allclose(short.coef_, long.coef_, atol=1e-4)
    assert short.result_.value == pytest.approx(long.result_.value, rel=1e-8)


@pytest.mark.parametrize(
    ("loss", "make"), [("pseudo-likelihood", PseudoLikelihood), ("composite", CompositeLikelihood)]
)
def test_without_inputs_distinct_rows_are_enough(loss, make):
    _, Y = table(100)
    weights = np.random.default_rng(0).random(100)
    short = GraphCRF(loss=loss, **TIGHT).fit(None, Y, weights)
    long = GraphCRF(loss=make, **TIGHT).fit(None, Y, weights)
    np.testing.assert_allclose(short.coef_, long.coef_, atol=1e-4)
    assert short.result_.value == pytest.approx(long.result_.value, rel=1e-8)


def test_without_inputs_and_penalty_marginals_are_frequencies():
    _, Y = table(200)
    crf = GraphCRF([(0, 1), (1, 2)], penalty=L2(1e-6), **TIGHT).fit(None, Y)
    for i, p in enumerate(crf.predict_marginals()):
        np.testing.assert_allclose(p[0, 1], Y[:, i].mean(), atol=1e-3)


def test_the_objective_is_minus_the_log_likelihood_plus_the_penalty():
    X, Y = table()
    crf = GraphCRF(edge_penalty=L2(1.0), **EXACT).fit(X, Y)
    assert crf.result_.value == pytest.approx(-crf.log_likelihood(X, Y).sum() + 0.5 * crf.coef_ @ crf.coef_)


def test_probabilities_of_all_labellings_sum_to_one():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    every = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).T
    total = sum(np.exp(crf.log_likelihood(X[:5], np.tile(y, (5, 1)))) for y in every)
    np.testing.assert_allclose(total, 1)


@pytest.mark.parametrize("labels", [["a", "b"], [-1, 1], [0.5, 7.5], [True, False], ["no", "yes"]])
def test_names_of_labels_do_not_matter(labels):
    X, Y = table()
    plain = GraphCRF(**EXACT).fit(X, Y)
    named = GraphCRF(**EXACT).fit(X, np.array(sorted(labels))[Y])
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    assert [c.tolist() for c in named.classes_] == [sorted(labels)] * 3
    np.testing.assert_array_equal(named.predict(X), np.array(sorted(labels))[plain.predict(X)])


def test_the_order_of_labels_does_not_matter():
    X, Y = table()
    options = {**TIGHT, "node_form": "full", "edge_form": "full"}
    p = GraphCRF(**options).fit(X, Y).predict_marginals(X)
    q = GraphCRF(**options).fit(X, 1 - Y).predict_marginals(X)
    for a, b in zip(p, q, strict=True):
        np.testing.assert_allclose(a, b[:, ::-1], atol=1e-4)


def test_columns_of_different_labels():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 50), rng.integers(0, 3, 50)
    Y = np.empty((50, 2), dtype=object)
    Y[:, 0], Y[:, 1] = np.array(["no", "yes"])[a], b * 10
    X = np.stack([a, b, rng.normal(size=50)], axis=1).astype(float)
    crf = GraphCRF(**EXACT).fit(X, Y)
    assert [c.tolist() for c in crf.classes_] == [["no", "yes"], [0, 10, 20]]
    predicted = crf.predict(X)
    assert predicted.dtype == object
    assert (predicted == Y).mean() > 0.9
    assert crf.score(X, Y) == pytest.approx((predicted == Y).mean())
    assert [p.shape for p in crf.predict_marginals(X)] == [(50, 2), (50, 3)]
    for p in crf.predict_marginals(X):
        np.testing.assert_allclose(p.sum(axis=1), 1)
    as_lists = GraphCRF(**EXACT).fit(X, Y.tolist())
    np.testing.assert_array_equal(as_lists.coef_, crf.coef_)


def test_graphs_of_a_table():
    X, Y = table()
    names = Frame(Y, ["r", "s", "t"])
    pairs = [(0, 1), (1, 2)]
    reference = GraphCRF(pairs, **EXACT).fit(X, Y).coef_
    tree = nx.Graph([("r", "s"), ("s", "t")])
    for graph in (np.array(pairs), Graph(3, pairs), nx.Graph(pairs), [("r", "s"), ("s", "t")], tree):
        np.testing.assert_array_equal(GraphCRF(graph, **EXACT).fit(X, names).coef_, reference)
    complete = GraphCRF("complete", **EXACT).fit(X, Y)
    np.testing.assert_array_equal(GraphCRF([(0, 1), (0, 2), (1, 2)], **EXACT).fit(X, Y).coef_, complete.coef_)


def test_no_rows():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    assert crf.predict(X[:0]).shape == (0, 3)
    assert [p.shape for p in crf.predict_marginals(X[:0])] == [(0, 2)] * 3
    assert crf.log_likelihood(X[:0], Y[:0]).shape == (0,)
    assert crf.sample(X[:0], 2).shape == (2, 0, 3)


def test_edges_without_features():
    X, Y = table()
    crf = GraphCRF("complete", edge_features=False, **EXACT).fit(X, Y)
    assert len(crf.coef_) == 3 * 4 + 3 * 3
    assert set(crf.edge_weights_) >= {(("y0", "y1"), "intercept", (0, 0)), (("y1", "y2"), "intercept", (1, 0))}
    assert len(GraphCRF("complete", **EXACT).fit(X, Y).coef_) == 3 * 4 + 3 * 3  # the default of tables
    assert len(GraphCRF("complete", edge_features=True, **EXACT).fit(X, Y).coef_) == 3 * 4 + 3 * 3 * 4


def test_columns_by_name():
    X, Y = table()
    crf = GraphCRF(edge_features=True, **EXACT).fit(Frame(X, "abc"), Frame(Y, ["r", "s", "t"]))
    shuffled = Frame(X[:, [2, 0, 1]], "cab")
    np.testing.assert_array_equal(crf.predict(shuffled), crf.predict(X))
    assert ("r", "b", 0) in crf.node_weights_
    assert (("r", "t"), "c", (1, 0)) in crf.edge_weights_
    with pytest.raises(DataError, match="X has no column 'b', which the model was trained on"):
        crf.predict(Frame(X[:, :2], "ac"))


def test_weights_by_name_are_the_weights():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    values = [*crf.node_weights_.values(), *crf.edge_weights_.values()]
    np.testing.assert_array_equal(values, crf.coef_)
    x = np.concatenate([[1], X[0]])
    y = Y[0]
    score = sum(
        w * x[["intercept", "x0", "x1", "x2"].index(f)]
        for (v, f, k), w in crf.node_weights_.items()
        if y[int(v[1])] == k
    )
    for ((a, b), f, (k, m)), w in crf.edge_weights_.items():
        if (y[int(a[1])], y[int(b[1])]) == (k, m):
            score += w * x[["intercept", "x0", "x1", "x2"].index(f)]
    assert score - crf.log_partition(X[:1])[0] == pytest.approx(crf.log_likelihood(X[:1], Y[:1])[0])


def test_weights_of_samples():
    X, Y = table()
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    weighted = GraphCRF(**TIGHT).fit(X, Y, sample_weight=counts)
    repeated = GraphCRF(**TIGHT).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    assert weighted.score(X, Y, counts) == pytest.approx(
        repeated.score(np.repeat(X, counts, 0), np.repeat(Y, counts, 0))
    )
    with pytest.raises(ParameterError, match="every sample has weight 0"):
        GraphCRF(**EXACT).fit(X, Y, sample_weight=np.zeros(len(X)))


# --- known labels at prediction


def test_given_all_others_a_label_has_the_softmax_of_its_scores():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    observed = Y.astype(float)
    observed[:, 1] = np.nan
    scores = np.stack([crf.log_likelihood(X, np.insert(Y[:, [0, 2]], 1, k, axis=1)) for k in (0, 1)], axis=1)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    p = crf.predict_marginals(X, observed)
    np.testing.assert_allclose(p[1], expected)
    np.testing.assert_allclose(p[0][:, 1], Y[:, 0], atol=1e-12)
    predicted = crf.predict(X, observed)
    np.testing.assert_array_equal(predicted[:, [0, 2]], Y[:, [0, 2]])
    np.testing.assert_array_equal(predicted[:, 1], expected.argmax(axis=1))


def test_markers_of_the_unknown():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    mask = np.random.default_rng(0).random(Y.shape) < 0.5
    forms = [
        np.where(mask, Y, -1),
        np.where(mask, Y, np.nan),
        np.where(mask, Y.astype(object), None),
        np.ma.masked_array(Y, ~mask),
        [[int(v) if m else None for v, m in zip(*row, strict=True)] for row in zip(Y, mask, strict=True)],
    ]
    results = [crf.log_partition(X, observed) for observed in forms]
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    assert (results[0] <= crf.log_partition(X)).all()
    np.testing.assert_array_equal(crf.log_partition(X, np.full(Y.shape, -1)), crf.log_partition(X))
    signs = GraphCRF(**EXACT).fit(X, 2 * Y - 1)  # here −1 is a label
    np.testing.assert_allclose(
        signs.log_partition(X, 2 * Y - 1) - signs.log_partition(X), signs.log_likelihood(X, 2 * Y - 1)
    )


def test_log_likelihood_sums_over_the_unknown():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    partly = np.where(np.arange(3) == 2, -1, Y)
    both = [crf.log_likelihood(X, np.where(np.arange(3) == 2, k, Y)) for k in (0, 1)]
    np.testing.assert_allclose(crf.log_likelihood(X, partly), np.logaddexp(*both))


def test_without_inputs_rows_are_those_of_observed():
    _, Y = table()
    crf = GraphCRF(**EXACT).fit(None, Y)
    assert crf.predict().shape == (1, 3)
    assert crf.predict(observed=[[1, -1, -1], [-1, 0, 0]])[:, 0].tolist()[0] == 1
    every = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).T
    assert np.exp(crf.log_likelihood(None, every)).sum() == pytest.approx(1)
    np.testing.assert_allclose(crf.log_likelihood(None, every[:1]), crf.log_likelihood(None, every)[:1])
    assert crf.score(None, Y) == pytest.approx((crf.predict() == Y).mean())
    with pytest.raises(DataError, match="the model has no inputs"):
        crf.predict(Y)


# --- samples and decoding


@pytest.mark.parametrize("kind", ["table", "graphs", "images"])
def test_frequencies_of_samples_are_marginals(kind):
    (X, Y), crf = {
        "table": (table(20), GraphCRF(**EXACT)),
        "graphs": (graphs(), GraphCRF(**EXACT)),
        "images": (images(), GridCRF(**EXACT)),
    }[kind]
    crf = fitted(crf, X, Y)
    X = X[:2]
    drawn = crf.sample(X, 3000, random_state=3)
    p = crf.predict_marginals(X)
    if kind == "table":
        for i in range(3):
            np.testing.assert_allclose((drawn[:, :, i] == 1).mean(axis=0), p[i][:, 1], atol=0.05)
    else:
        for labels, q, y in zip(drawn, p, Y, strict=False):
            assert labels.shape == (3000, *y.shape)
            np.testing.assert_allclose((labels == 1).mean(axis=0), q[..., 1], atol=0.05)
    again, other = crf.sample(X, 50, random_state=3), crf.sample(X, 50, random_state=4)
    assert all(np.array_equal(a, b) for a, b in zip(crf.sample(X, 50, random_state=3), again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(other, again, strict=True))
    with pytest.raises(ParameterError, match="n_samples"):
        crf.sample(X, 0)


def test_decoding_says_how():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    best = crf.predict(X)
    assert crf.decoding_.optimal
    np.testing.assert_allclose(crf.decoding_.score - crf.log_partition(X), crf.log_likelihood(X, best))
    crf.set_params(decode="marginal")
    by_node = crf.predict(X)
    np.testing.assert_array_equal(by_node, np.stack([p.argmax(axis=1) for p in crf.predict_marginals(X)], axis=1))
    assert (crf.decoding_.method, crf.decoding_.optimal) == ("marginal", False)
    assert (crf.log_likelihood(X, best) >= crf.log_likelihood(X, by_node) - 1e-12).all()
    with pytest.raises(ParameterError, match="unknown decoder 'best'; expected one of auto"):
        crf.set_params(decode="best").predict(X)


# --- graphs


def test_a_path_is_a_chain():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 2)) for _ in range(12)]
    Y = [(x[:, 0] + 0.3 * rng.normal(size=4) > 0).astype(int) for x in X]
    chain = ChainCRF(tolerance=1e-9, all_possible_states=True, all_possible_transitions=True, n_threads=1).fit(X, Y)
    samples = [(x, Graph.path(4).edges) for x in X]
    crf = GraphCRF(intercept=False, edge_form="full", **TIGHT).fit(samples, Y)
    assert crf.result_.value == pytest.approx(chain.result_.value, rel=1e-6)
    for a, b in zip(crf.predict_marginals(samples), chain.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


def test_forms_of_a_graph():
    X, Y = graphs()
    crf = fitted(GraphCRF(**EXACT), X, Y)
    tuples = [(x["features"], x["edges"], x["edge_features"]) for x in X]
    samples = [GraphSample(csr_array(x["features"]), x["edges"], x["edge_features"]) for x in X]
    networks = []
    for x in X:
        graph = nx.Graph()
        for i, features in enumerate(x["features"]):
            graph.add_node(f"node {i}", features=features)
        for (i, j), features in zip(x["edges"], x["edge_features"], strict=True):
            graph.add_edge(f"node {i}", f"node {j}", features=features)
        networks.append(graph)
    for other in (tuples, samples, networks):
        again = fitted(GraphCRF(**EXACT), other, Y)
        np.testing.assert_allclose(again.coef_, crf.coef_, atol=1e-6)
        assert all(np.array_equal(a, b) for a, b in zip(again.predict(X), crf.predict(other), strict=True))
    by_name = [{f"node {i}": label for i, label in reversed(list(enumerate(y)))} for y in Y]
    np.testing.assert_allclose(fitted(GraphCRF(**EXACT), networks, by_name).coef_, crf.coef_, atol=1e-6)


@pytest.mark.parametrize(("form", "tables"), [("full", 9), ("symmetric", 6), ("potts", 1)])
def test_forms_of_edges(form, tables):
    X, Y = graphs()
    crf = fitted(GraphCRF(edge_form=form, **EXACT), X, Y)
    assert len(crf.node_weights_) == 3 * 4
    assert len(crf.edge_weights_) == tables * 3
    np.testing.assert_array_equal([*crf.node_weights_.values(), *crf.edge_weights_.values()], crf.coef_)
    if form != "full":  # then the order of an edge's ends does not matter
        turned = [{**x, "edges": [(j, i) for i, j in x["edges"]]} for x in X]
        np.testing.assert_allclose(crf.log_partition(turned), crf.log_partition(X))
    if form == "potts":
        assert ("e1", "equal") in crf.edge_weights_


def test_relabelled_graphs():
    X, Y = graphs()
    plain = fitted(GraphCRF(**TIGHT), X, Y)
    turned = fitted(GraphCRF(**TIGHT), X, [2 - y for y in Y])
    for a, b in zip(plain.predict_marginals(X), turned.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a.sum(axis=1), 1)
        np.testing.assert_allclose(a, b[:, ::-1], atol=1e-4)


def test_graphs_without_edges_features_or_nodes():
    X, Y = graphs(edge_features=False)
    lone = [*X, {"features": np.zeros((1, 3)), "edges": []}, {"features": np.zeros((0, 3)), "edges": []}]
    crf = fitted(GraphCRF(**EXACT), lone, [*Y, [0], []])
    assert [len(labels) for labels in crf.predict(lone)] == [len(y) for y in Y] + [1, 0]
    assert crf.predict([]) == []
    assert crf.log_partition(lone)[-1] == 0
    bare = [{"edges": x["edges"], "n_nodes": len(y)} for x, y in zip(X, Y, strict=True)]
    crf = fitted(GraphCRF(**EXACT), bare, Y)
    assert set(crf.node_weights_) == {("intercept", k) for k in range(3)}
    with_features, labels = graphs()
    crf = fitted(GraphCRF(**EXACT), [lone[-2], *with_features], [[0], *labels])
    assert len(crf.predict([lone[-2]])[0]) == 1


def test_unknown_labels_of_tables():
    """What is not known is summed out: a label that is not known tells nothing; all of a row tell what they are."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    Y = (X @ rng.normal(size=(2, 3)) + rng.normal(size=(60, 3)) > 0).astype(float)
    Y[::4, 1] = np.nan
    Y[5] = np.nan
    options = {"inference": "enumerate", "tolerance": 1e-9, "standardize": False, "edge_penalty": L2(1.0)}
    crf = GraphCRF(**options).fit(X, Y)
    keep = np.delete(np.arange(60), 5)
    np.testing.assert_allclose(crf.result_.value, GraphCRF(**options).fit(X[keep], Y[keep]).result_.value, rtol=1e-7)
    penalty = 0.5 * (crf.result_.w**2).sum()
    np.testing.assert_allclose(crf.result_.value, penalty - crf.log_likelihood(X, Y).sum(), rtol=1e-9)
    alone = GraphCRF(**options).fit(None, Y)
    assert alone.result_.status.converged
    with pytest.raises(DataError, match="no label at row 0, column y1, and this loss needs all labels"):
        GraphCRF(loss="pseudo-likelihood").fit(X, Y)


def test_unknown_labels_of_graphs():
    X, Y = graphs()
    hidden = [np.where(np.arange(len(y)) == 1, -1, y) for y in Y]
    crf = fitted(GraphCRF(**EXACT), X, hidden)
    assert crf.classes_.tolist() == [0, 1, 2]
    assert crf.result_.value == pytest.approx(-crf.log_likelihood(X, hidden).sum() + 0.5 * crf.coef_ @ crf.coef_)
    masked = [np.ma.masked_array(y, np.arange(len(y)) == 1) for y in Y]
    nones = [np.where(np.arange(len(y)) == 1, None, y.astype(object)) for y in Y]
    for other in (masked, nones):
        np.testing.assert_allclose(fitted(GraphCRF(**EXACT), X, other).coef_, crf.coef_)
    truth = crf.score(X, Y)
    hits = [(a == b)[np.arange(len(a)) != 1] for a, b in zip(crf.predict(X), Y, strict=True)]
    assert crf.score(X, hidden) == pytest.approx(np.concatenate(hits).mean())
    assert 0.3 < truth <= 1


# --- images


def test_an_image_is_a_graph():
    X, Y = images()
    crf = fitted(GridCRF(**EXACT), X, Y)
    samples = []
    for image in X:
        h = image.reshape(-1, 1)
        edges = Graph.grid(image.shape[:2]).edges
        samples.append((h, edges, np.abs(h[edges[:, 0]] - h[edges[:, 1]])))
    peer = fitted(GraphCRF(edge_form="potts", **EXACT), samples, [y.ravel() for y in Y])
    np.testing.assert_array_equal(crf.coef_, peer.coef_)
    for a, b, y in zip(crf.predict(X), peer.predict(samples), Y, strict=True):
        assert a.shape == y.shape
        np.testing.assert_array_equal(a.ravel(), b)
    assert crf.score(X, Y) == peer.score(samples, [y.ravel() for y in Y])
    for p, y in zip(crf.predict_marginals(X), Y, strict=True):
        assert p.shape == (*y.shape, 2)
        np.testing.assert_allclose(p.sum(axis=-1), 1)
    observed = [np.where(y == 1, 1, -1) for y in Y]
    assert all((labels[y == 1] == 1).all() for labels, y in zip(crf.predict(X, observed), Y, strict=True))


def test_labels_of_images():
    X, Y = images()
    crf = fitted(GridCRF(**EXACT), X, Y)
    for names in (np.array([-1, 1]), np.array(["back", "fore"])):
        other = fitted(GridCRF(**EXACT), X, [names[y] for y in Y])
        np.testing.assert_array_equal(other.coef_, crf.coef_)
        np.testing.assert_array_equal(other.classes_, names)
        assert all(np.array_equal(names[a], b) for a, b in zip(crf.predict(X), other.predict(X), strict=True))
    hidden = [np.where(np.indices(y.shape)[0] == 0, -1, y) for y in Y]
    masked = [np.ma.masked_array(y, np.indices(y.shape)[0] == 0) for y in Y]
    np.testing.assert_allclose(fitted(GridCRF(**EXACT), X, hidden).coef_, fitted(GridCRF(**EXACT), X, masked).coef_)


def test_turned_images():
    X, Y = images()
    crf = fitted(GridCRF(neighbours=8, **TIGHT), X, Y)
    turned = fitted(GridCRF(neighbours=8, **TIGHT), [np.rot90(x) for x in X], [np.rot90(y) for y in Y])
    np.testing.assert_allclose(turned.coef_, crf.coef_, atol=1e-4)


def test_pixels_without_features():
    X, Y = images()
    crf = fitted(GridCRF(**EXACT), [x[..., :0] for x in X], Y)
    assert set(crf.node_weights_) == {("intercept", 0), ("intercept", 1)}
    assert set(crf.edge_weights_) == {("intercept", "equal")}


def test_volumes():
    rng = np.random.default_rng(0)
    Y = [np.arange(8).reshape(2, 2, 2) // 4, np.arange(4).reshape(2, 2, 1) // 2]
    X = [np.stack([y + rng.normal(0, 0.5, y.shape), rng.normal(size=y.shape)], axis=-1) for y in Y]
    for neighbours in (6, 26):
        crf = fitted(GridCRF(neighbours=neighbours, **EXACT), X, Y)
        assert [labels.shape for labels in crf.predict(X)] == [(2, 2, 2), (2, 2, 1)]
        assert set(crf.edge_weights_) == {("intercept", "equal"), ("e0", "equal"), ("e1", "equal")}


def test_edge_features_of_images(tmp_path):
    X, Y = images()
    assert len(fitted(GridCRF(edge_features=None, **EXACT), X, Y).edge_weights_) == 1
    default = fitted(GridCRF(**EXACT), X, Y)
    own = fitted(GridCRF(edge_features=distance, **EXACT), X, Y)
    np.testing.assert_array_equal(own.coef_, default.coef_)
    own.save(tmp_path / "m.crf")
    with pytest.raises(ParameterError, match=r"are a function.* GridCRF\.load"):
        GridCRF.load(tmp_path / "m.crf").predict(X)
    again = GridCRF.load(tmp_path / "m.crf", edge_features=distance).set_params(**EXACT)
    assert all(np.array_equal(a, b) for a, b in zip(again.predict(X), own.predict(X), strict=True))
    with pytest.raises(ParameterError, match="edge_features returned shape"):
        GridCRF(edge_features=lambda a, b: a.sum(), **EXACT).fit(X, Y)


def distance(a, b):
    return np.abs(a - b)


# --- engines, losses and decoders by name


@pytest.mark.parametrize("graph", [[(0, 1), (1, 2)], "complete"], ids=["tree", "cycle"])
def test_exact_engines_agree(graph):
    X, Y = table()
    reference = GraphCRF(graph, **{**TIGHT, "inference": "enumerate"}).fit(X, Y)
    tree = graph != "complete"
    for engine in ("auto", "junction", *(["tree", "bp", "trw"] if tree else [])):
        crf = GraphCRF(graph, **{**TIGHT, "inference": engine, "decode": "auto"}).fit(X, Y)
        assert crf.result_.value == pytest.approx(reference.result_.value, rel=1e-6)
        np.testing.assert_allclose(crf.log_partition(X), reference.log_partition(X), atol=1e-3)
        np.testing.assert_array_equal(crf.predict(X), reference.predict(X))
        assert crf.decoding_.optimal
        assert crf.decoding_.method == ("tree" if tree else crf.decoding_.method)


def test_bounds():
    X, Y = table()
    crf = GraphCRF(**EXACT).fit(X, Y)
    exact = crf.log_partition(X)
    assert (crf.set_params(inference="trw").log_partition(X) >= exact - 1e-6).all()
    assert crf.inference_status_ is InferenceStatus.CONVERGED
    assert (crf.set_params(inference="mean-field").log_partition(X) <= exact + 1e-6).all()
    np.testing.assert_allclose(crf.set_params(inference="gibbs").predict_marginals(X[:4])[0].sum(axis=1), 1)
    assert crf.inference_status_ is InferenceStatus.SAMPLED


@pytest.mark.parametrize("loss", ["pseudo-likelihood", "composite"])
def test_losses_without_edges_are_the_likelihood(loss):
    X, Y = table()
    plain = GraphCRF("none", **TIGHT).fit(X, Y)
    other = GraphCRF("none", loss="pseudo-likelihood", **TIGHT).fit(X, Y)
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-4)
    assert other.inference_status_ is None
    joint = GraphCRF(loss=loss, **EXACT).fit(X, Y)
    assert loss.split("-")[0] in joint.result_.objective
    assert joint.log_likelihood(X, Y).sum() > plain.log_likelihood(X, Y).sum()


def test_contrastive_divergence_on_a_tree_is_near_the_likelihood():
    X, Y = table(100)
    exact = GraphCRF([(0, 1), (1, 2)], penalty=L2(5.0), **EXACT).fit(X, Y)
    for loss in ("contrastive-divergence", "persistent-contrastive-divergence"):
        crf = GraphCRF([(0, 1), (1, 2)], loss=loss, penalty=L2(5.0), max_iterations=60, **EXACT).fit(X, Y)
        assert np.isnan(crf.result_.value)
        assert np.linalg.norm(crf.coef_ - exact.coef_) < 0.25 * np.linalg.norm(exact.coef_)


def test_a_large_image():
    rng = np.random.default_rng(0)
    truth = np.zeros((24, 24), dtype=int)
    truth[6:18, 6:18] = 1
    image = (truth + rng.normal(0, 0.5, truth.shape))[..., None]
    crf = GridCRF(inference="trw", n_threads=1).fit([image], [truth])
    assert crf.score([image], [truth]) > 0.97 > (np.abs(image[..., 0] - truth) < 0.5).mean()
    assert crf.inference_status_ is InferenceStatus.CONVERGED
    drawn = crf.set_params(inference="bp").sample([image], 2)
    assert drawn[0].shape == (2, 24, 24)


def test_what_is_said_of_approximate_training():
    X, Y = table(20)
    ended = GraphCRF(**EXACT).fit(X, Y).result_
    assert concerns(ended, InferenceStatus.EXACT) == []
    failed = replace(ended, status=Status.LINE_SEARCH_FAILED)
    assert concerns(failed, InferenceStatus.EXACT) == [str(Status.LINE_SEARCH_FAILED)]
    (said,) = concerns(failed, InferenceStatus.CONVERGED)
    assert "'trw'" in said
    limit = replace(ended, status=Status.MAX_ITERATIONS)
    assert concerns(limit, None) == [str(Status.MAX_ITERATIONS)]
    assert concerns(replace(limit, value=float("nan")), None) == []


# --- how it was trained


def test_status_and_interruption():
    X, Y = table()
    crf = GraphCRF(max_iterations=2, **EXACT)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        crf.fit(X, Y)
    assert crf.inference_status_ is InferenceStatus.EXACT

    def press(iteration):
        if iteration.row.iteration == 3:
            raise KeyboardInterrupt

    crf = GraphCRF(**EXACT)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, Y, callbacks=[press])
    assert crf.predict(X).shape == Y.shape
    assert "interrupted" in str(crf.result_.status)

    def stop(iteration):
        if iteration.row.iteration == 2:
            raise StopTraining

    assert GraphCRF(**EXACT).fit(X, Y, callbacks=[stop]).result_.iterations == 2


class Unsettled(Enumerate):
    name, bound = "unsettled", "estimate"

    def run(self, potentials, warm=None):
        return replace(super().run(potentials), status=InferenceStatus.NOT_CONVERGED)


def test_inference_that_did_not_converge_is_said():
    X, Y = table(20)
    crf = GraphCRF(inference=Unsettled(), decode="marginal", n_threads=1)
    with pytest.warns(ConvergenceWarning, match="at the end of training inference has not converged.*damping"):
        crf.fit(X, Y)
    assert crf.inference_status_ is InferenceStatus.NOT_CONVERGED


def test_warm_start():
    X, Y = table()
    crf = GraphCRF(warm_start=True, **EXACT).fit(X, Y)
    first = crf.result_
    again = crf.fit(X, Y).result_
    assert again.iterations < first.iterations
    assert again.value <= first.value + 1e-9
    assert crf.fit(X[:, :2], Y).coef_.shape != first.w.shape


def test_penalties_and_solvers():
    X, Y = table()
    smooth = GraphCRF(penalty=L2(2.0), **TIGHT).fit(X, Y)
    for solver in ("lbfgs", "bfgs", "cg"):
        other = GraphCRF(penalty=L2(2.0), solver=solver, **TIGHT).fit(X, Y)
        assert other.result_.value == pytest.approx(smooth.result_.value, rel=1e-6)
    sparse = GraphCRF(penalty=L1(3.0), edge_features=True, **EXACT).fit(X, Y)
    assert (sparse.coef_ == 0).sum() > 10


def test_verbose(capsys):
    GraphCRF(verbose=1, **EXACT).fit(*table(20))
    assert capsys.readouterr().out.startswith("iteration    0  objective")


@pytest.mark.parametrize("crf", [GraphCRF([(0, 1)], penalty=L2(2), **EXACT), GridCRF(neighbours=8, **EXACT)])
def test_clone(crf):
    other = clone(crf)
    assert type(other) is type(crf)
    assert {k: repr(v) for k, v in other.get_params().items()} == {k: repr(v) for k, v in crf.get_params().items()}
    with pytest.raises(NotFittedError):
        other.predict(None)


def test_model_selection():
    X, Y = table(40)
    search = GridSearchCV(GraphCRF(**EXACT), {"penalty": [L2(1.0), L2(1e4)], "graph": ["complete", "none"]}, cv=2)
    search.fit(X, Y)
    assert search.best_params_["penalty"] == L2(1.0)
    assert search.best_score_ > 0.6


# --- files


def cases():
    yield "table", GraphCRF([(0, 1), (1, 2)], **EXACT), *table()
    X, Y = table()
    yield (
        "names",
        GraphCRF(edge_features=False, **EXACT),
        Frame(X, "abc"),
        Frame(np.array(["n", "y"])[Y], ["r", "s", "é"]),
    )
    yield "no inputs", GraphCRF(**EXACT), None, Y
    yield "engine", GraphCRF(inference=Enumerate(max_labellings=99), decode="marginal", intercept=False), X, Y
    yield "graphs", GraphCRF(edge_form="full", **EXACT), *graphs()
    yield "ising", GraphCRF("complete", node_form="ising", edge_form="ising", **EXACT), *table()
    yield "images", GridCRF(neighbours=8, edge_form="ising", **EXACT), *images()


@pytest.mark.parametrize(("crf", "X", "Y"), [case[1:] for case in cases()], ids=[case[0] for case in cases()])
def test_what_is_saved_predicts_the_same(crf, X, Y, tmp_path):
    crf = fitted(crf, X, Y)
    crf.save(tmp_path / "m.crf")
    loaded = type(crf).load(tmp_path / "m.crf", n_threads=1)
    copied = pickle.loads(pickle.dumps(crf))
    for other in (loaded, copied):
        np.testing.assert_array_equal(other.coef_, crf.coef_)
        assert all(np.array_equal(a, b) for a, b in zip(other.classes_, crf.classes_, strict=True))
        assert all(np.array_equal(a, b) for a, b in zip(other.predict(X), crf.predict(X), strict=True))
        for a, b in zip(other.predict_marginals(X), crf.predict_marginals(X), strict=True):
            np.testing.assert_array_equal(a, b)
        assert other.node_weights_ == crf.node_weights_
        assert other.edge_weights_ == crf.edge_weights_
    other = clone(loaded)
    fitted(other, X, Y)
    if not callable(crf.loss):
        np.testing.assert_array_equal(other.coef_, crf.coef_)


def test_engines_with_options_are_saved(tmp_path):
    X, Y = table(20)
    crf = GraphCRF(inference=BeliefPropagation(damping=0.25, max_iterations=77), n_threads=1).fit(X, Y)
    crf.save(tmp_path / "m.crf")
    loaded = GraphCRF.load(tmp_path / "m.crf").inference
    assert (loaded.name, loaded.damping, loaded.max_iterations) == ("bp", 0.25, 77)
    with pytest.raises(ParameterError, match=r"inference 'unsettled' with .* cannot be saved"):
        crf.set_params(inference=Unsettled()).save(tmp_path / "m.crf")


def test_models_load_without_scikit_learn(tmp_path):
    X, Y = table()
    GraphCRF(**EXACT).fit(X, Y).save(tmp_path / "m.crf")
    code = (
        "import sys; from crfkit import GraphModel; m = GraphModel.load(sys.argv[1]); "
        "d = m.encoder.encode([[0.0, 1.0, 2.0]]); m.infer(d); assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "m.crf"], check=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m, t: m.update(inputs="images"), "inputs of kind 'images'"),
        (lambda m, t: m.update(labels=[["a", "b"]]), "3 variables, but labels of 1"),
        (lambda m, t: m.update(labels=[[0, 1], [0, 1], [1, 1]]), "not different"),
        (lambda m, t: m.update(labels=[[0, 1], [0, 1], [0, "b"]]), "values of one type"),
        (lambda m, t: m.update(labels=[[0, 1], [0, 1], [0, None]]), "neither a string nor a number"),
        (lambda m, t: m.update(labels=[[0, 1], [0, 1], [0, 1, 2]]), "weights, but its field needs"),
        (lambda m, t: m.update(variables=["a", "a", "b"]), "not different strings"),
        (lambda m, t: m.update(features=["a"]), "weights, but its field needs"),
        (lambda m, t: m.update(intercept=1), "'intercept' is 1"),
        (lambda m, t: m.update(node_form="other"), "unknown node form"),
        (lambda m, t: m.update(decode="other"), "unknown decoding"),
        (lambda m, t: m.update(inference={"name": "other", "options": {}}), "unknown inference"),
        (lambda m, t: m.update(inference={"name": "enumerate", "options": {"no": 1}}), "inference 'enumerate'"),
        (lambda m, t: m.update(inference="bp"), "'inference' is 'bp'"),
        (lambda m, t: t.update(structure=np.array([0, 1, 0, 3], dtype=np.int32)), "dangling"),
        (lambda m, t: t.update(structure=np.array([0, 1, 0], dtype=np.int32)), "not pairs"),
        (lambda m, t: t.update(structure=np.array([0, 1, 1, 0], dtype=np.int32)), "both join"),
        (lambda m, t: t.update(weights=t["weights"] * np.nan), "not a finite number"),
        (lambda m, t: t.update(weights=t["weights"][:-1]), "weights, but its field needs"),
    ],
)
def test_files_that_contradict_themselves(change, message, tmp_path):
    from crfkit.files import modelfile

    X, Y = table(20)
    metadata, tensors = GraphCRF(**EXACT).fit(X, Y).model_.parts()
    change(metadata, tensors)
    modelfile.write(tmp_path / "m.crf", "graph", metadata, tensors)
    with pytest.raises(ModelFileError) as error:
        GraphModel.load(tmp_path / "m.crf")
    assert str(error.value).startswith(str(tmp_path / "m.crf"))
    assert message in str(error.value)


def test_files_of_another_kind(tmp_path):
    ChainCRF().fit([[["a"], ["b"]]] * 2, [["x", "y"]] * 2).save(tmp_path / "chain.crf")
    with pytest.raises(ModelFileError, match="kind 'chain'; expected 'graph'"):
        GraphCRF.load(tmp_path / "chain.crf")
    fitted(GridCRF(**EXACT), *images()).save(tmp_path / "grid.crf")
    with pytest.raises(ModelFileError, match=r"open it with GridCRF\.load"):
        GraphCRF.load(tmp_path / "grid.crf")
    with pytest.raises(ModelFileError, match="kind 'graph'; expected 'chain'"):
        ChainCRF.load(tmp_path / "grid.crf")
    GraphCRF(**EXACT).fit(*table(20)).save(tmp_path / "graph.crf")
    with pytest.raises(ModelFileError, match=r"open it with GraphCRF\.load"):
        GridCRF.load(tmp_path / "graph.crf")


# --- what is refused

X0, Y0 = table(20)
with_nan = X0.copy()
with_nan[3, 1] = np.nan
some_missing = Y0.astype(float)
some_missing[4, 2] = np.nan


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (X0, Y0[:, 0], r"Y must be \[samples, variables\]"),
        (X0[:, 0], Y0, r"X must be \[samples, features\]"),
        (X0[:5], Y0, "X has 5 rows, Y has 20"),
        (with_nan, Y0, "X: row 3, column 1 is nan"),
        (X0, Y0 * [1, 0, 1] + [0, 5, 0], "column y1 of Y has only the label 5"),
        (X0, np.array([["a", 1, 1], ["b", "c", 0]] * 10, dtype=object), "column y1 of Y holds 1 and 'c'"),
        (X0, [[0, 1], [1]], "rows have different lengths"),
        (X0[:0], Y0[:0], "Y has no rows"),
        (X0[:, :0], Y0, "X has no columns"),
        (X0.astype(str) + "x", Y0, "must be a matrix of numbers"),
        (GraphSample(X0, [(0, 1)]), [Y0[:, 0]], "X is one graph"),
        ({"features": X0, "edges": []}, [Y0[:, 0]], "X is one graph"),
        ([(X0, [(0, 1)])], 3, "Y must be a list with the labels of each graph, not int"),
        ([{"features": X0, "edge": []}], [Y0[:, 0]], "graph 0 has an entry 'edge'; its entries are features, edges"),
        ([{"features": X0}], [Y0[:, 0]], "graph 0 has no entry 'edges'"),
        ([{"edges": [(0, 1)]}], [[0, 1]], "graph 0 has neither features nor n_nodes"),
        ([(X0, [(0, 1)]), (X0, [(0, 20)])], [Y0[:, 0]] * 2, r"graph 1: edge 0 \(0, 20\) is dangling"),
        ([(X0, [(0, 1)]), (X0[:, :2], [])], [Y0[:, 0]] * 2, "graph 1 has 2 features; expected 3"),
        ([(X0, [(0, 1)]), (X0, [(0, 1)], [[1.0]])], [Y0[:, 0]] * 2, "graph 0 has no edge features; expected 1"),
        ([(X0, [(0, 1)])], [Y0[:5, 0]], "graph 0 has 20 nodes, but 5 labels"),
        ([(X0, [(0, 1)])], [Y0[:, 0]] * 2, "labels of 2 graphs for 1 graphs"),
        ([(with_nan, [(0, 1)])], [Y0[:, 0]], "graph 0: node features: row 3, column 1 is nan"),
        ([(X0, [(0, 1)])], [Y0[:, 0] * 0], "Y has only the label 0"),
        ([(X0, [(0, 1)]), 3], [Y0[:, 0]] * 2, "graph 1 is a int"),
        ([(X0, [(0, 1)])], [{"a": 1}], "graph 0: labels by name are for networkx"),
    ],
)
def test_data_that_cannot_be_used(X, Y, message):
    with pytest.raises(DataError, match=message):
        GraphCRF(**EXACT).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "star"}, "unknown graph 'star'; expected 'complete', 'none'"),
        ({"graph": [(0, 3)]}, "numbered 0 … 2"),
        ({"graph": [("y0", "z")]}, "a node 'z'; the columns of Y are y0, y1, y2"),
        ({"graph": Graph.complete(4)}, "the graph has 4 nodes"),
        ({"graph": 7}, "graph must be 'complete'"),
        ({"graph": [(0, 0)]}, "to itself"),
        ({"inference": "magic"}, "unknown inference 'magic'; expected one of auto, enumerate"),
        ({"inference": Enumerate}, "a name or an engine"),
        ({"loss": "squared"}, "unknown loss 'squared'; expected one of auto, likelihood"),
        ({"loss": 3}, "loss must be a name or a function"),
        ({"loss": lambda data, field: None}, "`loss` returned None"),
        ({"decode": "best"}, "unknown decoder 'best'"),
        ({"node_form": "potts"}, "unknown node form 'potts'; expected one of full"),
        ({"edge_form": "x"}, "unknown edge form 'x'"),
        ({"penalty": 1.0}, "penalty must be a member"),
        ({"solver": "x"}, "unknown solver"),
        ({"tolerance": -1.0}, "tolerance must be >= 0"),
        ({"tolerance": "x"}, "tolerance must be a number or"),
        ({"max_iterations": 0}, "max_iterations must be None or an integer >= 1"),
        ({"n_threads": 0}, "n_threads must be None or"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_options_that_cannot_be_used(options, message):
    with pytest.raises((ParameterError, DataError), match=message):
        GraphCRF(**{**EXACT, **options}).fit(X0, Y0)


def test_labels_and_shapes_at_prediction():
    crf = GraphCRF(**EXACT).fit(X0, Y0)
    with pytest.raises(DataError, match="column y1 of Y has the label 2 at 3; the labels are 0, 1"):
        crf.log_likelihood(X0, Y0 + 2 * (np.indices(Y0.shape)[0] == 3) * [0, 1, 0] * (1 - Y0 / 2).astype(int))
    with pytest.raises(DataError, match="2 columns of labels; the model has 3 variables"):
        crf.predict(X0, Y0[:, :2])
    with pytest.raises(DataError, match="5 rows of labels for 20 rows of X"):
        crf.predict(X0, Y0[:5])
    with pytest.raises(DataError, match="X has 2 columns; the model has 3 features"):
        crf.predict(X0[:, :2])
    with pytest.raises(DataError, match="X is None"):
        crf.predict()
    with pytest.raises(ParameterError, match="bring their own edges"):
        GraphCRF("none").fit([(X0, [])], [Y0[:, 0]])


def test_images_that_cannot_be_used():
    X, Y = images()
    cases = [
        (
            X[0],
            Y[0],
            r"X must be a list of arrays \(H, W, F\), not ndarray of shape \(3, 3, 1\); for one image give \[image\]",
        ),
        ([x[..., 0] for x in X], Y, r"image 0 has shape \(3, 3\); expected \(H, W, F\); add the axis"),
        (X, Y[:2], "2 label arrays for 3 images"),
        (X, [Y[0], Y[0], Y[2]], r"image 1 has shape \(3, 4, 1\), but its labels have shape \(3, 3\)"),
        (X, [y * 0 for y in Y], "only the label 0"),
        ([*X[:2], X[2] * np.nan], Y, r"image 2 is nan at \(0, 0, 0\)"),
        ([*X[:2], np.zeros((0, 3, 1))], Y, "image 2 has no pixels"),
        ([*X[:2], np.zeros((3, 3, 2))], Y, "image 2 has 2 features; expected 1"),
        ([], [], "X has no images"),
        ([X[0]], Y[0], "must be a list of label arrays"),
        ([["a"]], Y[:1], "image 0 is not an array of numbers"),
    ]
    for images_, labels, message in cases:
        with pytest.raises(DataError, match=message):
            GridCRF(**EXACT).fit(images_, labels)
    for options, message in (
        ({"neighbours": 5}, "neighbours must be"),
        ({"edge_features": "sum"}, "edge_features must"),
    ):
        with pytest.raises(ParameterError, match=message):
            GridCRF(**options, **EXACT).fit(X, Y)
    with pytest.raises(DataError, match=r"expected \(D, H, W, F\)"):
        GridCRF(neighbours=6, **EXACT).fit(X, Y)
