"""OWL-QN that evaluates the weights that can move: the same optimum, checked on all weights, and resumed the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle import make_problem

from crfkit import L1, ChainCRF, ElasticNet
from crfkit.checkpoint import Checkpoint
from crfkit.errors import ParameterError
from crfkit.losses import ChainLikelihood, MarginalLikelihood
from crfkit.result import Status
from crfkit.solvers import OWLQN, Auto, GradientNorm, PeriodDecrease, make_solver
from crfkit.solvers.parts import active_set
from crfkit.synthetic import entity_corpus

LENGTHS = (9, 7, 8, 6, 10, 5, 9, 8)


def likelihood(seed=0, kind=ChainLikelihood, **options):
    made = make_problem(seed, 4, LENGTHS, 40, n_pair_attributes=6, states="observed", per_position=6, **options)
    return kind(made.data, made.field, n_threads=1)


class Counting:
    """A loss that counts evaluations of all weights and of parts, and parts."""

    def __init__(self, loss):
        self.loss, self.whole, self.parts = loss, 0, []

    def __getattr__(self, name):
        return getattr(self.loss, name)

    def at(self, w, warm=None):
        self.whole += 1
        return self.loss.at(w, warm)

    def part(self, places):
        part = Counting(self.loss.part(places))
        self.parts.append(part)
        return part


@pytest.fixture(autouse=True)
def _early(monkeypatch):
    """Make sets of small problems, early and tight, so that there are violations."""
    for name, value in (("LEAST", 0), ("FIRST", 3), ("PERIOD", 4), ("SHARE", 1.0), ("MARGIN", 0.99)):
        monkeypatch.setattr(active_set, name, value)


def without(monkeypatch):
    monkeypatch.setattr(active_set, "LEAST", 1 << 60)


@pytest.mark.parametrize("penalty", [L1(0.3), L1(1.0), ElasticNet(0.5, 0.3)], ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_all_weights(penalty, seed, monkeypatch):
    loss = Counting(likelihood(seed, values=seed % 2 == 1, weights=seed > 1))
    solver = OWLQN(stopping=GradientNorm(1e-8), max_iterations=3000)
    found = solver.minimize(loss, penalty, np.zeros(loss.size))
    assert loss.parts
    assert found.evaluations == loss.whole + sum(part.whole for part in loss.parts)
    # optimal by an evaluation of its own
    smooth, rest = penalty.split()
    gradient = loss.loss.at(found.w).grad
    if smooth is not None:
        smooth.add_gradient(found.w, gradient)
    assert found.status is Status.CONVERGED
    assert_allclose(np.linalg.norm(rest.min_norm_subgradient(found.w, gradient)), found.optimality, atol=1e-11)
    assert found.optimality <= 1e-8 * max(1.0, np.linalg.norm(found.w))
    without(monkeypatch)
    plain = solver.minimize(loss.loss, penalty, np.zeros(loss.size))
    assert_allclose(found.value, plain.value, rtol=1e-10)


def test_most_evaluations_are_of_a_part():
    loss = Counting(likelihood())
    OWLQN(stopping=GradientNorm(1e-8)).minimize(loss, L1(0.3), np.zeros(loss.size))
    assert sum(part.whole for part in loss.parts) > loss.whole
    assert all(part.size < loss.size for part in loss.parts)


def test_a_wrong_set_is_found_out(monkeypatch):
    """A set that lacks most of what the optimum needs grows until nothing violates."""
    loss = likelihood(5)
    monkeypatch.setattr(active_set, "FIRST", 1)
    monkeypatch.setattr(active_set, "PERIOD", 10**6)  # no checks but at the end
    found = OWLQN(stopping=PeriodDecrease(1e-9)).minimize(loss, L1(0.3), np.zeros(loss.size))
    without(monkeypatch)
    plain = OWLQN(stopping=GradientNorm(1e-8)).minimize(loss, L1(0.3), np.zeros(loss.size))
    assert_allclose(found.value, plain.value, rtol=1e-7)


def test_labels_known_in_part():
    loss = likelihood(2, MarginalLikelihood)
    found = OWLQN(stopping=GradientNorm(1e-7)).minimize(loss, L1(0.5), np.zeros(loss.size))
    gradient = loss.at(found.w).grad
    assert_allclose(np.linalg.norm(L1(0.5).min_norm_subgradient(found.w, gradient)), found.optimality, atol=1e-11)


@pytest.mark.parametrize("solver", [OWLQN, Auto])
@pytest.mark.parametrize("k", [3, 5, 7, 8, 9, 12, 14])
def test_a_run_that_was_cut_off_goes_on_as_if_nothing_had_happened(solver, k, tmp_path):
    loss, rule = likelihood(1), GradientNorm(1e-7)
    whole = solver(stopping=rule).minimize(loss, L1(0.4), np.zeros(loss.size))
    first = solver(stopping=rule, max_iterations=k).minimize(loss, L1(0.4), np.zeros(loss.size))
    Checkpoint.of(first).save(tmp_path / "c")
    saved = Checkpoint.load(tmp_path / "c")
    rest = solver(stopping=rule).minimize(loss, L1(0.4), saved.w, resume=saved.state)
    assert_array_equal(rest.w, whole.w)
    assert rest.value == whole.value


@pytest.mark.parametrize(
    "places", [np.array([5, 3]), np.array([-1, 2]), np.array([0, 10**6]), np.array([0.5]), np.arange(2), "x", None]
)
def test_damaged_places_are_refused(places):
    loss = likelihood(1)
    solver = OWLQN(stopping=GradientNorm(1e-7), max_iterations=6)
    part = solver.minimize(loss, L1(0.4), np.zeros(loss.size))
    assert part.state["set_steps"] > 0
    with pytest.raises(ParameterError, match="saved state"):
        solver.minimize(loss, L1(0.4), part.w, resume={**part.state, "set_places": places})


def test_single_precision_ends_in_double():
    made = make_problem(3, 4, LENGTHS * 5, 60, states="observed", per_position=6)
    rough = ChainLikelihood(made.data, made.field, n_threads=1, precision="auto")
    exact = ChainLikelihood(made.data, made.field, n_threads=1)
    solver = make_solver("owlqn", stopping=GradientNorm(1e-7))
    a, b = (solver.minimize(loss, L1(1.0), np.zeros(loss.size)) for loss in (rough, exact))
    assert rough.used == "single, then double"
    assert_allclose(a.value, b.value, rtol=1e-10)


def test_an_estimator_has_the_same_model(monkeypatch):
    corpus = entity_corpus(60, 3)
    X = [[[f"w={word}", f"s={shape}"] for word, shape, _ in row] for row in corpus]
    y = [[label for *_, label in row] for row in corpus]
    options = {"penalty": ElasticNet(0.3, 0.1), "tolerance": GradientNorm(1e-7), "n_threads": 1}
    with_sets = ChainCRF(**options).fit(X, y)
    without(monkeypatch)
    plain = ChainCRF(**options).fit(X, y)
    assert_allclose(with_sets.result_.value, plain.result_.value, rtol=1e-11)
    assert with_sets.state_features_.keys() == plain.state_features_.keys()
