"""Grafting (Perkins, Lacker & Theiler 2003) and Grafting-Light (Zhu, Lao & Xing 2010): feature selection under L1.

Both keep a working set of weights and go on until the optimality conditions hold for all candidates:

    1. minimise loss + penalty over the working set: to the end (Grafting), or by one orthant-wise quasi-Newton step
       or a few (Grafting-Light, which is OWL-QN on a set that grows as it goes);
    2. switch on the M candidates ("select unit") whose gradient exceeds the penalty's strength most.

The curvature that OWL-QN has met stays when the set grows; new weights enter it with zeros, so that it stays positive
definite. OWL-QN on all candidates from the start is the papers' Full-Opt-L1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from crfkit._checks import check_count
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.result import Status, TraceRow
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule
from crfkit.solvers.parts.working_set import Grown, TakesBatches, begin, ends, inner_solver, select, solve

RESTARTS = ("last", "origin")
FAILURES = (Status.DIVERGED, Status.NON_FINITE)


@dataclass(frozen=True)
class GraftingLight(TakesBatches):
    """One step over the working set, then the next candidates, and so on: for losses with "candidates".

    Parameters
    ----------
    select_unit : how many candidates (attributes, edges: whole blocks of weights) a selection switches on at most.
    inner_steps : steps between selections.
    memory : how many curvature pairs to keep, of the weights that are not zero only.
    batches : candidates that arrive later: whenever no candidate violates, the next item is given to the loss's
        `add_candidates` (a tuple: as its arguments). A run that goes on takes the same ones, and leaves out those that
        its loss already has.

    ``result.loss`` is the loss of the working set, that ``result.w`` belongs to. The trace has the columns `selected`
    (blocks switched on so far, apart from `nonzeros`, weights that are not zero now), `violators` and `passes` (over
    the candidates; `evaluations` are those of the working set).

    >>> GraftingLight(select_unit=1).name
    'grafting-light'
    """

    select_unit: int = 50
    inner_steps: int = 1
    memory: int = 20
    batches: Iterable[Any] = ()
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 10_000

    name: ClassVar[str] = "grafting-light"
    numpy_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(select_unit=self.select_unit, inner_steps=self.inner_steps, memory=self.memory)
        check_iterations(self.max_iterations)

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> Grown:
        inner = inner_solver(objective, self.memory).init(objective, w0, saved)
        start = begin(objective, inner, saved, self.batches)
        return start if saved else select(objective, inner, self.select_unit, start.batches)

    def step(self, objective: Objective, state: Grown) -> Grown | Status:
        outcome = inner_solver(objective, self.memory).step(objective, state.inner)
        if isinstance(outcome, Status):
            if outcome in FAILURES or state.settled:
                return outcome
            return select(objective, state.inner, self.select_unit, state.batches)  # all else is done
        if not outcome.point.finite:
            return Status.DIVERGED
        if state.steps + 1 < self.inner_steps:
            return replace(state, inner=outcome, steps=state.steps + 1)
        return select(objective, outcome, self.select_unit, state.batches)

    def finished(self, trace: Sequence[TraceRow], state: Grown) -> bool:
        return ends(trace, state, self.stopping)


@dataclass(frozen=True)
class Grafting(TakesBatches):
    """The working set is minimised to the end before the next candidates are chosen: an iteration is all of that.

    Parameters
    ----------
    select_unit, memory, batches : as in :class:`GraftingLight`.
    restart : each minimisation begins at the "last" optimum or at the "origin".
    stopping : of each minimisation.
    inner_iterations : limit of each; one that reaches it goes on in the next iteration.

    >>> Grafting(restart="origin").name
    'grafting'
    """

    select_unit: int = 50
    restart: Literal["last", "origin"] = "last"
    memory: int = 20
    batches: Iterable[Any] = ()
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

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> Grown:
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
