"""The one loop: iteration, stopping, timing, tracing, callbacks, Ctrl-C and non-finite detection.

A solver is `init` and `step`. `step` returns the next state, or a Status when it cannot go on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from crfkit.arrays import count_nonzero, free, norm
from crfkit.errors import CapabilityError, CrfkitError, ParameterError, StopTraining
from crfkit.interrupts import welcome
from crfkit.parameters import Parameters
from crfkit.protocols import Loss, Penalty, Solver, State, Vector
from crfkit.result import LAST_WEIGHTS, Result, Status, TraceRow
from crfkit.solvers.parts.compatibility import NO_OTHERS, check_compatible
from crfkit.solvers.parts.endings import at_rounding, has_risen
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.past import ITERATIONS, PAST, PAST_ROWS, Past
from crfkit.solvers.parts.precision import Precision, rounding_of
from crfkit.solvers.parts.saved import check_state
from crfkit.solvers.parts.stopping import for_values_that_rise


@dataclass(frozen=True)
class Iteration:
    """The argument of callbacks, after each iteration and, with number 0, at the start."""

    row: TraceRow
    w: Vector
    loss: Any = None  # that w belongs to
    saved: Callable[[], Mapping[str, Any]] = dict  # returns the state, from which a later run can go on at w


class InterruptedStepError(KeyboardInterrupt):
    """Ctrl-C in a step that had come far enough to keep its weights: `state` has them."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state


# Returns numbers to add to the trace row, or None; raises StopTraining to end.
Callback = Callable[[Iteration], Mapping[str, float] | None]


class Steps:
    """The iteration itself: every run, and every minimisation inside a step of another solver, goes through it.

    Iterate over it to make the steps. Each turn gives a state, the start first, after its row was added to `trace`.
    At the end `state` is the last one and `status` says why there are no more.
    """

    def __init__(
        self,
        solver: Solver,
        objective: Objective,
        start: State,
        seconds: Callable[[], float] = lambda: 0.0,
        past: Past | None = None,
    ) -> None:
        self.solver = solver
        self.objective = objective
        self.state: Any = start
        self.status = Status.MAX_ITERATIONS
        self.trace: list[TraceRow] = []
        self._seconds = seconds
        self._past = past or Past()
        self._precision = Precision(objective)
        self._recorded = False  # whether the last row of the trace is that of the state
        self._since = 0  # the first row that the stopping rule looks at: those before were of a rougher loss

    @property
    def rows(self) -> list[TraceRow]:
        """The trace with what is known of earlier parts of the run before it."""
        return [*self._past.rows, *self.trace]

    @property
    def point(self) -> Any:
        """The point of the state, evaluated as precisely as it was at its last check."""
        finest = self._precision.finest
        return finest if finest is not None and finest.w is self.state.point.w else self.state.point

    def saved(self) -> dict[str, Any]:
        """Return the state, from which a later run can go on as if it had not been cut off."""
        if not self._recorded:
            self.record()
        rows = self.rows[self._since :]
        return {
            "solver": self.solver.name,
            **self.state.saved(),
            PAST: np.array([[row.value, row.optimality] for row in rows], dtype=np.float64).reshape(-1, 2),
            PAST_ROWS: len(rows),
        }

    def __iter__(self) -> Iterator[State]:
        solver, objective, precision = self.solver, self.objective, self._precision
        first = self._past.iterations
        for iteration in range(first, max(first, solver.max_iterations) + 1):
            if iteration > first:
                outcome = solver.step(objective, self.state)
                if outcome is Status.LINE_SEARCH_FAILED:
                    outcome = precision.check(solver, self.state, tighten=True) or outcome
                if isinstance(outcome, Status) or not outcome.point.finite:
                    self.status = outcome if isinstance(outcome, Status) else Status.DIVERGED
                    return
                self.state, self._recorded = precision.follow(solver, outcome), False
                del outcome  # the state before has large vectors
            objective.accept(self.state.point)
            self.record()
            yield self.state
            if solver.finished(self.rows[self._since :], self.state):
                later = solver.next_phase(objective, self.state)
                if later is None:
                    later = precision.check(solver, self.state)
                    if later is None:
                        self.status = Status.CONVERGED
                        return
                    self._since = len(self.rows)
                if iteration == solver.max_iterations:  # nobody would see the state that begins the next phase
                    return
                self.state = later  # at the same point
                del later

    def record(self) -> None:
        """Add the row of the current state to the trace."""
        objective, point = self.objective, self.state.point
        self._recorded = True
        self.trace.append(
            TraceRow(
                self._past.iterations + len(self.trace),
                point.value,
                point.optimality,
                objective.evaluations,
                self._seconds(),
                objective.loss.size if objective.nonsmooth is None else count_nonzero(point.w),
                objective.products,
                self.solver.columns(self.state),
            )
        )


def run(
    solver: Solver,
    loss: Loss,
    penalty: Penalty,
    w0: Vector,
    callbacks: Sequence[Callback] = (),
    resume: Mapping[str, Any] | None = None,
    registry: Mapping[str, Any] = NO_OTHERS,
) -> Result:
    """Minimise loss + penalty from w0; `registry` has the solvers that errors suggest instead."""
    if solver.numpy_only and not isinstance(w0, np.ndarray):
        raise CapabilityError(
            f"the solver {solver.name} works on NumPy vectors only, but the start vector is a "
            f"{type(w0).__module__}.{type(w0).__qualname__}"
        )
    penalty = penalty.bind(loss)
    check_compatible(solver, loss, penalty, registry)
    if w0.shape != (loss.size,):
        raise ParameterError(f"the start vector has shape {tuple(w0.shape)}, but the loss has {loss.size} weights")
    if not math.isfinite(norm(w0)):
        raise ParameterError("the start vector holds numbers that are not finite")
    if resume and resume.get("solver") != solver.name:
        raise ParameterError(f"the saved state is of the solver {resume.get('solver')!r}, not of {solver.name!r}")
    check_state(resume or {})
    objective = Objective(loss, penalty)
    if objective.nonsmooth is not None and objective.nonsmooth.value(w0) == math.inf:
        w0 = objective.nonsmooth.prox(w0, 1.0)  # a constraint that the start does not keep
    may_rise = solver.own_objective or solver.nonmonotone
    clock = _Clock()

    def finish(
        state: State, status: Status, steps: Steps | None = None, saved: Mapping[str, Any] = NO_OTHERS
    ) -> Result:
        trace = steps.trace if steps is not None else ()
        rows = steps.rows if steps is not None else ()
        if status in (Status.CONVERGED, Status.MAX_ITERATIONS) and not may_rise and has_risen(rows):
            status = Status.DIVERGED
        if status is Status.LINE_SEARCH_FAILED and at_rounding(rows, state.point, rounding_of(objective.loss)):
            status = Status.ROUNDING
        point = steps.point if steps is not None else state.point
        return Result(
            point.w,
            point.value,
            point.optimality,
            status,
            tuple(trace),
            saved or {"solver": solver.name, **state.saved()},
            solver.objective_name(objective),
            objective.evaluations,
            clock.seconds(),
            objective.products,
            objective.passes,
            None if (grown := solver.grown_loss(state)) is loss else grown,
            loss.convex,
        )

    try:
        state = solver.init(objective, w0, resume or {})
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if not resume or isinstance(error, CrfkitError):
            raise
        raise ParameterError(f"the saved state cannot be resumed: {error!r}") from error
    if not state.point.finite:
        return finish(state, Status.NON_FINITE)

    steps = Steps(solver, objective, state, clock.seconds, Past.of(resume or {}, state.point.value))

    def unfinished() -> dict[str, Any]:
        return {**steps.saved(), ITERATIONS: steps.trace[-1].iteration}

    try:
        del state  # of the start
        with welcome():
            for _ in steps:
                with clock.paused():
                    _call_back(callbacks, steps.trace, steps.state.point.w, objective.loss, unfinished)
        status = steps.status
    except StopTraining:
        status = Status.STOPPED_BY_CALLBACK
    except InterruptedStepError as stop:
        # the weights are those that the step has reached; a later run makes the whole step again
        saved = {**unfinished(), LAST_WEIGHTS: steps.state.point.w}
        steps.state = stop.state
        steps.record()
        return finish(steps.state, Status.INTERRUPTED, steps, saved)
    except KeyboardInterrupt:
        return finish(steps.state, Status.INTERRUPTED, steps, unfinished())
    return finish(steps.state, status, steps, steps.saved())


class IterativeSolver(Parameters, Solver):
    """Base of solvers that are `init` and `step`."""

    registry: ClassVar[Mapping[str, Any]] = NO_OTHERS  # set by crfkit.solvers, which knows them all

    def minimize(
        self,
        loss: Loss,
        penalty: Penalty,
        w0: Vector,
        callbacks: Sequence[Callback] = (),
        resume: Mapping[str, Any] | None = None,
    ) -> Result:
        """Minimise loss + penalty from w0, or continue from `resume`, the state of an earlier result at w0."""
        try:
            return run(self, loss, penalty, w0, callbacks, resume, self.registry)
        finally:
            free()

    def finished(self, trace: Sequence[TraceRow], state: Any) -> bool:
        """Return whether the stopping rule is satisfied."""
        rule = for_values_that_rise(self.stopping) if self.nonmonotone else self.stopping
        return rule.satisfied(trace, state.point.w)


def _call_back(
    callbacks: Sequence[Callback],
    trace: list[TraceRow],
    w: Vector,
    loss: Any,
    saved: Callable[[], Mapping[str, Any]],
) -> None:
    """Call each callback and add what it returns to the last row; later callbacks see it."""
    for callback in callbacks:
        extra = callback(Iteration(trace[-1], w, loss, saved))
        if extra:
            trace[-1] = replace(trace[-1], extra={**trace[-1].extra, **extra})


class _Clock:
    """A clock that counts seconds, without the pauses."""

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
