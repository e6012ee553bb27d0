"""The next trial between two steps: the minimiser of an interpolant, kept off both ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from crfkit.solvers.parts.line_searches.trial import Trial


def cubic_minimiser(a: Trial, b: Trial) -> float:
    """Return the minimiser of the cubic through the values and slopes at a and b (Nocedal & Wright 3.59), or NaN."""
    if not b.finite:
        return math.nan
    width = b.step - a.step
    d1 = a.slope + b.slope - 3 * (b.value - a.value) / width
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return math.nan
    d2 = math.copysign(math.sqrt(square), width)
    denominator = b.slope - a.slope + 2 * d2
    return b.step - width * (b.slope + d2 - d1) / denominator if denominator != 0 else math.nan


def parabola_minimiser(a: Trial, b: Trial) -> float:
    """Return the minimiser of the parabola through both values and the slope at a (Nocedal & Wright 3.58), or NaN."""
    width = b.step - a.step
    bend = b.value - a.value - a.slope * width
    return a.step - a.slope * width * width / (2 * bend) if bend > 0 else math.nan


def cubic(low: Trial, high: Trial) -> float:
    return inside(cubic_minimiser(low, high), low.step, high.step)


def quadratic(low: Trial, high: Trial) -> float:
    return inside(parabola_minimiser(low, high), low.step, high.step)


def bisection(low: Trial, high: Trial) -> float:
    return inside(math.nan, low.step, high.step)


def inside(guess: float, a: float, b: float, most: float = 0.9) -> float:
    """Return the guess, moved to between a tenth and `most` of the way from a to b; the middle if it is NaN."""
    fraction = (guess - a) / (b - a)
    if 0.1 <= fraction <= most:
        return guess
    fraction = min(max(fraction, 0.1), most) if math.isfinite(fraction) else 0.5
    return a + fraction * (b - a)


INTERPOLATIONS: Mapping[str, Callable[[Trial, Trial], float]] = {
    "cubic": cubic,
    "quadratic": quadratic,
    "bisection": bisection,
}
