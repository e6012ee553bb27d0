"""Which edges to keep: solutions along strengths, supports refitted without the edge penalty, and rules to choose."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.errors import ParameterError
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.observations import Observations
from crfkit.structure.training.parts import Parts
from crfkit.structure.training.refit import MANY, Solution
from crfkit.structure.training.solve import EdgeSolver
from crfkit.training.path import PathPoint, follow
from crfkit.training.tasks import Tasks
from crfkit.warn import warn_caller

TWICE = 2.0  # the edges of the best step: a strength that lets in more of them, and MANY, ends a path
PATIENCE = 3  # strengths without a better score before a path may end, if no edge that is off is worth its price
FURTHER = 0.01  # share of the last strength down to which a path is extended whose last score is the best


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges at one strength: under the penalty and, where a rule asks for it, refitted without it."""

    penalised: Solution
    refitted: Solution | None = None

    @property
    def support(self) -> Ints:
        """The edges that the penalty leaves."""
        return self.penalised.support


EdgePoint = PathPoint[Edges]


def edge_point(strength: float, solution: Solution) -> EdgePoint:
    """Return the point of a path for a solution whose edges are all different from zero."""
    result, weights = solution.result, int(np.count_nonzero(solution.w))
    value = math.nan if result is None else result.value
    edges = len(solution.support)
    return PathPoint(strength, value, weights, n_edges=edges, result=result, solution=Edges(solution))


def refitted_point(point: EdgePoint, refitted: Solution, score: float) -> EdgePoint:
    """Return the point with refitted edges, which count from now on, and their score."""
    edges = replace(point.model, refitted=refitted)
    return replace(point, solution=edges, n_edges=len(refitted.support), score=score)


@dataclass(frozen=True)
class Search(EdgeSolver):
    """Solves along strengths and chooses among them; the options are those of StructureLearner."""

    n_strengths: int = 30
    ratio: float = 0.01
    n_folds: int = 5
    n_subsamples: int = 50
    callback: Callable[[EdgePoint], None] | None = None
    on_half: Callable[[int, int], None] | None = None  # called with how many random halves are done, and of how many
    tasks: Tasks = field(default_factory=Tasks)  # how folds and random halves are run

    def strengths(self, empty: Solution) -> Floats:
        """Return strengths in geometric progression, from the critical one down."""
        largest = self.critical_strength(empty)
        if not (largest > 0 and math.isfinite(largest)):
            return np.zeros(0)
        return np.geomspace(largest, self.ratio * largest, self.n_strengths)

    def downwards(self, strengths: Floats) -> Iterator[float]:
        """Yield the strengths, and more of the same progression below them."""
        yield from strengths.tolist()
        if len(strengths) > 1:
            ratio, last = float(strengths[-1] / strengths[-2]), float(strengths[-1])
            further = last * ratio
            while further > FURTHER * last:
                yield further
                further *= ratio

    def path(self, loss: EdgeLoss, strengths: Iterable[float], rough: bool = False) -> Iterator[EdgePoint]:
        """Yield the solutions, the largest strength first, each started from the one before."""

        def solve(strength: float, before: Solution) -> tuple[EdgePoint, Solution]:
            solution = self.solve(before, strength, rough)
            return edge_point(strength, solution.reduced()), solution

        return follow(strengths, self.empty(loss), solve, self.callback)

    def ebic(self, refitted: Solution) -> float:
        """Return the extended BIC of refitted edges."""
        return self.refits.ebic(refitted)

    def by_ebic(self, loss: EdgeLoss) -> Iterator[EdgePoint]:
        """Yield the path, refitted, with extended BICs, until no edge that is off is worth its price."""
        steps: list[EdgePoint] = []
        complete: dict[int, Ints] = {}
        grid = self.strengths(self.empty(loss))
        for step in self.path(loss, self.downwards(grid), rough=True):
            last = steps[-1].model.refitted if steps else None
            same = bool(steps) and np.array_equal(steps[-1].model.support, step.model.support)
            refitted = last if same and last else self.refit(step.model.penalised, near=last)
            steps.append(refitted_point(step, refitted, self.ebic(refitted)))
            yield steps[-1]
            if self._at_end(steps, len(grid), complete):
                return
        if steps:
            _warn_of_the_end(steps)

    def _at_end(self, steps: list[EdgePoint], n_strengths: int, complete: dict[int, Ints]) -> bool:
        """Return whether the best score is some strengths ago and all edges that would lower it have come in since.

        A support that stays the same is no reason to end: a pair of copies enters long before all other edges.
        A strength that lets in twice as many edges as the best step kept is one: most of them are noise, and on wide
        tables they take most of the time. `complete` keeps the completed edges of the best step.
        """
        best = least(steps)
        if len(steps) >= n_strengths and (best < len(steps) - 1 or n_strengths == 1):
            return True
        model, last = steps[best].model.refitted, steps[-1].model.support
        if model is not None and best < len(steps) - 1 and len(last) > max(MANY, TWICE * len(model.loss.edges)):
            return True
        if len(steps) - 1 - best < PATIENCE:
            return False
        if model is None:
            return True
        if best not in complete:
            complete.clear()
            promising = len(self.refits.promising(model)) > 0
            complete[best] = self.refits.completed(model).loss.active_ids if promising else model.loss.active_ids[:0]
        return bool(np.isin(complete[best], last).all())

    def by_folds(self, loss: EdgeLoss, table_of: Callable[[Ints], Observations], n: int) -> Iterator[EdgePoint]:
        """Yield the path with held-out losses.

        Each fold has a path of its own; see :meth:`Parts.held_out`. The folds go down their paths together.
        """
        self.check_folds(n)
        grid = self.strengths(self.empty(loss))
        parts = Parts(self.quiet(), loss.maker(), table_of, n)
        steps: list[EdgePoint] = []
        together = self.tasks.together(Parts.held_out, parts, range(self.n_folds), self.downwards(grid))
        with closing(together):
            for step in self.path(loss, self.downwards(grid), rough=True):
                scores = next(together)
                error = float(np.std(scores, ddof=1) / math.sqrt(len(scores)))
                steps.append(replace(step, score=float(np.mean(scores)), error=error))
                yield steps[-1]
                since = len(steps) - 1 - least(steps)
                if len(steps) >= len(grid) and (since > 0 or len(grid) == 1):
                    return
                if since >= PATIENCE:
                    refitted = self.refit(steps[least(steps)].model.penalised)
                    if not len(self.refits.promising(refitted)):
                        return
        if steps:
            _warn_of_the_end(steps)

    def quiet(self) -> Search:
        """Return the search without callbacks, in this process."""
        return replace(self, callback=None, callbacks=(), on_half=None, tasks=Tasks())

    def check_folds(self, n: int) -> None:
        """Raise ParameterError if n rows are too few for the folds."""
        if n < self.n_folds:
            raise ParameterError(f"{n} rows cannot make {self.n_folds} folds: lower n_folds, or choose by 'ebic'")

    def folds(self, n: int) -> list[Ints]:
        """Return the rows of each fold."""
        order = np.random.default_rng(self.options.seed).permutation(n)
        return [np.sort(part) for part in np.array_split(order, self.n_folds)]

    def stability(
        self, loss: EdgeLoss, table_of: Callable[[Ints], Observations], n: int, strength: float
    ) -> dict[int, float]:
        """Return, for every edge that was ever selected, the share of random halves of the rows that select it.

        (Meinshausen & Bühlmann 2010.) Halves are solved at half the strength, as the loss is a sum over rows.
        """
        parts = Parts(self if self.tasks.here else self.quiet(), loss.maker(), table_of, n)
        counts: dict[int, int] = {}
        halves = self.tasks.map(Parts.half, parts, ((rng, 0.5 * strength) for rng in self._generators(n)))
        with closing(halves):
            for done, support in enumerate(halves, start=1):
                for edge in support.tolist():
                    counts[edge] = counts.get(edge, 0) + 1
                if self.on_half is not None:
                    self.on_half(done, self.n_subsamples)
        return {edge: count / self.n_subsamples for edge, count in sorted(counts.items())}

    def _generators(self, n: int) -> Iterator[np.random.Generator]:
        """Yield the generator of each random half, all of one stream, so that any half can be drawn alone."""
        rng = np.random.default_rng(self.options.seed)
        for _ in range(self.n_subsamples):
            yield copy.deepcopy(rng)
            rng.permutation(n)


def least(steps: Sequence[EdgePoint]) -> int:
    """Return the step with the least score; among scores that are equal to rounding, the largest strength."""
    scores = np.array([step.score for step in steps])
    lowest = scores.min()
    return int(np.flatnonzero(scores <= lowest + 1e-6 * abs(lowest))[0])


def within_an_error(steps: Sequence[EdgePoint]) -> int:
    """Return the step with the largest strength whose score is within a standard error of the least."""
    best = steps[least(steps)]
    limit = (best.score or 0.0) + (best.error or 0.0)
    return next(k for k, step in enumerate(steps) if step.score is not None and step.score <= limit)


def _warn_of_the_end(steps: Sequence[EdgePoint]) -> None:
    if least(steps) == len(steps) - 1 and len(steps) > 1:
        warn_caller(
            f"the path of strengths ended at {steps[-1].strength:g} with its best score: smaller strengths may be "
            "better; raise n_strengths, or give edge_strength as a number",
            UserWarning,
        )
