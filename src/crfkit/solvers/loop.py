"""The one loop: iteration, stopping, timing, tracing, callbacks, Ctrl-C and non-finite detection.

A solver is `init` and `step`. `step` returns the next state, or a Status when it cannot go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from crfkit.errors import CapabilityError, ParameterError, StopTraining
from crfkit.protocols import Loss, Penalty, Vector
from crfkit.result import Result, Status, TraceRow
from crfkit.solvers.objective import Objective, Point
from crfkit.solvers.stopping import StoppingRule


class State(Protocol):
    @property
    def point(self) -> Point: ...
    def saved(self) -> Mapping[str, Any]:
        """Arrays and numbers from which a later run can go on."""
        ...


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Iteration:
    """What callbacks see after each iteration (and, with number 0, at the start)."""

    row: TraceRow
    w: Vector


# Returns numbers to add to the trace row, or None; raises StopTraining to end.
Callback = Callable[[Iteration], Mapping[str, float] | None]


class Stepper(Protocol[S]):
    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> frozenset[str]: ...
    @property
    def handles_rest(self) -> bool: ...
    @property
    def max_iterations(self) -> int: ...
    @property
    def stopping(self) -> StoppingRule: ...
    def init(self, objective: Objective, start: Point) -> S: ...
    def step(self, objective: Objective, state: S) -> S | Status: ...


def run(solver: Stepper[S], loss: Loss, penalty: Penalty, w0: Vector, callbacks: Sequence[Callback] = ()) -> Result:
    """Minimise loss + penalty from w0."""
    check_compatible(solver, loss, penalty)
    if w0.shape != (loss.size,):
        raise ParameterError(f"the start vector has shape {tuple(w0.shape)}, but the loss has {loss.size} weights")
    objective = Objective(loss, penalty)
    clock = _Clock()
    trace: list[TraceRow] = []

    def finish(state: S | None, point: Point, status: Status) -> Result:
        return Result(
            point.w,
            objective.value(point),
            point.grad_norm,
            status,
            tuple(trace),
            state.saved() if state is not None else {},
            objective.name,
            objective.evaluations,
            clock.seconds(),
        )

    start = objective.at(w0)
    if not start.finite:
        return finish(None, start, Status.NON_FINITE)
    state = solver.init(objective, start)
    try:
        for iteration in range(solver.max_iterations + 1):
            if iteration > 0:
                outcome = solver.step(objective, state)
                if isinstance(outcome, Status):
                    return finish(state, state.point, outcome)
                state = outcome
            point = state.point
            row = TraceRow(
                iteration,
                objective.value(point),
                point.grad_norm,
                objective.evaluations,
                clock.seconds(),
                loss.size if objective.rest is None else int((point.w != 0).sum()),
            )
            trace.append(row)
            with clock.paused():
                trace[-1] = _call_back(callbacks, row, point.w)
            if solver.stopping.satisfied(trace, point.w):
                return finish(state, point, Status.CONVERGED)
        return finish(state, state.point, Status.MAX_ITERATIONS)
    except StopTraining:
        return finish(state, state.point, Status.STOPPED_BY_CALLBACK)
    except KeyboardInterrupt:
        return finish(state, state.point, Status.INTERRUPTED)


def check_compatible(solver: Stepper[Any], loss: Loss, penalty: Penalty) -> None:
    """Raises before the first evaluation if the three cannot work together."""
    missing = sorted(solver.needs - loss.capabilities)
    if missing:
        raise CapabilityError(
            f"the solver {solver.name} needs {', '.join(missing)}, which the {loss.name} does not have; "
            f"it has {', '.join(sorted(loss.capabilities))}"
        )
    if penalty.split()[1] is not None and not solver.handles_rest:
        raise CapabilityError(
            f"the solver {solver.name} minimises smooth objectives only; {penalty.name} is not smooth"
        )


def _call_back(callbacks: Sequence[Callback], row: TraceRow, w: Vector) -> TraceRow:
    extra: dict[str, float] = {}
    for callback in callbacks:
        current = TraceRow(**{**vars(row), "extra": dict(extra)})
        extra.update(callback(Iteration(current, w)) or {})
    return TraceRow(**{**vars(row), "extra": extra}) if extra else row


class _Clock:
    """Seconds since it was made, without the pauses."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._paused_at = 0.0

    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def paused(self) -> _Clock:
        return self

    def __enter__(self) -> None:
        self._paused_at = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._start += time.perf_counter() - self._paused_at
