"""One suite over every penalty, then what is particular to each."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from crfkit.errors import ParameterError
from crfkit.penalties import L2, NoPenalty
from crfkit.protocols import Penalty, SmoothPenalty

PENALTIES = [NoPenalty(), L2(0.0), L2(0.5), L2(3.0)]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p.name)
every_smooth_part = pytest.mark.parametrize(
    "smooth", [p.split()[0] for p in PENALTIES if p.split()[0] is not None], ids=lambda p: p.name
)


def vector(seed: int, n: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


@every_penalty
def test_keeps_the_contract(penalty):
    assert isinstance(penalty, Penalty)
    assert isinstance(penalty.name, str)
    assert pickle.loads(pickle.dumps(penalty)) == penalty
    assert hash(penalty) == hash(pickle.loads(pickle.dumps(penalty)))


@every_penalty
def test_parts_add_up_to_the_whole(penalty):
    w = vector(0)
    parts = [part for part in penalty.split() if part is not None]
    assert_allclose(sum(part.value(w) for part in parts), penalty.value(w), rtol=1e-14)


@every_smooth_part
def test_gradient_of_the_smooth_part_is_its_derivative(smooth):
    w, h = vector(1), 1e-6
    assert isinstance(smooth, SmoothPenalty)
    gradient = np.zeros_like(w)
    smooth.add_gradient(w, gradient)
    slopes = [(smooth.value(w + e) - smooth.value(w - e)) / (2 * h) for e in h * np.eye(len(w))]
    assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


@every_smooth_part
def test_gradient_is_added_to_what_is_there(smooth):
    w, base = vector(2), vector(3)
    alone, onto, kept = np.zeros_like(w), base.copy(), w.copy()
    smooth.add_gradient(w, alone)
    smooth.add_gradient(w, onto)
    assert_allclose(onto, base + alone, rtol=1e-14)
    assert (w == kept).all()


@every_penalty
@given(seed=st.integers(0, 10**6), t=st.floats(0, 1))
def test_convex_non_negative_and_zero_at_zero(penalty, seed, t):
    a, b = vector(seed), vector(seed + 1)
    assert penalty.value(np.zeros(20)) == 0.0
    assert penalty.value(a) >= 0.0
    assert penalty.value(t * a + (1 - t) * b) <= t * penalty.value(a) + (1 - t) * penalty.value(b) + 1e-12


# --- L2: one scale, a constructor for every other convention


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


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_impossible_strengths_are_refused(bad):
    for make in (L2, L2.from_crfsuite, L2.from_wapiti):
        with pytest.raises(ParameterError):
            make(bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_impossible_variances_are_refused(bad):
    for make in (L2.from_crfpp, L2.from_sigma):
        with pytest.raises(ParameterError):
            make(bad)


def test_frozen():
    with pytest.raises(AttributeError):
        L2(1.0).strength = 2.0
