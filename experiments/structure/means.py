"""Means of paired differences, their standard errors, and what counts as lost."""

from __future__ import annotations

import math
from typing import Any

SCORES = ("f1", "f1_equal", "ap")


def mean(values: list[float]) -> Any:
    """Return the mean; None of no values."""
    return sum(values) / len(values) if values else None


def error(values: list[float]) -> float:
    """Return the standard error of a mean; 0 of a single value."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values))


def lost(gains: list[float]) -> bool:
    """Return whether the mean is below zero by more than its standard error."""
    return bool(gains) and mean(gains) < -error(gains) - 1e-12
