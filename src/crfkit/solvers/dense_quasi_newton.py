"""BFGS and DFP: line search + a dense approximation H of the inverse Hessian, for problems of a few thousand weights.

With s = x⁺ − x and y = g⁺ − g, both updates are H⁺ = H + abᵀ + baᵀ and give H⁺y = s. With h = Hy:
    BFGS   H⁺ = (I − ρsyᵀ)H(I − ρysᵀ) + ρssᵀ, ρ = 1/yᵀs:   a = ρs,   b = ½(1 + ρ·yᵀh)·s − h
    DFP    H⁺ = H + ssᵀ/yᵀs − hhᵀ/yᵀh:                     a = p + q, b = ½(p − q), p = s/√yᵀs, q = h/√yᵀh
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from array_api_compat import array_namespace, device

from crfkit.arrays import add_rank_two, combine, dot, matvec
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.dense import Matrix, check_memory
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.line_searches import StrongWolfe
from crfkit.solvers.parts.line_searches.trial import LineSearch
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.quasi_newton import Curvature, QuasiNewtonState, quasi_newton_step
from crfkit.solvers.parts.saved import saved_count, saved_matrix
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


class InverseHessian(Curvature):
    """H, which starts as the identity."""

    matrix: Matrix

    def __init__(self, size: int, initial_scaling: bool, saved: Saved) -> None:
        self._initial_scaling = initial_scaling
        self.clear()
        if "inverse" in saved:
            self.matrix = saved_matrix(saved, "inverse", size, size)
            self._steps = saved_count(saved, "steps")

    @staticmethod
    @abstractmethod
    def update(s: Vector, h: Vector, ys: float, yh: float) -> tuple[Vector, Vector]:
        """Return a and b, from s, h, yᵀs and yᵀh."""

    def clear(self) -> None:
        self.matrix = None
        self._steps = 0

    def saved(self) -> Saved:
        return {"inverse": self.matrix, "steps": self._steps} if self._steps else {}

    def __len__(self) -> int:
        return self._steps

    def direction(self, g: Vector) -> Vector:
        """Return −H·g."""
        return -1.0 * (matvec(self.matrix, g) if self._steps else g)

    def add(self, x: Vector, g: Vector, x_new: Vector, g_new: Vector) -> bool:
        """Update H with a step unless its curvature is not safely positive, so that H stays positive definite."""
        s, y = combine(x_new, -1.0, x), combine(g_new, -1.0, g)
        ys, yy = dot(y, s), dot(y, y)
        if not ys > 2.0**-52 * yy:
            return False
        if not self._steps:
            xp = array_namespace(x)
            eye = xp.eye(x.shape[0], dtype=x.dtype, device=device(x))
            eye *= ys / yy if self._initial_scaling else 1.0  # Nocedal & Wright (6.20)
            self.matrix = eye
        h = matvec(self.matrix, y)
        yh = dot(y, h)
        if not yh > 0:  # H has lost positive definiteness to rounding
            self.clear()
            return False
        a, b = self.update(s, h, ys, yh)
        steps, self._steps = self._steps, 0  # interrupted inside the update, H would be neither old nor new
        add_rank_two(self.matrix, a, b)
        self._steps = steps + 1
        return True


class BFGSInverse(InverseHessian):
    @staticmethod
    def update(s: Vector, h: Vector, ys: float, yh: float) -> tuple[Vector, Vector]:
        return s / ys, (0.5 + 0.5 * yh / ys) * s - h


class DFPInverse(InverseHessian):
    @staticmethod
    def update(s: Vector, h: Vector, ys: float, yh: float) -> tuple[Vector, Vector]:
        p, q = s / math.sqrt(ys), h / math.sqrt(yh)
        return p + q, 0.5 * (p - q)


@dataclass(frozen=True)
class BFGS(IterativeSolver):
    """Minimise smooth objectives; it keeps a dense matrix.

    Parameters
    ----------
    stopping : when to stop, a rule of :mod:`crfkit.solvers.parts.stopping`.
    max_iterations : maximum number of iterations.
    line_search : one of :mod:`crfkit.solvers.parts.line_searches`; curvature is learned from Wolfe steps.
    initial_scaling : scale H by sᵀy/yᵀy before the first update.
    max_memory : bytes that the matrix may take; a larger one raises an error before the first evaluation.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    line_search: LineSearch = field(default_factory=StrongWolfe)
    initial_scaling: bool = True
    max_memory: float = 2.0 * 2**30

    name: ClassVar[str] = "bfgs"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    inverse_hessian: ClassVar[type[InverseHessian]] = BFGSInverse

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        if not self.max_memory > 0:
            raise ParameterError(f"max_memory must be > 0, not {self.max_memory!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> QuasiNewtonState:
        check_memory(w0, 1, self.max_memory, self.name, "lbfgs")
        start = objective.at(w0)
        inverse = self.inverse_hessian(w0.shape[0], self.initial_scaling, saved)
        return QuasiNewtonState(start, inverse, Progress.at(start, saved))

    def step(self, objective: Objective, state: QuasiNewtonState) -> QuasiNewtonState | Status:
        return quasi_newton_step(objective, state, self.line_search)


@dataclass(frozen=True)
class DFP(BFGS):
    """Davidon, Fletcher & Powell's update; as :class:`BFGS`, with a line search that is closer to exact."""

    line_search: LineSearch = field(default_factory=partial(StrongWolfe, c2=0.1))

    name: ClassVar[str] = "dfp"
    inverse_hessian: ClassVar[type[InverseHessian]] = DFPInverse
