"""Back-tracking until the step decreases enough (Armijo 1966): φ(t) ≤ φ(0) + c1·t·φ′(0)."""

from __future__ import annotations

from dataclasses import dataclass

from crfkit.solvers.parts.line_searches.interpolation import inside, parabola_minimiser
from crfkit.solvers.parts.line_searches.trial import (
    Decrease,
    LineSearchResult,
    Phi,
    Reason,
    Trial,
    check_limits,
    check_range,
    check_slack,
)


@dataclass(frozen=True)
class Armijo:
    """Shorten the step to the minimiser of a parabola, which is kept between 0.1 and 0.5 of the step before.

    Parameters
    ----------
    c1 : the constant of the condition, between 0 and 1.
    max_trials : at most so many.
    max_step : a function that still falls there is taken to be unbounded.
    slack : accepts values that are higher by slack·|φ(0)|, for objectives that are known to few digits only.
    """

    c1: float = 1e-4
    max_trials: int = 30
    max_step: float = 1e20
    slack: float = 0.0

    def __post_init__(self) -> None:
        check_range("c1", 0.0, self.c1, 1.0)
        check_limits(self.max_trials, self.max_step)
        check_slack(self.slack)

    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Search from `start` (step 0), trying `step` first."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        decrease = Decrease(start, self.c1, self.slack)
        step = min(step, self.max_step)
        for trials in range(1, self.max_trials + 1):
            trial = phi(step)
            if decrease.seen(trial):
                falling = step >= self.max_step and trial.slope < 0
                return LineSearchResult(trial, Reason.UNBOUNDED if falling else Reason.ARMIJO, trials)
            step = inside(parabola_minimiser(start, trial), 0.0, step, most=0.5)
        return LineSearchResult(start, Reason.NO_DECREASE, self.max_trials)
