"""Means and intervals of paired ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from scipy.stats import t as student


def geometric(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def ratio(strata: Sequence[Sequence[float]], level: float = 0.95) -> dict[str, Any]:
    """Return the geometric mean of ratios with a t-interval of their logarithms.

    A stratum has the ratios of one setting, one for each draw of the data. The mean is that of the settings' means, its
    variance Σ s²/n / S² over S settings. Without two draws of every setting there is no interval.
    """
    logs = [[math.log(value) for value in stratum] for stratum in strata if stratum]
    means = [sum(values) / len(values) for values in logs]
    centre = sum(means) / len(means)
    found: dict[str, Any] = {"ratio": math.exp(centre), "low": None, "high": None, "n": sum(map(len, logs))}
    freedom = sum(len(values) - 1 for values in logs)
    if min(map(len, logs)) > 1:
        squares = [
            sum((x - m) ** 2 for x in values) / (len(values) - 1) / len(values)
            for values, m in zip(logs, means, strict=True)
        ]
        width = float(student.ppf(0.5 + level / 2, freedom)) * math.sqrt(sum(squares)) / len(logs)
        found |= {"low": math.exp(centre - width), "high": math.exp(centre + width)}
    return found
