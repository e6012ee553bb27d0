"""Strong Wolfe line search: bracket, then zoom with safeguarded interpolation.

Nocedal & Wright, Numerical Optimization, Algorithms 3.5 and 3.6. With φ(t) = f(x + t·d), a step t is taken when
    φ(t) ≤ φ(0) + c1·t·φ′(0)        (sufficient decrease)
    |φ′(t)| ≤ c2·|φ′(0)|            (curvature)
"""

from __future__ import annotations

from dataclasses import dataclass

from crfkit.errors import ParameterError
from crfkit.solvers.parts.line_searches.interpolation import INTERPOLATIONS
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
class StrongWolfe:
    """
    Parameters
    ----------
    c1, c2 : the constants of the two conditions, 0 < c1 < c2 < 1.
    max_trials : at most so many; the last one of the bracketing is at `max_step`.
    max_step : a function that still falls there is taken to be unbounded.
    expansion : factor from one step of the bracketing to the next.
    interpolation : "cubic", "quadratic" or "bisection".
    slack : accepts values that are higher by slack·|φ(0)|, for objectives that are known to few digits only.
    """

    c1: float = 1e-4
    c2: float = 0.9
    max_trials: int = 20
    max_step: float = 1e20
    expansion: float = 4.0
    interpolation: str = "cubic"
    slack: float = 0.0

    def __post_init__(self) -> None:
        check_range("c2", 0.0, self.c2, 1.0)
        check_range("c1", 0.0, self.c1, self.c2)
        check_limits(self.max_trials, self.max_step)
        check_slack(self.slack)
        if not self.expansion > 1:
            raise ParameterError(f"expansion must be > 1, not {self.expansion!r}")
        if self.interpolation not in INTERPOLATIONS:
            known = ", ".join(INTERPOLATIONS)
            raise ParameterError(f"unknown interpolation {self.interpolation!r}; there are {known}")

    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Search from `start` (step 0), trying `step` first."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        decrease = Decrease(start, self.c1, self.slack)
        between = INTERPOLATIONS[self.interpolation]
        trials = 0

        def flat(trial: Trial) -> bool:
            return abs(trial.slope) <= -self.c2 * start.slope

        # Points of trials that cannot be taken any more are dropped: their vectors may be large.
        low = start
        step = min(step, self.max_step)
        while trials < self.max_trials:
            trial = phi(step)
            trials += 1
            if not decrease.holds(trial) or (trial.value >= low.value and trials > 1):
                high = trial.pointless
                break
            if flat(trial):
                return LineSearchResult(trial, Reason.STRONG_WOLFE, trials)
            if trial.slope >= 0:
                low, high = trial, low.pointless
                break
            if step >= self.max_step:
                return decrease.at_largest_step(trial, trials)
            low = trial
            last = trials == self.max_trials - 1
            step = self.max_step if last else min(self.expansion * step, self.max_step)
        else:
            return decrease.out_of_trials(low, trials)

        # Zoom: the interval between low (the best step so far) and high holds a Wolfe point.
        del trial
        while trials < self.max_trials and abs(high.step - low.step) > 1e-16 * max(low.step, high.step):
            trial = phi(between(low, high))
            trials += 1
            if not decrease.holds(trial) or trial.value >= low.value + decrease.tolerance(trial):
                high = trial.pointless
                del trial
                continue
            if flat(trial):
                return LineSearchResult(trial, Reason.STRONG_WOLFE, trials)
            if trial.slope * (high.step - low.step) >= 0:
                high = low.pointless
            low = trial
            del trial
        return decrease.out_of_trials(low, trials)
