"""Sentences about how a run ended, from its trace."""

from __future__ import annotations

from collections.abc import Sequence

from crfkit.arrays import norm
from crfkit.protocols import Iterate
from crfkit.result import TraceRow
from crfkit.solvers.parts.rounding import EPSILON


def has_risen(trace: Sequence[TraceRow]) -> bool:
    """Return whether the value is far above the start: only steps that are too long lead there."""
    return len(trace) > 1 and trace[-1].value > 2.0 * abs(trace[0].value) + 1.0


ROUNDINGS = 100  # rounding errors of the value: gains that are smaller cannot be seen
STEPS, SHORT = 3, 1e-5  # the last steps, which gained nothing; a gradient that is short, relative to the first
SMALL = 1e-7  # a gradient that is small by any rule, relative to max(1, ‖w‖)


def at_rounding(trace: Sequence[TraceRow], point: Iterate, epsilon: float = EPSILON) -> bool:
    """Return whether what is left to gain is lost in the rounding of the objective.

    With curvature h, a gradient g leaves g²/(2h) to gain. From the first row, with a gain of v₀ − v by a gradient g₀,
    h ≥ g₀²/(2·(v₀ − v)) at least in some direction. `epsilon` is the relative rounding error of the value.
    """
    if not trace:
        return False
    if point.optimality <= SMALL * max(1.0, norm(point.w)):
        return True
    gained, rounding = trace[0].value - point.value, ROUNDINGS * epsilon * abs(point.value)
    square = point.optimality * point.optimality  # inf where it overflows; ** would raise
    if gained > 0 and square * gained <= trace[0].optimality * trace[0].optimality * rounding:
        return True
    # A loss is a difference of sums, log Z and scores, which are at least as large as its value at the start. When the
    # last steps gained no more than the rounding errors of those, and the gradient is short next to the first one,
    # values have nothing more to tell. (A wrong gradient gains nothing either, but stays long.)
    summands = ROUNDINGS * epsilon * max(abs(trace[0].value), abs(point.value))
    short = point.optimality <= SHORT * trace[0].optimality
    return short and len(trace) > STEPS and 0 <= trace[-1 - STEPS].value - point.value <= summands
