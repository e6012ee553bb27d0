"""The optimal gradient method: Nesterov's smoothing (2005) with all gradients of the past, then a proximal finish.

With J_μ, the objective whose penalty is smoothed (see parts/envelope.py), L = L_f + strength/μ (the largest strength
where they differ between blocks of the weights) and g_k = ∇J_μ(θ_k):

    s_k = θ_k − g_k/L,   t_k = centre − (1/L)·Σ_{m≤k} (m+1)/2·g_m,   θ_{k+1} = 2/(k+3)·t_k + (k+1)/(k+3)·s_k

J_μ(s_k) − J_μ* ≤ 2L·‖centre − θ*‖²/((k+1)(k+2)). The iterate is θ_k, where the gradient is needed anyway: an iteration
is one evaluation, and s_k is one gradient step away. The sum is kept without the factor 1/L, so L may grow on the
way. θ_k has no zeros: FISTA on the penalty itself makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_positive
from crfkit.arrays import combine, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.fista import FISTA, FISTAState
from crfkit.solvers.parts.envelope import Envelope, Smoothed
from crfkit.solvers.parts.lipschitz import MAX_TRIALS, StepLength
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import FIRST_ORDER, Progress
from crfkit.solvers.parts.proximal import check_proximal, start
from crfkit.solvers.parts.saved import POSITIVE, saved_count, saved_number, saved_vector
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class OGMState:
    point: Point  # θ_k; the value is of the true objective
    here: Smoothed  # J_μ at θ_k
    s: Vector  # s_{k−1}
    total: Vector  # Σ_{m<k} (m+1)/2·g_m
    centre: Vector
    k: int  # gradients in it
    mu: float
    settled: bool  # J_μ no longer changes: on to a smaller μ or to the finish
    length: StepLength
    progress: Progress
    finish: FISTAState | None = None

    def saved(self) -> Saved:
        if self.finish is not None:
            return {"finishing": True, **self.finish.saved()}
        kept = {"s": self.s, "total": self.total, "centre": self.centre, "k": self.k}
        phase = {"finishing": False, "mu": self.mu, "settled": self.settled}
        return {**phase, **kept, **self.length.saved(), **self.progress.saved()}


@dataclass(frozen=True)
class OGM(IterativeSolver):
    """Minimise a convex loss with any penalty that has a prox, by way of a smoothed penalty.

    The trace's value is the true objective at θ_k. The stopping rule ends the smoothed phases too, each for the next;
    the run ends when it is satisfied in the last one. An iteration takes one evaluation where L is known, two where it
    is found by backtracking and in the finish; the first of a phase takes one more.

    Parameters
    ----------
    mu : width of the smoothing, in units of a weight, the same in all blocks of a `Blockwise` penalty; with
        `continuation`, the first one.
    continuation : factor by which mu falls when a phase has converged, down to `least_mu`. None: mu stays.
    tolerance : a smoothed phase has converged when the relative change of its objective in an iteration is smaller.
    finish : end with FISTA on the penalty itself, so weights that should be zero are zero.
    prox_center : the centre of t_k, a guess of the optimum; None: the start.
    lipschitz : L_f, an upper bound on the curvature of loss + smooth part of the penalty. None: the loss's own bound
        or, if it knows none, found by backtracking: L doubles when a step is too long, and shrinks in the finish only.
    backtracking : True: check L at every step though it is known. None: only where it is not known.
    random_start : scale of normal noise that is added to the start.
    seed : random seed of that noise.

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
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.PROX})

    def __post_init__(self) -> None:
        check_proximal(self.max_iterations, self.seed, self.random_start, self.lipschitz, self.backtracking)
        check_positive(mu=self.mu, least_mu=self.least_mu)
        if self.continuation is not None and not 0 < self.continuation < 1:
            raise ParameterError(f"continuation must be None or between 0 and 1, not {self.continuation!r}")
        if not self.tolerance >= 0:
            raise ParameterError(f"tolerance must be >= 0, not {self.tolerance!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> OGMState:
        if saved.get("finishing"):
            inner = self._finisher().init(objective, w0, saved)
            return self._finishing(inner)
        point = objective.at(start(w0, self.random_start, self.seed, saved))
        length = StepLength.trusted(objective, self.lipschitz, self.backtracking, saved)
        progress = Progress.at(point, saved)
        if "s" in saved and saved.get("value") == point.value:  # gradients of another objective would be of no use
            s, total, centre = (saved_vector(saved, name, w0) for name in ("s", "total", "centre"))
            k, mu, settled = saved_count(saved, "k"), saved_number(saved, "mu", low=POSITIVE), bool(saved["settled"])
            here = Envelope(objective.nonsmooth, mu).at(point)
            return OGMState(point, here, s, total, centre, k, mu, settled, length, progress)
        centre = point.w if self.prox_center is None else self.prox_center
        if centre.shape != w0.shape:
            raise ParameterError(f"prox_center has shape {tuple(centre.shape)}, but there are {w0.shape[0]} weights")
        return _begin(objective, point, centre, self.mu, length, progress)

    def step(self, objective: Objective, state: OGMState) -> OGMState | Status:
        if state.point.optimality == 0.0:
            return Status.CONVERGED
        if state.settled and state.finish is None and not self._last(objective, state):
            point = objective.at(state.s)  # the rate is that of s, so the next phase begins there
            if self._smallest(objective, state.mu):
                state = self._finishing(self._finisher().begin(objective, point, state.length.saved()))
            else:
                mu = max(state.mu * (self.continuation or 0.0), self.least_mu)
                state = _begin(objective, point, point.w, mu, state.length, Progress.at(point, {}))
        if state.finish is not None:
            outcome = self._finisher().step(objective, state.finish)
            return outcome if isinstance(outcome, Status) else self._finishing(outcome)
        return self._smooth_step(objective, state)

    def next_phase(self, objective: Objective, state: OGMState) -> OGMState | None:
        """Return the state with its phase ended; None in the last phase, and at a start that needs no step."""
        unmoved = state.finish is None and state.k == 0
        return None if unmoved or self._last(objective, state) else replace(state, settled=True)

    def _last(self, objective: Objective, state: OGMState) -> bool:
        """Return whether no other phase follows."""
        return state.finish is not None or (not self.finish and self._smallest(objective, state.mu))

    def _smooth_step(self, objective: Objective, state: OGMState) -> OGMState | Status:
        found = state.length.ready(objective, state.point)
        if isinstance(found, Status):
            return found
        length, envelope, here, k = found, Envelope(objective.nonsmooth, state.mu), state.here, state.k
        for _ in range(MAX_TRIALS):
            L = length.L + envelope.lipschitz
            s = combine(here.w, -1.0 / L, here.grad)
            if not length.checked or length.allows(here, envelope.at(objective.at(s)), envelope.lipschitz):
                break
            length = length.shorter()
            if k > 0:  # the rate needs a θ_k of the same L
                L = length.L + envelope.lipschitz
                here = envelope.at(objective.at(_theta(k, state.centre, state.total, state.s, L)))
        else:
            return Status.LINE_SEARCH_FAILED
        total = combine(state.total, 0.5 * (k + 1), here.grad)
        theta = objective.at(_theta(k + 1, state.centre, total, s, L))
        goes_on = not self._last(objective, state)
        progress = state.progress.after(theta, FIRST_ORDER, waves=not goes_on)
        stalled = progress is Status.LINE_SEARCH_FAILED and goes_on
        if isinstance(progress, Status):
            if not stalled:
                return progress
            progress = Progress.at(theta, {})
        new = envelope.at(theta)
        small = abs(new.smooth_value - here.smooth_value) <= self.tolerance * abs(here.smooth_value)
        settled = stalled or (k > 0 and small) or norm(here.grad) == 0.0
        return OGMState(theta, new, s, total, state.centre, k + 1, state.mu, settled, length, progress)

    def _smallest(self, objective: Objective, mu: float) -> bool:
        return objective.nonsmooth is None or self.continuation is None or mu <= self.least_mu

    def _finisher(self) -> FISTA:
        return FISTA(lipschitz=self.lipschitz, backtracking=self.backtracking)

    def _finishing(self, inner: FISTAState) -> OGMState:
        """Return the state of the last phase, which is that of FISTA."""
        point, none = inner.point, inner.point.w[:0]
        here = Smoothed(point.w, point.smooth_value, point.grad)
        return OGMState(point, here, none, none, none, 0, 0.0, False, inner.length, inner.progress, inner)


def _begin(
    objective: Objective, point: Point, centre: Vector, mu: float, length: StepLength, progress: Progress
) -> OGMState:
    """Return the first state of a smoothed phase."""
    zeros = array_namespace(point.w).zeros_like(point.w)
    here = Envelope(objective.nonsmooth, mu).at(point)
    return OGMState(point, here, point.w, zeros, centre, 0, mu, False, length, progress)


def _theta(k: int, centre: Vector, total: Vector, s: Vector, L: float) -> Vector:
    """Return θ_k from s_{k−1} and the sum of the gradients before, k ≥ 1."""
    share = 2.0 / (k + 2)
    return combine(share * combine(centre, -1.0 / L, total), 1.0 - share, s)
