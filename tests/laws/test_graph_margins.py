"""Margin losses of graphs against enumeration and finite differences, and their relations to each other."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from graph_cases import random_graph
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from crfkit import L2, GraphCRF, GraphData, GridCRF
from crfkit.errors import DataError, ParameterError
from crfkit.graph.fields.field import tied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.losses import GraphHinge, GraphLikelihood, GraphSoftmaxMargin
from crfkit.solvers import Adam

EXACT = make_engine("junction")


def case(seed, K=3, unknown=0.0):
    """(data of two weighted graphs, their field, weights)."""
    rng = np.random.default_rng(seed)
    graph = Graph.join([random_graph(rng, 4), random_graph(rng, 5, 0.7)])
    labels = rng.integers(K, size=9)
    labels[rng.random(9) < unknown] = -1
    data = GraphData.make(graph, rng.normal(size=(9, 2)), rng.normal(size=(graph.n_edges, 1)), labels, [1.0, 2.5])
    field = tied_field(data, K)
    return data, field, rng.normal(size=field.size)


def costs(K, seed):
    """Hamming and its matrix, or a matrix that is not symmetric."""
    if seed is None:
        return None, 1 - np.eye(K)
    matrix = np.random.default_rng(seed).uniform(0, 2, (K, K)) * (1 - np.eye(K))
    return matrix, matrix


def scores(data, field, w, cost):
    """For each graph: (score + cost, score of the labels) over all labellings, one by one."""
    potentials = field.potentials(data, w)
    for g in range(2):
        begin, end = data.graph.node_offsets[g : g + 2]
        edges = data.graph.edges[slice(*data.graph.edge_offsets[g : g + 2])] - begin
        tables = potentials.tables[slice(*data.graph.edge_offsets[g : g + 2])]
        unary, true = potentials.unary[begin:end], data.labels[begin:end]

        def score(y, unary=unary, edges=edges, tables=tables):
            return sum(unary[i, k] for i, k in enumerate(y)) + sum(
                t[y[i], y[j]] for (i, j), t in zip(edges, tables, strict=True)
            )

        every = itertools.product(range(unary.shape[1]), repeat=end - begin)
        yield np.array([score(y) + sum(cost[a, b] for a, b in zip(true, y, strict=True)) for y in every]), score(true)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cost_seed", [None, 1])
def test_values_are_those_of_enumeration(seed, cost_seed):
    data, field, w = case(seed, K=2 + seed % 2)
    given, cost = costs(field.max_states, cost_seed)
    parts = list(scores(data, field, w, cost))
    soft = sum(v * (np.logaddexp.reduce(all_) - true) for v, (all_, true) in zip(data.weights, parts, strict=True))
    hard = sum(v * (all_.max() - true) for v, (all_, true) in zip(data.weights, parts, strict=True))
    assert_allclose(GraphSoftmaxMargin(data, field, EXACT, given).at(w).value, soft, rtol=1e-10)
    assert_allclose(GraphHinge(data, field, cost=given).at(w).value, hard, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_the_gradient_of_the_softmax_margin(seed, unknown):
    data, field, w = case(seed, unknown=unknown)
    loss = GraphSoftmaxMargin(data, field, EXACT)
    step = 1e-6
    found = [(loss.at(w + step * e).value - loss.at(w - step * e).value) / (2 * step) for e in np.eye(field.size)]
    assert_allclose(loss.at(w).grad, found, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_subgradient_of_the_hinge_is_a_slope_below(seed):
    """hinge(v) ≥ hinge(w) + gᵀ(v − w), with equality in small steps away from corners."""
    data, field, w = case(seed)
    loss = GraphHinge(data, field)
    here = loss.at(w)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1.0, 10.0):
        for _ in range(5):
            v = w + size * rng.normal(size=w.size)
            assert loss.at(v).value >= here.value + here.grad @ (v - w) - 1e-9
    d = rng.normal(size=w.size)
    assert_allclose((loss.at(w + 1e-7 * d).value - here.value) / 1e-7, here.grad @ d, atol=1e-5)


def test_without_costs_they_are_likelihood_and_perceptron():
    data, field, w = case(0)
    none = np.zeros((3, 3))
    likelihood = GraphLikelihood(data, field, EXACT).at(w)
    margin = GraphSoftmaxMargin(data, field, EXACT, none).at(w)
    assert_allclose(margin.value, likelihood.value)
    assert_allclose(margin.grad, likelihood.grad)
    assert GraphHinge(data, field, cost=none).at(w).value <= likelihood.value
    assert GraphHinge(data, field).at(w).value <= GraphSoftmaxMargin(data, field, EXACT).at(w).value


def test_the_hinge_is_the_softmax_margin_at_temperature_zero():
    data, field, w = case(1)
    hard = GraphHinge(data, field).at(w).value
    for t in (100.0, 1000.0):
        soft = GraphSoftmaxMargin(data, field, EXACT, t * (1 - np.eye(3))).at(t * w).value / t
        assert hard <= soft <= hard + 20 / t * np.log(3)


def test_subsets_add_up():
    data, field, w = case(2)
    for loss in (GraphHinge(data, field, cost=np.array([[0, 2, 1], [1, 0, 1], [3, 1, 0]])),
                 GraphSoftmaxMargin(data, field, EXACT)):  # fmt: skip
        assert_allclose(loss.subset([0]).at(w).value + loss.subset([1]).at(w).value, loss.at(w).value)


@pytest.mark.parametrize("loss", ["softmax-margin", "hinge"])
def test_estimators_learn_with_margins(loss):
    rng = np.random.default_rng(0)
    truth = np.zeros((6, 8), dtype=int)
    truth[:, 4:] = 1
    X = [(truth + rng.normal(0, 0.6, truth.shape))[..., None] for _ in range(3)]
    crf = GridCRF(loss=loss, penalty=L2(0.5), **({"max_iterations": 10} if loss == "hinge" else {})).fit(X, [truth] * 3)
    assert crf.score(X, [truth] * 3) > 0.95
    table = GraphCRF(loss=loss, **({"max_iterations": 10} if loss == "hinge" else {}))
    Y = [["a", "c"], ["b", "d"], ["b", "d"], ["a", "c"]]
    assert table.fit([[0.0], [1.0], [1.2], [0.1]], Y).predict([[1.1]]).tolist() == [["b", "d"]]


def test_adam_comes_near_the_smallest_hinge():
    """The quadratic program with a constraint per labelling has the same optimum."""
    rng = np.random.default_rng(0)
    data = GraphData.make(Graph.path(4), rng.normal(size=(4, 1)), labels=[0, 1, 1, 0])
    field = tied_field(data, 2, "reference", "potts")
    loss = GraphHinge(data, field)
    true = field.adjoint(data, *field.observed(data))
    every = np.array(list(itertools.product(range(2), repeat=4)), dtype=np.int32)
    slopes = np.array([field.adjoint(data, *field.observed(replace(data, labels=y))) - true for y in every])
    wrong = (every != data.labels).sum(axis=1)
    program = minimize(
        lambda z: 0.5 * z[:-1] @ z[:-1] + z[-1],
        np.zeros(field.size + 1),
        jac=lambda z: np.append(z[:-1], 1.0),
        constraints={"type": "ineq", "fun": lambda z: z[-1] - wrong - slopes @ z[:-1]},
        method="SLSQP",
    )
    w = Adam(max_iterations=60).minimize(loss, L2(1.0), np.zeros(field.size)).w
    assert_allclose(loss.at(w).value + 0.5 * w @ w, program.fun, rtol=5e-3)
    assert program.fun < loss.at(0 * w).value


def test_wrong_use_is_named():
    data, field, _ = case(0, unknown=0.5)
    with pytest.raises(DataError, match="has no label; the structured hinge needs all of them"):
        GraphHinge(data, field)
    with pytest.raises(ParameterError, match=r"expected \(3, 3\)"):
        GraphSoftmaxMargin(data, field, EXACT, np.zeros((2, 2)))
    with pytest.raises(ParameterError, match="unknown loss 'svm'"):
        GraphCRF(loss="svm").fit([[0.0], [1.0]], [["a"], ["b"]])
