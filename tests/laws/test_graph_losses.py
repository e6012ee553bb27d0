"""Losses of pairwise fields: enumeration, finite differences, and what must be equal to what."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from graph_loss_cases import CASES, FORMS, STRUCTURE, make, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from crfkit.errors import DataError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import EDGE_FORMS, tied_field, untied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.losses.composite import CompositeLikelihood
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.penalties import L1, L2
from crfkit.solvers import GradientNorm, make_solver

LOCAL = {"pseudo": PseudoLikelihood, "composite": CompositeLikelihood}


# --- the slow, obvious twins


def score(potentials, y):
    total = sum(potentials.unary[i, k] for i, k in enumerate(y))
    for e, (i, j) in enumerate(potentials.graph.edges):
        total += potentials.tables[e][y[i], y[j]]
    return total


def surprise(potentials, y, block):
    """−log p(labels of the nodes of a block | all other labels), by listing the block's labellings."""
    scores = []
    for states in product(range(potentials.n_states), repeat=len(block)):
        changed = np.array(y)
        changed[list(block)] = states
        scores.append(score(potentials, changed))
    return logsumexp(scores) - score(potentials, y)


def twin(name, data, field, w):
    potentials = field.potentials(data, w)
    edges = [] if name == "pseudo" else data.graph.edges.tolist()
    ends = {i for edge in edges for i in edge}
    blocks = edges + [[i] for i in range(data.graph.n_nodes) if i not in ends]
    return sum(data.node_weights[block[0]] * surprise(potentials, data.labels, block) for block in blocks)


def finite_gradient(loss, w, h=1e-5):
    steps = h * np.eye(len(w))
    return np.array([(loss.at(w + s).value - loss.at(w - s).value) / (2 * h) for s in steps])


def dense_hessian(loss, w):
    at = loss.at(w)
    return np.array([at.hessp(v) for v in np.eye(loss.size)])


def close(a, b, rtol):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(b).max(initial=0.0)))


# --- laws of every form


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_value_and_gradient(case, name):
    data, field = make(*case)
    loss, w = LOCAL[name](data, field, n_threads=1), weights_for(field)
    at = loss.at(w)
    assert at.value == pytest.approx(twin(name, data, field, w), rel=1e-12)
    close(at.grad, finite_gradient(loss, w), 1e-7)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_hessian_of_the_pseudo_likelihood(case):
    data, field = make(*case)
    loss, w = PseudoLikelihood(data, field, n_threads=1), weights_for(field)
    v, h = weights_for(field, 2), 1e-5
    close(loss.at(w).hessp(v), (loss.at(w + h * v).grad - loss.at(w - h * v).grad) / (2 * h), 1e-7)
    bound = loss.lipschitz()
    for point in (np.zeros(field.size), w):
        H = dense_hessian(loss, point)
        values = np.linalg.eigvalsh(H)
        assert values[0] > -1e-9
        assert values[-1] <= bound
        diagonal, nodes = loss.at(point).hess_diag(), field.layout["node"]
        assert (diagonal >= 0).all()
        close(diagonal[nodes], np.diag(H)[nodes], 1e-10)


@given(
    st.integers(2, 4),
    st.sampled_from(EDGE_FORMS),
    st.integers(0, 2**32 - 1),
    st.floats(0.01, 30.0),
)
@settings(max_examples=40, deadline=None)
def test_the_bound_holds_everywhere(K, edge_form, seed, scale):
    if edge_form == "ising":
        K = 2
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    graph = Graph.complete(n)
    data = GraphData.make(
        graph, rng.standard_normal((n, 2)), rng.standard_normal((graph.n_edges, 1)), labels=rng.integers(0, K, n)
    )
    loss = PseudoLikelihood(data, tied_field(data, K, edge_form=edge_form), n_threads=1)
    H = dense_hessian(loss, scale * rng.standard_normal(loss.size))
    assert np.linalg.eigvalsh(H)[-1] <= loss.lipschitz()


def test_the_bound_is_tight_for_two_states():
    data, field = make("dense", "ising", "ising")
    loss = PseudoLikelihood(data, field)
    top = np.linalg.eigvalsh(dense_hessian(loss, np.zeros(loss.size)))[-1]
    assert top <= loss.lipschitz() <= 1.02 * top


def test_the_diagonal_is_exact_where_no_node_has_two_edges():
    rng = np.random.default_rng(0)
    graph = Graph(5, [(1, 0), (2, 3)])
    data = GraphData.make(graph, rng.random((5, 2)), rng.random((2, 2)), labels=rng.integers(0, 3, 5), weights=[0.7])
    for forms in FORMS:
        if "ising" not in forms:
            loss = PseudoLikelihood(data, tied_field(data, 3, *forms))
            w = weights_for(loss)
            close(loss.at(w).hess_diag(), np.diag(dense_hessian(loss, w)), 1e-10)


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("kind", ["dense", "ragged"])
def test_large_potentials(kind, name):
    data, field = make(kind)
    loss, w = LOCAL[name](data, field), weights_for(field, scale=1e3)
    at = loss.at(w)
    assert at.value == pytest.approx(twin(name, data, field, w), rel=1e-9)
    assert np.isfinite(at.grad).all()
    if name == "pseudo":
        assert np.isfinite(at.hessp(w)).all()
        assert np.isfinite(at.hess_diag()).all()


@pytest.mark.parametrize("name", LOCAL)
def test_labels_that_are_all_but_certain(name):
    """Tiny losses and gradients keep their digits."""
    data = GraphData.make(Graph.path(2), labels=[1, 1])
    loss = LOCAL[name](data, tied_field(data, 2, "ising", "ising"))
    at = loss.at(np.array([10.0, 50.0]))
    wrong = 2 * np.exp(-120.0) if name == "pseudo" else np.exp(-40.0)
    assert at.value == pytest.approx(wrong, rel=1e-6)
    close(at.grad / wrong, np.array([-2.0, -2.0]) if name == "pseudo" else np.array([-4.0, 0.0]), 1e-6)


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("forms", [("ising", "ising"), ("full", "full")], ids="-".join)
def test_threads_change_no_bit(forms, name):
    rng = np.random.default_rng(0)
    graph = Graph.grid((30, 31)).repeat(4)
    data = GraphData.make(graph, rng.random((graph.n_nodes, 2)), labels=rng.integers(0, 2, graph.n_nodes))
    field = tied_field(data, 2, *forms)
    w = weights_for(field)
    one, *others = [LOCAL[name](data, field, n_threads=t).at(w) for t in (1, 2, 3)]
    for other in others:
        assert other.value == one.value
        assert np.array_equal(other.grad, one.grad)
        if name == "pseudo":
            assert np.array_equal(other.hessp(w), one.hessp(w))
            assert np.array_equal(other.hess_diag(), one.hess_diag())


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("kind", ["sparse", "types", "table"])
def test_subsets_add_up(kind, name):
    data, field = make(kind)
    loss, w = LOCAL[name](data, field), weights_for(field)
    parts = [loss.subset([g]) for g in range(len(data)) if data.graph.take([g])[0].n_nodes]
    assert sum(part.at(w).value for part in parts) == pytest.approx(loss.at(w).value, rel=1e-12)
    close(sum(part.at(w).grad for part in parts), loss.at(w).grad, 1e-12)


# --- against the likelihood


def exact(data, field):
    return GraphLikelihood(data, field, Enumerate())


@pytest.mark.parametrize("case", [c for c in CASES if c[0] in ("dense", "ragged")], ids="-".join)
def test_gradient_of_the_likelihood(case):
    data, field = make(*case)
    labels = data.labels.copy()
    labels[::3] = -1
    w = weights_for(field)
    for known in (data, replace(data, labels=labels)):
        loss = exact(known, field)
        close(loss.at(w).grad, finite_gradient(loss, w), 1e-7)


@pytest.mark.parametrize(("node_form", "edge_form"), [f for f in FORMS if "ising" not in f])
def test_composite_likelihood_of_one_edge_is_the_likelihood(node_form, edge_form):
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph(2, [(1, 0)]), Graph(2, [(0, 1)]), Graph(1, [])])
    data = GraphData.make(graph, rng.random((5, 2)), rng.random((2, 1)), labels=[0, 2, 1, 1, 2], weights=[1, 2, 0.5])
    field = tied_field(data, 3, node_form, edge_form)
    w = weights_for(field)
    composite, likelihood = CompositeLikelihood(data, field).at(w), exact(data, field).at(w)
    assert composite.value == pytest.approx(likelihood.value, rel=1e-12)
    close(composite.grad, likelihood.grad, 1e-11)


@pytest.mark.parametrize("untied", [False, True])
@pytest.mark.parametrize("name", LOCAL)
def test_without_edges_all_are_the_likelihood(name, untied):
    Y = np.random.default_rng(0).integers(0, 3, (4, 3))
    if untied:
        data = GraphData.table(4, Graph(3, []), np.arange(4.0)[:, None], Y)
        field = untied_field(data, 3)
    else:
        data = GraphData.make(Graph(12, []), np.arange(12.0)[:, None] / 12, labels=Y.ravel())
        field = tied_field(data, 3)
    w = weights_for(field)
    local, potentials = LOCAL[name](data, field).at(w), field.potentials(data, w)
    marginals = Enumerate().run(potentials)
    assert local.value == pytest.approx((marginals.log_z - potentials.score(data.labels)).sum(), rel=1e-12)
    observed, edges = field.observed(data)
    close(local.grad, field.adjoint(data, marginals.nodes - observed, edges), 1e-11)


@pytest.mark.parametrize("forms", [("reference", "reference"), ("full", "symmetric"), ("reference", "minimal")])
def test_counts_are_the_table(forms):
    Y, weights = np.random.default_rng(0).integers(0, 3, (6, 4)), np.array([1.0, 2.0, 0.5, 1.0, 0.0, 3.0])
    table = GraphData.table(6, STRUCTURE, Y=Y, weights=weights)
    field = untied_field(table, 3, *forms)
    w = weights_for(field)
    rows, counts = exact(table, field).at(w), exact(GraphData.counts(STRUCTURE, Y, 3, weights), field).at(w)
    assert counts.value == pytest.approx(rows.value, rel=1e-12)
    close(counts.grad, rows.grad, 1e-11)


# --- solvers


@cache
def training():
    rng = np.random.default_rng(0)
    graph = Graph.grid((6, 7)).repeat(2)
    h = rng.standard_normal((graph.n_nodes, 3))
    labels = (h[:, 0] + rng.standard_normal(graph.n_nodes) > 0).astype(int)
    i, j = graph.edges.T
    data = GraphData.make(graph, h, np.abs(h[i] - h[j]), labels=labels)
    return PseudoLikelihood(data, tied_field(data, 2, "ising", "ising"), n_threads=1)


def proximal_gradient(loss, penalty):
    """argmin loss + penalty by steps of 1/L; every one of them must go down, or L is no bound."""
    w, step, last = np.zeros(loss.size), 1 / loss.lipschitz(), np.inf
    for _ in range(3000):
        at = loss.at(w)
        value = at.value + penalty.value(w)
        assert value <= last * (1 + 1e-12)
        last = value
        w = penalty.split()[1].prox(w - step * at.grad, step)
    return last


def test_smooth_solvers_reach_one_optimum():
    results = [
        make_solver(solver, stopping=GradientNorm(1e-8), max_iterations=2000).minimize(training(), L2(0.5), np.zeros(8))
        for solver in ("lbfgs", "tron", "newton")
    ]
    for result in results:
        assert result.optimality < 1e-4
        assert result.value == pytest.approx(results[0].value, rel=1e-10)


def test_l1_solvers_reach_one_optimum():
    penalty = L1(3.0)
    owlqn = make_solver("owlqn", stopping=GradientNorm(1e-8), max_iterations=2000)
    result = owlqn.minimize(training(), penalty, np.zeros(8))
    assert (result.w == 0).any()
    assert result.value == pytest.approx(proximal_gradient(training(), penalty), rel=1e-9)


# --- what is refused


@pytest.mark.parametrize("loss", LOCAL.values())
def test_labels_must_be_known(loss):
    data = GraphData.make(Graph.path(3), labels=[0, -1, 1])
    with pytest.raises(DataError, match="node 1 has no label"):
        loss(data, tied_field(data, 2))
    with pytest.raises(DataError, match="no labels"):
        loss(replace(data, labels=None), tied_field(data, 2))
    with pytest.raises(DataError, match="node 2 has label 5"):
        loss(replace(data, labels=np.array([0, 1, 5])), tied_field(data, 2))
    counts = GraphData.counts(Graph.path(2), [[0, 1], [1, 1]], 2)
    with pytest.raises(DataError, match="needs the rows"):
        loss(counts, untied_field(counts, 2))
    empty = GraphData.make(Graph(0, []), labels=np.empty(0, dtype=int))
    with pytest.raises(DataError, match="no nodes"):
        loss(empty, tied_field(empty, 2))
