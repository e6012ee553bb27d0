"""Spectral projected gradients (Birgin, Martínez & Raydan 2000) on the epigraph form of a penalty.

    d = P(x − β·∇f(x)) − x,    x⁺ = x + t·d,    x = (w, α)

SPG = Barzilai–Borwein step + GLL line search (Schmidt et al. 2008); AGPM = adaptive conic step + Zhang–Hager line
search (Xue & Zhang 2016). The step lengths β are in parts/step_rules.py, t in parts/line_searches/nonmonotone.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from crfkit.arrays import combine, dot, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.epigraph import EpigraphForm, Lifted
from crfkit.solvers.parts.line_searches.nonmonotone import Reference
from crfkit.solvers.parts.line_searches.trial import Trial
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import FIRST_ORDER, Progress
from crfkit.solvers.parts.saved import POSITIVE, saved_count, saved_number
from crfkit.solvers.parts.step_rules import KAPPA, STEP_RULES, Secant
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule

BETA_MIN, BETA_MAX = 1e-10, 1e10
GROWTH = 10.0  # of a step that saw no curvature
PATIENCE = replace(FIRST_ORDER, stalls=50)  # long and short steps take turns, so the best value may be old


@dataclass(frozen=True)
class ProjectedState:
    form: EpigraphForm
    at: Lifted
    beta: float
    k: int  # number of the next step
    kept: Sequence[float]  # of the line search
    progress: Progress
    reference: Reference

    @property
    def point(self) -> Point:
        return self.at.point

    def saved(self) -> Saved:
        numbers = {"beta": self.beta, "k": self.k, "reference": self.reference.saved(self.kept)}
        return {**numbers, **self.form.saved(self.at), **self.progress.saved()}


@dataclass(frozen=True)
class SPG(IterativeSolver):
    """Spectral projected gradients: any smooth loss, any penalty with an epigraph that can be projected onto.

    Parameters
    ----------
    step_rule : how β is chosen: bb1, bb2, bs1, bs2, bs3, bs4, zhou, yu, agpm or agpm-printed.
    search : line search: armijo, gll, zhang-hager, dai-fletcher or huang.
    eps : stop also where ‖P(x − ∇f(x)) − x‖ < eps. 0: only `stopping` ends the run.
    kappa : threshold at which adaptive rules switch. None: their authors' 0.5 (zhou, agpm) or 0.9 (yu).
    memory : M, the number of values that gll keeps; L, the number of steps without a new best value after which
        dai-fletcher sets a limit.
    eta : weight of old values in zhang-hager and huang; 0 is armijo.
    nu : constant of the decrease condition.
    first_step : β of the first step.

    >>> import numpy as np
    >>> from crfkit import Graph, GraphData
    >>> from crfkit.graph.fields.field import untied_field
    >>> from crfkit.losses import PseudoLikelihood
    >>> from crfkit.penalties import L2, Blockwise, GroupLinf
    >>> Y = np.array([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 5)
    >>> data = GraphData.table(20, Graph.complete(3), Y=Y)
    >>> loss = PseudoLikelihood(data, untied_field(data, 2))
    >>> penalty = Blockwise({"node": L2(1.0), "edge": GroupLinf(2.0, [0, 0, 0, 1, 1, 1, 2, 2, 2])})
    >>> found = AGPM().minimize(loss, penalty, np.zeros(loss.size))
    >>> [bool(edge.any()) for edge in found.w[loss.layout["edge"]].reshape(3, 3)]  # (0, 1), (0, 2), (1, 2)
    [True, False, False]
    """

    stopping: StoppingRule = field(default_factory=lambda: PeriodDecrease(period=30))  # longer than the waves
    max_iterations: int = 10_000
    step_rule: str = "bb1"
    search: str = "gll"
    eps: float = 0.0
    kappa: float | None = None
    memory: int = 10
    eta: float = 0.7
    nu: float = 1e-4
    first_step: float = 1.0

    name: ClassVar[str] = "spg"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    first_order: ClassVar[bool] = True
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.EPIGRAPH})
    nonmonotone: ClassVar[bool] = True  # a run that continues may rise to values of the run before

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        if self.step_rule not in STEP_RULES:
            raise ParameterError(f"step_rule must be one of {', '.join(STEP_RULES)}, not {self.step_rule!r}")
        if not (math.isfinite(self.eps) and self.eps >= 0):
            raise ParameterError(f"eps must be a finite number >= 0, not {self.eps!r}")
        if self.kappa is not None and not 0 < self.kappa < 1:
            raise ParameterError(f"kappa must be between 0 and 1, not {self.kappa!r}")
        if not BETA_MIN <= self.first_step <= BETA_MAX:
            raise ParameterError(f"first_step must be between {BETA_MIN:g} and {BETA_MAX:g}, not {self.first_step!r}")
        _ = self._reference  # checks its options

    @cached_property
    def _reference(self) -> Reference:
        return Reference(self.search, self.memory, self.eta, self.nu)

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> ProjectedState:
        form = EpigraphForm(objective, w0)
        at = form.start(w0, saved)
        beta, k = saved_number(saved, "beta", self.first_step, low=POSITIVE), saved_count(saved, "k", 0)
        kept = self._reference.start(at.value, saved)
        return ProjectedState(form, at, beta, k, kept, Progress.at(at.point, saved), self._reference)

    def step(self, objective: Objective, state: ProjectedState) -> ProjectedState | Status:
        form, old = state.form, state.at
        beta, kept, progress = state.beta, state.kept, state.progress
        if old.point.optimality == 0.0:
            return Status.CONVERGED
        while True:
            target = form.project(combine(old.x, -beta, old.grad))
            if old is state.at and self._stationary(form, old, target, beta):
                return Status.CONVERGED
            new = search_along(form, old, target, self._reference, kept)
            if isinstance(new, Status):
                if old is state.at:
                    return new
                beta = min(beta, BETA_MAX)
                return replace(
                    state, at=old, beta=beta, k=state.k + 1, kept=kept, progress=progress
                )  # as far as it led
            kept = self._reference.after(kept, new.value)
            moved = progress.after(new.point, PATIENCE)
            if isinstance(moved, Status):
                return moved
            secant = Secant.between(old.x, old.value, old.grad, new.x, new.value, new.grad)
            if secant.curved or new.value >= old.value or not new.point.finite:
                break
            old, progress, beta = new, moved, GROWTH * beta  # a straight slope: on, with longer steps
        k = state.k + 1
        return replace(state, at=new, beta=self._next(secant, beta, k), k=k, kept=kept, progress=moved)

    def _stationary(self, form: EpigraphForm, at: Lifted, target: Vector, beta: float) -> bool:
        """Return whether the rule of `eps` holds.

        ‖P(x − β∇f) − x‖ rises with β and falls when divided by it, so this target decides in most cases.
        """
        if self.eps == 0 or norm(combine(target, -1.0, at.x)) / max(beta, 1.0) >= self.eps:
            return False
        return form.residual(at) < self.eps

    def _next(self, secant: Secant, beta: float, k: int) -> float:
        """Return β of step k."""
        if not secant.curved:
            return min(max(beta, BETA_MIN), BETA_MAX)
        kappa = KAPPA.get(self.step_rule, 0.5) if self.kappa is None else self.kappa
        return min(BETA_MAX, max(STEP_RULES[self.step_rule](secant, k, kappa), BETA_MIN))


def projected_step(
    form: EpigraphForm, old: Lifted, beta: float, reference: Reference, kept: Sequence[float]
) -> Lifted | Status:
    """Search from `old` along P(x − β·∇f) − x."""
    return search_along(form, old, form.project(combine(old.x, -beta, old.grad)), reference, kept)


def search_along(
    form: EpigraphForm, old: Lifted, target: Vector, reference: Reference, kept: Sequence[float]
) -> Lifted | Status:
    """Search from `old` towards `target`, which is tried first."""
    d = combine(target, -1.0, old.x)
    slope = dot(d, old.grad)
    if not slope < 0:
        return Status.LINE_SEARCH_FAILED
    found: dict[float, Lifted] = {}

    def phi(t: float) -> Trial:
        # the whole step is the projection itself, with its zeros
        new = found[t] = form.at(target if t == 1.0 else combine(old.x, t, d), old)
        return Trial(t, new.value, dot(new.grad, d), new.point)

    trial = reference.search(kept, Trial(0.0, old.value, slope, old.point), phi)
    return Status.LINE_SEARCH_FAILED if trial is None else found[trial.step]


@dataclass(frozen=True)
class AGPM(SPG):
    """The adaptive gradient projection method (Xue & Zhang 2016); options as of :class:`SPG`.

    The switch of its step rule is that of eq. (6) with the cosine instead of its inverse, as in eq. (5) before it: as
    printed it never switches ("agpm-printed").
    """

    step_rule: str = "agpm"
    search: str = "zhang-hager"

    name: ClassVar[str] = "agpm"


@dataclass(frozen=True)
class Zhou(SPG):
    """Projected gradients with the adaptive Barzilai–Borwein step of Zhou, Gao & Dai (2006); options as of SPG."""

    step_rule: str = "zhou"

    name: ClassVar[str] = "zhou"
