"""Strong Wolfe line search: bracket, then zoom with safeguarded cubic interpolation.

Nocedal & Wright, Numerical Optimization, Algorithms 3.5 and 3.6. With φ(t) = f(x + t·d), a step t is taken when
    φ(t) ≤ φ(0) + c1·t·φ′(0)        (sufficient decrease)
    |φ′(t)| ≤ c2·|φ′(0)|            (curvature)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from crfkit.solvers.objective import Point


@dataclass(frozen=True)
class Trial:
    step: float
    value: float  # φ(step)
    slope: float  # φ′(step)
    point: Point | None

    @property
    def finite(self) -> bool:
        return math.isfinite(self.value) and math.isfinite(self.slope)


class Reason(Enum):
    """Why a line search stopped."""

    STRONG_WOLFE = "both Wolfe conditions hold"
    DECREASE_ONLY = "out of trials: the best step decreases enough, but the slope is still steep"
    NO_DECREASE = "no step with sufficient decrease was found"
    NOT_DESCENT = "the direction does not descend"


@dataclass(frozen=True)
class LineSearchResult:
    trial: Trial
    reason: Reason
    trials: int

    @property
    def accepted(self) -> bool:
        return self.reason in (Reason.STRONG_WOLFE, Reason.DECREASE_ONLY)


@dataclass(frozen=True)
class StrongWolfe:
    c1: float = 1e-4
    c2: float = 0.9
    max_trials: int = 20
    max_step: float = 1e20
    expansion: float = 4.0

    def search(self, phi: Callable[[float], Trial], start: Trial, step: float) -> LineSearchResult:
        """Searches from `start` (step 0), trying `step` first."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        # Differences below the rounding of φ count as none.
        slack = 4 * 2.0**-52 * abs(start.value)
        trials = 0

        def decreases(trial: Trial) -> bool:
            return trial.value <= start.value + self.c1 * trial.step * start.slope + slack

        def flat(trial: Trial) -> bool:
            return abs(trial.slope) <= -self.c2 * start.slope

        low = start
        while trials < self.max_trials:
            trial = phi(step)
            trials += 1
            if not trial.finite or not decreases(trial) or (trial.value >= low.value and trials > 1):
                high = trial
                break
            if flat(trial):
                return LineSearchResult(trial, Reason.STRONG_WOLFE, trials)
            if trial.slope >= 0:
                low, high = trial, low
                break
            low = trial
            step = min(self.expansion * step, self.max_step)
        else:
            return _give_up(low, start, trials)

        # Zoom: the interval between low (the best step so far) and high holds a Wolfe point.
        while trials < self.max_trials and abs(high.step - low.step) > 1e-16 * max(low.step, high.step):
            trial = phi(_interpolate(low, high))
            trials += 1
            if not trial.finite or not decreases(trial) or trial.value >= low.value + slack:
                high = trial
                continue
            if flat(trial):
                return LineSearchResult(trial, Reason.STRONG_WOLFE, trials)
            if trial.slope * (high.step - low.step) >= 0:
                high = low
            low = trial
        return _give_up(low, start, trials)


def _give_up(low: Trial, start: Trial, trials: int) -> LineSearchResult:
    reason = Reason.NO_DECREASE if low is start else Reason.DECREASE_ONLY
    return LineSearchResult(low, reason, trials)


def _interpolate(low: Trial, high: Trial) -> float:
    """Minimiser of the cubic through both ends, kept off them by a tenth of the interval; else the middle."""
    a, b = low.step, high.step
    width = b - a
    guess = math.nan
    if high.finite:
        # Nocedal & Wright (3.59)
        d1 = low.slope + high.slope - 3 * (low.value - high.value) / (a - b)
        square = d1 * d1 - low.slope * high.slope
        if square >= 0:
            d2 = math.copysign(math.sqrt(square), width)
            denominator = high.slope - low.slope + 2 * d2
            if denominator != 0:
                guess = b - width * (high.slope + d2 - d1) / denominator
    if not math.isfinite(guess) or not 0.1 <= (guess - a) / width <= 0.9:
        fraction = (guess - a) / width if math.isfinite(guess) else 0.5
        fraction = min(max(fraction, 0.1), 0.9) if math.isfinite(fraction) else 0.5
        return a + fraction * width
    return guess
