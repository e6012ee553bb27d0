"""ADMM (Boyd et al. 2011): the smooth part and the rest of the penalty have weights of their own, made to agree.

    w ≈ argmin f(w) + ρ/2·‖w − z + u‖²        a few steps of L-BFGS from the last w
    ŵ = a·w + (1 − a)·z                       over-relaxation
    z = argmin rest(z) + ρ/2·‖z − ŵ − u‖²     the prox, so zeros are exact
    u = u + ŵ − z

Every tenth iteration ρ follows the ratio of the two residuals, each relative to what it is a residual of (Wohlberg
2017): ρ ← ρ·√(r/s) with r = ‖w − z‖/‖z‖, s = ‖z − z_old‖/‖u‖; u, the multipliers divided by ρ, is scaled with it.
Trace and result are at z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_count
from crfkit.arrays import combine, dot, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import FIRST_ORDER, Progress
from crfkit.solvers.parts.quasi_newton import QuasiNewtonState
from crfkit.solvers.parts.rounding import ROUNDING
from crfkit.solvers.parts.saved import saved_count, saved_number, saved_vector
from crfkit.solvers.parts.secant_pairs import SecantPairs
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule

UNBALANCED, MOST = 1.5, 10.0  # ρ changes by at least and at most these factors
PERIOD = 10
MAX_TRIALS = 30
PATIENCE = replace(FIRST_ORDER, stalls=100)
FIXED_AFTER = 1000  # ρ stays unchanged after so many iterations; otherwise convergence is not certain


@dataclass(frozen=True)
class ADMMState:
    point: Point  # at z
    w: Point
    u: Vector
    rho: float
    k: int
    residual: float  # ‖w − z‖ + ‖z − z_old‖: how precisely the next w has to be known
    pairs: SecantPairs
    progress: Progress

    def saved(self) -> Saved:
        numbers = {"rho": self.rho, "k": self.k, "residual": self.residual}
        return {"own_w": self.w.w, "u": self.u, **numbers, **self.pairs.saved(), **self.progress.saved()}


@dataclass(frozen=True)
class ADMM(IterativeSolver):
    """Minimise a smooth loss with any penalty that has a prox; without one it is L-BFGS.

    Parameters
    ----------
    rho : the first ρ. None: the curvature along the first gradient.
    adaptive : let ρ follow the two residuals.
    relaxation : a, between 1 (none) and 2.
    inner_steps : maximum number of L-BFGS steps in an iteration.
    memory : number of curvature pairs.

    >>> ADMM(relaxation=1.0).name
    'admm'
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000
    rho: float | None = None
    adaptive: bool = True
    relaxation: float = 1.6
    inner_steps: int = 10
    memory: int = 10

    name: ClassVar[str] = "admm"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.PROX})
    nonmonotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        if self.rho is not None and not (math.isfinite(self.rho) and self.rho > 0):
            raise ParameterError(f"rho must be a finite number > 0 or None, not {self.rho!r}")
        if not 1 <= self.relaxation < 2:
            raise ParameterError(f"relaxation must be at least 1 and less than 2, not {self.relaxation!r}")
        check_count(inner_steps=self.inner_steps, memory=self.memory)

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> ADMMState | QuasiNewtonState:
        if objective.nonsmooth is None:
            return LBFGS(memory=self.memory).init(objective, w0, saved)
        z = objective.at(w0)
        if "u" in saved:
            w, u = objective.at(saved_vector(saved, "own_w", w0)), saved_vector(saved, "u", w0)
        else:
            w, u = z, array_namespace(w0).zeros_like(w0)
        rho = saved_number(saved, "rho", self.rho or 0.0, low=0.0)
        residual, k = saved_number(saved, "residual", 1.0, low=0.0), saved_count(saved, "k", 0)
        pairs = SecantPairs.of(self.memory, saved, w0)
        return ADMMState(z, w, u, rho, k, residual, pairs, Progress.at(z, saved))

    def step(self, objective: Objective, state: ADMMState | QuasiNewtonState) -> ADMMState | QuasiNewtonState | Status:
        if isinstance(state, QuasiNewtonState):
            return LBFGS(memory=self.memory).step(objective, state)
        z, u, rho = state.point, state.u, state.rho
        assert objective.nonsmooth is not None
        if z.optimality == 0.0:
            return Status.CONVERGED
        if rho == 0.0:
            rho = _curvature(objective, z)
        center = combine(z.w, -1.0, u)
        w, pairs = self._near(objective, state.w, center, rho, state.pairs, 0.1 * rho * state.residual)
        relaxed = combine((1.0 - self.relaxation) * z.w, self.relaxation, w.w)
        new = objective.at(objective.nonsmooth.prox(combine(relaxed, 1.0, u), 1.0 / rho))
        u = combine(combine(u, 1.0, relaxed), -1.0, new.w)
        apart, moved = norm(combine(w.w, -1.0, new.w)), norm(combine(new.w, -1.0, z.w))
        if self.adaptive and state.k < FIXED_AFTER and state.k % PERIOD == PERIOD - 1:
            factor = _balance(apart / (max(norm(w.w), norm(new.w)) or 1.0), moved / (norm(u) or 1.0))
            rho, u = factor * rho, (1.0 / factor) * u
        progress = state.progress.after(new, PATIENCE)
        if isinstance(progress, Status):
            return progress
        return ADMMState(new, w, u, rho, state.k + 1, apart + moved, pairs, progress)

    def _near(
        self, objective: Objective, w: Point, center: Vector, rho: float, pairs: SecantPairs, enough: float
    ) -> tuple[Point, SecantPairs]:
        """Minimise f(w) + ρ/2·‖w − center‖² from w until the norm of its gradient is at most `enough`."""

        def both(at: Point) -> tuple[float, Vector]:
            d = combine(at.w, -1.0, center)
            return at.smooth_value + 0.5 * rho * dot(d, d), combine(at.grad, rho, d)

        value, g = both(w)
        for _ in range(self.inner_steps):
            if norm(g) <= enough:
                break
            d = pairs.direction(g, rho) if pairs else (-1.0 / (rho + norm(g))) * g
            slope, t = dot(d, g), 1.0
            for _ in range(MAX_TRIALS):
                new = objective.at(combine(w.w, t, d), w.evaluation)
                new_value, new_g = both(new)
                if new_value <= value + 1e-4 * t * slope + ROUNDING * abs(value):
                    break
                t *= 0.5
            else:
                return w, SecantPairs(self.memory)
            pairs = pairs.after(w.w, w.grad, new.w, new.grad)
            w, value, g = new, new_value, new_g
        return w, pairs


def _balance(primal: float, dual: float) -> float:
    """Return the factor of ρ; 1 where the residuals are balanced or one of them is zero."""
    if not (primal > 0 and dual > 0):
        return 1.0
    factor = min(max(math.sqrt(primal / dual), 1.0 / MOST), MOST)
    return factor if factor > UNBALANCED or factor < 1.0 / UNBALANCED else 1.0


def _curvature(objective: Objective, at: Point) -> float:
    """Return the curvature of the smooth part along its gradient, from a short step."""
    length = norm(at.grad)
    if length == 0.0:
        return 1.0
    step = 1e-3 * max(1.0, norm(at.w)) / length
    near = objective.at(combine(at.w, -step, at.grad), at.evaluation)
    bend = dot(combine(at.grad, -1.0, near.grad), at.grad) / (step * length * length)
    return bend if math.isfinite(bend) and bend > 1e-8 else 1.0
