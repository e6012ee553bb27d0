"""What theory says of each smooth solver: rates, conjugacy, equivalences, trust-region rules."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from functions import FunctionLoss, logistic, quadratic, rosenbrock
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit.errors import ParameterError
from crfkit.penalties import L2, NoPenalty
from crfkit.result import Status
from crfkit.solvers import (
    BFGS,
    DFP,
    LBFGS,
    ConjugateGradient,
    ExactLineSearch,
    GradientDescent,
    GradientNorm,
    Newton,
    StrongWolfe,
    Tron,
    UnitStep,
    tron,
)
from crfkit.solvers.parts.cg_steihaug import Exit, steihaug
from crfkit.solvers.parts.dense import newton_direction
from crfkit.solvers.parts.preconditioner import jacobi_scale

EXACT = ExactLineSearch()
NEVER = GradientNorm(0.0)
VALLEY = np.array([-1.2, 1.0, -1.2, 1.0])
seeds = st.integers(0, 10**6)


def walk(solver, loss, w0=None, penalty=NoPenalty()):  # noqa: B008
    """(the result, all iterates)."""
    points = []
    w0 = np.zeros(loss.size) if w0 is None else w0
    result = solver.minimize(loss, penalty, w0, [lambda it: points.append(it.w.copy())])
    return result, np.array(points)


# --- steepest descent


@settings(max_examples=20)
@given(seeds, st.integers(2, 8), st.sampled_from([2.0, 10.0, 100.0]))
def test_steepest_descent_with_exact_search(seed, n, condition):
    """Successive steps are orthogonal; the error falls by ((κ−1)/(κ+1))² at least, in the norm of the Hessian."""
    loss, _ = quadratic(seed, n, condition)
    _, points = walk(GradientDescent(stopping=GradientNorm(1e-6), max_iterations=50, line_search=EXACT), loss)
    steps = np.diff(points, axis=0)
    for s, t in itertools.pairwise(steps):
        assert abs(s @ t) <= 1e-8 * np.linalg.norm(s) * np.linalg.norm(t)
    errors = np.array([loss.both(w)[0] for w in points])  # ½‖w − minimum‖² in that norm
    rate = ((condition - 1) / (condition + 1)) ** 2
    assert (errors[1:] <= rate * errors[:-1] * (1 + 1e-9) + 1e-25).all()


@pytest.mark.parametrize("condition", [3.0, 10.0, 100.0])
def test_the_rate_of_steepest_descent_is_attained(condition):
    A = np.diag([1.0, condition])
    loss = FunctionLoss(2, lambda w: (0.5 * w @ A @ w, A @ w), lambda w: A)
    solver = GradientDescent(stopping=NEVER, max_iterations=10, line_search=EXACT)
    _, points = walk(solver, loss, np.array([condition, 1.0]))
    errors = np.array([loss.both(w)[0] for w in points])
    assert_allclose(errors[1:] / errors[:-1], ((condition - 1) / (condition + 1)) ** 2, rtol=1e-6)


# --- Newton


@pytest.mark.parametrize("options", [{"direction": "dense"}, {"direction": "cg", "order": 2.0}])
@pytest.mark.parametrize("seed", range(3))
def test_newton_converges_quadratically(options, seed):
    """‖e⁺‖ ≤ L/(2μ)·‖e‖², L a Lipschitz constant of the Hessian, μ its least eigenvalue (and CG's residual ξ‖g‖)."""
    loss, strength = logistic(seed, n=4, spread=1.0), 5.0
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4)) * np.geomspace(1.0, 1.0, 4)
    L = (np.linalg.norm(X, axis=1) ** 3).sum() / (6 * math.sqrt(3))
    solver = Newton(stopping=NEVER, line_search=UnitStep(), max_iterations=20, **options)
    result, points = walk(solver, loss, penalty=L2(strength))
    # the last iterates differ by rounding only
    errors = np.linalg.norm(points - result.w, axis=1)
    pairs = [(e, f) for e, f in itertools.pairwise(errors) if f > 1e-12]
    assert len(pairs) >= 2
    if options["direction"] == "dense":
        assert all(f <= L / (2 * strength) * e * e * 1.0001 for e, f in pairs)
    gradients = [row.optimality for row in result.trace if row.optimality > 1e-11]
    logs = np.log(gradients)
    orders = (logs[2:] - logs[1:-1]) / (logs[1:-1] - logs[:-2])
    assert orders[-1] > 1.6  # of convergence; 2 in the limit
    assert result.status in (Status.CONVERGED, Status.ROUNDING)


@settings(max_examples=15)
@given(seeds, st.integers(1, 20))
def test_newton_minimises_a_quadratic_in_one_step(seed, n):
    loss, minimum = quadratic(seed, n, 1e3)
    for search in (UnitStep(), StrongWolfe()):
        solver = Newton(stopping=GradientNorm(1e-9), direction="dense", line_search=search)
        result, points = walk(solver, loss)
        assert result.iterations <= 2
        assert_allclose(points[1], minimum, atol=1e-9)


@settings(max_examples=30)
@given(seeds, st.integers(1, 8), st.floats(-3, 3))
def test_a_shifted_hessian_gives_a_descent_direction(seed, n, level):
    """Whatever H is; and Newton's own direction where H is positive definite."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, n))
    H, g = H + H.T + level * np.eye(n), rng.normal(size=n)
    d = newton_direction(H, g)
    assert d @ g < 0
    definite = H @ H + 0.1 * np.eye(n)
    assert_allclose(definite @ newton_direction(definite, g), -g, atol=1e-8 * np.linalg.norm(g))
    assert newton_direction(np.zeros((n, n)), g) @ g < 0


def test_newton_leaves_a_saddle():
    """w₀² − w₁² + w₁⁴/2: indefinite at the start, minima at w₁ = ±1."""

    def both(w):
        return w[0] ** 2 - w[1] ** 2 + w[1] ** 4 / 2, np.array([2 * w[0], -2 * w[1] + 2 * w[1] ** 3])

    loss = FunctionLoss(2, both, lambda w: np.diag([2.0, -2 + 6 * w[1] ** 2]))
    for solver in (Newton(), Newton(direction="dense"), Tron(), Tron(preconditioned=True)):
        result = walk(solver, loss, np.array([1.0, 1e-3]))[0]
        assert result.status is Status.CONVERGED
        assert_allclose(np.abs(result.w), [0, 1], atol=1e-3)


# --- quasi-Newton and conjugate gradients on quadratics


def conjugate_gradients(A, g, w, n):
    """The textbook's: iterates for ½wᵀAw + … with gradient g at w."""
    points, d = [w], -g
    for _ in range(n):
        alpha = (g @ g) / (d @ A @ d)
        w, g, old = w + alpha * d, g + alpha * A @ d, g
        d = -g + (g @ g) / (old @ old) * d
        points.append(w)
    return np.array(points)


@settings(max_examples=20)
@given(seeds, st.integers(2, 7), st.sampled_from([2.0, 10.0, 50.0]), st.booleans())
def test_dense_quasi_newton_with_exact_search(seed, n, condition, initial_scaling):
    """Conjugate steps, and after n of them the minimum and the inverse Hessian (paper 002, equations 10 and 11)."""
    loss, minimum = quadratic(seed, n, condition)
    A = loss.hessian(minimum)
    for make in (BFGS, DFP):
        solver = make(stopping=NEVER, max_iterations=n, line_search=EXACT, initial_scaling=initial_scaling)
        result, points = walk(solver, loss)
        assume(len(points) == n + 1)
        steps = np.diff(points, axis=0)
        products = steps @ A @ steps.T
        lengths = np.sqrt(np.diag(products))
        assert_allclose(products / np.outer(lengths, lengths), np.eye(n), atol=1e-5)
        assert_allclose(result.w, minimum, atol=1e-7)
        assert_allclose(result.state["inverse"] @ A, np.eye(n), atol=1e-4)


@settings(max_examples=20)
@given(seeds, st.integers(2, 8), st.sampled_from([2.0, 10.0, 50.0]))
def test_all_conjugate_methods_walk_the_same_path(seed, n, condition):
    """BFGS, DFP, L-BFGS and non-linear conjugate gradients, on quadratics with exact search (Dixon's theorem)."""
    loss, minimum = quadratic(seed, n, condition)
    expected = conjugate_gradients(loss.hessian(minimum), loss.both(np.zeros(n))[1], np.zeros(n), n)
    common = {"stopping": NEVER, "max_iterations": n, "line_search": EXACT}
    for solver in (BFGS(**common), DFP(**common), LBFGS(memory=n, **common), ConjugateGradient(**common)):
        points = walk(solver, loss)[1]
        assert_allclose(points, expected[: len(points)], atol=1e-6)


@settings(max_examples=20)
@given(seeds, st.integers(2, 8))
def test_the_updates_satisfy_the_secant_equation_and_stay_positive_definite(seed, n):
    """H⁺y = s; H is symmetric to the last bit and positive definite."""
    rng = np.random.default_rng(seed)
    A = quadratic(seed, n, 100.0)[0].hessian(None)
    for make in (BFGS, DFP):
        inverse = make.inverse_hessian(n, True, {})
        for k in range(2 * n):
            x, s = rng.normal(size=n), rng.normal(size=n)
            assert inverse.add(x, A @ x, x + s, A @ (x + s))
            H = inverse.matrix
            assert (H == H.T).all()
            assert_allclose(H @ A @ s, s, rtol=0, atol=1e-9 * np.linalg.norm(H) * 100 * np.linalg.norm(s))
            assert np.linalg.eigvalsh(H).min() > 0
            assert len(inverse) == k + 1
        assert not inverse.add(x, A @ x, x + s, A @ (x - s))  # negative curvature is not taken
        assert (inverse.matrix == H).all()


def test_an_interrupted_update_is_forgotten(monkeypatch):
    inverse = BFGS.inverse_hessian(2, True, {})
    inverse.add(np.zeros(2), np.zeros(2), np.ones(2), np.ones(2))
    assert inverse.saved()["steps"] == 1

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("crfkit.solvers.dense_quasi_newton.add_rank_two", interrupt)
    with pytest.raises(KeyboardInterrupt):
        inverse.add(np.zeros(2), np.zeros(2), np.ones(2), np.ones(2))
    assert len(inverse) == 0
    assert inverse.saved() == {}


@pytest.mark.parametrize(
    ("solver", "needed"),
    [(BFGS(), "7.28 TiB"), (DFP(), "7.28 TiB"), (Newton(direction="dense"), "29.10 TiB")],
    ids=["bfgs", "dfp", "newton"],
)
def test_matrices_that_do_not_fit_are_refused_before_the_first_evaluation(solver, needed):
    loss = FunctionLoss(10**6, lambda w: (0.0, w))
    message = f"{solver.name} .*1000000 × 1000000 .*needs {re.escape(needed)}, but max_memory allows 2.00 GiB; .*use "
    with pytest.raises(ParameterError, match=message):
        solver.minimize(loss, NoPenalty(), np.zeros(10**6))
    assert loss.calls == 0
    small, _ = quadratic(n=8)
    with pytest.raises(ParameterError, match=r"max_memory allows 511.00 bytes"):
        replace(solver, max_memory=511).minimize(small, NoPenalty(), np.zeros(8))


# --- preconditioning is a change of variables


def rescaled(loss, scale):
    """The same function of u = w/scale."""

    def both(u):
        value, gradient = loss.both(scale * u)
        return value, scale * gradient

    return FunctionLoss(loss.size, both, lambda u: scale[:, None] * loss.hessian(scale * u) * scale)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_preconditioning_is_a_change_of_variables(seed, power):
    loss = logistic(seed)
    start = np.full(loss.size, 0.01)
    scale = np.diag(loss.hessian(start)) ** (-power / 2)
    common = {"stopping": NEVER, "max_iterations": 6}
    pairs = [(LBFGS(preconditioned=True, power=power, **common), LBFGS(**common), scale)]
    if power == 1.0:
        pairs.append((ConjugateGradient(preconditioned=True, **common), ConjugateGradient(**common), scale))
        one = {"stopping": NEVER, "max_iterations": 1}  # the diagonal is that of each iterate
        mixed = (0.01 * np.diag(loss.hessian(start)) + 0.99) ** -0.5
        pairs.append((Tron(preconditioned=True, **one), Tron(**one), mixed))
    for preconditioned, plain, scale in pairs:
        points = walk(preconditioned, loss, start)[1]
        expected = scale * walk(plain, rescaled(loss, scale), start / scale)[1]
        assert_allclose(points, expected, rtol=1e-6, atol=1e-9)


def test_a_diagonal_with_zeros_does_no_harm():
    """Weights that the objective does not depend on, or only linearly, have no curvature."""
    loss = FunctionLoss(3, lambda w: (w[0] ** 2, np.array([2 * w[0], 0, 0])), lambda w: np.diag([2.0, 0, 0]))
    for make in (LBFGS, ConjugateGradient, Tron):
        result = walk(make(preconditioned=True, stopping=GradientNorm(1e-8)), loss, np.ones(3))[0]
        assert result.status is Status.CONVERGED
        assert_allclose(result.w, [0, 1, 1], atol=1e-8)
    point = type("Zero", (), {"hess_diag": lambda self, _: np.zeros(3)})()
    assert (jacobi_scale(point, None) == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_without_initial_scaling_the_first_matrix_is_the_identity(seed):
    """Second direction of L-BFGS = that of BFGS with H₀ = I, with whatever memory."""
    common = {"stopping": NEVER, "max_iterations": 2, "initial_scaling": False}
    loss = logistic(seed)
    a, b = (walk(solver, loss)[1] for solver in (LBFGS(memory=5, **common), BFGS(**common)))
    assert_allclose(a, b, rtol=1e-10)
    scaled = walk(LBFGS(memory=5, stopping=NEVER, max_iterations=2), loss)[1]
    assert not np.allclose(a[2], scaled[2])


# --- Steihaug's conjugate gradients


def model(H, g, v):
    return g @ v + 0.5 * v @ H @ v


@settings(max_examples=60)
@given(seeds, st.integers(1, 8), st.floats(-2, 3), st.sampled_from([0.5, 0.1, 1e-6]), st.floats(-2, 3))
def test_every_exit_of_steihaug_is_true(seed, n, radius, xi, level):
    """v is feasible, r its residual, and q(v) no higher than at the best point along −g; the exit says why it ended."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, n))
    H, g, radius = H + H.T + 2 * level * np.eye(n), rng.normal(size=n), 10.0**radius
    asked = []

    def hessp(v):
        asked.append(v)
        return H @ v

    found = steihaug(hessp, g, radius, xi, max_products=3 * n + 10)
    v, length = found.v, np.linalg.norm(found.v)
    assert found.products == len(asked)
    assert length <= radius * (1 + 1e-9)
    assert_allclose(found.r, -g - H @ v, atol=1e-6 * (1 + np.linalg.norm(g) + np.linalg.norm(H) * length))
    bend = g @ H @ g
    along = min(radius / np.linalg.norm(g), g @ g / bend if bend > 0 else math.inf)
    assert model(H, g, v) <= model(H, g, -along * g) * (1 - 1e-9)
    if found.exit is Exit.INTERIOR:
        assert np.linalg.norm(found.r) <= xi * np.linalg.norm(g)
    elif found.exit in (Exit.BOUNDARY, Exit.NEGATIVE_CURVATURE):
        assert_allclose(length, radius, rtol=1e-9)
        d = asked[-1]
        assert (d @ H @ d <= 0) == (found.exit is Exit.NEGATIVE_CURVATURE)
    else:
        assert found.products == 3 * n + 10


@settings(max_examples=20)
@given(seeds, st.integers(1, 10))
def test_without_a_region_steihaug_solves_the_newton_equations(seed, n):
    loss, minimum = quadratic(seed, n, 10.0)
    A, g = loss.hessian(minimum), loss.both(np.zeros(n))[1]
    found = steihaug(lambda v: A @ v, g, math.inf, 1e-10)
    assert found.exit is Exit.INTERIOR
    assert_allclose(found.v, minimum, atol=1e-8)
    assert found.products <= n + 2


def test_without_a_region_negative_curvature_ends_at_the_current_step():
    g = np.array([1.0, 1.0, 1.0])
    found = steihaug(lambda v: -v, g, math.inf, 0.1)
    assert found.exit is Exit.NEGATIVE_CURVATURE
    assert (found.v == -g).all()
    H = np.diag([10.0, 1.0, -1.0])
    found = steihaug(lambda v: H @ v, g, math.inf, 1e-9)
    assert found.exit is Exit.NEGATIVE_CURVATURE
    assert found.products > 1
    assert found.v @ g < 0
    assert model(H, g, found.v) < 0
    assert steihaug(lambda v: H @ v, g, 10.0, 1e-9, max_products=1).exit is Exit.MAX_PRODUCTS


# --- the trust region


def attempts(length, predicted, ratio, slope=-1.0):
    return tron.Attempt(length, slope, predicted, ratio * predicted, 0.0)


def check_rules(attempt, radius, new):
    """(3.10) of the thesis, with LIBLINEAR's constants."""
    if attempt.ratio <= 0.25:
        assert 0.25 * min(attempt.length, radius) * (1 - 1e-12) <= new <= 0.5 * radius * (1 + 1e-12)
    elif attempt.ratio < 0.75:
        assert 0.25 * radius <= new <= 4 * radius
    else:
        assert radius <= new <= 4 * radius


@given(
    st.floats(-3, 3),
    st.floats(1e-3, 1.0),
    st.floats(-6, 6),
    st.one_of(st.floats(-5, 5), st.just(-math.inf)),
    st.floats(0, 1),
)
def test_the_radius_follows_the_rules(radius, share, predicted, ratio, bend):
    radius, predicted = 10.0**radius, 10.0**predicted
    slope = -predicted * (1 + bend)  # q = gᵀv + ½vᵀHv, of which the second part is not negative
    attempt = attempts(share * radius, predicted, ratio, slope)
    assert attempt.ratio == ratio or math.isclose(attempt.ratio, ratio, rel_tol=1e-12)
    check_rules(attempt, radius, attempt.next_radius(radius))


def test_differences_below_rounding_agree():
    attempt = tron.Attempt(length=1.0, slope=-1e-20, predicted=1e-20, actual=-1e-19, rounding=1e-15)
    assert math.isclose(attempt.ratio, 1.0, rel_tol=1e-3)
    assert tron.Attempt(1.0, -1.0, 1.0, -math.inf, 1e-15).ratio == -math.inf
    assert tron.Attempt(1.0, -1.0, 1.0, math.nan, 1e-15).ratio == -math.inf


@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("case", ["rosenbrock", "logistic", "far", "wall"])
def test_every_step_of_tron_keeps_the_rules(case, preconditioned, monkeypatch):
    def wall(w):
        inside = (w < 1).all()
        return (-np.log1p(-w).sum() - 50 * w.sum(), 1 / (1 - w) - 50) if inside else (math.nan, w)

    loss, start = {
        "rosenbrock": (rosenbrock(), VALLEY),
        "logistic": (logistic(1), np.zeros(6)),
        "far": (rosenbrock(2), np.array([30.0, -40.0])),
        "wall": (FunctionLoss(2, wall, lambda w: np.diag(1 / (1 - w) ** 2)), np.zeros(2)),
    }[case]
    log, inner = [], tron.Attempt.next_radius

    def recorded(attempt, radius):
        new = inner(attempt, radius)
        log.append((attempt, radius, new))
        return new

    monkeypatch.setattr(tron.Attempt, "next_radius", recorded)
    points = []
    solver = Tron(stopping=GradientNorm(1e-8), preconditioned=preconditioned)
    result = solver.minimize(loss, NoPenalty(), start, [lambda it: points.append((it.w.copy(), it.row.value))])
    assert result.status is Status.CONVERGED
    assert result.evaluations >= len(log) + 1

    # Δ₀ = ‖g₀‖, or the first step's length where that is shorter
    scale = (0.01 * np.diag(loss.hessian(start)) + 0.99) ** -0.5 if preconditioned else 1.0
    first = np.linalg.norm(scale * loss.both(start)[1])
    assert_allclose(log[0][1], min(first, log[0][0].length), rtol=1e-12)
    taken = [attempt for attempt, _, _ in log if attempt.ratio > 1e-4]
    assert len(taken) == len(points) - 1
    for (old, new), attempt in zip(itertools.pairwise(points), taken, strict=True):
        assert attempt.actual == old[1] - new[1]
        if not preconditioned:
            assert_allclose(np.linalg.norm(new[0] - old[0]), attempt.length, rtol=1e-6)
    for attempt, radius, new in log:
        assert attempt.length <= radius * (1 + 1e-9)
        assert attempt.predicted > 0
        check_rules(attempt, radius, new)
    for (_, _, before), (_, after, _) in itertools.pairwise(log):
        assert before == after
    if case in ("far", "wall"):
        assert len(log) > len(taken)  # there were steps that were not taken
    if case == "wall":
        assert any(attempt.ratio == -math.inf for attempt, _, _ in log)


def test_a_region_that_vanishes_ends_the_run():
    """Values that rise in every direction, whatever the gradient says."""
    for bad in (math.nan, 1e300, 1.0):
        loss = FunctionLoss(2, lambda w, bad=bad: (0.0 if (w == 0).all() else bad, np.ones(2)), lambda w: np.eye(2))
        result = walk(Tron(max_trials=30), loss)[0]
        assert result.status is Status.LINE_SEARCH_FAILED
        assert result.evaluations == 31
        assert (result.w == 0).all()


@pytest.mark.parametrize("curvature", [0.0, 1.0])
def test_tron_notices_an_objective_without_a_minimum(curvature):
    """Straight down or ever steeper; exp(−w), which falls for ever but is bounded, converges."""
    loss = FunctionLoss(
        2, lambda w: (-w.sum() - curvature * w @ w, -1 - 2 * curvature * w), lambda w: -2 * curvature * np.eye(2)
    )
    assert walk(Tron(stopping=NEVER), loss)[0].status is Status.DIVERGED
    bounded = FunctionLoss(1, lambda w: (np.exp(-w[0]), -np.exp(-w)), lambda w: np.diag(np.exp(-w)))
    assert walk(Tron(stopping=GradientNorm(1e-8)), bounded)[0].status is Status.CONVERGED


@pytest.mark.parametrize("solver", [Newton(), Newton(direction="dense"), Tron()], ids=["cg", "dense", "tron"])
@pytest.mark.parametrize("k", [1, 2, 9, 30])
def test_interrupted_in_a_product_the_last_whole_iterate_is_kept(solver, k):
    whole, points = walk(solver, rosenbrock(), VALLEY)
    loss = rosenbrock()
    inner, products = loss.hessian, itertools.count(1)

    class Interrupting(np.ndarray):
        def __matmul__(self, v):
            if next(products) == k:
                raise KeyboardInterrupt
            return np.asarray(self) @ v

    loss.hessian = lambda w: inner(w).view(Interrupting)
    result = walk(solver, loss, VALLEY)[0]
    assert result.status is Status.INTERRUPTED
    assert result.products == loss.products == k - 1
    assert (result.w == points[result.iterations]).all()
    assert result.value == whole.trace[result.iterations].value


# --- vectors of another kind


@pytest.mark.parametrize(
    "solver",
    [
        LBFGS(), LBFGS(preconditioned=True), BFGS(), DFP(), ConjugateGradient(), ConjugateGradient(preconditioned=True),
        GradientDescent(), Newton(), Newton(direction="dense"), Tron(), Tron(preconditioned=True),
    ],
    ids=lambda solver: f"{solver.name}{'-p' if getattr(solver, 'preconditioned', False) else ''}",
)  # fmt: skip
def test_single_precision(solver):
    """No step through the compiled core, and no array that quietly becomes double."""
    A, m = np.diag([1.0, 3.0, 9.0]).astype(np.float32), np.array([1, -2, 3], dtype=np.float32)
    kinds = set()

    class Evaluation:
        def __init__(self, w):
            kinds.add(w.dtype)
            self.value, self.grad = float(0.5 * (w - m) @ A @ (w - m)), A @ (w - m)

        def hessp(self, v):
            kinds.add(v.dtype)
            return A @ v

        def hess_diag(self):
            return np.diag(A).copy()

    loss = FunctionLoss(3, None)
    loss.at = lambda w, warm=None: Evaluation(w)
    result = replace(solver, stopping=GradientNorm(1e-4)).minimize(loss, NoPenalty(), np.zeros(3, dtype=np.float32))
    assert result.status is Status.CONVERGED
    assert_allclose(result.w, m, atol=1e-3)
    assert kinds == {np.dtype(np.float32)}
