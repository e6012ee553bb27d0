"""The default solver: what it chooses, that it gets there, and that it needs nothing a loss does not have."""

import math
import pickle
from functools import cache

import numpy as np
import pytest
from functions import FunctionLoss, logistic, quadratic, rosenbrock
from numpy.testing import assert_allclose
from oracle import make_problem

from crfkit.checkpoint import Checkpoint
from crfkit.errors import CapabilityError, ParameterError
from crfkit.losses import ChainLikelihood, SoftmaxMargin, StructuredHinge
from crfkit.penalties import L1, L2, ElasticNet, NoPenalty
from crfkit.result import Status
from crfkit.solvers import LBFGS, OWLQN, Auto, GradientNorm, make_solver
from crfkit.solvers.objective import Objective

TIGHT = GradientNorm(1e-7)
PENALTIES = [L2(1.0), L1(0.7), ElasticNet(0.5, 0.5)]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: penalty.name)
WARM = {"least_sequences": 10}


@cache
def problem(**options):
    lengths = tuple(np.random.default_rng(0).integers(1, 6, 30).tolist())
    return make_problem(2, 3, lengths, 8, values=True, **options)


def likelihood(weights=None, **options):
    made = problem(**options)
    return ChainLikelihood(made.data.with_weights(weights), made.field, 1)


def solve(loss, penalty, w0=None, callbacks=(), resume=None, **options):
    options = {"stopping": TIGHT} | options
    return Auto(**options).minimize(loss, penalty, np.zeros(loss.size) if w0 is None else w0, callbacks, resume)


def reference(loss, penalty):
    """By the solver that Auto should choose, from zero."""
    name = "lbfgs" if penalty.split()[1] is None else "owlqn"
    found = make_solver(name, stopping=GradientNorm(1e-7)).minimize(loss, penalty, np.zeros(loss.size))
    assert found.optimality < 1e-5
    return found


def unopened(loss):
    """The loss, which must not be asked for its online form."""

    def online():
        raise AssertionError("opened")

    loss.online = online
    return loss


def chosen(loss, penalty, **options):
    return Auto(**options).init(Objective(loss, penalty), np.zeros(loss.size), {}).solver


# --- what it chooses


@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
def test_owl_qn_under_l1_and_l_bfgs_otherwise(options):
    for penalty in (L1(1.0), ElasticNet(1.0, 1.0), L1(0.0)):
        assert chosen(likelihood(), penalty, **options).name == "owlqn"
    for penalty in (L2(1.0), NoPenalty()):
        assert chosen(likelihood(), penalty, **options).name == "lbfgs"
    assert chosen(likelihood(), L2(1.0), memory=3, **options).memory == 3
    assert chosen(likelihood(), L1(1.0), memory=3, **options).memory == OWLQN().memory  # of small vectors


@every_penalty
def test_with_little_data_there_is_no_warm_up(penalty):
    """Then it is L-BFGS or OWL-QN, bit by bit."""
    loss = unopened(likelihood())
    found = solve(loss, penalty, least_sequences=31)
    name = "lbfgs" if penalty.split()[1] is None else "owlqn"
    options = {"memory": 6} if name == "lbfgs" else {}
    same = make_solver(name, stopping=TIGHT, **options).minimize(likelihood(), penalty, np.zeros(loss.size))
    assert (found.w == same.w).all()
    assert [row.value for row in found.trace] == [row.value for row in same.trace]
    assert Auto().least_sequences > 30
    assert (solve(loss, penalty).w == found.w).all()
    assert (solve(loss, penalty, least_sequences=1, epochs=0).w == found.w).all()


@pytest.mark.parametrize("penalty", [L2(1.0), L2(0.01), NoPenalty()], ids=lambda penalty: penalty.name)
def test_with_enough_data_stochastic_epochs_come_first(penalty):
    loss = likelihood()
    cold, warm = loss.at(np.zeros(loss.size)).value, solve(loss, penalty, least_sequences=30)
    assert warm.value < warm.trace[0].value < cold
    assert warm.trace[0].value - warm.value < 0.2 * (cold - warm.value)


@pytest.mark.parametrize("penalty", [L1(1.0), ElasticNet(1.0, 1.0)], ids=lambda penalty: penalty.name)
def test_under_l1_there_are_no_stochastic_epochs(penalty):
    loss = unopened(likelihood())
    assert solve(loss, penalty, least_sequences=0).trace[0].value == loss.at(np.zeros(loss.size)).value


def test_epochs_of_stochastic_gradients_need_a_penalty_they_know():
    class Rounded(L2):
        kinds = frozenset({"rounded"})

    found = solve(unopened(likelihood()), Rounded(1.0), least_sequences=1)
    assert_allclose(found.value, reference(likelihood(), L2(1.0)).value, rtol=1e-9)


# --- that it gets there


@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
@pytest.mark.parametrize("penalty", [*PENALTIES, L2(0.01), L1(5.0)], ids=lambda penalty: penalty.name)
def test_the_optimum(penalty, options):
    loss = likelihood()
    best = reference(loss, penalty)
    found = solve(loss, penalty, **options)
    assert found.status is Status.CONVERGED
    assert_allclose(found.value, best.value, rtol=1e-6)
    assert ((found.w != 0) == (best.w != 0)).all()


@pytest.mark.parametrize(
    "options", [{"order": 2}, {"forbidden": 0.5}, {"n_classes": 2}, {"n_pair_attributes": 3}], ids=str
)
@pytest.mark.parametrize("penalty", [L2(1.0), L1(0.7)], ids=lambda penalty: penalty.name)
def test_the_optimum_in_every_kind_of_field(options, penalty):
    loss = likelihood(**options)
    assert_allclose(solve(loss, penalty, **WARM).value, reference(loss, penalty).value, rtol=1e-6)


def test_the_optimum_of_a_smooth_margin_and_of_weighted_sequences():
    margin = SoftmaxMargin(problem().data, problem().field, n_threads=1)
    for loss in (margin, likelihood(np.arange(30) % 4)):
        assert_allclose(solve(loss, L2(1.0), **WARM).value, reference(loss, L2(1.0)).value, rtol=1e-6)


@every_penalty
def test_its_own_tolerance_is_close_enough(penalty):
    loss = likelihood()
    found = Auto(**WARM).minimize(loss, penalty, np.zeros(loss.size))
    assert found.status is Status.CONVERGED
    assert_allclose(found.value, reference(loss, penalty).value, rtol=1e-3)


@every_penalty
def test_a_start_at_the_optimum_stays_there(penalty):
    loss = likelihood()
    best = reference(loss, penalty)
    for options in ({}, WARM):
        found = solve(loss, penalty, w0=best.w, stopping=GradientNorm(1e-6), **options)
        assert found.iterations <= 5
        assert_allclose(found.value, best.value, rtol=1e-9)


def test_without_a_penalty_it_says_when_there_is_no_minimum():
    """Data that can be separated: the weights grow until the likelihood is flat."""
    loss = likelihood()
    found = solve(loss, NoPenalty(), stopping=GradientNorm(1e-4), **WARM)
    assert found.value <= reference(loss, L2(0.01)).value
    assert math.isfinite(found.value)


# --- bookkeeping


@every_penalty
@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
def test_reported_evaluations_are_the_calls_made(penalty, options):
    loss, calls = likelihood(), []
    inner = loss.at
    loss.at = lambda w, warm=None: calls.append(None) or inner(w, warm)
    found = solve(loss, penalty, **options)
    assert found.evaluations == len(calls)
    assert found.trace[0].evaluations == 1
    assert_allclose(found.value, inner(found.w).value + penalty.value(found.w), rtol=1e-12)
    assert found.objective == f"chain likelihood + {penalty.name}"
    assert [row.iteration for row in found.trace] == list(range(len(found.trace)))


def test_a_seed_decides_the_bits_and_not_the_optimum():
    a, b, other = (solve(likelihood(), L2(1.0), seed=seed, **WARM) for seed in (1, 1, 2))
    assert (a.w == b.w).all()
    assert [row.value for row in a.trace] == [row.value for row in b.trace]
    assert a.trace[0].value != other.trace[0].value
    assert_allclose(a.value, other.value, rtol=1e-6)


def test_the_start_is_not_changed():
    w0 = np.ones(likelihood().size)
    solve(likelihood(), L2(1.0), w0=w0, **WARM)
    assert (w0 == 1).all()


# --- losses that have nothing but values and gradients


def test_a_loss_that_is_only_smooth():
    for loss, penalty, optimum in (
        (*quadratic(condition=10.0)[:1], NoPenalty(), quadratic(condition=10.0)[1]),
        (rosenbrock(2), NoPenalty(), np.ones(2)),
    ):
        loss.capabilities = frozenset({"smooth"})
        found = solve(loss, penalty, least_sequences=0)
        assert found.status is Status.CONVERGED
        assert_allclose(found.w, optimum, atol=1e-5)
        assert (loss.products, found.products) == (0, 0)


@every_penalty
@pytest.mark.parametrize("capabilities", [{"smooth"}, {"smooth", "hessp", "hess_diag"}], ids=len)
def test_logistic_regression(penalty, capabilities):
    loss = logistic(spread=2.0)
    loss.capabilities = frozenset(capabilities)
    found = solve(loss, penalty, least_sequences=0)
    assert found.status is Status.CONVERGED
    assert_allclose(found.value, reference(logistic(spread=2.0), penalty).value, rtol=1e-9)


def test_a_sparse_quadratic_by_hand():
    """½(w − m)² + |w| has its minimum at m shrunk by 1."""
    m = np.array([3.0, -2.0, 0.5, -0.9, 0.0])
    loss = FunctionLoss(5, lambda w: (0.5 * (w - m) @ (w - m), w - m))
    loss.capabilities = frozenset({"smooth"})
    found = solve(loss, L1(1.0))
    assert_allclose(found.w, [2.0, -1.0, 0.0, 0.0, 0.0], atol=1e-7)
    assert (found.w[2:] == 0).all()


def test_a_loss_with_corners_is_refused_before_any_work():
    loss = unopened(StructuredHinge(problem().data, problem().field))
    with pytest.raises(CapabilityError, match=r"auto needs smooth, which the structured hinge .*these can: .*sgd"):
        solve(loss, L2(1.0), least_sequences=0)


# --- going on later


@every_penalty
@pytest.mark.parametrize("options", [{}, WARM], ids=["cold", "warm"])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_a_run_in_two_parts_gives_the_same_bits(penalty, options, k, tmp_path):
    options = {**options, "stopping": GradientNorm(0.0)}
    part = solve(likelihood(), penalty, max_iterations=k, **options)
    whole = solve(likelihood(), penalty, max_iterations=2 * k + 1, **options)
    Checkpoint.of(part).save(tmp_path / "c")
    saved = Checkpoint.load(tmp_path / "c")
    for w0, state in ((part.w, pickle.loads(pickle.dumps(dict(part.state)))), (saved.w, saved.state)):
        # there is no second warm-up
        rest = solve(unopened(likelihood()), penalty, w0=w0, resume=state, max_iterations=k + 1, **options)
        assert (rest.w == whole.w).all()
        assert [row.value for row in part.trace + rest.trace[1:]] == [row.value for row in whole.trace]


def test_states_that_do_not_fit_are_refused():
    part = solve(likelihood(), L2(1.0), max_iterations=3)
    with pytest.raises(ParameterError, match="saved state is of the solver 'auto', not of 'lbfgs'"):
        LBFGS().minimize(likelihood(), L2(1.0), part.w, resume=part.state)
    with pytest.raises(ParameterError, match="memory of 6, not 4"):
        solve(likelihood(), L2(1.0), w0=part.w, resume=part.state, memory=4)


# --- options


@pytest.mark.parametrize("name", ["memory", "seed", "max_iterations", "epochs"])
def test_options_out_of_range_are_refused(name):
    with pytest.raises(ParameterError, match=name):
        Auto(**{name: -1})


def test_an_iteration_limit():
    found = solve(likelihood(), L2(1.0), max_iterations=2)
    assert (found.status, found.iterations) == (Status.MAX_ITERATIONS, 2)
