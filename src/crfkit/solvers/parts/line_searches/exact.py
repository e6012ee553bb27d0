"""Exact line search: a minimiser of φ to high precision, from its slope. For laws rather than for speed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crfkit.solvers.parts.line_searches.interpolation import inside
from crfkit.solvers.parts.line_searches.trial import (
    Decrease,
    LineSearchResult,
    Phi,
    Reason,
    Trial,
    check_limits,
    check_range,
)

EXPANSION = 4.0
SAME = 1e-8  # part of the decrease so far


@dataclass(frozen=True)
class ExactLineSearch:
    """Bracket a minimiser, then close in on the change of sign of φ′ by secants and bisection.

    Parameters
    ----------
    precision : the step is taken when |φ′(t)| ≤ precision·|φ′(0)|, or when the bracket has become that narrow.
    max_trials : at most so many.
    max_step : a function that still falls there is taken to be unbounded.
    """

    precision: float = 1e-14
    max_trials: int = 200
    max_step: float = 1e20

    def __post_init__(self) -> None:
        check_range("precision", 0.0, self.precision, 1.0)
        check_limits(self.max_trials, self.max_step)

    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Search from `start` (step 0), trying `step` first."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        decrease = Decrease(start, 0.0)
        # low: falling, the lowest such step so far. high: rising, or higher than low, or not finite.
        low, high = start, None
        step = min(step, self.max_step)
        for trials in range(1, self.max_trials + 1):
            trial = phi(step)
            # close to the minimiser values differ by rounding only: there the slopes decide
            tolerance = max(decrease.tolerance(trial), SAME * (start.value - low.value))
            lower = decrease.holds(trial) and trial.value <= low.value + tolerance
            if lower and abs(trial.slope) <= -self.precision * start.slope:
                return LineSearchResult(trial, Reason.EXACT, trials)
            if lower and trial.slope < 0:
                low = trial
                if step >= self.max_step:
                    return decrease.at_largest_step(trial, trials)
            else:
                high = trial
            if high is None:
                step = min(EXPANSION * step, self.max_step)
                continue
            if high.step - low.step <= self.precision * high.step:
                return self._closed(decrease, low, high, trials)
            step = _between(low, high, bisect=trials % 3 == 0)
        return decrease.out_of_trials(low, self.max_trials)

    def _closed(self, decrease: Decrease, low: Trial, high: Trial, trials: int) -> LineSearchResult:
        """Return the outcome of a closed bracket: a minimiser if the slope is positive at its upper end."""
        if not (high.finite and high.slope >= 0):
            return decrease.out_of_trials(low, trials)
        best = high if decrease.holds(high) and high.slope < -low.slope else low
        return LineSearchResult(best, Reason.EXACT, trials)


def _between(low: Trial, high: Trial, bisect: bool) -> float:
    """Return the zero of the secant of φ′, where it has one; else the middle."""
    a, b = low.step, high.step
    if bisect or not (high.finite and high.slope > 0):
        return inside(math.nan, a, b)
    guess = a - low.slope * (b - a) / (high.slope - low.slope)
    return guess if a < guess < b else inside(math.nan, a, b)
