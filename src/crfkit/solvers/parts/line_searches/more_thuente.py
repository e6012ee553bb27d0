"""Moré & Thuente's line search (ACM TOMS 20, 1994), the one of CRF++: a step that meets the strong Wolfe conditions.

The interval between lo (the best step so far) and up holds such a step. Until a step with φ(t) ≤ φ(0) + c1·t·φ′(0)
and φ′(t) ≥ 0 has been seen (stage one), a step that decreases too little is judged by ψ(t) = φ(t) − c1·φ′(0)·t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crfkit.solvers.parts.line_searches.interpolation import cubic_minimiser, parabola_minimiser
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

SHRINKAGE = 0.66  # an interval that is not as short as this after two trials is halved; also limits case 3
NEAREST, FURTHEST = 1.1, 4.0  # how far the next trial is beyond t, in units of t − lo, while there is no up


@dataclass(frozen=True)
class MoreThuente:
    """
    Parameters
    ----------
    c1, c2 : the constants of the two conditions, 0 < c1 < c2 < 1.
    max_trials : at most so many; the last one is at `max_step` if the function has not stopped falling before.
    max_step : a function that still falls there is taken to be unbounded.
    slack : accepts values that are higher by slack·|φ(0)|, for objectives that are known to few digits only.
    """

    c1: float = 1e-4
    c2: float = 0.9
    max_trials: int = 20
    max_step: float = 1e20
    slack: float = 0.0

    def __post_init__(self) -> None:
        check_range("c2", 0.0, self.c2, 1.0)
        check_range("c1", 0.0, self.c1, self.c2)
        check_limits(self.max_trials, self.max_step)
        check_slack(self.slack)

    def search(self, phi: Phi, start: Trial, step: float) -> LineSearchResult:
        """Search from `start` (step 0), trying `step` first."""
        if not start.slope < 0:
            return LineSearchResult(start, Reason.NOT_DESCENT, 0)
        decrease = Decrease(start, self.c1, self.slack)
        interval = _Interval(start, self.c1 * start.slope, self.max_step)
        best = start
        step = min(step, self.max_step)
        trials = 0
        while trials < self.max_trials and not interval.closed:
            trial = phi(step)
            trials += 1
            if not trial.finite:
                step = interval.back_from(step)
                continue
            decreases = decrease.holds(trial)
            if decreases and abs(trial.slope) <= -self.c2 * start.slope:
                return LineSearchResult(trial, Reason.STRONG_WOLFE, trials)
            if decreases and trial.slope < 0 and step >= self.max_step:
                return decrease.at_largest_step(trial, trials)
            if decreases and trial.value < best.value:
                best = trial
            step = interval.next(trial, decreases)
            if interval.open and trials == self.max_trials - 1:
                step = self.max_step
        return decrease.out_of_trials(best, trials)


class _Interval:
    """The interval of uncertainty, its update (section 2 of the paper) and the next trial in it (section 4)."""

    def __init__(self, start: Trial, line: float, max_step: float) -> None:
        self.lo = start
        self.up: Trial | None = None  # unknown until a step is seen to be too long
        self._line = line  # c1·φ′(0)
        self._stage_one = True
        self._max_step = max_step
        self._wall = math.inf  # the shortest step beyond lo at which φ is not finite
        self._widths = (math.inf, math.inf)  # of the last two intervals

    @property
    def open(self) -> bool:
        """Return whether no step has been too long so far."""
        return self.up is None and self._wall == math.inf

    @property
    def closed(self) -> bool:
        end = min(self._wall, self._max_step) if self.up is None else self.up.step
        return abs(end - self.lo.step) <= 2.0**-51 * max(end, self.lo.step)

    def back_from(self, t: float) -> float:
        """Return the trial after one at t, where φ is not finite."""
        if self.up is None:
            self._wall = t
        return 0.5 * (self.lo.step + t)

    def next(self, t: Trial, decreases: bool) -> float:
        """Update the interval with the trial t; return the next step to try."""
        if decreases and t.slope >= 0:
            self._stage_one = False
        lo, up = self.lo, self.up
        if self._stage_one and t.value <= lo.value and not decreases:
            flo, ft, fup = self._psi(lo), self._psi(t), None if up is None else self._psi(up)
        else:
            flo, ft, fup = lo, t, up
        nearest, furthest = t.step + NEAREST * (t.step - lo.step), t.step + FURTHEST * (t.step - lo.step)
        step = _choose(flo, ft, fup, furthest)

        if ft.value > flo.value:
            self.up = t
        else:
            if ft.slope * (flo.step - ft.step) < 0:  # it rises beyond t
                self.up = lo
            self.lo = t

        if self.up is None:
            step = min(max(step, nearest), furthest, self._max_step)
            return step if step < self._wall else 0.5 * (t.step + self._wall)
        return self._inside(step)

    def _psi(self, t: Trial) -> Trial:
        return Trial(t.step, t.value - self._line * t.step, t.slope - self._line, None)

    def _inside(self, step: float) -> float:
        """Return the step, if it lies inside the interval and that has shrunk enough; else the middle."""
        assert self.up is not None
        a, b = self.lo.step, self.up.step
        before, self._widths = self._widths[0], (self._widths[1], abs(b - a))
        if abs(b - a) >= SHRINKAGE * before or not min(a, b) < step < max(a, b):
            return 0.5 * (a + b)
        return step


def _choose(lo: Trial, t: Trial, up: Trial | None, furthest: float) -> float:
    """Return the next step by the four cases of section 4, from the best step lo, the trial t and the other end up."""
    cubic, secant = cubic_minimiser(lo, t), _secant(lo, t)
    if t.value > lo.value:  # 1: the minimum lies between lo and t
        parabola = parabola_minimiser(lo, t)
        if not math.isfinite(cubic):
            return parabola
        return cubic if abs(cubic - lo.step) < abs(parabola - lo.step) else 0.5 * (parabola + cubic)
    if t.slope * lo.slope < 0:  # 2: so too, by the slopes
        return cubic if math.isfinite(cubic) and abs(cubic - t.step) >= abs(secant - t.step) else secant
    if abs(t.slope) <= abs(lo.slope):  # 3: the slope becomes flatter
        if not (cubic - t.step) * (t.step - lo.step) > 0:
            cubic = furthest if up is None else up.step  # the cubic has no minimiser beyond t
        if not (secant - t.step) * (t.step - lo.step) > 0:
            secant = cubic
        if up is None:
            return cubic if abs(cubic - t.step) > abs(secant - t.step) else secant
        step = cubic if abs(cubic - t.step) < abs(secant - t.step) else secant
        limit = t.step + SHRINKAGE * (up.step - t.step)
        return min(step, limit) if t.step > lo.step else max(step, limit)
    return furthest if up is None else cubic_minimiser(t, up)  # 4: the slope becomes steeper


def _secant(a: Trial, b: Trial) -> float:
    """Return the zero of the line through both slopes; NaN if they are equal."""
    change = b.slope - a.slope
    return b.step - b.slope * (b.step - a.step) / change if change != 0 else math.nan
