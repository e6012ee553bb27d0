"""Non-linear conjugate gradients: line search + Polak & Ribière's direction (Nocedal & Wright (5.44), (5.45)).

d⁺ = −z⁺ + β·d,   β = max(0, (z⁺)ᵀ(g⁺ − g) / zᵀg),   z = M⁻¹g
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from crfkit.arrays import combine, dot, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import Moved, check_iterations, move
from crfkit.solvers.parts.line_searches import StrongWolfe
from crfkit.solvers.parts.line_searches.trial import LineSearch
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.preconditioner import NeedsCurvature, jacobi_scale
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.saved import POSITIVE, saved_count, saved_number, saved_vector
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class Direction:
    d: Vector
    trial: float  # the step to try first
    age: int = 0  # steps since the last one along −z


@dataclass(frozen=True)
class ConjugateGradientState:
    point: Point
    progress: Progress
    scale: Vector  # M = diag(scale⁻²); None: the identity
    direction: Direction | None = None  # the next one; None: −z, at a start

    def saved(self) -> Saved:
        scale = {} if self.scale is None else {"scale": self.scale}
        return {**self.progress.saved(), **scale, **(vars(self.direction) if self.direction else {})}


@dataclass(frozen=True)
class ConjugateGradient(IterativeSolver):
    """Minimise smooth objectives; it keeps two vectors.

    Parameters
    ----------
    stopping : when to stop, a rule of :mod:`crfkit.solvers.parts.stopping`.
    max_iterations : maximum number of iterations.
    line_search : one of :mod:`crfkit.solvers.parts.line_searches`.
    restart_every : number of steps after which the direction is −z again; by default the number of weights.
    preconditioned : let M be the Hessian's diagonal at the start instead of the identity.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    line_search: LineSearch = field(default_factory=partial(StrongWolfe, c2=0.1))
    restart_every: int | None = None
    preconditioned: bool = False

    name: ClassVar[str] = "cg"
    needs = NeedsCurvature(Capability.SMOOTH)

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        if self.restart_every is not None and self.restart_every < 1:
            raise ParameterError(f"restart_every must be >= 1, not {self.restart_every!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> ConjugateGradientState:
        start = objective.at(w0)
        scale = direction = None
        if self.preconditioned and start.finite:
            scale = saved_vector(saved, "scale", w0) if "scale" in saved else jacobi_scale(objective, start)
        if "d" in saved:
            trial, age = saved_number(saved, "trial", low=POSITIVE), saved_count(saved, "age")
            direction = Direction(saved_vector(saved, "d", w0), trial, age)
        return ConjugateGradientState(start, Progress.at(start, saved), scale, direction)

    def step(self, objective: Objective, state: ConjugateGradientState) -> ConjugateGradientState | Status:
        point, direction = state.point, state.direction
        if point.grad_norm == 0.0:
            return Status.CONVERGED
        if direction is None:
            root = _scaled(state.scale, point.grad)
            direction = Direction(-1.0 * _scaled(state.scale, root), 1.0 / (norm(root) or 1.0))
        moved = move(objective, point, direction.d, self.line_search, direction.trial)
        if moved is Status.LINE_SEARCH_FAILED and state.direction is not None:
            return self.step(objective, ConjugateGradientState(point, state.progress, state.scale))
        if isinstance(moved, Status):
            return moved
        progress = state.progress.after(moved.point)
        if isinstance(progress, Status):
            return progress
        following = self._following(point, moved, state.scale, direction)
        return ConjugateGradientState(moved.point, progress, state.scale, following)

    def _following(self, old: Point, moved: Moved, scale: Vector, last: Direction) -> Direction | None:
        """Return the direction after a step; None where the gradient has vanished."""
        g = moved.point.grad
        root, old_root = _scaled(scale, g), _scaled(scale, old.grad)  # rootᵀroot = zᵀg
        d, age = -1.0 * _scaled(scale, root), 0
        beta = dot(root, combine(root, -1.0, old_root)) / dot(old_root, old_root)
        if beta > 0 and last.age + 1 < (self.restart_every or g.shape[0]):
            conjugate = combine(d, beta, last.d)
            if dot(conjugate, g) < 0:
                d, age = conjugate, last.age + 1
        slope = dot(d, g)
        # the first trial falls as much, to first order, as the last step did: Nocedal & Wright, section 3.5
        return Direction(d, moved.step * moved.slope / slope, age) if slope < 0 else None


def _scaled(scale: Vector, x: Vector) -> Vector:
    return x if scale is None else scale * x
