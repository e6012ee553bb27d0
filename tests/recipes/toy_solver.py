"""Steepest descent: a line search along −g, begun with twice the step before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crfkit.protocols import Capability, Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import check_iterations, move
from crfkit.solvers.parts.line_searches import StrongWolfe
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class ToyState:
    point: Point
    progress: Progress
    trial: float

    def saved(self) -> Mapping[str, Any]:
        return {**self.progress.saved(), "trial": self.trial}


@dataclass(frozen=True)
class ToySolver(IterativeSolver):
    """Minimise smooth objectives, slowly."""

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000

    name: ClassVar[str] = "toy"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    first_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> ToyState:
        start = objective.at(w0)
        return ToyState(start, Progress.at(start, saved), float(saved.get("trial", 1.0 / (start.grad_norm or 1.0))))

    def step(self, objective: Objective, state: ToyState) -> ToyState | Status:
        if state.point.grad_norm == 0.0:
            return Status.CONVERGED
        moved = move(objective, state.point, -1.0 * state.point.grad, StrongWolfe(), state.trial)
        if isinstance(moved, Status):
            return moved
        progress = state.progress.after(moved.point)
        return progress if isinstance(progress, Status) else ToyState(moved.point, progress, 2.0 * moved.step)
