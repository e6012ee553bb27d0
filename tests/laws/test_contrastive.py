"""Laws of contrastive divergence, and of Adam, the solver that needs no value."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crfkit.errors import CapabilityError, DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field, untied_field
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.losses.contrastive import ContrastiveDivergence
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.penalties import L1, L2, NoPenalty
from crfkit.protocols import Loss
from crfkit.result import Status
from crfkit.solvers import LBFGS, SOLVERS, Adam, GradientNorm, make_solver

STRUCTURES = {"grid": lambda: Graph.grid((2, 2)), "path": lambda: Graph.path(3), "complete": lambda: Graph.complete(3)}


def problem(kind="grid", n=6, K=3, seed=0, weighted=True, strength=0.7):
    """(labelled graphs drawn from a tied field, that field, its weights)."""
    rng = np.random.default_rng([seed, K, n])
    graph = STRUCTURES[kind]().repeat(n)
    features = rng.normal(size=(graph.n_nodes, 1))
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    blank = GraphData.make(graph, features, weights=weights)
    field = tied_field(blank, K, "reference", "symmetric")
    w = strength * rng.normal(size=field.size)
    labels = Enumerate().sample(field.potentials(blank, w), 1, seed)[0]
    return GraphData.make(graph, features, labels=labels, weights=weights), field, w


def gradients(loss, w, times):
    return np.array([loss.at(w).grad for _ in range(times)])


def assert_mean(draws, expected, sigmas=5.0):
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= sigmas * error + 1e-12).all()


def exact_gradient(data, field, w):
    return GraphLikelihood(data, field, Enumerate()).at(w).grad


# --- the gradient


@pytest.mark.parametrize(("kind", "K"), [("grid", 2), ("grid", 3), ("complete", 4)])
def test_many_sweeps_give_the_gradient_of_the_likelihood(kind, K):
    data, field, w = problem(kind, K=K)
    loss = ContrastiveDivergence(data, field, n_sweeps=50, n_threads=1)
    assert_mean(gradients(loss, -w, 500), exact_gradient(data, field, -w))


def test_one_sweep_is_biased_towards_the_labels():
    """Which is what the law above would miss if chains did not start there."""
    data, field, w = problem("complete")
    one, exact = gradients(ContrastiveDivergence(data, field, n_threads=1), -w, 500), exact_gradient(data, field, -w)
    error = one.std(axis=0, ddof=1) / np.sqrt(500)
    assert (np.abs(one.mean(axis=0) - exact) > 8 * error).any()


def test_on_forests_one_sweep_is_enough():
    data, field, w = problem("path")
    assert_mean(gradients(ContrastiveDivergence(data, field, n_threads=1), -w, 800), exact_gradient(data, field, -w))


def test_persistent_chains_forget_the_labels():
    data, field, w = problem("grid", K=2)
    loss = ContrastiveDivergence(data, field, persistent=True, n_threads=1)
    gradients(loss, -w, 50)
    draws = gradients(loss, -w, 2000).reshape(50, 40, -1).mean(axis=1)  # batches: successive ones are correlated
    assert_mean(draws, exact_gradient(data, field, -w))


def test_graphs_count_by_their_weights():
    """The gradient is the weighted sum of the graphs' own, draw by draw."""
    data, field, w = problem(n=4)
    parts = []
    for g in range(4):
        alone = GraphData.make(data.graph, data.node_features[:, 1:], labels=data.labels, weights=np.eye(4)[g])
        parts.append(ContrastiveDivergence(alone, field, n_sweeps=3, n_threads=1).at(w).grad)
    whole = ContrastiveDivergence(data, field, n_sweeps=3, n_threads=1).at(w).grad
    assert_allclose(whole, data.weights @ np.array(parts), atol=1e-12)


def test_numbers_of_states_may_differ():
    rng = np.random.default_rng(3)
    structure = Graph.complete(3)
    Y = np.stack([rng.integers(k, size=30) for k in (2, 4, 3)], axis=1)
    data = GraphData.table(30, structure, Y=Y)
    field = untied_field(data, [2, 4, 3])
    w = rng.normal(size=field.size)
    loss = ContrastiveDivergence(data, field, n_sweeps=20, n_threads=1)
    assert_mean(gradients(loss, w, 200), exact_gradient(data, field, w))


def test_seeds_and_evaluations():
    data, field, w = problem(n=60)

    def run(seed, persistent=False):
        return gradients(ContrastiveDivergence(data, field, 1, persistent, seed), w, 3)

    first = run(1)
    assert_array_equal(run(1), first)
    assert (run(2) != first).any()
    assert (first[0] != first[1]).any()
    assert_array_equal(run(1, persistent=True)[0], first[0])
    assert (run(1, persistent=True)[1] != first[1]).any()
    evaluation = ContrastiveDivergence(data, field).at(w)
    assert evaluation.grad is evaluation.grad
    assert math.isnan(evaluation.value)


def test_threads_do_not_change_a_bit():
    data, field, w = problem(n=1500, K=2)
    one, two = (ContrastiveDivergence(data, field, 3, n_threads=t).at(w).grad for t in (1, 2))
    assert_array_equal(one, two)


# --- who may use it


@pytest.mark.parametrize("name", sorted(name for name, solver in SOLVERS.items() if "gradient" not in solver.needs))
def test_solvers_that_compare_values_refuse(name):
    data, field, w = problem()
    loss = ContrastiveDivergence(data, field)
    loss.at = None  # not evaluated once
    with pytest.raises(CapabilityError, match=rf"the solver {name} needs .* these can: adam$"):
        make_solver(name).minimize(loss, NoPenalty(), w)


def test_adam_refuses_what_it_cannot_do():
    data, field, w = problem()
    with pytest.raises(CapabilityError, match="needs gradient"):
        Adam().minimize(GraphLikelihood(data, field, Enumerate()), NoPenalty(), w)
    with pytest.raises(CapabilityError, match="not smooth"):
        Adam().minimize(ContrastiveDivergence(data, field), L1(1.0), w)


# --- training


@pytest.mark.parametrize(
    ("kind", "options"), [("path", {}), ("grid", {"n_sweeps": 10}), ("complete", {"n_sweeps": 3, "persistent": True})]
)
def test_training_comes_close_to_maximum_likelihood(kind, options):
    data, field, _ = problem(kind, n=60, K=2, weighted=False)
    start = np.zeros(field.size)
    best = LBFGS(stopping=GradientNorm(1e-8)).minimize(GraphLikelihood(data, field, Enumerate()), L2(1.0), start).w
    loss = ContrastiveDivergence(data, field, n_threads=1, **options)
    result = Adam(max_iterations=60).minimize(loss, L2(1.0), start)
    exact = GraphLikelihood(data, field, Enumerate()).at(result.w).value + L2(1.0).value(result.w)
    least = GraphLikelihood(data, field, Enumerate()).at(best).value + L2(1.0).value(best)
    assert exact - least < 0.05  # of a log-likelihood
    assert_allclose(result.w, best, atol=0.15)
    assert np.linalg.norm(best) > 0.5
    assert result.evaluations == 1 + 20 * result.iterations


def test_a_result_says_that_there_is_no_value():
    data, field, _ = problem()
    loss = ContrastiveDivergence(data, field, n_sweeps=2, persistent=True)
    result = Adam(max_iterations=3, stopping=GradientNorm(0.0)).minimize(loss, L2(1.0), np.zeros(field.size))
    assert result.status is Status.MAX_ITERATIONS
    assert math.isnan(result.value)
    assert all(math.isnan(row.value) and math.isfinite(row.optimality) for row in result.trace)
    name = "persistent contrastive divergence (2 sweeps) + L2(1), a gradient without a value"
    assert result.objective == name
    assert name in str(result)


def test_the_same_seed_is_the_same_run():
    data, field, _ = problem()

    def weights(seed):
        loss = ContrastiveDivergence(data, field, seed=seed)
        return Adam(max_iterations=4).minimize(loss, L2(1.0), np.zeros(field.size)).w

    assert_array_equal(weights(1), weights(1))
    assert (weights(1) != weights(2)).any()


def test_a_run_goes_on():
    """With the same loss, whose random numbers go on; `init` evaluates once more, so those are not the same."""
    data, field, _ = problem("path", n=60, K=2)
    loss, start = ContrastiveDivergence(data, field, n_threads=1), np.zeros(field.size)
    half = Adam(max_iterations=10).minimize(loss, L2(1.0), start)
    rest = Adam(max_iterations=30).minimize(loss, L2(1.0), half.w, resume=half.state)
    best = LBFGS().minimize(GraphLikelihood(data, field, Enumerate()), L2(1.0), start).w
    assert rest.state["t"] == 40 * 20
    assert_allclose(rest.w, best, atol=0.15)


class Quadratic(Loss):
    """½ (w − 3)ᵀ D (w − 3) + noise in the gradient."""

    name, size, capabilities = "quadratic", 4, frozenset({"gradient"})
    layout = {"all": slice(0, 4)}  # noqa: RUF012
    scales = np.array([0.1, 1.0, 10.0, 100.0])

    def __init__(self, noise):
        self.rng, self.noise = np.random.default_rng(0), noise

    def at(self, w, warm=None):
        self.value = math.nan
        self.grad = self.scales * (w - 3.0 + self.noise * self.rng.normal(size=4))
        return self


def test_adam_finds_a_minimum_whatever_the_scales():
    result = Adam(max_iterations=200, stopping=GradientNorm(0.0)).minimize(Quadratic(0.0), NoPenalty(), np.zeros(4))
    assert_allclose(result.w, 3.0, atol=1e-3)
    noisy = Adam(max_iterations=200).minimize(Quadratic(1.0), NoPenalty(), np.zeros(4))
    assert_allclose(noisy.w, 3.0, atol=0.1)


def test_adam_may_stop_before_its_limit():
    result = Adam(max_iterations=2000).minimize(Quadratic(0.0), NoPenalty(), np.zeros(4))
    assert result.status is Status.CONVERGED
    assert result.iterations < 2000


def test_divergence_is_told():
    data, field, _ = problem()
    result = Adam(step_size=1e200).minimize(ContrastiveDivergence(data, field), NoPenalty(), np.zeros(field.size))
    assert result.status is Status.DIVERGED
    assert_array_equal(result.w, 0.0)


# --- what cannot be


def test_data_are_checked():
    data, field, _ = problem()
    graph, features = data.graph, data.node_features[:, 1:]
    with pytest.raises(DataError, match="have none"):
        ContrastiveDivergence(GraphData.make(graph, features), field)
    labels = data.labels.copy()
    labels[5] = -1
    with pytest.raises(DataError, match="node 5 has no label"):
        ContrastiveDivergence(GraphData.make(graph, features, labels=labels), field)
    with pytest.raises(DataError, match="no nodes"):
        ContrastiveDivergence(GraphData.make(Graph(0, []), np.zeros((0, 1)), labels=np.zeros(0, int)), field)
    for bad in ({"n_sweeps": 0}, {"n_sweeps": 1.5}, {"seed": -1}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            ContrastiveDivergence(data, field, **bad)


@pytest.mark.parametrize("bad", [{"updates": 0}, {"step_size": 0.0}, {"beta1": 1.0}, {"beta2": -0.1}])
def test_options_are_checked(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Adam(**bad)


def test_graphs_without_edges_can_be_learned():
    data = GraphData.make(Graph(200, []), labels=np.arange(200) % 4 // 3)  # a quarter in state 1
    field = tied_field(data, 2, "reference", "potts")
    result = Adam(max_iterations=60).minimize(ContrastiveDivergence(data, field), L2(1e-3), np.zeros(field.size))
    p = np.exp(Potentials.from_tables(Graph(1, []), field.potentials(data, result.w).unary[:1]).unary[0])
    assert_allclose(p[1] / p.sum(), 0.25, atol=0.02)
