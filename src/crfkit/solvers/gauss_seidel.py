"""Gauss–Seidel under L1 (Shevade & Keerthi 2003).

Each iteration minimises over the blocks that violate the optimality conditions most and holds the others, until none
violates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from crfkit._checks import check_count
from crfkit.protocols import Saved, Vector
from crfkit.result import Status, TraceRow
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.restricted import Restricted
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule
from crfkit.solvers.parts.working_set import (
    Batches,
    Grown,
    TakesBatches,
    Violations,
    begin,
    ends,
    find,
    inner_solver,
    solve,
    strength,
)


@dataclass(frozen=True)
class At:
    """A point and the candidates that violate there."""

    point: Point
    ids: Vector
    scores: Vector
    progress: Progress

    def saved(self) -> Saved:
        return self.progress.saved()


@dataclass(frozen=True)
class GaussSeidel(TakesBatches):
    """Minimise over the M worst blocks at a time and hold all other weights; for losses with "candidates".

    Parameters
    ----------
    select_unit : M, the number of blocks of an iteration; weights that are always on are one block.
    memory : number of curvature pairs that OWL-QN keeps for those blocks.
    batches : candidates that arrive later, as in :class:`~crfkit.solvers.grafting.GraftingLight`; the trace has the
        same columns.
    stopping : when the whole run stops.
    inner_stopping, inner_iterations : when the minimisation over the chosen blocks stops.

    >>> GaussSeidel(select_unit=1).name
    'gauss-seidel'
    """

    select_unit: int = 50
    memory: int = 20
    batches: Iterable[object] = ()
    stopping: StoppingRule = field(default_factory=lambda: PeriodDecrease(1e-6))
    max_iterations: int = 100_000
    inner_stopping: StoppingRule = field(default_factory=lambda: PeriodDecrease(1e-7, 3))
    inner_iterations: int = 1000

    name: ClassVar[str] = "gauss-seidel"
    numpy_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count(select_unit=self.select_unit, memory=self.memory, inner_iterations=self.inner_iterations)
        check_iterations(self.max_iterations)

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> Grown:
        inner_solver(objective, self.memory)  # checks the penalty
        point = objective.at(w0)
        return self._looked_at(
            objective, point, Progress.at(point, saved), begin(objective, None, saved, self.batches).batches
        )

    def step(self, objective: Objective, state: Grown) -> Grown | Status:
        point: Point = state.inner.point
        blocks, new = self._worst(objective, state.inner)
        if len(blocks) == 0:
            return Status.CONVERGED
        loss: Any = objective.loss
        if len(new):
            loss, place = loss.activate(new)
            point = objective.grow(loss, point, place)
        index = np.flatnonzero(np.isin(loss.block_index, blocks))
        part = Objective(some := Restricted(loss, point.w, index), objective.penalty.bind(some))
        limits = {"stopping": self.inner_stopping, "max_iterations": self.inner_iterations}
        solver = inner_solver(part, self.memory, **limits)
        last, status = solve(part, solver, solver.init(part, point.w[index], {}))
        objective.evaluations += part.evaluations
        if status is Status.DIVERGED:
            return status
        whole = last.point.evaluation
        point = objective.point(whole.w, whole.whole)
        progress = state.inner.progress.after(point)
        if isinstance(progress, Status):
            return progress
        return self._looked_at(objective, point, progress, state.batches)

    def finished(self, trace: Sequence[TraceRow], state: Grown) -> bool:
        return ends(trace, state, self.stopping)

    def _looked_at(self, objective: Objective, point: Point, progress: Progress, batches: Batches) -> Grown:
        ids, scores = find(objective, point, batches)
        excess = float(np.linalg.norm(np.asarray(scores) - strength(objective.nonsmooth)))
        here, violations = At(point, ids, scores, progress), Violations(len(ids), excess, excess)
        return Grown(here, objective.loss, violations, objective.passes, batches, batches.taken)

    def _worst(self, objective: Objective, here: At) -> tuple[Vector, Vector]:
        """Return (ids of the M blocks that violate most, those of them to switch on); −1 is one of them."""
        loss: Any = objective.loss
        on, inverse = np.unique(np.asarray(loss.block_index), return_inverse=True)
        size = np.abs(np.asarray(here.point.subgradient))
        worst = np.zeros(len(on))
        np.maximum.at(worst, inverse, size)
        every = np.concatenate([on[worst > 0], np.asarray(here.ids)])
        by = np.concatenate([worst[worst > 0], np.asarray(here.scores) - strength(objective.nonsmooth)])
        chosen = every[np.argsort(-by, kind="stable")[: self.select_unit]]
        return chosen, np.setdiff1d(chosen, on)
