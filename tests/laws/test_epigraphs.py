"""Epigraphs and balls: projections against their conditions, slow twins and each other."""

import math
import pickle

import numpy as np
import pytest
import scipy.optimize
from functions import FunctionLoss, logistic
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crfkit.errors import ParameterError
from crfkit.penalties import L1, L2, Blockwise, GroupL1, GroupL2, GroupL2Ball, GroupLinf, Groups, HuberL1, L1Ball
from crfkit.penalties.group_rows import linf_cone
from crfkit.result import Status
from crfkit.solvers import ADMM, AGPM, FISTA, PQN, SPG, GradientNorm

N = 12
UNEQUAL = np.array([0, 3, 3, -1, 0, 7, 0, 3, -1, 7, 2, 0])
NORMS = {
    "GroupLinf": lambda x: np.abs(x).max(),
    "GroupL2": np.linalg.norm,
    "GroupL1": lambda x: np.abs(x).sum(),
}
GROUPS = [GroupLinf(0.8, UNEQUAL), GroupL2(0.8, UNEQUAL), GroupL1(0.8, UNEQUAL)]
LAYOUT = {"node": slice(0, 5), "edge": slice(5, 12)}
BLOCKS = Blockwise({"node": L1(0.5), "edge": GroupLinf(1.5, [0, 0, 1, 1, 1, -1, 2])}, LAYOUT).split()[1]
ALL = [*GROUPS, L1(0.8), BLOCKS]
BALLS = [L1Ball(1.5), GroupL2Ball(1.5, UNEQUAL)]
every = pytest.mark.parametrize("penalty", ALL, ids=lambda p: p.name)
every_group = pytest.mark.parametrize("penalty", GROUPS, ids=lambda p: p.name)
every_ball = pytest.mark.parametrize("ball", BALLS, ids=lambda p: p.name)
seeds = st.integers(0, 10**6)


def draw(seed, penalty):
    """(w, α): some zero, some equal, α of both signs."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=N) * rng.choice([0.0, 0.01, 1.0, 3.0], N)
    w = np.where(rng.random(N) < 0.3, np.sign(w), w)
    n = penalty.epigraph_size(N)
    return w, rng.normal(size=n) * rng.choice([0.0, 0.3, 3.0], n)


def in_set(penalty, w, alpha, slack=1e-12):
    least, _ = penalty.epigraph_start(w)
    return (least <= alpha + slack).all()


# --- projections onto epigraphs


@every
@given(seed=seeds)
def test_a_projection_is_the_nearest_point(penalty, seed):
    """It lies in the set, and (x − P(x))·(v − P(x)) ≤ 0 for all v of the set: the condition of the nearest."""
    w, alpha = draw(seed, penalty)
    kept = w.copy(), alpha.copy()
    near, radii = penalty.project_epigraph(w, alpha)
    assert_array_equal(w, kept[0])
    assert_array_equal(alpha, kept[1])
    assert in_set(penalty, near, radii)
    assert (radii >= 0).all()
    for k in range(20):
        v, _ = draw(seed + k + 1, penalty)
        rise = np.abs(np.random.default_rng(k).normal(size=alpha.size)) * (k % 2)
        a = penalty.epigraph_start(v)[0] + rise
        assert (w - near) @ (v - near) + (alpha - radii) @ (a - radii) <= 1e-9
    again, same = penalty.project_epigraph(near, radii)
    assert_allclose(again, near, atol=1e-12)
    assert_allclose(same, radii, atol=1e-12)


@every_group
@given(seed=seeds)
def test_the_polar_part_is_a_projection_onto_the_dual_cone(penalty, seed):
    """Moreau: what is left over, turned round, lies in the cone of the dual norm and is at a right angle."""
    w, alpha = draw(seed, penalty)
    near, radii = penalty.project_epigraph(w, alpha)
    left, below = w - near, radii - alpha
    assert abs(left @ near - below @ radii) < 1e-9
    dual = {"GroupLinf": NORMS["GroupL1"], "GroupL2": NORMS["GroupL2"], "GroupL1": NORMS["GroupLinf"]}
    for s, group in enumerate(np.unique(UNEQUAL[UNEQUAL >= 0])):
        assert dual[type(penalty).__name__](left[group == UNEQUAL]) <= below[s] + 1e-9
    assert (left[UNEQUAL < 0] == 0).all()


@given(seed=seeds, scale=st.sampled_from([1e-8, 1.0, 1e8]))
def test_the_core_and_its_twin_project_alike(seed, scale):
    penalty = GroupLinf(1.0, UNEQUAL)
    w, alpha = (scale * x for x in draw(seed, penalty))
    fast, slow = penalty.project_epigraph(w, alpha), penalty.groups.map_with(linf_cone, w, alpha)
    for a, b in zip(fast, slow, strict=True):
        assert_allclose(a, b, atol=1e-13 * scale)
    assert_array_equal(fast[0] == 0, slow[0] == 0)


@given(seed=seeds, strength=st.sampled_from([0.0, 0.3, 3.0]))
def test_the_core_and_its_twin_have_the_same_least_subgradient(seed, strength):
    penalty = GroupLinf(strength, UNEQUAL)
    w, g = draw(seed, penalty)[0], draw(seed + 1, penalty)[0]
    padded = np.zeros((N, 2))
    padded[:, 0] = w
    assert_allclose(
        penalty.min_norm_subgradient(w, g), penalty.min_norm_subgradient(padded[:, 0], g), atol=1e-13
    )  # a strided vector takes the other way


@every_group
@pytest.mark.parametrize("seed", range(3))
def test_against_a_general_solver(penalty, seed):
    rng = np.random.default_rng(seed)
    w, alpha = rng.normal(size=4), rng.normal(size=1)
    kind, norm = type(penalty), NORMS[type(penalty).__name__]
    near, radii = kind(1.0, [0] * 4).project_epigraph(w, alpha)
    slow = scipy.optimize.minimize_scalar(
        lambda a: 0.5 * (a - alpha[0]) ** 2 + 0.5 * np.sum((w - _onto(kind, w, a)) ** 2),
        bounds=(0, 10),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert_allclose(radii, slow.x, atol=1e-6)
    assert norm(near) <= radii[0] + 1e-12


def _onto(kind, w, radius):
    if kind is GroupLinf:
        return np.clip(w, -radius, radius)
    if kind is GroupL2:
        return w * min(1.0, radius / np.linalg.norm(w))
    return L1Ball(max(radius, 1e-12)).prox(w, 1.0)


@every
def test_the_cost_of_the_least_alpha_is_the_value(penalty):
    w = draw(3, penalty)[0]
    alpha, cost = penalty.epigraph_start(w)
    assert alpha.shape == cost.shape == (penalty.epigraph_size(N),)
    assert_allclose(cost @ alpha, penalty.value(w), rtol=1e-14)


@every_group
@given(seed=seeds)
def test_dual_norms(penalty, seed):
    """max of g·w over Σ‖w_G‖ ≤ 1, which a single group attains; and never exceeded."""
    g, w = draw(seed, penalty)[0], draw(seed + 1, penalty)[0]
    total = penalty.at(1.0).value(w)
    assert (g * (UNEQUAL >= 0)) @ w <= penalty.dual_norm(g) * total + 1e-9
    assert penalty.critical_strength(g) == penalty.dual_norm(g)
    assert penalty.at(1.0).dual_norm(0 * g) == 0.0


def test_group_l1_is_l1_on_the_weights_of_groups():
    w, g = draw(1, GROUPS[2])[0], draw(2, GROUPS[2])[0]
    group, plain, inside = GroupL1(0.7, UNEQUAL), L1(0.7), UNEQUAL >= 0
    assert_allclose(group.value(w), plain.value(w[inside]))
    assert_array_equal(group.prox(w, 0.5)[inside], plain.prox(w, 0.5)[inside])
    assert_array_equal(group.prox(w, 0.5)[~inside], w[~inside])
    assert_array_equal(group.min_norm_subgradient(w, g)[inside], plain.min_norm_subgradient(w, g)[inside])
    assert_array_equal(group.min_norm_subgradient(w, g)[~inside], g[~inside])


def test_who_has_an_epigraph():
    assert all("epigraph" in penalty.kinds for penalty in [*ALL, *BALLS])
    assert "epigraph" not in L2(1.0).kinds | HuberL1(1.0, 0.1).kinds
    assert Groups([0, 0, 4, -1, 2]).offsets.tolist() == [0, 2, 3, 4]


def test_no_groups_at_all():
    for kind in (GroupLinf, GroupL2, GroupL1):
        nobody, w = kind(1.0, [-1] * 4), np.arange(4.0)
        near, alpha = nobody.project_epigraph(w, nobody.epigraph_start(w)[0])
        assert_array_equal(near, w)
        assert alpha.shape == (0,)
        assert nobody.value(w) == nobody.dual_norm(w) == 0.0


# --- balls


@every_ball
@given(seed=seeds, scale=st.sampled_from([0.01, 1.0, 100.0]))
def test_projections_onto_balls(ball, seed, scale):
    w = scale * draw(seed, ball)[0]
    near = ball.prox(w, 0.3)
    assert ball.value(near) == 0.0
    if ball.value(w) == 0.0:
        assert_allclose(near, w, atol=1e-9)
    for k in range(10):
        v = ball.prox(draw(seed + k + 1, ball)[0], 1.0)
        assert (w - near) @ (v - near) <= 1e-9 * (1 + scale**2)
    assert_array_equal(ball.project_epigraph(w, w[:0])[0], near)


@every_ball
@given(seed=seeds)
@settings(max_examples=50)
def test_the_least_subgradient_of_a_ball(ball, seed):
    """−s is the projection of −g onto the cone of directions that stay inside: the limit of (P(w − tg) − w)/t."""
    w, g = ball.prox(draw(seed, ball)[0], 1.0), draw(seed + 5, ball)[0]
    t = 1e-7
    s = ball.min_norm_subgradient(w, g)
    sizes = ball._sizes(w)
    if 0 < (1.5 - sizes.sum()) < 1e-4 or ((sizes > 0) & (sizes < 1e-4)).any() or ((w != 0) & (np.abs(w) < 1e-4)).any():
        return  # the step would pass a corner
    bend = t * (g @ g) / sizes[sizes > 0].min(initial=1.0) if hasattr(ball, "groups") else 0.0  # of the surface
    assert_allclose((w - ball.prox(w - t * g, 1.0)) / t, s, atol=2e-5 + bend)


@pytest.mark.parametrize(
    ("ball", "penalty"),
    [
        (L1Ball(0.7), L1),
        (GroupL2Ball(0.7, [0] * 3 + [1] * 2 + [2] * 3), lambda s: GroupL2(s, [0] * 3 + [1] * 2 + [2] * 3)),
    ],
)
@pytest.mark.parametrize("solver", [FISTA, SPG])
def test_a_constraint_is_a_penalty_at_its_multiplier(ball, penalty, solver):
    loss = logistic(4, n=8, spread=2.0)
    tight = {"stopping": GradientNorm(1e-9), "max_iterations": 5000}
    held = solver(**tight).minimize(loss, ball, np.zeros(8))
    assert held.optimality < 1e-6
    assert_allclose(ball._sizes(held.w).sum(), 0.7, rtol=1e-8)
    mu = ball.multiplier(held.w, loss.at(held.w).grad)
    assert mu > 0.1
    priced = FISTA(**tight).minimize(loss, penalty(mu), np.zeros(8))
    assert_allclose(priced.w, held.w, atol=1e-6)
    wide = type(ball)(1e6, *([ball.groups] if hasattr(ball, "groups") else []))
    free = solver(**tight).minimize(loss, Blockwise({"all": wide}, {"all": slice(0, 8)}), np.zeros(8))
    assert_allclose(loss.at(free.w).grad, 0.0, atol=1e-6)


@pytest.mark.parametrize("solver", [SPG, FISTA, PQN, ADMM])
def test_a_start_outside_the_ball_is_brought_inside(solver):
    loss = logistic(4, n=8, spread=2.0)
    start = np.full(8, 3.0)
    found = solver(stopping=GradientNorm(1e-7)).minimize(loss, L1Ball(0.7), start)
    assert found.optimality < 1e-6
    assert found.trace[0].value < math.inf
    assert (start == 3.0).all()


@pytest.mark.parametrize("solver", [SPG, AGPM, FISTA, PQN, ADMM])
def test_a_straight_slope_leads_to_the_corner_of_a_ball(solver):
    """Without curvature there is no step length to learn, but what was reached counts."""
    slope = np.array([1.0, -2.0, 0.5])
    found = solver().minimize(FunctionLoss(3, lambda w: (slope @ w, slope)), L1Ball(1.5), np.zeros(3))
    assert found.status is Status.CONVERGED
    assert_allclose(found.w, [0.0, 1.5, 0.0], atol=1e-12)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_radii(bad):
    for make in (L1Ball, lambda r: GroupL2Ball(r, [0, 1])):
        with pytest.raises(ParameterError, match="radius"):
            make(bad)


def test_balls_survive_a_pickle():
    for ball in BALLS:
        assert pickle.loads(pickle.dumps(ball)) == ball


def test_sizes_that_overflow_are_not_hidden():
    penalty = GroupLinf(1.0, [0, 0, 1, 1])
    _, alpha = penalty.project_epigraph(np.array([1.7e308, 1.7e308, 1.0, 2.0]), np.array([-1.0, 0.5]))
    assert alpha.tolist() == [np.inf, 1.25]
    w, alpha = penalty.project_epigraph(np.array([np.nan, 1.0, 1.0, 2.0]), np.array([-1.0, 0.5]))
    assert np.isnan(alpha[0])
    assert np.isnan(w[0])
