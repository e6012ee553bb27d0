"""OWL-QN: optimality under L1 and elastic nets, exact zeros, restarts, and the curvature of the free weights."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from functions import FunctionLoss, altered, interrupted_at, logistic, quadratic
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import make_problem

from crfkit.errors import ParameterError
from crfkit.losses import ChainLikelihood
from crfkit.penalties import L1, L2, ElasticNet, NoPenalty
from crfkit.result import Status
from crfkit.solvers import GradientNorm, PeriodDecrease
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.parts.free_curvature import FreeCurvature
from crfkit.solvers.parts.moving import Moving
from crfkit.solvers.parts.objective import Objective

TIGHT = GradientNorm(1e-7)
NEVER = PeriodDecrease(0.0, 10**6)
PENALTIES = [L1(0.5), L1(3.0), ElasticNet(1.0, 0.5), ElasticNet(0.1, 2.0)]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: penalty.name)


def solve(loss, penalty, w0=None, callbacks=(), resume=None, **options):
    options = {"stopping": TIGHT, "max_iterations": 3000} | options
    return OWLQN(**options).minimize(loss, penalty, np.zeros(loss.size) if w0 is None else w0, callbacks, resume)


def likelihood(seed=0):
    made = make_problem(seed, lengths=(6, 4, 8, 5, 7, 3), n_attributes=12, weights=True)
    return ChainLikelihood(made.data, made.field, 1)


def strengths(penalty):
    smooth, rest = penalty.split()
    return (rest.strength if rest else 0.0), (smooth.strength if smooth else 0.0)


def violation(loss, penalty, w):
    """How far w is from optimal, weight by weight, from the conditions as they stand in the papers."""
    l1, l2 = strengths(penalty)
    gradient = loss.at(w).grad + l2 * w
    return np.where(w != 0, np.abs(gradient + l1 * np.sign(w)), np.maximum(np.abs(gradient) - l1, 0))


def split_variables(loss, penalty):
    """The optimal value by L-BFGS-B on w = u − v, u, v ≥ 0, where the penalty is smooth."""
    l1, l2 = strengths(penalty)
    n = loss.size

    def both(uv):
        w = uv[:n] - uv[n:]
        at = loss.at(w)
        gradient = at.grad + l2 * w
        return at.value + l1 * uv.sum() + l2 / 2 * w @ w, np.concatenate([gradient + l1, l1 - gradient])

    options = {"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    return scipy.optimize.minimize(both, np.zeros(2 * n), jac=True, bounds=[(0, None)] * (2 * n), options=options).fun


def by_prox_gradient(loss, penalty, steps):
    """ISTA with step 1/L, L the largest curvature of a quadratic."""
    l1, l2 = strengths(penalty)
    w = np.zeros(loss.size)
    step = 1 / (np.linalg.eigvalsh(loss.hessian(w))[-1] + l2)
    for _ in range(steps):
        w = L1(l1).prox(w - step * (loss.at(w).grad + l2 * w), step)
    return w


# --- optima


@every_penalty
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_the_conditions_of_optimality_hold_at_the_end(penalty, seed):
    for loss in (logistic(seed, n=12, spread=3.0), quadratic(seed, n=10)[0]):
        result = solve(loss, penalty)
        assert result.status is Status.CONVERGED
        assert np.linalg.norm(violation(loss, penalty, result.w)) <= 1.01e-7 * max(1, np.linalg.norm(result.w))


@every_penalty
@pytest.mark.parametrize("seed", range(3))
def test_scipy_finds_nothing_better(penalty, seed):
    for loss in (logistic(seed, n=15), likelihood(seed)):
        result = solve(loss, penalty)
        assert_allclose(result.value, split_variables(loss, penalty), rtol=1e-6)
        assert_allclose(result.value, loss.at(result.w).value + penalty.value(result.w), rtol=1e-13)


@every_penalty
@pytest.mark.parametrize("seed", range(3))
def test_the_same_point_as_proximal_gradients(penalty, seed):
    loss, _ = quadratic(seed, n=15, condition=30.0)
    result, expected = solve(loss, penalty), by_prox_gradient(loss, penalty, 2000)
    assert_allclose(result.w, expected, atol=1e-6)
    assert ((result.w == 0) == (expected == 0)).all()


@pytest.mark.parametrize("penalty", [NoPenalty(), L2(0.3), L1(0.0), ElasticNet(0.0, 0.3)], ids=lambda p: p.name)
def test_without_corners_it_is_a_quasi_newton_method(penalty):
    loss, minimum = quadratic(3, n=20, condition=1e3)
    l2 = strengths(penalty)[1]
    A = loss.hessian(minimum)
    for w0 in (np.zeros(20), np.ones(20)):
        result = solve(loss, penalty, w0)
        assert result.status is Status.CONVERGED
        assert_allclose(result.w, np.linalg.solve(A + l2 * np.eye(20), A @ minimum), atol=1e-6)


@every_penalty
def test_from_any_start(penalty):
    """Weights of the wrong sign have to pass through zero."""
    loss, rng = logistic(5, n=12), np.random.default_rng(0)
    best = solve(loss, penalty)
    for w0 in (-best.w, 10 * rng.normal(size=12), np.full(12, 1e-12)):
        found = solve(loss, penalty, w0)
        assert_allclose(found.value, best.value, rtol=1e-9)
        assert ((found.w != 0) == (best.w != 0)).all()


# --- the method as published


def as_published(loss, penalty, iterations, memory):
    """Algorithm 1 of Andrew & Gao (2007), with dense matrices; returns the points and the number of evaluations."""
    l1, l2 = strengths(penalty)
    x, n, pairs, calls = np.zeros(loss.size), loss.size, [], 1
    points = [x]

    def both(w):
        at = loss.at(w)
        return at.value + l2 / 2 * w @ w + l1 * np.abs(w).sum(), at.grad + l2 * w

    value, gradient = both(x)
    for _ in range(iterations):
        v = -np.where(x != 0, gradient + l1 * np.sign(x), np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0))
        H = np.eye(n) * (pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]) if pairs else 1.0)
        for s, y in pairs:
            V = np.eye(n) - np.outer(y, s) / (y @ s)
            H = V.T @ H @ V + np.outer(s, s) / (y @ s)
        d = H @ v
        p = np.where(np.sign(d) == np.sign(v), d, 0.0)
        xi = np.where(x != 0, np.sign(x), np.sign(v))
        alpha = 1.0 if pairs else 1.0 / np.linalg.norm(v)
        while True:
            moved = x + alpha * p
            new = np.where(np.sign(moved) == xi, moved, 0.0)
            new_value, new_gradient = both(new)
            calls += 1
            if new_value <= value - 1e-4 * v @ (new - x):
                break
            alpha *= 0.5
        pairs = [*pairs, (new - x, new_gradient - gradient)][-memory:]
        x, value, gradient = new, new_value, new_gradient
        points.append(x)
    return points, calls


@every_penalty
@pytest.mark.parametrize("make", [lambda: logistic(2, n=10), lambda: likelihood(2)])
def test_the_original_is_the_published_algorithm(penalty, make):
    points, calls = as_published(make(), penalty, 12, memory=4)
    found = []
    options = {"variant": "original", "memory": 4, "stopping": NEVER, "max_iterations": 12}
    result = solve(make(), penalty, callbacks=[lambda it: found.append(it.w.copy())], **options)
    assert result.evaluations == calls
    for mine, theirs in zip(found, points[len(points) - len(found) :], strict=True):
        assert_allclose(mine, theirs, atol=1e-8)
        assert ((mine == 0) == (theirs == 0)).all()


@every_penalty
@pytest.mark.parametrize("seed", range(3))
def test_the_original_has_the_same_optimum(penalty, seed):
    for loss in (logistic(seed, n=15), likelihood(seed)):
        best, found = solve(loss, penalty), solve(loss, penalty, variant="original", stopping=GradientNorm(1e-5))
        assert found.status is Status.CONVERGED
        assert_allclose(found.value, best.value, rtol=1e-9)
        assert ((found.w != 0) == (best.w != 0)).all()


def test_the_original_in_two_parts_gives_the_same_bits():
    options = {"variant": "original", "memory": 3, "stopping": NEVER}
    whole = solve(likelihood(), L1(0.5), max_iterations=10, **options)
    first = solve(likelihood(), L1(0.5), max_iterations=5, **options)
    rest = solve(likelihood(), L1(0.5), first.w, max_iterations=5, resume=first.state, **options)
    assert (rest.w == whole.w).all()


def test_the_original_without_corners_is_lbfgs():
    loss, minimum = quadratic(3, n=20, condition=1e2)
    result = solve(loss, NoPenalty(), variant="original")
    assert result.status is Status.CONVERGED
    assert_allclose(result.w, minimum, atol=1e-5)


# --- zeros


@pytest.mark.parametrize("make", [lambda: likelihood(1), lambda: logistic(1, n=12), lambda: quadratic(1)[0]])
def test_all_weights_stay_zero_from_the_critical_strength_on(make):
    loss = make()
    critical = L1().critical_strength(loss.at(np.zeros(loss.size)).grad)
    for factor in (1.0, 1.5, 1e6):
        for penalty in (L1(factor * critical), ElasticNet(factor * critical, 1.0)):
            result = solve(loss, penalty)
            assert result.status is Status.CONVERGED
            assert (result.evaluations, result.iterations, result.optimality) == (1, 0, 0.0)
            assert not result.w.any()
            # also from elsewhere, and under a rule that looks at changes only
            back = solve(loss, penalty, np.full(loss.size, 0.3))
            assert back.status is Status.CONVERGED
            assert not back.w.any()
            assert solve(loss, penalty, stopping=PeriodDecrease()).status is Status.CONVERGED
    assert solve(loss, L1(0.99 * critical)).w.any()


def test_zeros_are_exact_and_counted():
    loss = likelihood(2)
    result = solve(loss, L1(0.7))
    nonzeros = np.count_nonzero(result.w)
    assert 0 < nonzeros < loss.size / 2
    assert np.abs(result.w[result.w != 0]).min() > 1e-6
    assert result.trace[0].nonzeros == 0
    assert result.trace[-1].nonzeros == nonzeros


@every_penalty
def test_no_step_crosses_zero(penalty):
    """Within an iteration a weight keeps its sign, becomes zero or leaves zero; the objective never rises."""
    seen = []
    result = solve(logistic(7, n=15), penalty, np.linspace(-2, 2, 15), [lambda it: seen.append(it.w.copy())])
    for old, new in itertools.pairwise(seen):
        assert (old * new >= 0).all()
    for old, new in itertools.pairwise(result.trace):
        assert new.value <= old.value + 8 * 2.0**-52 * abs(old.value)
        assert new.evaluations > old.evaluations


def test_steps_are_seldom_halved():
    """What a recursion over all weights does: free weights answer to weights that cannot move."""
    loss = logistic(0, n=60, samples=80, spread=30.0)
    result = solve(loss, L1(2.0))
    assert result.status is Status.CONVERGED
    assert result.evaluations < 1.5 * result.iterations + 10


# --- bookkeeping


@every_penalty
@pytest.mark.parametrize("make", [lambda: logistic(3, n=12), lambda: quadratic(3)[0]])
def test_reported_evaluations_are_the_calls_made(penalty, make):
    for options in ({}, {"max_iterations": 0}, {"max_iterations": 4}, {"stopping": GradientNorm(0.0)}):
        loss = make()
        assert solve(loss, penalty, **options).evaluations == loss.calls
    loss = interrupted_at(make(), 6)
    result = solve(loss, penalty)
    assert result.status is Status.INTERRUPTED
    assert result.evaluations == loss.calls


@every_penalty
@pytest.mark.parametrize("memory", [1, 3, 20])
@pytest.mark.parametrize("k", [0, 1, 5, 12])
def test_a_run_in_two_parts_gives_the_same_bits(penalty, memory, k):
    options = {"memory": memory, "stopping": NEVER}
    whole = solve(likelihood(), penalty, max_iterations=2 * k, **options)
    first = solve(likelihood(), penalty, max_iterations=k, **options)
    for _ in range(2):  # the state that was saved may be resumed once more
        rest = solve(likelihood(), penalty, first.w, max_iterations=k, resume=first.state, **options)
        assert (rest.w == whole.w).all()
        assert rest.value == whole.value
    assert [row.value for row in whole.trace[first.iterations :]] == [row.value for row in rest.trace]


def test_a_state_of_other_weights_is_refused():
    state = solve(quadratic(n=8)[0], L1(0.1), max_iterations=5).state
    with pytest.raises(ParameterError, match="saved state has 8 weights, not 9"):
        solve(quadratic(n=9)[0], L1(0.1), resume=state)
    with pytest.raises(ParameterError, match="free weights, not 0"):
        solve(quadratic(n=8)[0], L1(0.1), resume=state)


@pytest.mark.parametrize("options", [{"memory": 0}, {"max_iterations": -1}, {"variant": "other"}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        OWLQN(**options)


# --- walls


def walled(beyond):
    """−Σ log(1 − w) − 5·w; at the wall w = 1 and beyond, `beyond` is (value, gradient)."""

    def both(w):
        if (w >= 1).any():
            return beyond[0], np.full_like(w, beyond[1])
        return -np.log1p(-w).sum() - 5 * w.sum(), 1 / (1 - w) - 5

    return FunctionLoss(3, both)


@pytest.mark.parametrize("beyond", [(math.inf, math.nan), (math.nan, 0.0), (-1e9, math.nan), (0.0, math.inf)], ids=str)
def test_walls_are_kept_off(beyond):
    result = solve(walled(beyond), L1(1.0))
    assert result.status is Status.CONVERGED
    assert_allclose(result.w, 0.75, atol=1e-7)  # 1/(1 − w) = 5 − 1


def test_a_loss_that_is_not_finite_at_the_start():
    for beyond in ((math.nan, 0.0), (0.0, math.nan)):
        assert solve(walled(beyond), L1(1.0), np.full(3, 2.0)).status is Status.NON_FINITE


def test_a_loss_that_turns_to_nan_ends_at_the_last_good_point():
    loss = altered(logistic(2, n=12), 8, lambda value, gradient: (math.nan, gradient))
    result = solve(loss, L1(0.5))
    assert result.status is Status.LINE_SEARCH_FAILED
    assert_allclose(result.value, loss.inner(result.w)[0] + 0.5 * np.abs(result.w).sum(), rtol=1e-14)


def test_a_loss_steeper_than_the_penalty_has_no_minimum():
    falling = FunctionLoss(3, lambda w: (-2 * w.sum(), np.full(3, -2.0)))
    assert solve(falling, L1(1.0)).status is Status.DIVERGED
    assert solve(falling, L1(2.0)).status is Status.CONVERGED
    assert_allclose(solve(falling, ElasticNet(1.0, 0.5)).w, 2.0, atol=1e-6)


# --- the curvature of the free weights


def curvature_after(penalty, memory, k=8):
    """The state after k iterations."""
    loss = likelihood(4)
    objective, solver = Objective(loss, penalty), OWLQN(memory=memory)
    state = solver.init(objective, np.zeros(loss.size), {})
    for _ in range(k):
        state = solver.step(objective, state)
    return state


def along(curvature, p):
    """The direction of the free weights for a given p, and whether it has a length of its own."""
    none = np.zeros(0, dtype=np.int64)
    return curvature.direction(Moving(curvature.index, p[curvature.index], none, np.zeros(0), np.linalg.norm(p)))


@pytest.mark.parametrize("penalty", [L1(0.3), L2(1.0)], ids=lambda penalty: penalty.name)
def test_the_matrix_is_symmetric_positive_and_keeps_the_last_secant(penalty):
    state = curvature_after(penalty, memory=5)
    curvature, n = state.curvature, len(state.point.w)
    assert len(curvature) == 5
    columns = []
    for k in curvature.index:
        unit = np.zeros(n)
        unit[k] = 1.0
        columns.append(along(curvature, unit)[0])
    H = np.array(columns)
    assert_allclose(H, H.T, atol=1e-10 * np.abs(H).max())
    assert np.linalg.eigvalsh(H)[0] > 0
    assert_allclose(H @ curvature.y[-1], curvature.s[-1], atol=1e-10 * np.abs(curvature.s[-1]).max())


def test_pairs_follow_the_free_weights():
    state = curvature_after(L1(0.3), memory=4)
    curvature, point = state.curvature, state.point
    assert (curvature.index == np.flatnonzero(point.w)).all()
    assert curvature.s.shape == curvature.y.shape == (4, len(curvature.index))
    # one weight becomes zero, another free: the first leaves the old pairs, the second enters them with zeros
    objective = Objective(likelihood(4), L1(0.3))
    w, gone, come = point.w.copy(), curvature.index[1], np.flatnonzero(point.w == 0)[:1]
    w[gone], w[come] = 0.0, 0.01
    new = objective.at(w)
    after = curvature.after(point, new, 4)
    assert (after.index == np.flatnonzero(w)).all()
    assert len(after) == 4
    places = {int(k): column for column, k in enumerate(curvature.index)}
    for column, k in enumerate(after.index):
        expected = curvature.s[1:, places[int(k)]] if int(k) in places else np.zeros(3)
        assert (after.s[:3, column] == expected).all()
    assert (after.s[3] == (w - point.w)[after.index]).all()
    assert (after.y[3] == (new.grad - point.grad)[after.index]).all()
    assert after.moved[gone] >= (w - point.w)[gone] ** 2  # not forgotten


def test_without_pairs_the_direction_has_no_length_of_its_own():
    state = curvature_after(L1(0.3), memory=4)
    assert along(state.curvature, -state.point.subgradient)[1]
    forgotten = state.curvature.forgotten()
    d, curved = along(forgotten, -state.point.subgradient)
    assert not curved
    assert len(forgotten) == 0
    assert d @ -state.point.subgradient[forgotten.index] > 0
    fresh = FreeCurvature.at(state.point, {})
    assert (along(fresh, -state.point.subgradient)[0] == -state.point.subgradient[fresh.index]).all()
