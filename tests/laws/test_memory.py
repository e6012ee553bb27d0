"""Curvature pairs in compact form give the direction of the two-loop recursion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit import arrays
from crfkit.chain.losses.likelihood import ChainLikelihood
from crfkit.errors import ParameterError
from crfkit.penalties import L2
from crfkit.solvers import LBFGS, OWLQN
from crfkit.solvers.parts.descent import move_along
from crfkit.solvers.parts.head import Head
from crfkit.solvers.parts.line_searches import StrongWolfe
from crfkit.solvers.parts.line_searches.trial import LineSearchResult, Reason
from crfkit.solvers.parts.memory import FEW_PAIRS, CurvaturePairs, _solve_upper
from crfkit.solvers.parts.objective import Objective


def two_loop(g, pairs):
    """−H·g (Nocedal & Wright, Algorithm 7.4) with H₀ = sᵀy/yᵀy of the newest pair; pairs oldest first."""
    if not pairs:
        return -g
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alphas.append((s @ q) / (s @ y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    r = (s @ y) / (y @ y) * q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r += (alpha - (y @ r) / (s @ y)) * s
    return -r


def follow(capacity: int, gradient, steps, x):
    """Walks along `steps`, compares every direction with the twin's; returns which pairs were taken."""
    memory, twin, taken = CurvaturePairs(capacity), [], []
    g = gradient(x)
    for step in steps:
        d = memory.direction(g)
        expected = two_loop(g, twin)
        assert_allclose(d, expected, rtol=0, atol=1e-8 * np.linalg.norm(expected))
        new, g_new = x + step, gradient(x + step)
        s, y = new - x, g_new - g
        taken.append(memory.add(x, g, new, g_new))
        if len(twin) == capacity:  # the newest step takes the oldest one's place, whether it is used or not
            twin.pop(0)
        if taken[-1]:
            assert s @ y > 0
            twin.append((s, y))
        assert len(memory) == len(twin)
        x, g = new, g_new
    return taken


def quadratic(rng, n):
    root = rng.normal(size=(n, n))
    hessian = root @ root.T / n + 0.1 * np.eye(n)
    return lambda x: hessian @ x


@pytest.mark.parametrize("capacity", [1, 2, 3, 6, 20])
@pytest.mark.parametrize("n", [1, 2, 10, 50])
def test_equals_two_loop_recursion(capacity, n):
    rng = np.random.default_rng(n)
    taken = follow(capacity, quadratic(rng, n), rng.normal(size=(min(n, 4) * 6, n)), rng.normal(size=n))
    assert all(taken)


@given(seed=st.integers(0, 10**6), capacity=st.integers(1, 5), flips=st.lists(st.booleans(), min_size=5, max_size=25))
def test_equals_two_loop_recursion_when_pairs_are_rejected(seed, capacity, flips):
    """Where `flips` says so, the gradient runs against the step, as on a concave stretch."""
    rng = np.random.default_rng(seed)
    n, last = 8, {"x": None, "g": None, "k": -1}
    convex = quadratic(rng, n)

    def gradient(x):
        if last["x"] is None:
            g = convex(x)
        else:
            g = last["g"] + (-1 if flips[last["k"]] else 1) * (convex(x) - convex(last["x"]))
        last.update(x=x, g=g, k=last["k"] + 1)
        return g

    taken = follow(capacity, gradient, rng.normal(size=(len(flips), n)), rng.normal(size=n))
    assert taken == [not flip for flip in flips]


def test_exact_on_a_quadratic_once_all_directions_are_known():
    """With n conjugate steps in memory, the direction is Newton's."""
    rng = np.random.default_rng(3)
    n = 5
    gradient = quadratic(rng, n)
    hessian = np.stack([gradient(e) for e in np.eye(n)])
    x, memory = rng.normal(size=n), CurvaturePairs(n)
    for _ in range(n):
        g = gradient(x)
        d = memory.direction(g)
        new = x - (g @ d) / (d @ hessian @ d) * d
        memory.add(x, g, new, gradient(new))
        x = new
    assert_allclose(gradient(x), 0.0, atol=1e-8)


def test_always_descends_on_convex_functions():
    rng = np.random.default_rng(4)
    gradient, memory = quadratic(rng, 30), CurvaturePairs(4)
    x = rng.normal(size=30)
    for _ in range(20):
        g = gradient(x)
        assert memory.direction(g) @ g < 0
        new = x + rng.normal(size=30)
        memory.add(x, g, new, gradient(new))
        x = new


def test_clear_forgets():
    rng = np.random.default_rng(5)
    gradient, memory, x = quadratic(rng, 4), CurvaturePairs(3), rng.normal(size=4)
    memory.direction(gradient(x))
    memory.add(x, gradient(x), x + 1, gradient(x + 1))
    memory.clear()
    assert len(memory) == 0
    g = gradient(x)
    assert (memory.direction(g) == -g).all()


def test_arguments_are_not_changed():
    rng = np.random.default_rng(6)
    gradient, memory = quadratic(rng, 4), CurvaturePairs(2)
    x, new = rng.normal(size=4), rng.normal(size=4)
    arrays = [x, gradient(x), new, gradient(new)]
    copies = [a.copy() for a in arrays]
    memory.direction(arrays[1])
    memory.add(*arrays)
    memory.direction(arrays[3])
    for a, b in zip(arrays, copies, strict=True):
        assert (a == b).all()


@pytest.fixture
def half_floats(monkeypatch):
    """Keep pairs of any length as half floats."""
    monkeypatch.setattr(arrays, "MANY", 0)
    monkeypatch.setattr(arrays, "VERY_MANY", 0)


def test_half_floats_give_almost_the_same_directions(half_floats):
    rng = np.random.default_rng(7)
    gradient, n = quadratic(rng, 50), 50
    scale = np.exp(0.1 * rng.normal(size=n)).astype(np.float32)
    halves, doubles = CurvaturePairs(4, None, scale), CurvaturePairs(4, None, scale.astype(float), double=True)
    x = rng.normal(size=n)
    for _ in range(12):
        g = gradient(x)
        d, expected = halves.direction(g), doubles.direction(g)
        assert_allclose(d, expected, atol=0.05 * np.linalg.norm(expected))
        assert halves.slope == arrays.dot(d, g) < 0
        new = x + 0.5 * d
        for memory in (halves, doubles):
            assert memory.add(x, g, new, gradient(new))
        x = new
    assert halves.saved()["pairs"].dtype == np.uint16


def test_half_floats_are_saved(half_floats):
    rng = np.random.default_rng(8)
    gradient, memory, x = quadratic(rng, 9), CurvaturePairs(3), rng.normal(size=9)
    for _ in range(4):
        new = x + memory.direction(gradient(x))
        memory.add(x, gradient(x), new, gradient(new))
        x = new
    saved = memory.saved()
    again = CurvaturePairs(3, saved)
    assert (again.direction(gradient(x)) == memory.direction(gradient(x))).all()
    assert not np.shares_memory(again.saved()["pairs"], saved["pairs"])
    for damage in (np.full_like(saved["pairs"], 0x7F80), saved["pairs"].astype(np.int64)):
        with pytest.raises(ParameterError, match="damaged"):
            CurvaturePairs(3, {**saved, "pairs": damage})


def chain(strength=0.1):
    return ChainLikelihood.example(), L2(strength)


@pytest.fixture(params=[np.float32, np.uint16])
def narrow(request, monkeypatch):
    """Keep pairs and directions of any length with fewer digits."""
    monkeypatch.setattr(arrays, "MANY", 0)
    monkeypatch.setattr(arrays, "VERY_MANY", 0 if request.param == np.uint16 else 1 << 62)
    return request.param


@pytest.mark.parametrize("preconditioned", [False, True])
def test_directions_of_fewer_digits_lead_to_the_optimum(narrow, preconditioned):
    loss, penalty = chain()
    exact = LBFGS(double=True, preconditioned=preconditioned, max_iterations=300)
    w0, rounded = np.zeros(loss.size), LBFGS(preconditioned=preconditioned, max_iterations=300)
    expected, found = (solver.minimize(loss, penalty, w0) for solver in (exact, rounded))
    assert found.state["pairs"].dtype == narrow
    assert_allclose(found.value, expected.value, rtol=1e-6)
    assert found.evaluations <= 1.5 * expected.evaluations


@pytest.mark.parametrize("preconditioned", [False, True])
def test_runs_with_directions_of_fewer_digits_are_resumed(narrow, preconditioned):
    loss, penalty = chain()

    def run(n, w0, state=None):
        return LBFGS(preconditioned=preconditioned, max_iterations=n).minimize(loss, penalty, w0, resume=state)

    whole = run(9, np.zeros(loss.size))
    half = run(4, np.zeros(loss.size))
    rest = run(5, half.w, half.state)
    assert np.array_equal(rest.w, whole.w)


class Earlier:
    """Try three steps and take the second."""

    def search(self, phi, start, step):
        trials = [phi(t * step) for t in (0.5, 0.25, 0.125)]
        assert all(trial.point is None for trial in trials)
        return LineSearchResult(trials[1], Reason.ARMIJO, 3)


def test_a_trial_that_was_not_kept_is_evaluated_again(narrow):
    loss, penalty = chain()
    objective = Objective(loss, penalty)
    start = objective.at(np.zeros(loss.size))
    d, slope = CurvaturePairs(3).descent(start.grad)
    assert slope < 0
    moved = move_along(objective, start, d, Earlier(), 0.1, slope)
    assert moved.step == 0.025
    assert objective.evaluations == 5
    assert np.array_equal(moved.point.w, d.ahead(start.w, 0.025))
    assert moved.point.value == objective.at(moved.point.w).value
    moved = move_along(objective, start, d, StrongWolfe(), 0.1, slope)
    assert moved.point.value < start.value


# --- with a head


def two_loop_from(h0, g, pairs):
    """−H·g where H₀ is γ·h0, γ = sᵀy/yᵀh0·y of the newest pair."""
    if not pairs:
        return -h0 @ g
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alphas.append((s @ q) / (s @ y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    r = (s @ y) / (y @ h0 @ y) * h0 @ q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r += (alpha - (y @ r) / (s @ y)) * s
    return -r


def headed(rng, n, h):
    """A head of h of n weights, a scale that is 1 there, and H₀ of both."""
    places = np.sort(rng.choice(n, h, replace=False))
    root = rng.normal(size=(h, h))
    head, scale = Head(places, root @ root.T / h - 0.9 * np.eye(h)), np.exp(0.3 * rng.normal(size=n))
    scale[places] = 1.0
    h0 = np.diag(scale**2)
    h0[np.ix_(places, places)] = head.excess + np.eye(h)
    return head, scale, h0


@pytest.mark.parametrize("capacity", [1, 3, 20])
def test_directions_with_a_head(capacity):
    rng, n = np.random.default_rng(capacity), 12
    head, scale, h0 = headed(rng, n, 5)
    gradient, memory, pairs, x = (
        quadratic(rng, n),
        CurvaturePairs(capacity, None, scale, head=head),
        [],
        rng.normal(size=n),
    )
    for k in range(10):
        g = gradient(x)
        if k == 6:  # a saved state gives the same directions
            memory = CurvaturePairs(capacity, memory.saved(), scale, head=Head.restored(head.saved(), n))
        d, expected = memory.direction(g), two_loop_from(h0, g, pairs)
        assert_allclose(d, expected, atol=1e-9 * np.linalg.norm(expected))
        assert_allclose(memory.slope, d @ g, rtol=1e-9)
        new = x + rng.uniform(0.2, 1.0) * d
        assert memory.add(x, g, new, gradient(new))
        pairs = [*pairs, (new - x, gradient(new) - g)][-capacity:]
        x = new


def test_rows_of_half_floats_with_a_head(half_floats):
    """Steps along rounded rows: H₀ and the pairs are those of the rounded numbers, so H·y = s still."""
    rng = np.random.default_rng(3)
    objective = Objective(ChainLikelihood.example(), L2(1.0))
    n = objective.loss.size
    head, scale, _ = headed(rng, n, 6)
    memory, plain = (
        CurvaturePairs(4, None, scale.astype(np.float32), head=head),
        CurvaturePairs(4, None, scale, head=head, double=True),
    )
    point = objective.at(rng.normal(size=n))
    for _ in range(6):
        d, slope = memory.descent(point.grad)
        expected = plain.direction(point.grad)
        dense = d.ahead(np.zeros(n), 1.0)
        assert_allclose(dense, expected, atol=0.05 * np.linalg.norm(expected))
        assert_allclose(slope, dense @ point.grad, rtol=1e-6)
        moved = move_along(objective, point, d, StrongWolfe(), 1.0, slope)
        assert memory.add_step(point, moved)
        assert plain.add(point.w, point.grad, moved.point.w, moved.point.grad)
        point = moved.point


def test_a_damaged_head_is_refused():
    head, _, _ = headed(np.random.default_rng(0), 9, 4)
    saved = head.saved()
    for damage in (
        {"head_places": saved["head_places"][::-1]},
        {"head_places": saved["head_places"] + 9},
        {"head_places": saved["head_places"].astype(float)},
        {"head_excess": saved["head_excess"][:3]},
    ):
        with pytest.raises(ParameterError, match="saved state"):
            Head.restored({**saved, **damage}, 9)


@pytest.mark.parametrize("head", [-1, 2.5, "x", None])
def test_a_head_is_a_number_of_weights(head):
    for make in (lambda: LBFGS(head=head, preconditioned=True), lambda: OWLQN(head=head)):
        with pytest.raises(ParameterError, match="head must be 0, or a whole number > 0"):
            make()


def test_a_head_that_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="preconditioned=True, not 3"):
        LBFGS(head=3)
    with pytest.raises(ParameterError, match="variant 'free', not 3"):
        OWLQN(head=3, variant="original")


@pytest.mark.parametrize("m", [1, 2, FEW_PAIRS, FEW_PAIRS + 1, 40])
def test_triangular_systems_of_any_size(m):
    rng = np.random.default_rng(m)
    matrix, b = rng.normal(size=(m, m)) + m * np.eye(m), rng.normal(size=m)
    x = _solve_upper(matrix, b)
    assert_allclose(np.triu(matrix) @ x, b, rtol=1e-10, atol=1e-12)
    lower = _solve_upper(matrix.T[::-1, ::-1], b[::-1])[::-1]
    assert_allclose(np.triu(matrix).T @ lower, b, rtol=1e-10, atol=1e-12)
