"""Penalties of groups and of blocks, and the rounded L1: slow twins, optimality conditions, Moreau's identity."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from functions import logistic
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit import ChainCRF
from crfkit.errors import CapabilityError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field
from crfkit.graph.graph import Graph
from crfkit.losses import PseudoLikelihood
from crfkit.penalties import L1, L2, Blockwise, ElasticNet, GroupL2, GroupLinf, Groups, HuberL1, NoPenalty
from crfkit.solvers import FISTA, LBFGS, OWLQN, GradientNorm, make_solver
from crfkit.training.path import regularisation_path

N = 12
UNEQUAL = np.array([0, 3, 3, -1, 0, 7, 0, 3, -1, 7, 2, 0])  # sizes 4, 3, 2, 1; two weights of no group
EQUAL = np.arange(N) // 3
LAYOUT = {"node": slice(0, 7), "edge": slice(7, 10), "nothing": slice(10, 10), "free": slice(10, 12)}
GROUPS = [
    kind(strength, groups)
    for kind, strength, groups in itertools.product((GroupL2, GroupLinf), (0.0, 0.8), (UNEQUAL, EQUAL))
]
BLOCKS = Blockwise({"node": L1(0.5), "edge": GroupL2(1.5, [0, 0, 0]), "nothing": L1(1.0)}, LAYOUT)
RESTS = [*GROUPS, BLOCKS, Blockwise({"edge": GroupLinf(0.3, [1, 1, -1]), "free": L1(2.0)}, LAYOUT)]
every_rest = pytest.mark.parametrize("penalty", RESTS, ids=lambda p: p.name)
every_group = pytest.mark.parametrize("penalty", GROUPS, ids=lambda p: p.name)
seeds = st.integers(0, 10**6)


def vector(seed, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=N)


def with_zeros(seed):
    """Some weights, and with luck some groups, are zero; some have equal sizes."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=N) * rng.choice([0.0, 0.01, 1.0, 3.0], N)
    return np.where(rng.random(N) < 0.3, np.sign(w), w)


# --- values, and prox


def test_values_by_hand():
    w = np.arange(1.0, 13.0)
    members = [[0, 4, 6, 11], [10], [1, 2, 7], [5, 9]]
    assert_allclose(GroupL2(2.0, UNEQUAL).value(w), 2 * sum(np.linalg.norm(w[m]) for m in members))
    assert_allclose(GroupLinf(2.0, UNEQUAL).value(-w), 2 * sum(np.abs(w[m]).max() for m in members))
    assert_allclose(BLOCKS.value(w), 0.5 * w[:7].sum() + 1.5 * np.linalg.norm(w[7:10]))


@pytest.mark.parametrize("kind", [GroupL2, GroupLinf])
def test_no_strength_changes_nothing(kind):
    w = vector(3)
    for penalty, step in ((kind(0.0, UNEQUAL), 1.5), (kind(0.8, UNEQUAL), 0.0)):
        assert (penalty.prox(w, step) == w).all()


@pytest.mark.parametrize("radius", [0.1, 1.0, 2.5])
def test_the_length_of_a_group_by_a_search_for_a_number(radius):
    """prox of radius·‖x‖ is a multiple of w: the penalty does not change when x turns."""
    w = vector(5)[:4]
    slow = scipy.optimize.minimize_scalar(
        lambda a: 0.5 * (a - 1) ** 2 * w @ w + radius * a * np.linalg.norm(w), bounds=(0, 1), options={"xatol": 1e-10}
    )
    assert_allclose(GroupL2(1.0, [0] * 4).prox(w, radius), slow.x * w, atol=1e-6)


@pytest.mark.parametrize("radius", [0.1, 1.0, 2.5])
def test_the_largest_norm_by_quadratic_programming(radius):
    """prox of radius·max|x_j|: min ‖x − w‖²/2 + radius·z with −z ≤ x ≤ z, by SLSQP."""
    w = vector(5)[:4]
    constraints = [
        {"type": "ineq", "fun": lambda xz: xz[-1] - xz[:-1]},
        {"type": "ineq", "fun": lambda xz: xz[-1] + xz[:-1]},
    ]
    slow = scipy.optimize.minimize(
        lambda xz: 0.5 * ((xz[:-1] - w) ** 2).sum() + radius * xz[-1],
        np.append(w, 5.0),
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert_allclose(GroupLinf(1.0, [0] * 4).prox(w, radius), slow.x[:-1], atol=1e-5)


def dual_projection(penalty, w, radius):
    """Group by group onto the ball of the dual norm, by bisection; weights of no group have the ball {0}."""
    out = np.zeros_like(w)
    for group in np.unique(UNEQUAL[UNEQUAL >= 0]):
        x = w[penalty.groups.ids == group]
        if isinstance(penalty, GroupL2):
            out[penalty.groups.ids == group] = x * min(1.0, radius / max(np.linalg.norm(x), 1e-300))
            continue
        low, high = 0.0, np.abs(x).max()
        if np.abs(x).sum() > radius:
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if np.maximum(np.abs(x) - middle, 0).sum() > radius else (low, middle)
        out[penalty.groups.ids == group] = np.sign(x) * np.maximum(np.abs(x) - low, 0)
    return out


@pytest.mark.parametrize("kind", [GroupL2, GroupLinf])
@given(seed=seeds, step=st.floats(1e-3, 10))
def test_moreau_identity(kind, seed, step):
    penalty, w = kind(0.7, UNEQUAL), with_zeros(seed)
    assert_allclose(penalty.prox(w, step) + dual_projection(penalty, w, 0.7 * step), w, atol=1e-12)


@every_rest
@given(seed=seeds, step=st.floats(0, 10))
def test_prox_is_firmly_non_expansive(penalty, seed, step):
    """‖p − q‖² ≤ (p − q)·(a − b)."""
    rest, a, b = penalty.split()[1], with_zeros(seed), with_zeros(seed + 7)
    moved = rest.prox(a, step) - rest.prox(b, step)
    assert moved @ moved <= moved @ (a - b) + 1e-12
    assert (rest.prox(np.zeros(N), step) == 0).all()


def test_groups_become_zero_as_a_whole_and_the_rest_stays():
    w = vector(8)
    for penalty in (GroupL2(1.0, UNEQUAL), GroupLinf(1.0, UNEQUAL)):
        for step in (0.5, 1.0, 2.0):
            x = penalty.prox(w, step)
            assert (x[UNEQUAL < 0] == w[UNEQUAL < 0]).all()
            for group in (0, 2, 3, 7):
                assert len(set((x[group == UNEQUAL] == 0).tolist())) == 1
    # cut off at one size, exactly
    x = np.abs(GroupLinf(1.0, EQUAL).prox(w, 0.5)).reshape(4, 3)
    assert ((x == x.max(axis=1, keepdims=True)).sum(axis=1) >= 1).all()


@pytest.mark.parametrize("kind", [GroupL2, GroupLinf])
def test_groups_of_one_are_l1(kind):
    w, g = with_zeros(1), vector(2)
    penalty, l1 = kind(0.6, np.arange(N)), L1(0.6)
    assert_allclose(penalty.value(w), l1.value(w))
    assert_allclose(penalty.prox(w, 1.3), l1.prox(w, 1.3), atol=1e-15)
    assert_allclose(penalty.min_norm_subgradient(w, g), l1.min_norm_subgradient(w, g), atol=1e-15)
    assert_allclose(penalty.critical_strength(g), l1.critical_strength(g))


@pytest.mark.parametrize("scale", [1e-200, 1e150, 1e300])
def test_extreme_weights(scale):
    w = scale * np.array([3.0, -4.0, 0.0])
    assert_allclose(GroupL2(1.0, [0, 0, 0]).value(w), 5 * scale)
    assert np.isfinite(GroupL2(1.0, [0, 0, 0]).prox(w, 1.0)).all()
    assert np.isfinite(GroupLinf(1.0, [0, 0, 0]).prox(w, 1.0)).all()


# --- sub-gradients


@every_rest
@given(seed=seeds)
@settings(max_examples=40)
def test_the_least_subgradient(penalty, seed):
    """s is a sub-gradient of g·x + rest, by the inequality, and the slope along −s is −‖s‖²: so none is shorter."""
    rest, w, g = penalty.split()[1], with_zeros(seed), vector(seed + 3, 2.0)
    s = rest.min_norm_subgradient(w, g)
    rng = np.random.default_rng(seed)

    def total(x):
        return g @ x + rest.value(x)

    for size in (1e-3, 0.1, 3.0):
        for _ in range(10):
            x = w + size * rng.normal(size=N)
            assert total(x) >= total(w) + s @ (x - w) - 1e-10
    h = 1e-7 / max(np.linalg.norm(s), 1.0)
    assert_allclose((total(w - h * s) - total(w)) / h, -s @ s, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("penalty", [GroupL2(0.4, UNEQUAL), GroupLinf(0.4, UNEQUAL), BLOCKS], ids=lambda p: p.name)
@pytest.mark.parametrize("seed", range(5))
def test_critical_strength(penalty, seed):
    g = vector(seed)
    covered = np.zeros(N, dtype=bool)
    covered[:10] = True
    if penalty is not BLOCKS:
        covered = UNEQUAL >= 0
    g[~covered] = 0.0
    critical = penalty.critical_strength(g)

    def shortest(strength):
        return np.linalg.norm(penalty.at(strength).split()[1].min_norm_subgradient(np.zeros(N), g))

    assert shortest(critical * (1 + 1e-12)) <= 1e-9
    assert shortest(1.01 * critical) == 0.0
    assert shortest(0.99 * critical) > 0.0


@pytest.mark.parametrize("kind", [GroupL2, GroupLinf])
def test_optima_of_group_penalties(kind):
    """FISTA's end satisfies the conditions as they stand in the papers: ‖g_G‖* ≤ s where w_G = 0, else equality."""
    loss, groups, s = logistic(4, n=12, spread=2.0), [0] * 3 + [1] * 2 + [2] * 4 + [-1] * 3, 4.0
    found = FISTA(stopping=GradientNorm(1e-9), max_iterations=5000).minimize(loss, kind(s, groups), np.zeros(12))
    g, w, ids = loss.at(found.w).grad, found.w, np.array(groups)
    assert found.optimality < 1e-6
    assert_allclose(g[ids < 0], 0.0, atol=1e-6)
    zero = 0
    for group in range(3):
        x, y = w[ids == group], -g[ids == group]
        dual = np.linalg.norm(y) if kind is GroupL2 else np.abs(y).sum()
        norm = np.linalg.norm(x) if kind is GroupL2 else np.abs(x).max()
        assert dual <= s + 1e-6
        zero += not x.any()
        if x.any():
            assert_allclose(dual, s, atol=1e-6)
            assert_allclose(x @ y, s * norm, rtol=1e-6)
    assert 0 < zero < 3
    with pytest.raises(CapabilityError, match=r"owlqn .*is not smooth; these can: .*fista"):
        OWLQN().minimize(loss, kind(s, groups), np.zeros(12))


def test_a_path_of_group_penalties():
    loss = logistic(1, n=12, spread=2.0)
    path = regularisation_path(loss, GroupL2(1.0, EQUAL), n=5, ratio=0.05, solver=FISTA(stopping=GradientNorm(1e-6)))
    assert path[0].nonzeros == 0
    assert [point.nonzeros for point in path] == sorted(point.nonzeros for point in path)
    assert path[-1].nonzeros == 12


# --- groups


def test_two_ways_to_name_the_same_groups():
    lists = GroupL2(1.0, [slice(0, 2), [5, 3]])
    ids = GroupL2(1.0, [0, 0, -1, 1, -1, 1, -1])
    w = vector(0)[:7]
    assert lists.value(w) == ids.value(w)
    assert (lists.prox(w, 0.5) == ids.prox(w, 0.5)).all()
    assert len(Groups([])) == 0
    assert (GroupL2(1.0, []).groups.ids == []).all()
    nobody = GroupLinf(1.0, [-1] * 7)
    assert nobody.value(w) == nobody.critical_strength(w) == 0.0
    assert (nobody.prox(w, 1.0) == w).all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0, 1], [1, 2]], "weight 1 belongs to 2 groups"),
        ([0, -2], "weight 1 has the group -2"),
        (np.array([0.5]), "groups must be"),
        ([slice(0, None)], "group 0 is slice"),
        ([[0], [-1]], "group 1 must be"),
        (np.zeros((2, 2), dtype=int), "groups must be"),
    ],
)
def test_groups_that_cannot_be(bad, message):
    with pytest.raises(ParameterError, match=message):
        GroupL2(1.0, bad)


def test_groups_of_another_size_are_refused():
    with pytest.raises(ParameterError, match="cover 12 weights, but there are 11"):
        GroupL2(1.0, UNEQUAL).prox(np.zeros(11), 1.0)
    with pytest.raises(ParameterError, match="at least 4 weights, but there are 3"):
        GroupLinf(1.0, [slice(0, 4)]).value(np.zeros(3))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_impossible_strengths(bad):
    for make in (lambda s: GroupL2(s, [0]), lambda s: GroupLinf(s, [0]), HuberL1, lambda s: HuberL1(1.0, s)):
        with pytest.raises(ParameterError):
            make(bad)
    with pytest.raises(ParameterError):
        HuberL1(1.0, 0.0)


# --- blocks


def test_blocks_of_the_same_penalty_are_that_penalty():
    w, g, v = with_zeros(1), vector(2), vector(3)
    layout = {"a": slice(0, 5), "b": slice(5, N)}
    for same in (L1(0.7), L2(0.7), ElasticNet(0.7, 0.2)):
        blocks = Blockwise({"a": same, "b": same}, layout)
        assert_allclose(blocks.value(w), same.value(w))
        for found, expected in zip(blocks.split(), same.split(), strict=True):
            if expected is None:
                assert found is None
            elif isinstance(expected, L2):
                for method in ("add_gradient", "add_hess_diag"):
                    a, b = g.copy(), g.copy()
                    getattr(found, method)(w, a)
                    getattr(expected, method)(w, b)
                    assert_allclose(a, b)
                a, b = g.copy(), g.copy()
                found.add_hessp(w, v, a)
                expected.add_hessp(w, v, b)
                assert_allclose(a, b)
            else:
                assert (found.prox(w, 0.3) == expected.prox(w, 0.3)).all()
                assert (found.min_norm_subgradient(w, g) == expected.min_norm_subgradient(w, g)).all()


def test_blocks_without_a_penalty_are_free():
    loss = logistic(2, n=6, spread=2.0)
    penalty = Blockwise({"a": L1(100.0), "c": L2(1.0)}, {"a": slice(0, 2), "b": slice(2, 4), "c": slice(4, 6)})
    assert penalty.name == "a L1(100), c L2(1)"
    found = FISTA(stopping=GradientNorm(1e-9), max_iterations=5000).minimize(loss, penalty, np.zeros(6))
    g = loss.at(found.w).grad
    assert (found.w[:2] == 0).all()
    assert_allclose(g[2:4], 0.0, atol=1e-7)
    assert_allclose(g[4:], -found.w[4:], atol=1e-7)
    assert Blockwise({}, {"a": slice(0, 6)}).split() == (None, None)
    assert Blockwise({"a": NoPenalty()}, {"a": slice(0, 6)}).split() == (None, None)


def test_a_smooth_solver_takes_smooth_blocks():
    loss = logistic(2, n=6, spread=2.0)
    penalty = Blockwise({"a": L2(2.0), "b": HuberL1(0.5, 0.1)}, {"a": slice(0, 2), "b": slice(2, 6)})
    found = LBFGS(stopping=GradientNorm(1e-8)).minimize(loss, penalty, np.zeros(6))
    g = loss.at(found.w).grad
    g[:2] += 2.0 * found.w[:2]
    g[2:] += 0.5 * np.clip(found.w[2:] / 0.1, -1, 1)
    assert np.linalg.norm(g) < 1e-6


def test_scaling_blocks_keeps_their_proportions():
    twice = BLOCKS.at(3.0)
    assert BLOCKS.strength == 1.5
    assert dict(twice.penalties)["node"] == L1(1.0)
    assert_allclose(twice.value(vector(1)), 2 * BLOCKS.value(vector(1)))
    with pytest.raises(ParameterError, match="no strength"):
        Blockwise({}, LAYOUT).at(1.0)


def test_blocks_that_cannot_be():
    with pytest.raises(ParameterError, match="there is no block 'edges'; the blocks are node, edge"):
        Blockwise({"edges": L1(1.0)}, LAYOUT)
    with pytest.raises(ParameterError, match="the penalty of 'edge' must be"):
        Blockwise({"edge": 1.0}, LAYOUT)
    with pytest.raises(ParameterError, match="the penalty of 'edge' must be"):
        Blockwise({"edge": L1}, LAYOUT)


# --- the rounded corner


@given(seed=seeds, strength=st.floats(0, 10), mu=st.sampled_from([1e-3, 0.1, 1.0, 5.0]))
def test_theorem_1(seed, strength, mu):
    """strength·(|x| − mu/2) ≤ r_mu(x) ≤ strength·|x|, weight by weight."""
    for x in with_zeros(seed):
        value = HuberL1(strength, mu).value(np.array([x]))
        assert strength * (abs(x) - mu / 2) - 1e-12 <= value <= strength * abs(x) + 1e-12


@given(seed=seeds, mu=st.sampled_from([0.1, 1.0]))
def test_huber_is_the_largest_of_its_duals(seed, mu):
    """sup over |u| ≤ 1 of u·x − mu/2·u²; its gradient is strength times that u."""
    w, u = vector(seed), np.linspace(-1, 1, 20001)
    best = (w[:, None] * u - mu / 2 * u**2).max(axis=1).sum()
    assert_allclose(HuberL1(0.7, mu).value(w), 0.7 * best, rtol=1e-6)
    gradient = np.zeros(N)
    HuberL1(0.7, mu).add_gradient(w, gradient)
    assert_allclose(gradient, 0.7 * u[(w[:, None] * u - mu / 2 * u**2).argmax(axis=1)], atol=1e-3)


def test_the_optimum_with_a_rounded_corner_is_near_the_true_one():
    """Their values differ by at most n·strength·mu/2."""
    loss = logistic(3, spread=2.0)
    true = OWLQN(stopping=GradientNorm(1e-8)).minimize(loss, L1(1.0), np.zeros(6))
    for mu in (0.1, 0.01):
        found = LBFGS(stopping=GradientNorm(1e-8), max_iterations=5000).minimize(loss, HuberL1(1.0, mu), np.zeros(6))
        assert true.value - 6 * mu / 2 <= found.value <= true.value + 1e-9


@pytest.mark.parametrize("solver", ["auto", "fista", "ista", "ogm", "lbfgs"])
def test_blocks_are_those_of_the_loss(solver):
    """Without a layout it takes that of the loss it meets."""
    data = GraphData.make(Graph.grid((3, 4)), np.random.default_rng(0).normal(size=(12, 2)), None, [0, 1] * 6)
    loss = PseudoLikelihood(data, tied_field(data, 2, "ising", "ising"))
    kind = L2 if solver == "lbfgs" else L1
    parts = {"node": kind(0.3), "edge": kind(1.0)}
    options = {"stopping": GradientNorm(1e-6), "max_iterations": 3000}
    free, given = (
        make_solver(solver, **options).minimize(loss, penalty, np.zeros(loss.size))
        for penalty in (Blockwise(parts), Blockwise(parts, loss.layout))
    )
    assert np.array_equal(free.w, given.w)
    assert free.objective == given.objective
    with pytest.raises(ParameterError, match=r"use bind\(loss\)"):
        Blockwise(parts).value(free.w)
    with pytest.raises(ParameterError, match="no block 'vertex'"):
        make_solver(solver).minimize(loss, Blockwise({"vertex": L2(1.0)}), np.zeros(loss.size))


def test_estimators_take_blocks_without_a_layout():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 3, [["A", "B"], ["B", "A"]] * 3
    chain = ChainCRF(penalty=Blockwise({"state": L1(0.1), "transition": L1(5.0)})).fit(X, y)
    assert chain.result_.objective == "chain likelihood + state L1(0.1), transition L1(5)"
    assert not chain.transition_features_
