"""Projected quasi-Newton (Schmidt, van den Berg, Friedlander & Murphy 2009) on the epigraph form of a penalty.

    x̂ ≈ argmin_x ∇f·(x − x_k) + ½(w − w_k)ᵀB(w − w_k) over the set,    x_{k+1} = x_k + t·(x̂ − x_k),    x = (w, α)

B is the L-BFGS matrix of the weights (f is linear in α); the model is minimised by spectral projected gradients, which
evaluate no loss. It is worthwhile where projections are cheap and evaluations are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_count
from crfkit.arrays import combine, dot, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.lbfgs import LBFGS
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.epigraph import EpigraphForm, Lifted
from crfkit.solvers.parts.line_searches.nonmonotone import Reference
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import FIRST_ORDER, Progress
from crfkit.solvers.parts.quasi_newton import QuasiNewtonState
from crfkit.solvers.parts.secant_pairs import SecantPairs
from crfkit.solvers.parts.step_rules import Secant
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule
from crfkit.solvers.projected import projected_step, search_along

ARMIJO, INNER = Reference("armijo"), Reference("gll")


@dataclass(frozen=True)
class PQNState:
    form: EpigraphForm
    at: Lifted
    pairs: SecantPairs
    progress: Progress

    @property
    def point(self) -> Point:
        return self.at.point

    def saved(self) -> Saved:
        return {**self.pairs.saved(), **self.form.saved(self.at), **self.progress.saved()}


@dataclass(frozen=True)
class PQN(IterativeSolver):
    """Minimise a model over the epigraph in every step; without a non-smooth penalty it is L-BFGS.

    Parameters
    ----------
    memory : number of curvature pairs.
    inner_iterations : maximum number of projected gradients for each model.
    accuracy : solve a model until ‖P(x − ∇) − x‖ is this fraction of its first value.
    eps : stop also where ‖P(x − ∇f(x)) − x‖ < eps. 0: only `stopping` ends the run.

    >>> PQN(memory=5).name
    'pqn'
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    memory: int = 10
    inner_iterations: int = 50
    accuracy: float = 0.01
    eps: float = 0.0

    name: ClassVar[str] = "pqn"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.EPIGRAPH})

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        check_count(memory=self.memory, inner_iterations=self.inner_iterations)
        if not 0 <= self.accuracy < 1:
            raise ParameterError(f"accuracy must be between 0 and 1, not {self.accuracy!r}")
        if not (math.isfinite(self.eps) and self.eps >= 0):
            raise ParameterError(f"eps must be a finite number >= 0, not {self.eps!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> PQNState | QuasiNewtonState:
        if objective.nonsmooth is None:
            return LBFGS(memory=self.memory).init(objective, w0, saved)
        form = EpigraphForm(objective, w0)
        at = form.start(w0, saved)
        return PQNState(form, at, SecantPairs.of(self.memory, saved, w0), Progress.at(at.point, saved))

    def step(self, objective: Objective, state: PQNState | QuasiNewtonState) -> PQNState | QuasiNewtonState | Status:
        if isinstance(state, QuasiNewtonState):
            return LBFGS(memory=self.memory).step(objective, state)
        form, old, pairs = state.form, state.at, state.pairs
        if old.point.optimality == 0.0 or (self.eps > 0 and form.residual(old) < self.eps):
            return Status.CONVERGED
        new: Lifted | Status = Status.LINE_SEARCH_FAILED
        if pairs:
            new = search_along(form, old, self._minimum(form, old, pairs), ARMIJO, [old.value])
        if isinstance(new, Status):  # without curvature, or again without it
            pairs = SecantPairs(self.memory)
            step = 1.0 / max(norm(old.point.grad), 1.0)
            new = projected_step(form, old, step, ARMIJO, [old.value])
        if isinstance(new, Status):
            return new
        progress = state.progress.after(new.point, FIRST_ORDER)
        if isinstance(progress, Status):
            return progress
        pairs = pairs.after(old.point.w, old.point.grad, new.point.w, new.point.grad)
        return PQNState(form, new, pairs, progress)

    def _minimum(self, form: EpigraphForm, old: Lifted, pairs: SecantPairs) -> Vector:
        """Return x̂, approximately."""
        model = _Model(form, old, pairs)
        at = best = model.at(old.x)
        enough = self.accuracy * model.residual(at)
        beta, kept = 1.0 / pairs.sigma, INNER.start(at.value, {})
        for _ in range(self.inner_iterations):
            new = projected_step(model, at, beta, INNER, kept)
            if isinstance(new, Status):
                break
            kept = INNER.after(kept, new.value)
            secant = Secant.between(at.x, at.value, at.grad, new.x, new.value, new.grad)
            beta = secant.bb1 if secant.curved else beta
            at = new
            if at.value < best.value:
                best = at
            if model.residual(at) <= enough:
                break
        return best.x


class _Model(EpigraphForm):
    """The quadratic model over the same set."""

    def __init__(self, form: EpigraphForm, old: Lifted, pairs: SecantPairs) -> None:
        self.objective, self.nonsmooth, self.n = form.objective, form.nonsmooth, form.n
        self._old, self._pairs = old, pairs

    def at(self, x: Vector, near: Lifted | None = None) -> Lifted:
        xp = array_namespace(x)
        d = combine(x, -1.0, self._old.x)
        bent = self._pairs.product(d[: self.n])
        value = dot(self._old.grad, d) + 0.5 * dot(bent, d[: self.n])
        grad = combine(self._old.grad, 1.0, xp.concat([bent, 0.0 * d[self.n :]]))
        return Lifted(x, value, grad, self._old.point)
