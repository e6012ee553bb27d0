"""FISTA, accelerated proximal gradients (Beck & Teboulle 2009).

    y = w_k + ((t_k − 1)/t)·(w_k − w_{k−1}),   w_{k+1} = prox(y − ∇f(y)/L),   t = ½(1 + √(1 + 4·t_k²·L/L_k))

L/L_k is 1 unless backtracking changes L; the factor keeps the rate when it does (Scheinberg, Goldfarb & Bai 2014).
The momentum is kept as v = (t_k − 1)·(w_k − w_{k−1}), so that y = w_k + v/t; t_k = 0 starts (again) without any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from array_api_compat import array_namespace

from crfkit.arrays import combine, dot
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.lipschitz import MAX_TRIALS, StepLength
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point, extended
from crfkit.solvers.parts.progress import FIRST_ORDER, Progress
from crfkit.solvers.parts.proximal import check_proximal, forward_backward, start
from crfkit.solvers.parts.rounding import ROUNDING
from crfkit.solvers.parts.saved import saved_number, saved_vector
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule

RESTARTS = ("none", "function", "gradient")


@dataclass(frozen=True)
class FISTAState:
    point: Point
    v: Vector  # momentum
    t: float
    L: float  # of the last step
    length: StepLength
    progress: Progress

    def saved(self) -> Saved:
        return {"v": self.v, "t": self.t, "L": self.L, **self.length.saved(), **self.progress.saved()}

    def grown(self, point: Point, place: Vector) -> FISTAState:
        """Return the state in a larger space, where weight i stands at place[i]: its momentum and L stay."""
        v = extended(self.v, place, point.w.shape[0])
        return FISTAState(point, v, self.t, self.L, self.length, Progress.at(point, {}))


@dataclass(frozen=True)
class FISTA(IterativeSolver):
    """Minimise a smooth loss with any penalty that has a prox: J(w_k) − J* ≤ 2L·‖w₀ − w*‖²/(k + 1)² if J is convex.

    An iteration takes two evaluations, one where the step begins and one at the point that it reaches.

    Parameters
    ----------
    restart : when to drop the momentum: "gradient": when it points uphill; "function": when J rises (O'Donoghue &
        Candès 2015); "none": never. With restarts the rate becomes linear near an optimum that is strongly convex.
    monotone : let a step that would raise J change the momentum only (MFISTA, Beck & Teboulle 2009b).
    lipschitz : L, an upper bound on the curvature of loss + smooth part of the penalty; every step is then 1/L. None:
        found by backtracking from the curvature at the start: L shrinks by a tenth after each step and doubles when a
        step is too long, up to the bound that the loss knows, if it knows one.
    backtracking : True: backtrack without asking for any bound; `lipschitz` is then the first guess. False: trust
        `lipschitz` or the loss's own bound and check no step, which takes longer unless the bound is tight. None: trust
        `lipschitz` if it is given, otherwise backtrack.
    random_start : scale of normal noise that is added to the start.
    seed : random seed of that noise.

    >>> FISTA(restart="none", monotone=True).name
    'fista'
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000
    seed: int = 0
    restart: Literal["none", "function", "gradient"] = "gradient"
    monotone: bool = False
    lipschitz: float | None = None
    backtracking: bool | None = None
    random_start: float = 0.0

    name: ClassVar[str] = "fista"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    first_order: ClassVar[bool] = True
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.PROX})

    def __post_init__(self) -> None:
        check_proximal(self.max_iterations, self.seed, self.random_start, self.lipschitz, self.backtracking)
        if self.restart not in RESTARTS:
            raise ParameterError(f"restart must be one of {', '.join(RESTARTS)}, not {self.restart!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> FISTAState:
        return self.begin(objective, objective.at(start(w0, self.random_start, self.seed, saved)), saved)

    def begin(self, objective: Objective, point: Point, saved: Saved) -> FISTAState:
        """Return the state at a point that was evaluated already."""
        w0 = point.w
        length = StepLength.backtracked(objective, self.lipschitz, self.backtracking, saved)
        v = saved_vector(saved, "v", w0) if "v" in saved else array_namespace(w0).zeros_like(w0)
        t, L = (saved_number(saved, name, 0.0, low=0.0) for name in ("t", "L"))
        return FISTAState(point, v, t, L, length, Progress.at(point, saved))

    def step(self, objective: Objective, state: FISTAState) -> FISTAState | Status:
        old = state.point
        if old.optimality == 0.0:
            return Status.CONVERGED
        length = state.length.ready(objective, old)
        if isinstance(length, Status):
            return length
        found = self._advance(objective, state, length)
        if found is None:
            return Status.LINE_SEARCH_FAILED
        y, z, t, length = found
        rises = _rises(old, z)
        new = old if self.monotone and rises else z
        progress = state.progress.after(new, FIRST_ORDER, waves=self.restart == "none" and not self.monotone)
        if isinstance(progress, Status):
            return progress
        v = combine(t * (z.w - new.w), t - 1.0, combine(new.w, -1.0, old.w))
        uphill = dot(combine(y, -1.0, z.w), combine(z.w, -1.0, old.w)) > 0
        if (self.restart == "gradient" and uphill) or (self.restart == "function" and rises):
            t, v = 0.0, 0.0 * v
        return FISTAState(new, v, t, length.L, length.longer(), progress)

    def _advance(
        self, objective: Objective, state: FISTAState, length: StepLength
    ) -> tuple[Vector, Point, float, StepLength] | None:
        """Return (y, the point that a step from it reaches, t, the step's length)."""
        old, past, v = state.point, state.t, state.v
        for _ in range(MAX_TRIALS):
            ratio = length.L / state.L if state.L > 0 else 1.0
            t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * past * past * ratio))
            begin = objective.at(combine(old.w, 1.0 / t, v)) if past > 0 else old
            if begin is not old and not begin.smooth_finite:
                past, v = 0.0, 0.0 * v  # too far: try without momentum
                continue
            new = forward_backward(objective, begin, length.L)
            if length.allows(begin, new):
                return begin.w, new, t, length
            length = length.shorter()
        return None


def _rises(old: Point, new: Point) -> bool:
    """Return whether the objective rises or, where it is flat to rounding, its slope does."""
    noise = ROUNDING * abs(old.value)
    return new.value > old.value + noise or (new.value > old.value and new.optimality >= old.optimality)
