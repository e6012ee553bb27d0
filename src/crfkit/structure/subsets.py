"""Structure learning on some of the rows: random halves of them, and folds that are held out.

Each is a function of `RowSubsets` and a few numbers. A cluster gets both (`crfkit.training.tasks`), so they hold arrays
and options only: no loss, which refers to native objects.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.observations import Observations
from crfkit.structure.solve import EdgeSolver, Solution, structure_threads
from crfkit.structure.support import Supports


@dataclass(frozen=True, eq=False)
class Weights:
    """The active edges of a solution, in the order of their weights, and the weights. They can be sent anywhere."""

    edges: Ints
    w: Floats

    @classmethod
    def of(cls, solution: Solution) -> Weights:
        return cls(solution.loss.active_ids, solution.w)

    def on(self, loss: EdgeLoss) -> Solution:
        """Return the solution again, of the same rows."""
        return Solution(loss.with_active(self.edges), self.w)


@dataclass(frozen=True, eq=False)
class FoldState:
    """The last point of a fold's path: its solution under the penalty, and refitted without it."""

    penalised: Weights
    refitted: Weights


@dataclass(frozen=True, eq=False)
class Fold:
    """The losses of a fold: of the rows outside, which are learned from, and of its own rows, which are scored."""

    train: EdgeLoss
    test: EdgeLoss
    share: float  # of all rows that are learned from; strengths are multiplied by it


@dataclass(frozen=True, eq=False)
class RowSubsets:
    """The search on some of the rows of a table."""

    solver: EdgeSolver
    loss: Callable[[Observations], EdgeLoss]  # of a table of the same variables
    table_of: Callable[[Ints], Observations]  # of some of the rows
    n: int  # rows
    _made: dict[int, Fold] = field(default_factory=dict, repr=False)  # folds, where their paths are followed

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_made": {}}

    # --- random halves

    def generators(self) -> Iterator[np.random.Generator]:
        """Yield the generator of each random half, all of one stream, so that any half can be drawn alone."""
        rng = np.random.default_rng(self.solver.options.seed)
        for _ in range(self.solver.options.n_subsamples):
            yield copy.deepcopy(rng)
            rng.permutation(self.n)

    def half(self, item: tuple[np.random.Generator, float]) -> Ints:
        """Return the edges that a random half of the rows selects; the item holds its generator and the strength.

        The generator takes a few bytes, the rows would take many.
        """
        rng, strength = item
        rows = np.sort(rng.permutation(self.n)[: max(1, self.n // 2)])
        with structure_threads(self.solver.options.n_threads):
            half = self.loss(self.table_of(rows))
            return self.solver.solve(self.solver.empty(half), strength, rough=True).support

    # --- folds

    def folds(self) -> list[Ints]:
        """Return the rows of each fold."""
        order = np.random.default_rng(self.solver.options.seed).permutation(self.n)
        return [np.sort(part) for part in np.array_split(order, self.solver.options.n_folds)]

    def fold(self, number: int) -> Fold:
        """Return the losses of a fold, which are made once in each process."""
        found = self._made.get(number)
        if found is None:
            rows = self.folds()[number]
            train, test = self.table_of(np.setdiff1d(np.arange(self.n), rows)), self.table_of(rows)
            found = self._made[number] = Fold(self.loss(train), self.loss(test), train.total / self.n)
        return found

    def held_out(self, number: int, strength: float, state: FoldState | None) -> tuple[float, FoldState]:
        """Return the loss per row of a fold at the next strength of its path, and the new state of the path.

        Its edges are refitted without the edge penalty before they are scored.
        """
        with structure_threads(self.solver.options.n_threads):
            fold = self.fold(number)
            start = self.solver.empty(fold.train) if state is None else state.penalised.on(fold.train)
            solution = self.solver.solve(start, fold.share * strength, rough=True)
            near = None if state is None else state.refitted.on(fold.train)
            refitted = Supports(self.solver).refit(solution, near=near)
            score = fold.test.with_active(refitted.loss.active_ids).at(refitted.w).value / fold.test.table.total
            return float(score), FoldState(Weights.of(solution), Weights.of(refitted))
