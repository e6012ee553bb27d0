"""The optimal gradient method: Nesterov's smoothing (2005) with all gradients of the past, then a proximal finish.

With J_μ, the objective whose penalty is smoothed (see parts/envelope.py), L = L_f + strength/μ and g_k = ∇J_μ(θ_k):

    s_k = θ_k − g_k/L,   t_k = centre − (1/L)·Σ_{m≤k} (m+1)/2·g_m,   θ_{k+1} = 2/(k+3)·t_k + (k+1)/(k+3)·s_k

J_μ(s_k) − J_μ* ≤ 2L·‖centre − θ*‖²/((k+1)(k+2)); this is of s_k, which is therefore the iterate. The sum is kept
without the factor 1/L, so that L may grow on the way. s_k has no zeros: FISTA on the penalty itself makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_positive
from crfkit.arrays import combine, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Loss, Penalty, Vector
from crfkit.result import Result, Status, TraceRow
from crfkit.solvers.fista import FISTA, FISTAState
from crfkit.solvers.parts.descent import saved_vector
from crfkit.solvers.parts.envelope import Envelope
from crfkit.solvers.parts.lipschitz import MAX_TRIALS, StepLength, bound_holds
from crfkit.solvers.parts.loop import Callback, IterativeSolver, run
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.proximal import Patience, check_proximal, start
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class OGMState:
    point: Point  # s_{k−1}; the value is of the true objective
    total: Vector  # Σ (m+1)/2·g_m
    centre: Vector
    k: int  # gradients in it
    mu: float
    smoothed: float  # J_μ(s_{k−1})
    settled: bool  # it no longer changes: on to a smaller μ or to the finish
    length: StepLength
    patience: Patience
    finish: FISTAState | None = None

    def saved(self) -> Mapping[str, Any]:
        if self.finish is not None:
            return {"finishing": True, **self.finish.saved()}
        sums = {"total": self.total, "centre": self.centre, "k": self.k}
        phase = {"finishing": False, "mu": self.mu, "smoothed": self.smoothed, "settled": self.settled}
        return {**phase, **sums, **self.length.saved(), **self.patience.saved()}


@dataclass(frozen=True)
class OGM(IterativeSolver):
    """Minimises a convex loss with any penalty that has a prox, by way of a smoothed penalty.

    The trace's value is the true objective at s_k. The stopping rule ends the smoothed phases too, each for the next;
    the run ends when it is satisfied in the last one.

    Parameters
    ----------
    mu : width of the smoothing, in units of a weight; of the first one if there are several.
    continuation : factor by which mu falls when it has converged, down to `least_mu`; None: it does not.
    tolerance : a smoothed objective has converged when its relative change in an iteration is less.
    finish : FISTA on the penalty itself at the end, so that weights that should be zero are.
    prox_center : the centre of t_k, a guess of the optimum; None: the start.
    lipschitz : L_f, a bound of the curvature of loss + smooth part of the penalty. None: the loss's own, or, if it
        knows none, found by backtracking: doubled when a step is too long; it shrinks in the finish only.
    backtracking : check L at every step though it is known. None: only if it is not.
    random_start : scale of normal noise that is added to the start.
    seed : of that noise.

    >>> OGM(mu=0.1, continuation=0.1).least_mu
    0.0001
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000
    seed: int = 0
    mu: float = 0.01
    continuation: float | None = None
    least_mu: float = 1e-4
    tolerance: float = 1e-4
    finish: bool = True
    prox_center: Vector | None = None
    lipschitz: float | None = None
    backtracking: bool | None = None
    random_start: float = 0.0

    name: ClassVar[str] = "ogm"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    first_order: ClassVar[bool] = True
    handles_rest: ClassVar[frozenset[Kind]] = frozenset({Kind.PROX})

    def __post_init__(self) -> None:
        check_proximal(self.max_iterations, self.seed, self.random_start, self.lipschitz, self.backtracking)
        check_positive(mu=self.mu, least_mu=self.least_mu)
        if self.continuation is not None and not 0 < self.continuation < 1:
            raise ParameterError(f"continuation must be None or between 0 and 1, not {self.continuation!r}")
        if not self.tolerance >= 0:
            raise ParameterError(f"tolerance must be >= 0, not {self.tolerance!r}")

    def minimize(
        self,
        loss: Loss,
        penalty: Penalty,
        w0: Vector,
        callbacks: Sequence[Callback] = (),
        resume: Mapping[str, Any] | None = None,
    ) -> Result:
        """Minimises loss + penalty from w0, or goes on from `resume`, the state of an earlier result at w0."""
        return run(_Run(self), loss, penalty, w0, callbacks, resume, self.registry)

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> OGMState:
        if saved.get("finishing"):
            inner = self._finisher().init(objective, w0, saved)
            return self._finishing(inner)
        point = objective.at(start(w0, self.random_start, self.seed, saved))
        length = StepLength.at(objective, self.lipschitz, self.backtracking, saved)
        patience = Patience.at(point, saved)
        if saved.get("value") == point.value:  # gradients of another objective would be of no use
            total, centre = (saved_vector(saved, name, w0) for name in ("total", "centre"))
            k, mu, smoothed = int(saved["k"]), float(saved["mu"]), float(saved["smoothed"])
            return OGMState(point, total, centre, k, mu, smoothed, bool(saved["settled"]), length, patience)
        centre = point.w if self.prox_center is None else self.prox_center
        if centre.shape != w0.shape:
            raise ParameterError(f"prox_center has shape {tuple(centre.shape)}, but there are {w0.shape[0]} weights")
        return self._begin(point, centre, self.mu, length, patience)

    def step(self, objective: Objective, state: OGMState) -> OGMState | Status:
        if state.point.optimality == 0.0:
            return Status.CONVERGED
        if state.settled and state.finish is None and not self.last(objective, state):
            if self._smallest(objective, state.mu):
                state = self._finishing(_fista_state(state))
            else:
                mu = max(state.mu * (self.continuation or 0.0), self.least_mu)
                state = self._begin(state.point, state.point.w, mu, state.length, Patience.at(state.point, {}))
        if state.finish is not None:
            outcome = self._finisher().step(objective, state.finish)
            return outcome if isinstance(outcome, Status) else self._finishing(outcome)
        return self._smooth_step(objective, state)

    def last(self, objective: Objective, state: OGMState) -> bool:
        """Whether no other phase follows."""
        return state.finish is not None or (not self.finish and self._smallest(objective, state.mu))

    def _smooth_step(self, objective: Objective, state: OGMState) -> OGMState | Status:
        found = state.length.ready(objective, state.point)
        if isinstance(found, Status):
            return found
        length, envelope, k = found, Envelope(objective.rest, state.mu), state.k
        for _ in range(MAX_TRIALS):
            L = length.L + envelope.lipschitz
            theta = state.point if k == 0 else objective.at(_next_theta(state, L))
            smoothed = envelope.at(theta)
            s = objective.at(combine(smoothed.w, -1.0 / L, smoothed.grad))
            new = envelope.at(s)
            if not length.checked or bound_holds(smoothed, new, L):
                break
            length = length.shorter()
        else:
            return Status.LINE_SEARCH_FAILED
        goes_on = not self.last(objective, state)
        patience = state.patience.after(s, waves=not goes_on)
        stalled = patience is Status.LINE_SEARCH_FAILED and goes_on
        if isinstance(patience, Status):
            if not stalled:
                return patience
            patience = Patience.at(s, {})
        change = abs(new.smooth_value - state.smoothed)
        small = k > 0 and change <= self.tolerance * abs(state.smoothed)
        settled = stalled or small or norm(smoothed.grad) == 0.0
        total = combine(state.total, 0.5 * (k + 1), smoothed.grad)
        return OGMState(s, total, state.centre, k + 1, state.mu, new.smooth_value, settled, length, patience)

    def _smallest(self, objective: Objective, mu: float) -> bool:
        return objective.rest is None or self.continuation is None or mu <= self.least_mu

    def _begin(self, point: Point, centre: Vector, mu: float, length: StepLength, patience: Patience) -> OGMState:
        zeros = array_namespace(point.w).zeros_like(point.w)
        return OGMState(point, zeros, centre, 0, mu, 0.0, False, length, patience)

    def _finisher(self) -> FISTA:
        return FISTA(lipschitz=self.lipschitz, backtracking=self.backtracking)

    def _finishing(self, inner: FISTAState) -> OGMState:
        nothing = inner.point.w[:0]
        return OGMState(inner.point, nothing, nothing, 0, 0.0, 0.0, False, inner.length, inner.patience, inner)


def _next_theta(state: OGMState, L: float) -> Vector:
    """θ_k from s_{k−1} and the gradients before."""
    t = combine(state.centre, -1.0 / L, state.total)
    share = 2.0 / (state.k + 2)
    return combine(share * t, 1.0 - share, state.point.w)


def _fista_state(state: OGMState) -> FISTAState:
    point = state.point
    return FISTAState(point, 0.0 * point.w, 0.0, 0.0, state.length, Patience.at(point, {}))


class _Run(IterativeSolver):
    """A run of the solver whose stopping rule ends each phase in turn."""

    name, needs, handles_rest = OGM.name, OGM.needs, OGM.handles_rest

    def __init__(self, solver: OGM) -> None:
        self._solver = solver
        self._last = False
        self._settled = False
        self.max_iterations: int = solver.max_iterations
        self.stopping: StoppingRule = self

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> OGMState:
        return self._followed(objective, self._solver.init(objective, w0, saved))

    def step(self, objective: Objective, state: OGMState) -> OGMState | Status:
        outcome = self._solver.step(objective, replace(state, settled=True) if self._settled else state)
        return outcome if isinstance(outcome, Status) else self._followed(objective, outcome)

    def satisfied(self, trace: Sequence[TraceRow], w: Vector) -> bool:
        satisfied = self._solver.stopping.satisfied(trace, w)
        self._settled = satisfied
        return satisfied and (self._last or len(trace) == 1)

    def _followed(self, objective: Objective, state: OGMState) -> OGMState:
        self._last = self._solver.last(objective, state)
        return state
