"""Parts of all line searches: φ(t) = f(x + t·d) at a trial step, the outcome with its reason, the decrease test."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from crfkit.errors import ParameterError
from crfkit.solvers.parts.objective import Point
from crfkit.solvers.parts.rounding import ROUNDING


@dataclass(frozen=True)
class Trial:
    step: float
    value: float  # φ(step)
    slope: float  # φ′(step)
    point: Point | None

    @property
    def finite(self) -> bool:
        return math.isfinite(self.value) and math.isfinite(self.slope)

    @property
    def pointless(self) -> Trial:
        """The same without its point, whose vectors may take much memory: for an end that will not be returned."""
        return replace(self, point=None)


Phi = Callable[[float], Trial]


class Reason(Enum):
    """Why a line search stopped."""

    STRONG_WOLFE = "both Wolfe conditions hold"
    GOLDSTEIN = "both Goldstein conditions hold"
    ARMIJO = "the step decreases enough"
    EXACT = "the slope is zero, or changes its sign, to the precision asked for"
    UNTESTED = "the step was taken as it was given"
    DECREASE_ONLY = "out of trials: the best step decreases enough, but the other condition does not hold"
    NO_DECREASE = "no step with sufficient decrease was found"
    NOT_DESCENT = "the direction does not descend"
    UNBOUNDED = "the function still falls at the largest step"


_FAILED = frozenset({Reason.NO_DECREASE, Reason.NOT_DESCENT, Reason.UNBOUNDED})


@dataclass(frozen=True)
class LineSearchResult:
    trial: Trial  # the start where no step was found; the largest step where the function is unbounded
    reason: Reason
    trials: int

    @property
    def accepted(self) -> bool:
        return self.reason not in _FAILED


class LineSearch(Protocol):
    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Search from `start` (step 0), trying `step` first."""
        ...


@dataclass(frozen=True)
class Decrease:
    """φ(t) ≤ φ(0) + c1·t·φ′(0), up to the rounding of φ and `slack`·|φ(0)|."""

    start: Trial
    c1: float
    slack: float = 0.0

    def tolerance(self, trial: Trial) -> float:
        """Return by how much the value may exceed the bound."""
        start = abs(self.start.value)
        return ROUNDING * max(start, abs(trial.value)) + self.slack * start

    def holds(self, trial: Trial) -> bool:
        bound = self.start.value + self.c1 * trial.step * self.start.slope
        return trial.finite and trial.value <= bound + self.tolerance(trial)

    def seen(self, trial: Trial) -> bool:
        """Return whether it holds and is more than rounding: φ(t) < φ(0)."""
        return self.holds(trial) and trial.value < self.start.value + self.slack * abs(self.start.value)

    def out_of_trials(self, best: Trial, trials: int) -> LineSearchResult:
        """Return the outcome where no trial met all conditions; `best` is the lowest, or the start."""
        if self.seen(best):
            return LineSearchResult(best, Reason.DECREASE_ONLY, trials)
        return LineSearchResult(self.start, Reason.NO_DECREASE, trials)

    def at_largest_step(self, trial: Trial, trials: int) -> LineSearchResult:
        """Return the outcome where the slope is still negative at the largest step."""
        if self.seen(trial):
            return LineSearchResult(trial, Reason.UNBOUNDED, trials)
        return LineSearchResult(self.start, Reason.NO_DECREASE, trials)


def check_range(name: str, low: float, value: float, high: float) -> None:
    if not low < value < high:
        raise ParameterError(f"{name} must be between {low:g} and {high:g}, not {value!r}")


def check_limits(max_trials: int, max_step: float) -> None:
    if max_trials < 1:
        raise ParameterError(f"max_trials must be >= 1, not {max_trials!r}")
    if not max_step > 0:
        raise ParameterError(f"max_step must be > 0, not {max_step!r}")


def check_slack(slack: float) -> None:
    if not (math.isfinite(slack) and slack >= 0):
        raise ParameterError(f"slack must be a finite number >= 0, not {slack!r}")
