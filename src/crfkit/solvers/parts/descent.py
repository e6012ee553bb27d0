"""Parts that the line-search solvers share: a step along a direction, a check."""

from __future__ import annotations

from dataclasses import dataclass

from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.result import Status
from crfkit.solvers.parts.directions import Direction, Plain
from crfkit.solvers.parts.line_searches.trial import LineSearch, Reason, Trial
from crfkit.solvers.parts.objective import Objective, Point


@dataclass(frozen=True)
class Moved:
    """A step that was taken: new = old + step·d."""

    point: Point  # the new one
    step: float
    slope: float  # d·gradient at the old point


def move(objective: Objective, point: Point, d: Vector, line_search: LineSearch, step: float) -> Moved | Status:
    """Search from the point along the vector d, trying `step` first; return a status if no step is found."""
    along = Plain(d)
    return move_along(objective, point, along, line_search, step, along.slope(point.grad))


def move_along(
    objective: Objective, point: Point, d: Direction, line_search: LineSearch, step: float, slope: float
) -> Moved | Status:
    """Search along a direction that has this slope at the point; see `move`.

    Along a large d no more than one trial is kept: should the search return an earlier one, it is evaluated again.
    """
    newest: Point | None = None
    newest_step = 0.0

    def at(t: float) -> Point:
        return objective.at(d.ahead(point.w, t), point.evaluation)

    def phi(t: float) -> Trial:
        nonlocal newest, newest_step
        newest = None  # its vectors are free for the next one
        newest, newest_step = at(t), t
        return Trial(t, newest.value, d.slope(newest.grad), None if d.large else newest)

    found = line_search.search(phi, Trial(0.0, point.value, slope, point), step)
    if found.reason is Reason.UNBOUNDED:
        return Status.DIVERGED
    if not found.accepted:
        return Status.LINE_SEARCH_FAILED
    t = found.trial.step
    taken = newest if t == newest_step else found.trial.point
    return Moved(at(t) if taken is None else taken, t, slope)


def check_iterations(max_iterations: int) -> None:
    if max_iterations < 0:
        raise ParameterError(f"max_iterations must be >= 0, not {max_iterations!r}")
