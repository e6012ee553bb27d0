"""Gradient descent (steepest descent): line search + the direction −g."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from crfkit.arrays import combine, dot
from crfkit.protocols import Capability, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import check_iterations, move
from crfkit.solvers.parts.line_searches import StrongWolfe
from crfkit.solvers.parts.line_searches.trial import LineSearch
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.saved import POSITIVE, saved_number
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule

EXPANSION = 4.0  # of the first trial after a step along which the slope did not rise


@dataclass(frozen=True)
class GradientDescentState:
    point: Point
    progress: Progress
    trial: float  # the step to try first

    def saved(self) -> Saved:
        return {**self.progress.saved(), "trial": self.trial}


@dataclass(frozen=True)
class GradientDescent(IterativeSolver):
    """Minimise smooth objectives, slowly: it converges at the rate ((κ−1)/(κ+1))², κ the Hessian's condition.

    The first trial of a line search is Barzilai & Borwein's step sᵀs/sᵀy of the step before.

    Parameters
    ----------
    stopping : when to stop, a rule of :mod:`crfkit.solvers.parts.stopping`.
    max_iterations : maximum number of iterations.
    line_search : one of :mod:`crfkit.solvers.parts.line_searches`.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000
    line_search: LineSearch = field(default_factory=StrongWolfe)

    name: ClassVar[str] = "gradient-descent"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    first_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> GradientDescentState:
        start = objective.at(w0)
        trial = saved_number(saved, "trial", low=POSITIVE) if "trial" in saved else 1.0 / (start.grad_norm or 1.0)
        return GradientDescentState(start, Progress.at(start, saved), trial)

    def step(self, objective: Objective, state: GradientDescentState) -> GradientDescentState | Status:
        point = state.point
        if point.grad_norm == 0.0:
            return Status.CONVERGED
        moved = move(objective, point, -1.0 * point.grad, self.line_search, state.trial)
        if isinstance(moved, Status):
            return moved
        progress = state.progress.after(moved.point)
        if isinstance(progress, Status):
            return progress
        s, y = combine(moved.point.w, -1.0, point.w), combine(moved.point.grad, -1.0, point.grad)
        sy = dot(s, y)
        trial = dot(s, s) / sy if sy > 0 else EXPANSION * moved.step
        return GradientDescentState(moved.point, progress, trial)
