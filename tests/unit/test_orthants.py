"""Vector work of orthant-wise methods in the core: it equals what NumPy says, for any length and number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import _core
from crfkit.penalties import L1
from crfkit.solvers.parts.moving import Moving
from crfkit.solvers.parts.secant_pairs import two_loop

LENGTHS = [0, 1, 7, 8191, 8193, 200_003]


def point(n):
    rng = np.random.default_rng(n)
    return rng.normal(size=n) * (rng.random(n) < 0.1), 1.5 * rng.normal(size=n)


@pytest.mark.parametrize("n", LENGTHS)
def test_the_weights_that_can_move(n):
    (w, g), rest = point(n), L1(1.0)
    p = -rest.min_norm_subgradient(w, g)
    for n_threads in (1, 2, 3):
        free, p_free, entering, p_entering, size = _core.moving_weights(w, g, 1.0, n_threads)
        assert (free == np.flatnonzero(w)).all()
        assert (entering == np.flatnonzero((w == 0) & (p != 0))).all()
        assert (p_free == p[free]).all()
        assert (p_entering == p[entering]).all()
        assert_allclose(size, np.linalg.norm(p), rtol=1e-13)
        assert size == _core.moving_weights(w, g, 1.0, 1)[-1]
        assert_allclose(_core.sum_absolute(w, n_threads), np.abs(w).sum(), rtol=1e-13)
        assert _core.sum_absolute(w, n_threads) == _core.sum_absolute(w, 1)


@pytest.mark.parametrize("rest", [L1(1.0), L1(0.0), None], ids=["L1", "no strength", "no penalty"])
def test_other_arrays_have_the_same_weights(rest):
    w, g = point(100)
    found = Moving.at(w, g, rest)
    portable = Moving.at(np.repeat(w, 2)[::2], np.repeat(g, 2)[::2], rest)  # not contiguous
    assert (found.index == portable.index).all()
    assert (found.p == portable.p).all()
    assert_allclose(found.norm, portable.norm, rtol=1e-14)


def test_numbers_that_are_not_finite_show_in_the_norm():
    for bad in (np.nan, np.inf):
        assert not np.isfinite(_core.moving_weights(np.zeros(3), np.array([0.0, bad, 0.0]), 1.0, 1)[-1])
        assert not np.isfinite(_core.sum_absolute(np.array([0.0, bad]), 1))


def test_columns_follow_their_names():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3, 6))
    old, new = np.array([1, 3, 4, 7, 8, 20]), np.array([0, 3, 7, 9, 20, 21])
    out = np.full((3, 6), np.nan)
    _core.move_columns(rows, old, new, out)
    full = np.zeros((3, 22))
    full[:, old] = rows
    assert (out == full[:, new]).all()
    _core.move_columns(rows[:, :0].copy(), old[:0], new, out)
    assert (out == 0).all()


@pytest.mark.parametrize("k", [0, 1, 5])
def test_the_two_loop_recursion(k):
    rng = np.random.default_rng(k)
    n = 30
    root = rng.normal(size=(n, n))
    s = rng.normal(size=(k, n))
    y, g, diagonal = s @ (root @ root.T), rng.normal(size=n), rng.random(n) + 0.1
    if k > 2:
        y[1] *= -1.0  # without positive curvature
    none = np.zeros(0, dtype=np.int64), np.zeros((0, 0))
    d, gamma = _core.two_loop(g, s, y, diagonal, *none)
    expected, scale = two_loop(g, list(zip(s, y, strict=True)), diagonal)
    assert_allclose(d, expected, rtol=1e-11)
    assert_allclose(gamma, scale or 0.0, rtol=1e-12)
    assert k == 0 or d @ g > 0


@pytest.mark.parametrize("k", [0, 1, 5])
def test_the_two_loop_recursion_with_a_head(k):
    """In the variables x/M with H₀ = γ·M·Mᵀ it is the plain recursion."""
    rng = np.random.default_rng(k)
    n, places = 12, np.array([1, 4, 5, 9])
    root, block = rng.normal(size=(n, n)), rng.normal(size=(4, 4))
    s = rng.normal(size=(k, n))
    y, g, diagonal = s @ (root @ root.T), rng.normal(size=n), rng.random(n) + 0.1
    h0 = np.diag(diagonal)
    h0[np.ix_(places, places)] = block @ block.T + 0.1 * np.eye(4)
    excess = (h0 - np.diag(diagonal))[np.ix_(places, places)]
    d, gamma = _core.two_loop(g, s, y, diagonal, places, excess)
    m = np.linalg.cholesky(h0)
    pairs = [(np.linalg.solve(m, a), m.T @ b) for a, b in zip(s, y, strict=True)]
    expected, scale = two_loop(m.T @ g, pairs)
    assert_allclose(d, m @ expected, rtol=1e-9)
    assert_allclose(gamma, scale or 0.0, rtol=1e-10)
    for wrong in (places - 2, places + 9):
        with pytest.raises(ValueError, match="places"):
            _core.two_loop(g, s, y, diagonal, wrong, excess)
    with pytest.raises(ValueError, match="excess"):
        _core.two_loop(g, s, y, diagonal, places[:3], excess)
