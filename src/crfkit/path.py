"""Solutions along a sequence of penalty strengths, each started from the one before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit.errors import ParameterError, StopTraining
from crfkit.protocols import Loss, Penalty, Vector
from crfkit.result import Result, Status
from crfkit.solvers import make_solver
from crfkit.solvers.loop import bound


@dataclass(frozen=True)
class PathPoint:
    """The solution for one strength."""

    strength: float
    value: float  # of loss + penalty
    nonzeros: int
    score: float | None  # what `score` returned
    result: Result

    @property
    def w(self) -> Vector:
        return self.result.w


def regularisation_path(
    loss: Loss,
    penalty: Penalty,
    strengths: Iterable[float] | None = None,
    n: int = 20,
    ratio: float = 1e-3,
    solver: Any = None,
    score: Callable[[Vector], float] | None = None,
    callback: Callable[[PathPoint], None] | None = None,
) -> tuple[PathPoint, ...]:
    """Minimises loss + penalty for every strength, the largest first; each run begins at the last solution.

    Parameters
    ----------
    penalty : L1, L2 or ElasticNet; its own strength does not matter. An elastic net keeps its proportion of L1 and
        L2, and strengths are those of its L1 part.
    strengths : in any order. None (not with L2): n in geometric progression, from the least strength at which all
        weights are zero down to `ratio` times that.
    solver : a name or a solver. None: L-BFGS, or OWL-QN where the penalty has an L1 part.
    score : a number to keep with each solution, such as F1 on a development set.
    callback : called after each solution; raises StopTraining to end the path there.

    A loss that can grow goes on as it was grown at the last strength.

    A path that is interrupted by Ctrl-C ends with the point it was interrupted at (`result.status` says so).

    Examples
    --------
    >>> from crfkit import L1, regularisation_path
    >>> from crfkit.data.encode import learn
    >>> from crfkit.estimators.chain_training import ChainTraining
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
    if not hasattr(penalty, "at"):
        raise ParameterError(f"a path needs a penalty that has a strength (L1, L2, ElasticNet), not {penalty.name}")
    w = np.zeros(loss.size)
    grid = _grid(loss, penalty, w, n, ratio) if strengths is None else _descending(strengths)
    if solver is None:
        solver = "lbfgs" if bound(penalty, loss).split()[1] is None else "owlqn"
    solver = make_solver(solver)
    points: list[PathPoint] = []
    for strength in grid:
        result = solver.minimize(loss, penalty.at(strength), w)
        w, loss = result.w, loss if result.loss is None else result.loss
        found = None if score is None else float(score(w))
        points.append(PathPoint(strength, result.value, int((w != 0).sum()), found, result))
        try:
            if callback is not None:
                callback(points[-1])
        except StopTraining:
            break
        if result.status is Status.INTERRUPTED:
            break
    return tuple(points)


def _grid(loss: Loss, penalty: Any, zeros: Vector, n: int, ratio: float) -> list[float]:
    penalty = bound(penalty, loss)
    if not hasattr(penalty, "critical_strength"):
        raise ParameterError(f"no strength of {penalty.name} makes all weights zero: give the strengths of the path")
    if n < 1:
        raise ParameterError(f"n must be >= 1, not {n!r}")
    if not 0 < ratio < 1:
        raise ParameterError(f"ratio must be between 0 and 1, not {ratio!r}")
    start = loss.at(zeros)
    largest = penalty.critical_strength(start.grad) if len(zeros) else 0.0
    if "candidates" in loss.capabilities:
        rest = penalty.split()[1]
        growing: Any = loss
        largest = max([largest, *growing.candidates(start, getattr(rest, "block_norm", "max"))[1][:1]])
    if not (math.isfinite(largest) and largest > 0):
        raise ParameterError(
            f"the largest slope of the loss at zero weights is {largest}: no strength is the first at which all "
            "weights are zero"
        )
    return [float(strength) for strength in np.geomspace(largest, ratio * largest, n)]


def _descending(strengths: Iterable[float]) -> list[float]:
    grid = [float(strength) for strength in strengths]
    if not grid:
        raise ParameterError("the list of strengths is empty")
    for strength in grid:
        if not (math.isfinite(strength) and strength >= 0):
            raise ParameterError(f"strengths must be finite numbers >= 0, not {strength!r}")
    return sorted(set(grid), reverse=True)
