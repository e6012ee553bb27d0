"""Solutions along a sequence of penalty strengths, each started from the one before.

Every path of the package is made by :func:`follow`: those of :func:`regularisation_path`, of the `path` methods of the
estimators, of structure learning and of the segmenter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from crfkit._checks import check_count
from crfkit.errors import ParameterError, StopTraining
from crfkit.protocols import BlockNorm, GrowingLoss, Loss, Penalty, Solver, Vector
from crfkit.result import Result, Status

S = TypeVar("S")  # what a point keeps besides numbers: a model, or the edges of a graph
S_co = TypeVar("S_co", covariant=True)
T = TypeVar("T")  # what the next strength starts from
P = TypeVar("P")  # a point


@dataclass(frozen=True)
class PathPoint(Generic[S_co]):
    """The optimum at one strength of the penalty.

    `result` and `solution` are None in points that were read from a model file.
    """

    strength: float
    value: float = math.nan  # of loss + penalty
    nonzeros: int = 0  # weights that are not zero
    score: float | None = None  # how good the solution is: on held-out data, or by the rule that chooses a strength
    error: float | None = None  # standard error of the score
    n_edges: int | None = None  # edges that are not zero, of structure learning
    result: Result | None = field(default=None, repr=False, compare=False)  # how the minimisation went
    solution: S_co | None = field(default=None, repr=False, compare=False)  # paths of estimators: a model that predicts

    @property
    def w(self) -> Vector:
        """The weights."""
        if self.result is None:
            raise ParameterError("this point was read from a model file, which does not keep the weights of a path")
        return self.result.w

    @property
    def model(self) -> S_co:
        """The solution, which in paths of estimators is a model that predicts."""
        if self.solution is None:
            raise ParameterError("this point has no model; the points of the `path` method of an estimator have one")
        return self.solution

    def numbers(self) -> PathPoint[object]:
        """Return the point without its result and its solution, which may refer to the whole data."""
        return replace(self, result=None, solution=None)

    @property
    def iterations(self) -> int:
        """Iterations of the solver at this strength."""
        return 0 if self.result is None else self.result.iterations

    @property
    def seconds(self) -> float:
        """Seconds of the solver at this strength."""
        return 0.0 if self.result is None else self.result.seconds

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the minimisation."""
        return self.result is not None and self.result.status is Status.INTERRUPTED


Callback = Callable[[PathPoint[Any]], None]


def follow(
    strengths: Iterable[float],
    start: T,
    solve: Callable[[float, T], tuple[PathPoint[S], T]],
    callback: Callable[[PathPoint[S]], None] | None = None,
) -> Iterator[PathPoint[S]]:
    """Yield the point of each strength. `solve` is given what it left at the strength before, at first `start`.

    The path ends after a point that Ctrl-C has interrupted, or at which the callback raises StopTraining.

    >>> [point.value for point in follow([3, 2], 10.0, lambda s, before: (PathPoint(s, before - s), before - s))]
    [7.0, 5.0]
    """
    before = start
    for strength in strengths:
        point, before = solve(float(strength), before)
        stop = _asks_to_stop(callback, point)
        yield point
        if stop or point.interrupted:
            return


def gathered(path: Iterator[P]) -> tuple[list[P], bool]:
    """Return the points and whether Ctrl-C ended them; raise KeyboardInterrupt if it came before the first."""
    points: list[P] = []
    try:
        for point in path:
            points.append(point)  # noqa: PERF402 - what came before an exception counts
    except StopTraining:
        pass
    except KeyboardInterrupt:
        if not points:
            raise
        return points, True
    return points, False


def _asks_to_stop(callback: Callable[[PathPoint[S]], None] | None, point: PathPoint[S]) -> bool:
    try:
        if callback is not None:
            callback(point)
    except StopTraining:
        return True
    return False


@dataclass(frozen=True)
class PathOptions:
    """The strengths of a path; the names are as in :func:`regularisation_path`."""

    strengths: Iterable[float] | None = None
    n: int = 20
    ratio: float = 1e-3
    callback: Callback | None = None

    def grid(self, loss: Loss, penalty: Penalty) -> list[float]:
        """Return the strengths, the largest first; raise ParameterError where there can be no path."""
        if penalty.strength is None:
            raise ParameterError(f"a path needs a penalty that has a strength (L1, L2, ElasticNet), not {penalty.name}")
        if self.strengths is not None:
            return self.descending()
        self.check_grid()
        largest = _zeroing_strength(loss, penalty)
        return [float(strength) for strength in np.geomspace(largest, self.ratio * largest, self.n)]

    def check_grid(self) -> None:
        """Raise ParameterError if there can be no geometric progression of strengths."""
        check_count(n=self.n)
        if not 0 < self.ratio < 1:
            raise ParameterError(f"ratio must be between 0 and 1, not {self.ratio!r}")

    def descending(self) -> list[float]:
        """Return the strengths that were given, the largest first; raise ParameterError if one is impossible."""
        grid = [float(strength) for strength in (() if self.strengths is None else self.strengths)]
        if not grid:
            raise ParameterError("the list of strengths is empty")
        for strength in grid:
            if not (math.isfinite(strength) and strength >= 0):
                raise ParameterError(f"strengths must be finite numbers >= 0, not {strength!r}")
        return sorted(set(grid), reverse=True)

    def minimise(
        self,
        loss: Loss,
        penalty: Penalty,
        solver: Solver,
        make: Callable[[Loss, Penalty, Result], S] | None = None,
        score: Callable[[Vector], float] | None = None,
        judge: Callable[[S], float] | None = None,
        at: Callable[[float], Penalty] | None = None,
    ) -> Iterator[PathPoint[S]]:
        """Yield the optimum of loss + penalty at each strength, from zero weights at the largest.

        `make` returns the solution of a point, from the loss as it has grown, the penalty and the result. Its score is
        that of the weights (`score`, those of all attributes where the loss has grown) or of the solution (`judge`).
        `at` returns the penalty of a strength, by default ``penalty.at``.
        """
        grid, solver = self.grid(loss, penalty), solver.for_path()

        def solve(strength: float, before: tuple[Loss, Vector]) -> tuple[PathPoint[S], tuple[Loss, Vector]]:
            now, w = before
            used = (at or penalty.at)(strength)
            result = solver.minimize(now, used, w)
            now, w = now if result.loss is None else result.loss, result.w
            found = None if score is None else float(score(now.in_full(w)))
            made = None if make is None else make(now, used, result)
            if judge is not None and made is not None:
                found = float(judge(made))
            point = PathPoint(
                strength, result.value, int((w != 0).sum()), found, result=result, solution=made
            )  # fmt: skip
            return point, (now, w)

        return follow(grid, (loss, np.zeros(loss.size)), solve, self.callback)


def regularisation_path(
    loss: Loss,
    penalty: Penalty,
    strengths: Iterable[float] | None = None,
    n: int = 20,
    ratio: float = 1e-3,
    solver: Solver | None = None,
    score: Callable[[Vector], float] | None = None,
    callback: Callback | None = None,
) -> tuple[PathPoint[object], ...]:
    """Return the optimum of loss + penalty for every strength, the largest first; each run begins at the last solution.

    To follow the path of an estimator use its own method, for example :meth:`crfkit.ChainCRF.path`; this function is
    for losses that you have made yourself.

    Parameters
    ----------
    penalty : L1, L2, ElasticNet or another that has a strength; its own strength is ignored. An elastic net keeps its
        proportion of L1 and L2, and strengths are those of its L1 part.
    strengths : in any order. By default (not with L2) `n` in geometric progression, from the smallest strength at which
        all weights are zero down to `ratio` times that. With ByBlock: from the strength at which all blocks are zero
        while the others are.
    n, ratio : number of strengths, and the last strength as a share of the first.
    solver : a name or a solver. By default the one that "auto" chooses (:func:`crfkit.training.defaults.
        default_solver`): L-BFGS or OWL-QN for smooth penalties, OWL-QN for L1, FISTA for other non-smooth ones,
        Grafting-Light where the loss has candidates.
    score : a function of the weights whose value is kept with each solution, such as F1 on a development set. It is
        given the weights of all attributes where the loss has only some of them.
    callback : called with each point. Raise StopTraining in it to end the path there.

    A loss that can grow keeps what was switched on at the last strength. A path that Ctrl-C interrupts ends with the
    current point (see `result.status`).

    Examples
    --------
    >>> from crfkit import L1, regularisation_path
    >>> from crfkit.chain.encoding.sequences import learn
    >>> from crfkit.chain.training.train import ChainTraining
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> corpus, training = learn(X, y, None, 1), ChainTraining()
    >>> field, _ = training.make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
    >>> path = regularisation_path(training.make_loss(corpus.data, field), L1(), n=4, ratio=0.1)
    >>> [round(point.strength, 3) for point in path]
    [1.556, 0.722, 0.335, 0.156]
    >>> path[0].nonzeros
    0
    >>> path[-1].value < path[0].value
    True
    """
    from crfkit.solvers import make_solver
    from crfkit.training.defaults import default_solver

    used = make_solver(default_solver(loss, penalty) if solver is None else solver)
    return tuple(gathered(PathOptions(strengths, n, ratio, callback).minimise(loss, penalty, used, score=score))[0])


def _zeroing_strength(loss: Loss, penalty: Penalty) -> float:
    """Return the smallest strength at which all weights are zero."""
    penalty = penalty.bind(loss)
    start = loss.at(np.zeros(loss.size))
    largest = penalty.critical_strength(start.grad)
    if largest is None:
        raise ParameterError(
            f"no strength of {penalty.name} makes all weights zero: give the strengths of the path, or use L1"
        )
    if isinstance(loss, GrowingLoss):
        rest = penalty.split()[1]
        rule = None if rest is None else rest.selection
        norm = BlockNorm.MAX if rule is None else rule.norm
        largest = max([largest, *loss.candidates(start, norm)[1][:1]])
    if not (math.isfinite(largest) and largest > 0):
        raise ParameterError(
            f"the largest slope of the loss at zero weights is {largest}, so no strength is the first at which "
            "all weights are zero: check the data, or give the strengths of the path"
        )
    return float(largest)
