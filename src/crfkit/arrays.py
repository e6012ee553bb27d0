"""Array operations that solvers and penalties share, for any array library."""

from __future__ import annotations

import math
from typing import Any

_CHUNK = 1 << 16  # elements; a temporary of this size stays in cache


def add_scaled(y: Any, a: float, x: Any) -> None:
    """``y += a·x`` in place, without a temporary as long as x."""
    for start in range(0, x.shape[0], _CHUNK):
        part = slice(start, start + _CHUNK)
        y[part] += a * x[part]


def combine(x: Any, a: float, y: Any) -> Any:
    """``x + a·y`` as a new vector, without a further temporary."""
    result = x + 0.0
    add_scaled(result, a, y)
    return result


def norm(x: Any) -> float:
    return math.sqrt(float(x @ x))
