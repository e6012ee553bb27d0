"""Grafting (Perkins, Lacker & Theiler 2003) and Grafting-Light (Zhu, Lao & Xing 2010): feature selection under L1.

Both keep a working set of weights and continue until the optimality conditions hold for all candidates:

    1. minimise loss + penalty over the working set: to the end (Grafting), or by one orthant-wise quasi-Newton step
       or a few (Grafting-Light, which is OWL-QN on a set that grows as it goes);
    2. switch on the M candidates ("select unit") whose gradient exceeds the penalty's strength most.

The curvature that OWL-QN has met stays when the set grows; new weights enter it with zeros, so it stays positive
definite. OWL-QN on all candidates from the start is the papers' Full-Opt-L1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from crfkit._checks import check_count
from crfkit.errors import ParameterError
from crfkit.protocols import Saved, Vector
from crfkit.result import Status, TraceRow
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule
from crfkit.solvers.parts.working_set import Grown, TakesBatches, begin, ends, inner_solver, select, solve

RESTARTS = ("last", "origin")
FAILURES = (Status.DIVERGED, Status.NON_FINITE)


@dataclass(frozen=True)
class GraftingLight(TakesBatches):
    """Take one step over the working set, then switch on the next candidates, and so on; for losses with "candidates".

    Parameters
    ----------
    select_unit : maximum number of candidates (attributes or edges, with all their weights) per selection.
    inner_steps : number of steps between selections.
    memory : number of curvature pairs; each takes two vectors of the non-zero weights.
    batches : candidates that arrive later. Whenever no candidate violates, the next item is passed to the loss's
        `add_candidates` (a tuple: as its arguments). Give a resumed run the same batches; it skips those that its loss
        already has.

    ``result.w`` belongs to ``result.loss``, the loss of the working set. The trace has the columns `selected` (blocks
    switched on so far), `violators` and `passes` (over the candidates); `evaluations` are those of the working set.

    >>> GraftingLight(select_unit=1).name
    'grafting-light'
    """

    select_unit: int = 50
    inner_steps: int = 1
    memory: int = 20
    batches: Iterable[object] = ()
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000

    name: ClassVar[str] = "grafting-light"
    numpy_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(select_unit=self.select_unit, inner_steps=self.inner_steps, memory=self.memory)
        check_iterations(self.max_iterations)

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> Grown:
        inner = inner_solver(objective, self.memory).init(objective, w0, saved)
        start = begin(objective, inner, saved, self.batches)
        return start if saved else select(objective, inner, self.select_unit, start.batches)

    def step(self, objective: Objective, state: Grown) -> Grown | Status:
        outcome = inner_solver(objective, self.memory).step(objective, state.inner)
        if isinstance(outcome, Status):
            if outcome in FAILURES or state.settled:
                return outcome
            return select(objective, state.inner, self.select_unit, state.batches)  # the working set is optimal
        if not outcome.point.finite:
            return Status.DIVERGED
        if state.steps + 1 < self.inner_steps:
            return replace(state, inner=outcome, steps=state.steps + 1)
        return select(objective, outcome, self.select_unit, state.batches)

    def finished(self, trace: Sequence[TraceRow], state: Grown) -> bool:
        return ends(trace, state, self.stopping)


@dataclass(frozen=True)
class Grafting(TakesBatches):
    """Minimise over the working set to the end, then switch on the next candidates; one iteration does both.

    Parameters
    ----------
    select_unit, memory, batches : as in :class:`GraftingLight`.
    restart : where each minimisation begins: at the "last" optimum or at the "origin".
    stopping : when each minimisation stops.
    inner_iterations : maximum number of steps of each; one that reaches it continues in the next iteration.

    >>> Grafting(restart="origin").name
    'grafting'
    """

    select_unit: int = 50
    restart: Literal["last", "origin"] = "last"
    memory: int = 20
    batches: Iterable[object] = ()
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000
    inner_iterations: int = 1000

    name: ClassVar[str] = "grafting"
    numpy_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(select_unit=self.select_unit, memory=self.memory, inner_iterations=self.inner_iterations)
        check_iterations(self.max_iterations)
        if self.restart not in RESTARTS:
            raise ParameterError(f"restart must be one of {', '.join(RESTARTS)}, not {self.restart!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> Grown:
        inner = inner_solver(objective, self.memory).init(objective, w0, saved)
        start = begin(objective, inner, saved, self.batches)
        return start if saved else select(objective, inner, self.select_unit, start.batches)

    def step(self, objective: Objective, state: Grown) -> Grown | Status:
        limits = {"stopping": self.stopping, "max_iterations": self.inner_iterations}
        solver, inner = inner_solver(objective, self.memory, **limits), state.inner
        if self.restart == "origin" and state.violations.count:
            inner = solver.init(objective, 0.0 * inner.point.w, {})
        inner, status = solve(objective, solver, inner)
        if status in FAILURES or (inner is state.inner and state.settled):
            return status
        return select(objective, inner, self.select_unit, state.batches, status is Status.CONVERGED)

    def finished(self, trace: Sequence[TraceRow], state: Grown) -> bool:
        return state.solved and state.settled
