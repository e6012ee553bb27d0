"""TRON: trust-region Newton (Lin & Moré 1999; Lin, Weng & Keerthi 2008, with LIBLINEAR's constants).

Each iteration minimises q(v) = gᵀv + ½vᵀHv inside ‖v‖ ≤ Δ and compares: ρ = (f(w + v) − f(w)) / q(v).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crfkit.arrays import combine, dot, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Vector
from crfkit.result import Status
from crfkit.solvers.parts.cg_steihaug import Exit, steihaug
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.preconditioner import NeedsCurvature, mixed_scale
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.rounding import ROUNDING
from crfkit.solvers.parts.saved import saved_number
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule

ETA0, ETA1, ETA2 = 1e-4, 0.25, 0.75  # thresholds of ρ: to take the step; to shrink, to keep or to extend the region
SIGMA1, SIGMA2, SIGMA3 = 0.25, 0.5, 4.0  # factors of the radius
XI = 0.1  # residual of the inner iteration, relative to ‖g‖


@dataclass(frozen=True)
class TronState:
    point: Point
    progress: Progress
    radius: float  # Δ; 0: not known before the first step

    def saved(self) -> Mapping[str, Any]:
        return {**self.progress.saved(), "radius": self.radius}


@dataclass(frozen=True)
class Attempt:
    """A step v from the centre of the region, with what the model and the objective say about it."""

    length: float  # ‖v‖
    slope: float  # gᵀv
    predicted: float  # −q(v)
    actual: float  # f(w) − f(w + v)
    rounding: float  # of f(w): of two differences below it, the ratio is 1

    @property
    def ratio(self) -> float:
        """ρ; −∞ where f(w + v) is not finite."""
        ratio = (self.actual + self.rounding) / (self.predicted + self.rounding)
        return ratio if math.isfinite(ratio) else -math.inf

    def next_radius(self, radius: float) -> float:
        """Return Δ after the step: α‖v‖, α minimises a parabola along v, in the intervals (3.10) of the thesis."""
        bend = -self.actual - self.slope
        alpha = SIGMA3 if bend <= 0 else max(SIGMA1, -0.5 * self.slope / bend)
        wish, ratio = alpha * self.length, self.ratio
        if ratio == -math.inf:
            return SIGMA1 * min(self.length, radius)
        if ratio <= ETA0:
            return min(wish, SIGMA2 * radius)
        if ratio <= ETA1:
            return max(SIGMA1 * radius, min(wish, SIGMA2 * radius))
        if ratio < ETA2:
            return max(SIGMA1 * radius, min(wish, SIGMA3 * radius))
        return max(radius, min(wish, SIGMA3 * radius))


@dataclass(frozen=True)
class Tron(IterativeSolver):
    """Minimise smooth objectives whose Hessian-vector products are known. An iteration ends when a step is taken.

    Parameters
    ----------
    stopping : when to stop, a rule of :mod:`crfkit.solvers.parts.stopping`.
    max_iterations : maximum number of iterations.
    preconditioned : use the variables w·√m with m = α·h + (1 − α), where h is the Hessian's diagonal at w and α = 0.01
        (Hsia, Chiang & Lin 2018). With h alone the trust region would be long where curvature is small, and training
        would take many more products.
    max_products : maximum number of Hessian-vector products in one inner iteration.
    max_trials : maximum number of steps tried in one iteration; each rejected step shrinks the region.
    max_radius : an objective that still falls as predicted at this radius is taken to be unbounded.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    preconditioned: bool = False
    max_products: int = 1000
    max_trials: int = 60
    max_radius: float = 1e20

    name: ClassVar[str] = "tron"
    needs = NeedsCurvature(Capability.SMOOTH, Capability.HESSP)

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        for name, value in (("max_products", self.max_products), ("max_trials", self.max_trials)):
            if value < 1:
                raise ParameterError(f"{name} must be >= 1, not {value!r}")
        if not self.max_radius > 0:
            raise ParameterError(f"max_radius must be > 0, not {self.max_radius!r}")

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> TronState:
        start = objective.at(w0)
        return TronState(start, Progress.at(start, saved), saved_number(saved, "radius", 0.0, low=0.0))

    def step(self, objective: Objective, state: TronState) -> TronState | Status:
        point = state.point
        if point.grad_norm == 0.0:
            return Status.CONVERGED
        # In the variables w/scale the gradient is scale·g and the Hessian scale·H·scale.
        scale = mixed_scale(objective, point) if self.preconditioned else 1.0
        g = scale * point.grad

        def hessp(v: Vector) -> Vector:
            return scale * objective.hessp(point, scale * v)

        first, radius = state.radius == 0.0, state.radius or norm(g)
        for _ in range(self.max_trials):
            found = steihaug(hessp, g, radius, XI, self.max_products)
            new = objective.at(combine(point.w, 1.0, scale * found.v), point.evaluation)
            attempt = _attempt(point, new, g, found.v, found.r)
            if first:
                first, radius = False, min(radius, attempt.length)
            radius = attempt.next_radius(radius)
            if attempt.ratio > ETA0:
                break
        else:
            return Status.LINE_SEARCH_FAILED  # the region has vanished
        v = scale * found.v
        if not _flattens(point, new, v):
            return Status.LINE_SEARCH_FAILED
        straight = found.exit is Exit.NEGATIVE_CURVATURE and attempt.ratio >= ETA2
        if radius >= self.max_radius or (straight and self._unbounded(objective, point, v, attempt)):
            return Status.DIVERGED
        progress = state.progress.after(new)
        return progress if isinstance(progress, Status) else TronState(new, progress, radius)

    def _unbounded(self, objective: Objective, point: Point, v: Vector, attempt: Attempt) -> bool:
        """Return whether the objective still falls along v at the largest radius."""
        far = self.max_radius / attempt.length
        value = objective.at(combine(point.w, far, v), point.evaluation).value
        return math.isfinite(value) and value <= point.value + ETA0 * far * attempt.slope


def _attempt(old: Point, new: Point, g: Vector, v: Vector, r: Vector) -> Attempt:
    slope = dot(g, v)
    predicted = 0.5 * (dot(v, r) - slope)  # r = −g − Hv
    actual = old.value - new.value if new.finite else -math.inf
    return Attempt(norm(v), slope, predicted, actual, ROUNDING * abs(old.value))


def _flattens(old: Point, new: Point, v: Vector) -> bool:
    """Return whether the step lowers the objective or, where rounding hides that, flattens its slope."""
    return new.value < old.value or abs(dot(new.grad, v)) <= 0.9 * abs(dot(old.grad, v))
