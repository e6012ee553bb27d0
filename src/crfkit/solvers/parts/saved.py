"""Entries of a saved state, checked: whatever a file says, a solver that resumes gets numbers that it could have saved.

`check_state` looks at all entries once, before a solver sees them. The other functions return one entry each and raise
ParameterError if it is missing, has another type or shape, or is out of its range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from crfkit._checks import is_whole
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.solvers.parts.past import PAST

MOST = 2**53  # of a count: larger ones are not exact as floats
HANDED_OVER = "handed_over"  # in a state that nobody else has: its large arrays need not be copied
POSITIVE = 1e-300  # the least of numbers that must not be zero


def check_state(saved: Mapping[str, Any]) -> None:
    """Raise ParameterError unless all entries are strings, None, finite numbers or arrays of finite numbers."""
    for name, value in saved.items():
        if name == PAST:  # values of losses that have none are NaN there
            continue
        if value is None or isinstance(value, (str, bool, np.bool_)):
            continue
        if is_array_api_obj(value):
            _check_array(name, value)
        elif isinstance(value, (int, np.integer)):
            if abs(int(value)) > MOST:
                raise ParameterError(f"the saved state is damaged: {name} is out of range")
        elif not isinstance(value, (float, np.floating)):
            raise ParameterError(f"the saved state is damaged: {name} is of the type {type(value).__name__}")
        elif not math.isfinite(value):
            raise ParameterError(f"the saved state is damaged: {name} is {value}")


def _check_array(name: str, array: Any) -> None:
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, "real floating"):
        # a sum is finite only if all its terms are, and takes no memory
        if not (math.isfinite(float(xp.sum(array))) or bool(xp.all(xp.isfinite(array)))):
            raise ParameterError(f"the saved state is damaged: {name} has numbers that are not finite")
        return
    if not xp.isdtype(array.dtype, ("integral", "bool")):
        raise ParameterError(f"the saved state is damaged: {name} is an array of {array.dtype}")


def saved_vector(saved: Mapping[str, Any], name: str, like: Vector, low: float = -math.inf) -> Vector:
    """Return a copy of a vector with a number for each entry of `like`; the saved state may be resumed again."""
    vector = _array(saved, name, 1)
    if vector.shape != like.shape:
        raise ParameterError(f"the saved state has {vector.shape[0]} weights, not {like.shape[0]}")
    copy = 1.0 * vector
    if isinstance(copy, np.ndarray) and isinstance(like, np.ndarray):
        copy = copy.astype(like.dtype, copy=False)
    if low > -math.inf and not bool(array_namespace(copy).all(copy >= low)):
        raise ParameterError(f"the saved state is damaged: {name} has numbers below {low:g}")
    return copy


def saved_matrix(
    saved: Mapping[str, Any], name: str, columns: int, rows: int | None = None, what: str = "weights"
) -> Any:
    """Return a copy of a matrix with so many columns (one for each of `what`) and, if given, so many rows."""
    return 1.0 * check_matrix(saved, name, columns, rows, what)


def check_matrix(
    saved: Mapping[str, Any], name: str, columns: int, rows: int | None = None, what: str = "weights"
) -> Any:
    """Return the matrix itself, which must have so many columns and, if given, so many rows."""
    matrix = _array(saved, name, 2)
    if matrix.shape[1] != columns:
        raise ParameterError(f"the saved state has {matrix.shape[1]} {what}, not {columns}")
    if rows is not None and matrix.shape[0] != rows:
        raise ParameterError(f"the saved state has {matrix.shape[0]} rows in {name}, not {rows}")
    return matrix


def saved_number(
    saved: Mapping[str, Any], name: str, default: float | None = None, low: float = -math.inf, high: float = math.inf
) -> float:
    """Return a number from `low` to `high`; `default`, if there is one, where the state has none."""
    value = saved.get(name)
    if default is not None and value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ParameterError(f"the saved state is damaged: {name} must be a number, not {_shown(value)}")
    if not low <= value <= high:
        raise ParameterError(f"the saved state is damaged: {name} is {value:.6g}, which cannot be")
    return float(value)


def saved_count(saved: Mapping[str, Any], name: str, default: int | None = None, high: int = MOST) -> int:
    """Return a whole number from 0 to `high`; `default`, if there is one, where the state has none."""
    value = saved.get(name)
    if default is not None and value is None:
        return default
    if not is_whole(value):
        raise ParameterError(f"the saved state is damaged: {name} must be a whole number, not {_shown(value)}")
    return int(saved_number(saved, name, None, 0, high))


def _array(saved: Mapping[str, Any], name: str, ndim: int) -> Any:
    array: Any = saved.get(name)
    if not is_array_api_obj(array) or array.ndim != ndim:
        what = "vector" if ndim == 1 else "matrix"
        raise ParameterError(f"the saved state is damaged: {name} must be a {what}, not {_shown(array)}")
    return array


def _shown(value: Any) -> str:
    return f"an array of shape {tuple(value.shape)}" if is_array_api_obj(value) else f"{value!r:.40}"
