"""Vector operations: the compiled ones, the portable ones and NumPy agree, for any length and thread count."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit._threads import using_threads
from crfkit.arrays import (
    add_and_measure,
    add_scaled,
    add_step,
    advance,
    combine,
    curvature_pair,
    dot,
    empty,
    free,
    norm,
    row_dot,
    rows_combine,
    rows_descent,
    rows_direction,
    rows_dot,
)

LENGTHS = [0, 1, 2, 7, 8, 9, 4095, 4096, 4097, 200_003]


def vectors(n: int, k: int = 3):
    rng = np.random.default_rng(n)
    return rng.normal(size=(k, n)), rng.normal(size=n), rng.normal(size=k)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_compiled_operations_equal_numpy(n, n_threads):
    rows, x, c = vectors(n)
    y, kept = rows[0].copy(), x.copy()
    size = 1e-14 * max(n, 1)
    with using_threads(n_threads):
        assert_allclose(rows_dot(rows, x), rows @ x, atol=size)
        assert_allclose(dot(x, y), x @ y, atol=size)
        assert_allclose(norm(x), np.linalg.norm(x), rtol=1e-14)
        assert_allclose(rows_combine(c, rows, 0.5, x), 0.5 * x + c @ rows, atol=1e-14)
        assert_allclose(combine(x, -0.3, y), x - 0.3 * y, atol=1e-15)
        assert (x == kept).all()
        add_scaled(x, 2.5, y)
    assert_allclose(x, kept + 2.5 * y, atol=1e-14)


@pytest.mark.parametrize("n", LENGTHS)
def test_threads_do_not_change_the_bits(n):
    rows, x, c = vectors(n)
    results = []
    for n_threads in (1, 2, 3, 16):
        with using_threads(n_threads):
            results.append((rows_dot(rows, x), rows_combine(c, rows, 0.5, x)))
    for a, b in results[1:]:
        assert (a == results[0][0]).all()
        assert (b == results[0][1]).all()


@pytest.mark.parametrize("make", [lambda x: x.astype(np.float32), lambda x: np.repeat(x, 2, axis=-1)[..., ::2]])
def test_other_arrays_take_the_portable_way(make):
    rows, x, c = vectors(50)
    rows2, x2 = make(rows), make(x)
    assert_allclose(rows_dot(rows2, x2), rows @ x, rtol=1e-4, atol=1e-5)
    result = rows_combine(c, rows2, 0.5, x2)
    assert result.dtype == x2.dtype
    assert_allclose(result, 0.5 * x + c @ rows, rtol=1e-4, atol=1e-5)
    add_scaled(x2, 2.0, x2.copy())
    assert_allclose(x2, 3 * x, rtol=1e-5)


def test_not_a_number_and_infinity_pass_through():
    x = np.ones(10)
    for bad in (np.nan, np.inf):
        y = x.copy()
        y[7] = bad
        assert not np.isfinite(dot(x, y))
        assert not np.isfinite(norm(y))
        assert not np.isfinite(combine(x, 1.0, y)[7])
        assert np.isfinite(np.delete(combine(x, 1.0, y), 7)).all()


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="different lengths"):
        dot(np.ones(3), np.ones(4))


def test_the_number_of_threads_is_set_back():
    with pytest.raises(ZeroDivisionError), using_threads(4):
        raise ZeroDivisionError
    assert dot(np.ones(3), np.ones(3)) == 3.0


def halves(x):
    """Return the numbers that halves of floats hold, rounded to the nearest."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    upper = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return upper.astype(np.uint32).view(np.float32).astype(float)


@pytest.mark.parametrize("n", [1, 9, 33, 4097, 200_003])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint16])
def test_rows_of_every_kind_have_the_products_of_their_numbers(n, kind):
    rng = np.random.default_rng(n)
    x, g, x_new, g_new, c = *rng.normal(size=(4, n)), rng.normal(size=6)
    scale = np.exp(rng.normal(size=n)).astype(np.float32 if kind == np.uint16 else np.float64)
    rows, kept = np.zeros((6, n), kind), np.zeros((6, n))
    for k in range(0, 6, 2):
        pair = (x_new - k * x) / scale.astype(float), (g_new - g) * scale.astype(float)
        kept[k : k + 2] = halves(pair) if kind == np.uint16 else np.asarray(pair, dtype=kind)
        products = curvature_pair(k * x, g, x_new, g_new, scale, rows[k], rows[k + 1])
        assert_allclose(products, (kept[k] @ kept[k + 1], kept[k + 1] @ kept[k + 1]), rtol=1e-12, atol=1e-13 * n)
    results = []
    for n_threads in (1, 3):
        with using_threads(n_threads):
            results.append((rows_dot(rows, g, scale), *rows_descent(c, rows, -0.5, g, scale)))
    products, d, slope = results[0]
    assert_allclose(products, kept @ (scale * g), rtol=1e-10, atol=1e-12 * n)
    assert_allclose(d, scale * (c @ kept - 0.5 * scale * g), rtol=1e-12, atol=1e-12)
    assert slope == dot(g, d)
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("n", [1, 9, 33, 4097, 200_003])
@pytest.mark.parametrize("kind", [np.float32, np.uint16])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_step_along_a_row_is_that_row(n, kind, scaled):
    rng = np.random.default_rng(n)
    x, g, g_new, c = *rng.normal(size=(3, n)), rng.normal(size=4)
    scale = np.exp(rng.normal(size=n)).astype(np.float32 if kind == np.uint16 else np.float64) if scaled else None
    factor = 1.0 if scale is None else scale.astype(float)
    kept = rng.normal(size=(6, n)).astype(np.float32).astype(float)
    numbers = halves if kind == np.uint16 else lambda v: np.asarray(v, dtype=kind).astype(float)

    def stored(v):
        v = np.asarray(v, dtype=np.float32)
        return (v.view(np.uint32) >> 16).astype(np.uint16) if kind == np.uint16 else v

    kept = halves(kept) if kind == np.uint16 else kept
    results = []
    for n_threads in (1, 3):
        rows, row = stored(kept), np.empty(n, kind)
        with using_threads(n_threads):
            slope = rows_direction(c, rows[:4], -0.5, g, scale, row)
            new = advance(x, 0.25, row, scale)
            products, sy, yy = add_step(rows, 1, 4, 0.25, row, g, g_new, scale)
            assert slope == row_dot(row, scale, g)
            assert np.array_equal(products, rows_dot(rows, g_new, scale))  # a resumed run computes these
        results.append((row, new, rows, products, slope, sy, yy))
    row, new, rows, products, slope, sy, yy = results[0]
    exact = c @ kept[:4] - 0.5 * factor * g
    d = (row.astype(np.uint32) << 16).view(np.float32).astype(float) if kind == np.uint16 else row.astype(float)
    assert_allclose(d, numbers(exact), rtol=2.0**-7 if kind == np.uint16 else 2.0**-22, atol=1e-12)
    assert_allclose(new, x + 0.25 * factor * d, rtol=1e-15, atol=1e-15)
    assert_allclose(slope, g @ (factor * d), rtol=1e-10, atol=1e-12 * n)
    kept[1], kept[4] = 0.25 * d, numbers((g_new - g) * factor)  # a quarter has the same digits
    assert np.array_equal(rows, stored(kept))
    assert_allclose(products, kept @ (factor * g_new), rtol=1e-10, atol=1e-11 * n)
    assert_allclose((sy, yy), (kept[1] @ kept[4], kept[4] @ kept[4]), rtol=1e-10, atol=1e-12 * n)
    for one, other in zip(*results, strict=True):
        assert np.array_equal(one, other)


def test_a_sum_is_measured_by_the_way():
    x, y = np.random.default_rng(0).normal(size=(2, 5000))
    expected = y + 0.3 * x
    assert add_and_measure(y, 0.3, x) == (dot(x, x), dot(y, y))
    assert_allclose(y, expected, atol=1e-14)


def test_memory_of_large_vectors_is_used_again():
    free()
    x = empty(1 << 18)
    place = x.ctypes.data
    kept = x[5:]  # a view keeps the memory
    del x
    other = empty(1 << 18)
    assert other.ctypes.data != place
    del kept
    assert empty(1 << 18).ctypes.data == place
    assert len(empty((1 << 18) + 1)) == (1 << 18) + 1
    free()
