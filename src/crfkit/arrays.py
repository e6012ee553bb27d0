"""Array operations that solvers and penalties share.

They work on vectors of any array library. Vectors of NumPy doubles go to the compiled core, which does not wait
actively for its threads as BLAS libraries do: those would slow the loss's own threads down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array

from crfkit._compiled import HAS_CORE, _core
from crfkit._threads import thread_count
from crfkit._types import Floats, Sparse, Vector

_DOUBLE = np.dtype(np.float64 if HAS_CORE else "V8")  # the type of vectors that the core takes; without it, none
_ROWS = frozenset(map(np.dtype, (np.float64, np.float32, np.uint16)))
MANY, VERY_MANY = 1 << 17, 1 << 20  # numbers of a vector


def namespace(x: Vector) -> ModuleType:
    """Return the array library of x; for NumPy without a search."""
    return _numpy() if type(x) is np.ndarray else array_namespace(x)


@cache
def _numpy() -> ModuleType:
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return np  # has the functions of the standard itself
    from array_api_compat import numpy  # loads all of NumPy's submodules, which takes longer than the rest of crfkit

    return numpy


def to_numpy(x: Vector) -> Any:
    """Return the numbers of x as a NumPy array; they are copied if x is on a device that NumPy cannot read."""
    return np.asarray(x.cpu() if is_torch_array(x) else x)


def dot(x: Vector, y: Vector) -> float:
    """Return ``x·y``"""
    if is_native(x, y):
        return _core.dot(x, y, thread_count())
    return float(rows_dot(x[None, :], y)[0])


def dots(pairs: Iterable[tuple[Vector, Vector]]) -> list[float]:
    """Return ``x·y`` of every pair; a device is waited for once."""
    products = [inner(x, y) for x, y in pairs]
    return products if not products or isinstance(products[0], float) else _numbers(*products)


def inner(x: Vector, y: Vector) -> Any:
    """Return ``x·y`` as a number to multiply vectors with; that of other libraries than NumPy stays on its device."""
    return dot(x, y) if type(x) is np.ndarray else x @ y


def norm(x: Vector) -> float:
    """Return ``‖x‖``"""
    return math.sqrt(dot(x, x))


def empty(n: int) -> Floats:
    """Return a NumPy vector of doubles to be filled; a large one takes memory that others have left."""
    return _core.empty_vector(n) if HAS_CORE else np.empty(n)


def empty_row(n: int, kind: Any) -> Vector:
    """Return a NumPy vector of a type that `row_type` names, to be filled."""
    return _core.empty_bytes(n * np.dtype(kind).itemsize).view(kind)


def zero_rows(k: int, x: Vector, kind: Any) -> Vector:
    """Return k rows of zeros of a type, each as long as x, in its array library."""
    n = x.shape[0]
    if not is_native(x) or n < MANY:
        return namespace(x).zeros((k, n), dtype=kind, device=device(x))
    rows = empty_row(k * n, kind).reshape(k, n)
    rows.fill(0)  # zeros that are read before they are written would take small pages
    return rows


def free() -> None:
    """Give the memory that vectors have left back to the system."""
    if HAS_CORE:
        _core.free_vectors()


def rows_dot(rows: Vector, x: Vector, scale: Vector = None) -> Vector:
    """Return the inner products of all rows with scale·x as a NumPy vector; see `row_type` for how rows are kept."""
    if _native_rows(rows) and is_native(x):
        return _core.rows_dot(rows, x, scale, thread_count())
    return to_numpy(rows @ (x if scale is None else scale * x))


def rows_combine(c: Vector, rows: Vector, a: float, x: Vector, scale: Vector = None) -> Vector:
    """Return ``scale·(a·scale·x + Σ_i c_i·rows_i)`` as a new vector; without a scale it is 1."""
    xp = namespace(x)
    if _native_rows(rows) and is_native(x):
        return _native_combination(c, rows, a, x, scale, measure=False)[0]
    sum_of_rows = xp.asarray(c, dtype=x.dtype, device=device(x)) @ rows
    return sum_of_rows + a * x if scale is None else scale * (sum_of_rows + a * (scale * x))


def rows_descent(c: Vector, rows: Vector, a: float, x: Vector, scale: Vector = None) -> tuple[Vector, float]:
    """Return the vector d of `rows_combine`, and ``x·d``."""
    if _native_rows(rows) and is_native(x):
        return _native_combination(c, rows, a, x, scale, measure=True)
    d = rows_combine(c, rows, a, x, scale)
    return d, dot(x, d)


def rows_direction(c: Vector, rows: Vector, a: float, x: Vector, scale: Vector, row: Vector) -> float:
    """Compute ``row = a·scale·x + Σ_i c_i·rows_i`` in place, rounded to its type. Return ``x·(scale·row)``.

    This, `advance`, `row_dot` and `add_step` take NumPy vectors and rows of a type that `is_narrow`.
    """
    return _core.rows_direction(np.ascontiguousarray(c, dtype=np.float64), rows, a, x, scale, row, thread_count())


def advance(x: Vector, a: float, row: Vector, scale: Vector) -> Vector:
    """Return ``x + a·scale·row`` as a new vector."""
    return _core.advance(x, a, row, scale, thread_count())


def row_dot(row: Vector, scale: Vector, x: Vector) -> float:
    """Return ``x·(scale·row)``"""
    return _core.row_dot(row, scale, x, thread_count())


def add_step(
    rows: Vector, s: int, y: int, a: float, row: Vector, g: Vector, g_new: Vector, scale: Vector
) -> tuple[Vector, float, float]:
    """Compute ``rows_s = a·row``, ``rows_y = (g_new − g)·scale`` in place.

    Return the inner products of all rows with scale·g_new, (s·y) and (y·y).
    """
    return _core.add_step(rows, s, y, a, row, g, g_new, scale, thread_count())


def _native_combination(
    c: Vector, rows: Vector, a: float, x: Vector, scale: Vector, measure: bool
) -> tuple[Vector, float]:
    out = empty(x.shape[0])
    c = np.ascontiguousarray(c, dtype=np.float64)
    return out, _core.rows_combine(c, rows, a, x, scale, out, measure, thread_count())


def matvec(matrix: Sparse, x: Vector) -> Vector:
    """Return ``matrix·x``"""
    return rows_dot(matrix, x) if is_native(matrix, x) else matrix @ x


def add_rank_two(matrix: Sparse, a: Vector, b: Vector) -> None:
    """Compute ``matrix += abᵀ + baᵀ`` in place, some rows at a time, so that no second matrix is made."""
    n = matrix.shape[0]
    for first in range(0, n, 64):
        rows = slice(first, min(first + 64, n))
        matrix[rows, :] += a[rows, None] * b[None, :] + b[rows, None] * a[None, :]


def count_nonzero(x: Vector) -> int:
    """Return how many numbers of x are not zero."""
    if type(x) is np.ndarray:
        return int(np.count_nonzero(x))
    xp = namespace(x)
    return int(xp.sum(xp.astype(x != 0, xp.int64)))


def put(x: Vector, places: Vector, values: Vector) -> None:
    """``x[places] = values`` in place, where no place is named twice.

    The array API has no assignment by indices: there every number is read from where it now stands.
    """
    if type(x) is np.ndarray or is_torch_array(x):
        x[places] = values
        return
    xp, n = namespace(x), x.shape[0]
    source = np.arange(n)
    source[np.asarray(places)] = np.arange(n, n + values.shape[0])
    x[...] = xp.take(xp.concat([x, values]), xp.asarray(source, device=device(x)))


def sum_absolute(x: Vector) -> float:
    """Return ``Σ |x_j|``"""
    if is_native(x):
        return _core.sum_absolute(x, thread_count())
    xp = namespace(x)
    return float(xp.sum(xp.abs(x)))


def combine(x: Vector, a: float, y: Vector) -> Vector:
    """Return ``x + a·y`` as a new vector."""
    if is_native(x, y):
        return _core.combine(x, a, y, thread_count())
    return rows_combine([a], y[None, :], 1.0, x)


def add_scaled(y: Vector, a: float, x: Vector) -> None:
    """Compute ``y += a·x`` in place."""
    if is_native(x, y):
        _core.rows_combine(np.array([a]), x[None, :], 1.0, y, None, y, False, thread_count())
    else:
        y += a * x


def add_and_measure(y: Vector, a: float, x: Vector) -> tuple[float, float]:
    """Compute ``y += a·x`` in place. Return ``(x·x, y·y)``."""
    if is_native(x, y):
        return _core.add_and_measure(y, a, x, thread_count())
    add_scaled(y, a, x)
    xx, yy = dots(((x, x), (y, y)))
    return xx, yy


def curvature_pair(
    x: Vector, g: Vector, x_new: Vector, g_new: Vector, scale: Vector, s: Vector, y: Vector
) -> tuple[float, float]:
    """Compute ``s = (x_new − x)/scale``, ``y = (g_new − g)·scale`` in place (None is 1). Return (s·y, y·y)."""
    if is_native(x, g, x_new, g_new) and _native_rows(s, y):
        return _core.curvature_pair(x, g, x_new, g_new, scale, s, y, thread_count())
    s[...] = x_new
    s -= x
    y[...] = g_new
    y -= g
    if scale is not None:
        s /= scale
        y *= scale
    sy, yy = dots(((s, y), (y, y)))
    return sy, yy


def row_type(x: Vector) -> Any:
    """Return the type of numbers for rows that are read often, less precise where more of them would fill the caches.

    That is single floats for many doubles, and their upper halves (bfloat16, two to three digits; kept as uint16) for
    very many.
    """
    if not is_native(x) or x.shape[0] < MANY:
        return x.dtype
    return np.float32 if x.shape[0] < VERY_MANY else np.uint16


def row_values(row: Any, places: Any) -> Floats:
    """Return the numbers at some places of a NumPy row, of a type that `row_type` names, as doubles."""
    taken = row[..., places]
    if taken.dtype == np.uint16:
        taken = (taken.astype(np.uint32) << 16).view(np.float32)
    values: Floats = taken.astype(np.float64)
    return values


def put_row(row: Any, places: Any, values: Floats) -> None:
    """Set the numbers at some places of a NumPy row, of a type that `row_type` names, rounded to nearest."""
    if row.dtype == np.uint16:
        bits = values.astype(np.float32).view(np.uint32)
        row[places] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    else:
        row[places] = values


def is_narrow(rows: Vector) -> bool:
    """Return whether rows of this type have fewer digits than the doubles that they are multiplied with."""
    return rows in (np.float32, np.uint16)


def scale_type(rows: Vector, x: Vector) -> Any:
    """Return the type of numbers of a vector that scales rows of a type, where x is one of the vectors."""
    return np.float32 if is_native(x) and rows == np.uint16 else x.dtype


def is_native(*arrays: Vector) -> bool:
    """Return whether all are contiguous NumPy doubles, which the compiled core takes."""
    for a in arrays:  # noqa: SIM110 - all(…) takes three times as long, and this is asked for every product
        if type(a) is not np.ndarray or a.dtype != _DOUBLE or not a.flags.c_contiguous:
            return False
    return True


def secant_products(x: Vector, g: Vector, x_new: Vector, g_new: Vector) -> tuple[float, float, float, float, float]:
    """Return ``(s·s, s·y, y·y, s·g_new, s·g)`` with ``s = x_new − x`` and ``y = g_new − g``."""
    if is_native(x, g, x_new, g_new):
        return _core.secant_products(x, g, x_new, g_new)
    s, y = combine(x_new, -1.0, x), combine(g_new, -1.0, g)
    ss, sy, yy, s_new, s_old = dots(((s, s), (s, y), (y, y), (s, g_new), (s, g)))
    return ss, sy, yy, s_new, s_old


def _numbers(*products: Vector) -> list[float]:
    """Return inner products as Python numbers. A device is waited for once, not for each of them."""
    numbers: list[float] = to_numpy(namespace(products[0]).stack(products)).tolist()
    return numbers


def _native_rows(*arrays: Vector) -> bool:
    return all(type(a) is np.ndarray and a.dtype in _ROWS and a.flags.c_contiguous for a in arrays)
