"""Parts that the Grafting family shares: the working set, how candidates are chosen for it, and when a run ends.

A candidate (a block of weights at zero) violates the optimality conditions where the dual norm of its gradient exceeds
the strength of the penalty; for L1 that is max_k |∂_k f| > λ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crfkit.errors import CapabilityError, ParameterError
from crfkit.protocols import Capability, Evaluation, GrowingLoss, Kind, NonsmoothPenalty, Selection, Vector
from crfkit.result import Status, TraceRow
from crfkit.solvers.fista import FISTA
from crfkit.solvers.owlqn import OWLQN
from crfkit.solvers.parts.loop import IterativeSolver, Steps
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.saved import saved_count, saved_number
from crfkit.solvers.parts.stopping import StoppingRule

SLACK = 1e-6  # of the strength: candidates that exceed it by less do not keep a run from ending

NEEDS = frozenset({Capability.SMOOTH, Capability.CANDIDATES})
HANDLES = frozenset({Kind.L1, Kind.BY_BLOCK})


@dataclass(frozen=True)
class Violations:
    """The candidates that violate the optimality conditions at a point."""

    count: int = 0
    excess: float = 0.0  # ‖norms − strength‖ of all of them
    waiting: float = 0.0  # of those that were not switched on


@dataclass(frozen=True)
class WholePoint:
    """A point of the working set, with the optimality of all candidates."""

    inner: Point
    waiting: float

    @property
    def w(self) -> Vector:
        return self.inner.w

    @property
    def value(self) -> float:
        return self.inner.value

    @property
    def optimality(self) -> float:
        """Return a lower bound: of a candidate with several weights only the norm is known."""
        return math.hypot(self.inner.optimality, self.waiting)

    @property
    def finite(self) -> bool:
        return self.inner.finite

    @property
    def evaluation(self) -> Evaluation:
        return self.inner.evaluation


class Batches:
    """Candidates that come later; counts how many were given to the loss."""

    def __init__(self, batches: Iterable[Any], taken: int = 0) -> None:
        self._left: Iterator[Any] = islice(batches, taken, None)
        self.taken = taken

    def next(self) -> tuple[Any, ...] | None:
        """Return the next batch as arguments of `add_candidates`; None: there are no more."""
        for batch in self._left:
            self.taken += 1
            return batch if isinstance(batch, tuple) else (batch,)
        return None


@dataclass(frozen=True)
class Bare:
    """The state of an inner solver that has learned nothing but its point."""

    point: Point

    def grown(self, point: Point, place: Any) -> Bare:
        """Return the state in a larger space, where weight i stands at place[i]."""
        return Bare(point)


@dataclass(frozen=True)
class Grown:
    """The state of a solver of the family."""

    inner: Any  # the state of the solver of the working set
    loss: Any  # of the working set
    violations: Violations
    passes: int
    batches: Batches
    taken: int  # of the batches, by this loss
    steps: int = 0  # since the candidates were looked at
    solved: bool = False  # whether the working set was optimal before the last selection

    @property
    def point(self) -> WholePoint:
        return WholePoint(self.inner.point, self.violations.waiting)

    @property
    def settled(self) -> bool:
        """Return whether no candidate violates at this point."""
        return self.steps == 0 and self.violations.excess <= SLACK * strength(self.inner.point.nonsmooth)

    def saved(self) -> Mapping[str, Any]:
        active = np.asarray(self.loss.active_ids)
        return {
            **self.inner.saved(),
            **asdict(self.violations),
            "since": self.steps,
            "active": active,
            "batches": self.taken,
        }


class WorkingSetSolver(IterativeSolver):
    """Base of the solvers that keep a working set."""

    needs: ClassVar[frozenset[Capability]] = NEEDS
    handles_nonsmooth: ClassVar[frozenset[Kind]] = HANDLES

    def columns(self, state: Any) -> Mapping[str, float]:
        """Return blocks in the working set, candidates that violate, and passes over the candidates in total."""
        return {"selected": len(state.loss.active_ids), "violators": state.violations.count, "passes": state.passes}

    def grown_loss(self, state: Any) -> GrowingLoss:
        loss: GrowingLoss = state.loss
        return loss


class TakesBatches(WorkingSetSolver):
    """Base of the solvers with an option `batches`: candidates that arrive later."""

    if TYPE_CHECKING:

        @property
        def batches(self) -> Iterable[Any]: ...

    def for_path(self) -> TakesBatches:
        """Return the solver for several runs; a batch that one run has added to the loss is not added again."""
        return replace(self, batches=iter(self.batches))  # type: ignore[type-var]


def selection(rest: NonsmoothPenalty | None) -> Selection:
    """Return the rule by which candidates are chosen."""
    found = None if rest is None else rest.selection
    assert found is not None  # else the loop has refused the penalty
    return found


def strength(rest: NonsmoothPenalty | None) -> float:
    return selection(rest).strength


def inner_solver(objective: Objective, memory: int, **limits: Any) -> Any:
    """Return OWL-QN for penalties of single weights, otherwise FISTA; raise if all candidates would be selected."""
    rest: Any = objective.nonsmooth
    if rest is None:
        raise CapabilityError(
            f"{objective.penalty.name} makes no weight zero, so that all candidates would be selected; "
            "penalties that select: L1, ElasticNet, GroupL2, GroupLinf, ByBlock"
        )
    if OWLQN.handles_nonsmooth & rest.kinds:
        return OWLQN(memory=memory, **limits)
    return FISTA(backtracking=True, **limits)


def begin(objective: Objective, inner: Any, saved: Mapping[str, Any], batches: Iterable[Any]) -> Grown:
    """Return the state before the first selection, or as it was saved."""
    loss: Any = objective.loss
    if "active" in saved and not np.array_equal(saved["active"], loss.active_ids):
        raise ParameterError(
            "the saved state has selected other blocks than this loss: go on with the `loss` of the same result"
        )
    violations, steps = Violations(), 0
    if "excess" in saved:
        sizes = (saved_number(saved, name, low=0.0) for name in ("excess", "waiting"))
        violations, steps = Violations(saved_count(saved, "count"), *sizes), saved_count(saved, "since")
    left = Batches(batches, saved_count(saved, "batches", 0))
    return Grown(inner, loss, violations, objective.passes, left, left.taken, steps)


def find(objective: Objective, point: Point, batches: Batches) -> tuple[Any, Any]:
    """Return (ids, scores) of the violating candidates; if there are none, of the next batch that has some."""
    loss: Any = objective.loss
    rule = selection(objective.nonsmooth)
    while True:
        ids, scores = loss.candidates(point.evaluation, rule.norm, rule.strength)
        objective.passes += 1
        more = batches.next() if len(ids) == 0 else None
        if more is None:
            return ids, scores
        loss = objective.loss = loss.add_candidates(*more)


def select(objective: Objective, inner: Any, unit: int, batches: Batches, solved: bool = False) -> Grown:
    """Return the working set with the `unit` candidates that violate most."""
    ids, scores = find(objective, inner.point, batches)
    excess = np.asarray(scores) - strength(objective.nonsmooth)
    violations = Violations(len(ids), float(np.linalg.norm(excess)), float(np.linalg.norm(excess[unit:])))
    if len(ids):
        loss: Any = objective.loss
        larger, place = loss.activate(ids[:unit])
        inner = inner.grown(objective.grow(larger, inner.point, place), place)
    return Grown(inner, objective.loss, violations, objective.passes, batches, batches.taken, 0, solved)


def solve(objective: Objective, solver: IterativeSolver, inner: Any) -> tuple[Any, Status]:
    """Minimise over the working set from a state of its solver; return the last state and why it ended."""
    steps = Steps(solver, objective, inner)
    for _ in steps:
        pass
    return steps.state, steps.status


def ends(trace: Sequence[TraceRow], state: Grown, stopping: StoppingRule) -> bool:
    """Return whether the stopping rule is satisfied and no candidate violates."""
    return state.settled and stopping.satisfied(trace, state.point.w)
