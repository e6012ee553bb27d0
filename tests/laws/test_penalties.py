"""What is particular to penalties of single weights; test_every_penalty.py has the laws of all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit.errors import ParameterError
from crfkit.penalties import L1, L2, ElasticNet, HuberL1
from crfkit.protocols import NonsmoothPenalty

PENALTIES = [L1(0.0), L1(0.4), L1(2.0), ElasticNet(0.4, 1.5), ElasticNet(0.0, 0.5)]
every_rest = pytest.mark.parametrize(
    "rest", [p.split()[1] for p in PENALTIES if p.split()[1] is not None], ids=lambda p: p.name
)


def vector(seed: int, n: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


# --- what is not smooth: proximal points and sub-gradients


def with_zeros(seed: int) -> np.ndarray:
    """Some weights are exactly zero, some are near."""
    return vector(seed) * np.random.default_rng(seed + 1).choice([0.0, 0.01, 1.0, 3.0], 20)


@every_rest
def test_the_rest_keeps_the_contract(rest):
    assert isinstance(rest, NonsmoothPenalty)
    assert {"l1", "prox"} <= rest.kinds


@every_rest
@pytest.mark.parametrize("step", [0.0, 0.3, 2.0])
def test_prox_by_brute_force(rest, step):
    """Coordinate by coordinate: the penalties here are sums."""
    w = with_zeros(5)
    grid = np.linspace(-8.0, 8.0, 16001)
    cost = np.array([step * rest.value(x[None]) for x in grid])
    naive = [grid[np.argmin((grid - x) ** 2 / 2 + cost)] for x in w]
    assert_allclose(rest.prox(w, step), naive, atol=6e-4)  # half the mesh, and a little


@every_rest
@given(seed=st.integers(0, 10**6), step=st.floats(1e-3, 10))
def test_moreau_identity(rest, seed, step):
    """w = prox(w) + projection onto the dual ball, which has the radius step·strength in the maximum norm."""
    w = with_zeros(seed)
    radius = step * rest.strength
    dual = np.clip(w, -radius, radius)
    assert_allclose(rest.prox(w, step) + dual, w, rtol=1e-13, atol=1e-13)


@every_rest
@given(seed=st.integers(0, 10**6))
def test_least_subgradient_by_brute_force(rest, seed):
    """The shortest vector of gradient + ∂penalty(w), whose ends are the slopes of the penalty to either side."""
    w, gradient, h = with_zeros(seed), 2 * vector(seed + 2), 1e-7
    least = rest.min_norm_subgradient(w, gradient)
    for x, g, found in zip(w, gradient, least, strict=True):
        h = 1e-3 * (abs(x) or 1.0)  # stays on one side of zero
        at, right, left = (rest.value(np.array([y])) for y in (x, x + h, x - h))
        slopes = g + np.linspace((at - left) / h, (right - at) / h, 2001)
        assert_allclose(abs(found), np.abs(slopes).min(), rtol=1e-9, atol=2e-3 * rest.strength)
        assert slopes[0] - 1e-9 <= found <= slopes[-1] + 1e-9


@every_rest
def test_least_subgradient_is_the_steepest_slope_downhill(rest):
    """−subgradient is a direction of descent of g·w + penalty(w), with the slope −‖subgradient‖²."""
    w, gradient = with_zeros(11), 2 * vector(12)
    d = -rest.min_norm_subgradient(w, gradient)
    h = 1e-9

    def total(x):
        return gradient @ x + rest.value(x)

    assert_allclose((total(w + h * d) - total(w)) / h, -d @ d, rtol=1e-4)


SPARSE = [L1(0.3), L1(5.0), ElasticNet(0.3, 2.0), ElasticNet(2.0, 0.1)]
every_sparse = pytest.mark.parametrize("penalty", SPARSE, ids=lambda p: p.name)


@every_sparse
@pytest.mark.parametrize("seed", range(5))
def test_critical_strength_is_the_least_that_keeps_all_weights_at_zero(penalty, seed):
    gradient, zero = vector(seed), np.zeros(20)
    critical = penalty.critical_strength(gradient)
    assert critical == np.abs(gradient).max()

    def shortest(strength):
        smooth, rest = penalty.at(strength).split()
        total = gradient.copy()
        if smooth is not None:
            smooth.add_gradient(zero, total)
        return np.linalg.norm(rest.min_norm_subgradient(zero, total))

    assert shortest(critical) == 0.0
    assert shortest(1.01 * critical) == 0.0
    assert shortest(0.99 * critical) > 0.0


@pytest.mark.parametrize("penalty", [*SPARSE, L2(0.3), HuberL1(0.3, 0.2)], ids=lambda p: p.name)
def test_at_another_strength(penalty):
    w = vector(6)
    assert penalty.at(penalty.strength) == penalty
    assert penalty.at(3.0).strength == 3.0
    assert type(penalty.at(3.0)) is type(penalty)
    assert_allclose(penalty.at(2 * penalty.strength).value(w), 2 * penalty.value(w), rtol=1e-14)
    assert penalty.at(0.0).value(w) == 0.0
    with pytest.raises(ParameterError):
        penalty.at(-1.0)


def test_an_elastic_net_without_l1_cannot_be_scaled_by_it():
    with pytest.raises(ParameterError, match="without an L1 part"):
        ElasticNet(0.0, 1.0).at(2.0)


def test_an_elastic_net_is_the_sum_of_its_parts():
    w = vector(7)
    assert ElasticNet(0.4, 1.5).split() == (L2(1.5), L1(0.4))
    assert_allclose(ElasticNet(0.4, 1.5).value(w), 0.4 * np.abs(w).sum() + 0.75 * w @ w, rtol=1e-14)
    assert ElasticNet(0.4, 1.5).name == "ElasticNet(0.4, 1.5)"


# --- one scale, a constructor for every other convention


@pytest.mark.parametrize(
    ("penalty", "formula"),
    [
        (L2(0.7), lambda n: 0.7 / 2 * n),
        (L2.from_crfpp(C=4.0), lambda n: n / (2 * 4.0)),
        (L2.from_crfsuite(c2=0.3), lambda n: 0.3 * n),
        (L2.from_wapiti(rho2=0.3), lambda n: 0.3 / 2 * n),
        (L2.from_sigma(sigma=3.0), lambda n: n / (2 * 3.0**2)),
    ],
)
def test_conventions_of_other_tools(penalty, formula):
    w = vector(4)
    assert_allclose(penalty.value(w), formula(w @ w), rtol=1e-14)


@pytest.mark.parametrize(
    ("penalty", "formula"),
    [
        (L1(0.7), lambda n1, n2: 0.7 * n1),
        (L1.from_crfpp(C=4.0), lambda n1, n2: n1 / 4.0),
        (L1.from_crfsuite(c1=0.3), lambda n1, n2: 0.3 * n1),
        (L1.from_wapiti(rho1=0.3), lambda n1, n2: 0.3 * n1),
        (ElasticNet.from_crfsuite(c1=0.3, c2=0.2), lambda n1, n2: 0.3 * n1 + 0.2 * n2),
        (ElasticNet.from_wapiti(rho1=0.3, rho2=0.2), lambda n1, n2: 0.3 * n1 + 0.2 / 2 * n2),
    ],
)
def test_sparse_conventions_of_other_tools(penalty, formula):
    w = vector(4)
    assert_allclose(penalty.value(w), formula(np.abs(w).sum(), w @ w), rtol=1e-14)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_impossible_strengths_are_refused(bad):
    for make in (L2, L2.from_crfsuite, L2.from_wapiti, L1, L1.from_crfsuite, L1.from_wapiti):
        with pytest.raises(ParameterError):
            make(bad)
    for make in (ElasticNet, ElasticNet.from_crfsuite, ElasticNet.from_wapiti):
        with pytest.raises(ParameterError):
            make(bad, 1.0)
        with pytest.raises(ParameterError):
            make(1.0, bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_impossible_variances_are_refused(bad):
    for make in (L2.from_crfpp, L2.from_sigma, L1.from_crfpp):
        with pytest.raises(ParameterError):
            make(bad)


def test_frozen():
    for penalty in (L1(1.0), L2(1.0), ElasticNet()):
        with pytest.raises(AttributeError):
            penalty.strength = 2.0
