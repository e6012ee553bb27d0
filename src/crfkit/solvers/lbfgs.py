"""L-BFGS: strong-Wolfe line search + limited-memory quasi-Newton direction (Liu & Nocedal 1989)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from crfkit.arrays import combine, dot
from crfkit.errors import ParameterError
from crfkit.protocols import Loss, Penalty, Vector
from crfkit.result import Result, Status
from crfkit.solvers.line_search import StrongWolfe, Trial
from crfkit.solvers.loop import Callback, run
from crfkit.solvers.memory import CurvaturePairs
from crfkit.solvers.objective import Objective, Point
from crfkit.solvers.stopping import PeriodDecrease, StoppingRule


@dataclass
class LBFGSState:
    point: Point
    pairs: CurvaturePairs

    def saved(self) -> Mapping[str, Any]:
        return {"pairs": len(self.pairs)}


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
    handles_rest: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ParameterError(f"memory must be >= 1, not {self.memory!r}")
        if self.max_iterations < 0:
            raise ParameterError(f"max_iterations must be >= 0, not {self.max_iterations!r}")

    def minimize(self, loss: Loss, penalty: Penalty, w0: Vector, callbacks: Sequence[Callback] = ()) -> Result:
        return run(self, loss, penalty, w0, callbacks)

    def init(self, objective: Objective, start: Point) -> LBFGSState:
        return LBFGSState(start, CurvaturePairs(self.memory))

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
        if not found.accepted or found.trial.point is None:
            if first:
                return Status.LINE_SEARCH_FAILED
            pairs.clear()  # once more along the gradient
            return self.step(objective, state)
        new = found.trial.point
        pairs.add(point.w, point.grad, new.w, new.grad)
        return LBFGSState(new, pairs)
