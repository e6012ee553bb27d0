"""ISTA, proximal gradients: w⁺ = prox(w − ∇f(w)/L), step 1/L (Daubechies et al. 2004; Beck & Teboulle 2009)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.lipschitz import MAX_TRIALS, StepLength
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import FIRST_ORDER, Progress
from crfkit.solvers.parts.proximal import check_proximal, forward_backward, start
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class ISTAState:
    point: Point
    length: StepLength
    progress: Progress

    def saved(self) -> Saved:
        return {**self.length.saved(), **self.progress.saved()}


@dataclass(frozen=True)
class ISTA(IterativeSolver):
    """Minimise a smooth loss with any penalty that has a prox, slowly: J(w_k) − J* ≤ L·‖w₀ − w*‖²/(2k). J never rises.

    Parameters
    ----------
    lipschitz : L, an upper bound on the curvature of loss + smooth part of the penalty; every step is then 1/L. None:
        found by backtracking from the curvature at the start: L shrinks by a tenth after each step and doubles when a
        step is too long, up to the bound that the loss knows, if it knows one.
    backtracking : True: backtrack without asking for any bound; `lipschitz` is then the first guess. False: trust
        `lipschitz` or the loss's own bound and check no step, which takes longer unless the bound is tight. None: trust
        `lipschitz` if it is given, otherwise backtrack.
    random_start : scale of normal noise that is added to the start.
    seed : random seed of that noise.

    >>> ", ".join(ISTA(lipschitz=10.0).handles_nonsmooth)
    'prox'
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000
    seed: int = 0
    lipschitz: float | None = None
    backtracking: bool | None = None
    random_start: float = 0.0

    name: ClassVar[str] = "ista"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    first_order: ClassVar[bool] = True
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.PROX})

    def __post_init__(self) -> None:
        check_proximal(self.max_iterations, self.seed, self.random_start, self.lipschitz, self.backtracking)

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> ISTAState:
        point = objective.at(start(w0, self.random_start, self.seed, saved))
        length = StepLength.backtracked(objective, self.lipschitz, self.backtracking, saved)
        return ISTAState(point, length, Progress.at(point, saved))

    def step(self, objective: Objective, state: ISTAState) -> ISTAState | Status:
        point = state.point
        if point.optimality == 0.0:
            return Status.CONVERGED
        length = state.length.ready(objective, point)
        if isinstance(length, Status):
            return length
        for _ in range(MAX_TRIALS):
            new = forward_backward(objective, point, length.L)
            if length.allows(point, new):
                progress = state.progress.after(new, FIRST_ORDER)
                return progress if isinstance(progress, Status) else ISTAState(new, length.longer(), progress)
            length = length.shorter()
        return Status.LINE_SEARCH_FAILED
