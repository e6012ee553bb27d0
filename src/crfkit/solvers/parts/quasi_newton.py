"""The step that L-BFGS, BFGS and DFP share: a line search along −H·g, where H is learned from the steps before."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crfkit.protocols import Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import Moved, move_along
from crfkit.solvers.parts.directions import Direction, Plain
from crfkit.solvers.parts.head import Head
from crfkit.solvers.parts.line_searches.trial import LineSearch
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import Progress


class Curvature(ABC):
    """An approximation H of the inverse Hessian."""

    slope: float | None = None  # of the last direction, where it is known

    @abstractmethod
    def __len__(self) -> int:
        """Return how many steps it knows; with none, H is diagonal."""

    @abstractmethod
    def direction(self, g: Vector) -> Vector:
        """Return −H·g."""

    @abstractmethod
    def add(self, x: Vector, g: Vector, x_new: Vector, g_new: Vector) -> bool:
        """Learn from a step if its curvature is positive; return whether it was."""

    def descent(self, g: Vector) -> tuple[Direction, float]:
        """Return the direction −H·g in a form that suits the length of g, and its product with g."""
        d = Plain(self.direction(g))
        return d, d.slope(g) if self.slope is None else self.slope

    def add_step(self, before: Point, moved: Moved) -> bool:
        """Learn from a step along the last direction."""
        return self.add(before.w, before.grad, moved.point.w, moved.point.grad)

    @abstractmethod
    def clear(self) -> None: ...
    @abstractmethod
    def saved(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class QuasiNewtonState:
    point: Point
    curvature: Curvature
    progress: Progress
    scale: Vector = None  # where the variables are w/scale: H starts as diag(scale²)
    head: Head | None = None  # and as I + head.excess there

    def saved(self) -> Mapping[str, Any]:
        scale = {} if self.scale is None else {"scale": self.scale}
        head = {} if self.head is None else self.head.saved()
        return {**self.curvature.saved(), **self.progress.saved(), **scale, **head}


def quasi_newton_step(
    objective: Objective, state: QuasiNewtonState, line_search: LineSearch
) -> QuasiNewtonState | Status:
    point, curvature = state.point, state.curvature
    if point.grad_norm == 0.0:
        return Status.CONVERGED
    first = len(curvature) == 0
    d, slope = curvature.descent(point.grad)
    length = math.sqrt(max(-slope, 0.0)) if first else 1.0  # √(gᵀH₀g): that of d in the variables where H₀ = I
    moved = move_along(objective, point, d, line_search, 1.0 / (length or 1.0), slope)
    if moved is Status.LINE_SEARCH_FAILED and not first:
        curvature.clear()  # try again along the gradient
        return quasi_newton_step(objective, state, line_search)
    if isinstance(moved, Status):
        return moved
    curvature.add_step(point, moved)
    progress = state.progress.after(moved.point)
    if isinstance(progress, Status):
        return progress
    return replace(state, point=moved.point, progress=progress)
