"""Parts that the line-search solvers share: a step along a direction, a check."""

from __future__ import annotations

from dataclasses import dataclass

from crfkit.arrays import combine, dot
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.result import Status
from crfkit.solvers.parts.line_searches.trial import LineSearch, Reason, Trial
from crfkit.solvers.parts.objective import Objective, Point


@dataclass(frozen=True)
class Moved:
    """A step that was taken: new = old + step·d."""

    point: Point  # the new one
    step: float
    slope: float  # d·gradient at the old point


def move(
    objective: Objective, point: Point, d: Vector, line_search: LineSearch, step: float, slope: float | None = None
) -> Moved | Status:
    """Search from the point along d, trying `step` first; return a status if no step is found. `slope`: of d there."""
    at_start = dot(d, point.grad) if slope is None else slope

    def phi(t: float) -> Trial:
        new = objective.at(combine(point.w, t, d), point.evaluation)
        return Trial(t, new.value, dot(new.grad, d), new)

    found = line_search.search(phi, Trial(0.0, point.value, at_start, point), step)
    if found.reason is Reason.UNBOUNDED:
        return Status.DIVERGED
    if not found.accepted or found.trial.point is None:
        return Status.LINE_SEARCH_FAILED
    return Moved(found.trial.point, found.trial.step, at_start)


def check_iterations(max_iterations: int) -> None:
    if max_iterations < 0:
        raise ParameterError(f"max_iterations must be >= 0, not {max_iterations!r}")
