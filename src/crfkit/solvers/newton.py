"""Newton's method: line search + the direction −H⁻¹g, H the Hessian; by conjugate gradients or with a dense matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.cg_steihaug import Exit, steihaug
from crfkit.solvers.parts.dense import check_memory, hessian, newton_direction
from crfkit.solvers.parts.descent import check_iterations, move
from crfkit.solvers.parts.line_searches import StrongWolfe
from crfkit.solvers.parts.line_searches.trial import LineSearch
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.saved import POSITIVE, saved_number
from crfkit.solvers.parts.sparse_hessian import factored_direction, sparse_direction
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule

DIRECTIONS = ("cg", "dense", "sparse", "factored")


@dataclass(frozen=True)
class NewtonState:
    point: Point
    progress: Progress
    first_norm: float  # ‖g₀‖

    def saved(self) -> Saved:
        return {**self.progress.saved(), "first_norm": self.first_norm}


@dataclass(frozen=True)
class Newton(IterativeSolver):
    """Minimise smooth objectives whose Hessian-vector products are known.

    Parameters
    ----------
    stopping : when to stop, a rule of :mod:`crfkit.solvers.parts.stopping`.
    max_iterations : maximum number of iterations.
    direction : how Hd = −g is solved. "cg": up to a residual of ξ‖g‖, ξ = min(½, (‖g‖/‖g₀‖)^(order − 1)), less
        precisely where H is not positive definite. "dense": exactly, from as many products as there are weights, with
        H + τI where H is not positive definite. "sparse": exactly, by conjugate gradients on the
        `sparse_hessian` of evaluations. "factored": the same by a sparse factorisation, which suits Hessians that are
        badly conditioned and have few neighbours in each row.
    order : order of convergence of "cg", between 1 and 2.
    line_search : one of :mod:`crfkit.solvers.parts.line_searches`; `UnitStep()` for pure Newton steps.
    max_products : maximum number of Hessian-vector products in one iteration of "cg".
    max_memory : bytes that the dense matrices may take; larger ones raise an error before the first evaluation.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    direction: str = "cg"
    order: float = 1.5
    line_search: LineSearch = field(default_factory=StrongWolfe)
    max_products: int = 1000
    max_memory: float = 2.0 * 2**30

    name: ClassVar[str] = "newton"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.HESSP})

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        if self.direction not in DIRECTIONS:
            raise ParameterError(f"unknown direction {self.direction!r}; there are {', '.join(DIRECTIONS)}")
        if not 1 <= self.order <= 2:
            raise ParameterError(f"order must be between 1 and 2, not {self.order!r}")
        if self.max_products < 1:
            raise ParameterError(f"max_products must be >= 1, not {self.max_products!r}")
        if not self.max_memory > 0:
            raise ParameterError(f"max_memory must be > 0, not {self.max_memory!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> NewtonState:
        if self.direction == "dense":
            # the Hessian, the shifted one, its factor and a copy that is overwritten
            check_memory(w0, 4, self.max_memory, self.name, "direction='cg'")
        start = objective.at(w0)
        return NewtonState(
            start, Progress.at(start, saved), saved_number(saved, "first_norm", start.grad_norm, low=POSITIVE)
        )

    def step(self, objective: Objective, state: NewtonState) -> NewtonState | Status:
        point = state.point
        if point.grad_norm == 0.0:
            return Status.CONVERGED
        d, trial = self._direction(objective, state)
        moved = move(objective, point, d, self.line_search, trial)
        if moved is Status.LINE_SEARCH_FAILED:
            moved = move(objective, point, -1.0 * point.grad, self.line_search, 1.0 / point.grad_norm)
        if isinstance(moved, Status):
            return moved
        progress = state.progress.after(moved.point)
        if isinstance(progress, Status):
            return progress
        return NewtonState(moved.point, progress, state.first_norm)

    def _direction(self, objective: Objective, state: NewtonState) -> tuple[Vector, float]:
        """Return the direction and the step to try first along it."""
        point = state.point
        if self.direction == "dense":
            return newton_direction(hessian(objective, point), point.grad), 1.0
        if self.direction == "sparse":
            return sparse_direction(objective, point), 1.0
        if self.direction == "factored":
            return factored_direction(objective, point), 1.0
        xi = min(0.5, (point.grad_norm / state.first_norm) ** (self.order - 1))
        found = steihaug(lambda v: objective.hessp(point, v), point.grad, math.inf, xi, self.max_products)
        along_gradient = found.exit is Exit.NEGATIVE_CURVATURE and found.products == 1
        return found.v, 1.0 / point.grad_norm if along_gradient else 1.0
