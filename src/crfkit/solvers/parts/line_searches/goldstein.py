"""Goldstein line search: a step that is neither too long nor too short, without a look at slopes.

φ(0) + (1 − c)·t·φ′(0) ≤ φ(t) ≤ φ(0) + c·t·φ′(0), with 0 < c < ½ (Nocedal & Wright (3.11)).
"""

from __future__ import annotations

from dataclasses import dataclass

from crfkit.solvers.parts.line_searches.interpolation import bisection, quadratic
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


@dataclass(frozen=True)
class Goldstein:
    """
    Parameters
    ----------
    c : the constant of the conditions, between 0 and ½.
    max_trials : at most so many; the last one of the bracketing is at `max_step`.
    max_step : a function that still falls there is taken to be unbounded.
    """

    c: float = 0.1
    max_trials: int = 30
    max_step: float = 1e20

    def __post_init__(self) -> None:
        check_range("c", 0.0, self.c, 0.5)
        check_limits(self.max_trials, self.max_step)

    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Search from `start` (step 0), trying `step` first."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        decrease = Decrease(start, self.c)

        def too_short(trial: Trial) -> bool:
            return trial.value < start.value + (1 - self.c) * trial.step * start.slope - decrease.tolerance(trial)

        # low: too short, with sufficient decrease. high: too long. A Goldstein point lies in between.
        low, high = start, None
        step = min(step, self.max_step)
        for trials in range(1, self.max_trials + 1):
            trial = phi(step)
            if not decrease.seen(trial):
                high = trial
            elif too_short(trial):
                low = trial
                if step >= self.max_step:
                    return decrease.at_largest_step(trial, trials)
            else:
                return LineSearchResult(trial, Reason.GOLDSTEIN, trials)
            if high is None:
                last = trials == self.max_trials - 1
                step = self.max_step if last else min(EXPANSION * step, self.max_step)
            else:
                step = (quadratic if low is start else bisection)(low, high)
        return decrease.out_of_trials(low, self.max_trials)
