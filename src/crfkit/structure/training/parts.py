"""What structure learning solves on some of the rows: random halves of them, and folds that are held out.

A part is a function of `Parts` and a few numbers. `crfkit.distributed.tasks` sends both to other machines, so that they
hold arrays and options only: no loss, which refers to native objects.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.observations import Observations
from crfkit.structure.training.refit import Solution
from crfkit.structure.training.threads import structure_threads

if TYPE_CHECKING:
    from crfkit.structure.training.search import Search


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
    """Where a fold is on its path: its solution under the penalty, and refitted without it."""

    penalised: Weights
    refitted: Weights


@dataclass(frozen=True, eq=False)
class Fold:
    """The losses of a fold: of the rows outside of it, which are learnt from, and of those in it, which are scored."""

    train: EdgeLoss
    test: EdgeLoss
    share: float  # of all rows that are learnt from, which strengths are multiplied with


@dataclass(frozen=True, eq=False)
class Parts:
    """A search on some of the rows of a table."""

    search: Search
    loss: Callable[[Observations], EdgeLoss]  # of a table of the same variables
    table_of: Callable[[Ints], Observations]  # of some of the rows
    n: int  # rows
    _made: dict[int, Fold] = field(default_factory=dict, repr=False)  # folds, where their paths are followed

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": {}}

    def half(self, item: tuple[np.random.Generator, float]) -> Ints:
        """Return the edges that a random half of the rows selects at a strength; the item has the generator and it.

        The generator, instead of the rows, is a few bytes.
        """
        rng, strength = item
        rows = np.sort(rng.permutation(self.n)[: max(1, self.n // 2)])
        with self._threads():
            half = self.loss(self.table_of(rows))
            return self.search.solve(self.search.empty(half), strength, rough=True).support

    def fold(self, number: int) -> Fold:
        """Return the losses of a fold, which are made once in each process."""
        found = self._made.get(number)
        if found is None:
            rows = self.search.folds(self.n)[number]
            train, test = self.table_of(np.setdiff1d(np.arange(self.n), rows)), self.table_of(rows)
            found = self._made[number] = Fold(self.loss(train), self.loss(test), train.total / self.n)
        return found

    def held_out(self, number: int, strength: float, state: FoldState | None) -> tuple[float, FoldState]:
        """Return the loss per row of a fold at the next strength of its path, and where it is now.

        Its edges are refitted without the edge penalty before they are scored.
        """
        with self._threads():
            search, fold = self.search, self.fold(number)
            start = search.empty(fold.train) if state is None else state.penalised.on(fold.train)
            solution = search.solve(start, fold.share * strength, rough=True)
            near = None if state is None else state.refitted.on(fold.train)
            refitted = search.refit(solution, near=near)
            score = fold.test.with_active(refitted.loss.active_ids).at(refitted.w).value / fold.test.table.total
            return float(score), FoldState(Weights.of(solution), Weights.of(refitted))

    def _threads(self) -> AbstractContextManager[None]:
        return structure_threads(self.search.options.n_threads)
