"""L-BFGS: strong-Wolfe line search + limited-memory quasi-Newton direction (Liu & Nocedal 1989)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crfkit.arrays import combine, dot
from crfkit.errors import ParameterError
from crfkit.protocols import Loss, Penalty, Vector
from crfkit.result import Result, Status
from crfkit.solvers.line_search import Reason, StrongWolfe, Trial
from crfkit.solvers.loop import Callback, run
from crfkit.solvers.memory import CurvaturePairs
from crfkit.solvers.objective import Objective, Point
from crfkit.solvers.stopping import PeriodDecrease, StoppingRule


@dataclass
class LBFGSState:
    point: Point
    pairs: CurvaturePairs
    best_value: float  # so far, as is the next
    best_norm: float
    stalls: int = 0  # successive steps that improved neither

    def saved(self) -> Mapping[str, Any]:
        return self.pairs.saved()


@dataclass(frozen=True)
class LBFGS:
    """Minimises smooth objectives.

    Parameters
    ----------
    memory : how many curvature pairs to keep; two vectors each.
    stopping : a rule of :mod:`crfkit.solvers.stopping`.
    max_iterations : at most so many.
    line_search : finds a step that satisfies the strong Wolfe conditions.
    """

    memory: int = 6
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    line_search: StrongWolfe = field(default_factory=StrongWolfe)

    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[frozenset[str]] = frozenset({"smooth"})
    handles_rest: ClassVar[frozenset[str]] = frozenset()
    max_stalls: ClassVar[int] = 10

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ParameterError(f"memory must be >= 1, not {self.memory!r}")
        if self.max_iterations < 0:
            raise ParameterError(f"max_iterations must be >= 0, not {self.max_iterations!r}")

    def minimize(
        self,
        loss: Loss,
        penalty: Penalty,
        w0: Vector,
        callbacks: Sequence[Callback] = (),
        resume: Mapping[str, Any] | None = None,
    ) -> Result:
        return run(self, loss, penalty, w0, callbacks, resume)

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> LBFGSState:
        start = objective.at(w0)
        return LBFGSState(start, CurvaturePairs(self.memory, saved), start.value, start.grad_norm)

    def step(self, objective: Objective, state: LBFGSState) -> LBFGSState | Status:
        point, pairs = state.point, state.pairs
        if point.grad_norm == 0.0:
            return Status.CONVERGED
        first = len(pairs) == 0
        d = pairs.direction(point.grad)
        slope = dot(d, point.grad)
        if not slope < 0:  # the pairs have lost positive definiteness to rounding
            pairs.clear()
            first, d = True, -1.0 * point.grad
            slope = dot(d, point.grad)

        def phi(step: float) -> Trial:
            trial = objective.at(combine(point.w, step, d), point.evaluation)
            return Trial(step, trial.value, dot(trial.grad, d), trial)

        start = Trial(0.0, point.value, slope, point)
        found = self.line_search.search(phi, start, 1.0 / point.grad_norm if first else 1.0)
        new = found.trial.point
        # Where the objective is flat to rounding, a step along which it does not fall must flatten its slope.
        useless = new is not None and new.value >= point.value and found.reason is not Reason.STRONG_WOLFE
        if not found.accepted or new is None or useless:
            if first:
                return Status.LINE_SEARCH_FAILED
            pairs.clear()  # once more along the gradient
            return self.step(objective, state)
        pairs.add(point.w, point.grad, new.w, new.grad)
        return self._advance(state, new)

    def _advance(self, state: LBFGSState, new: Point) -> LBFGSState | Status:
        """The next state, unless nothing but rounding has changed for a while."""
        falls = new.value < state.best_value - 2.0**-50 * abs(state.best_value)
        flattens = new.grad_norm < 0.9 * state.best_norm
        stalls = 0 if falls or flattens else state.stalls + 1
        if stalls > self.max_stalls:
            return Status.LINE_SEARCH_FAILED
        best_value, best_norm = min(state.best_value, new.value), min(state.best_norm, new.grad_norm)
        return LBFGSState(new, state.pairs, best_value, best_norm, stalls)
