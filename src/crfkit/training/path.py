"""Solutions along a sequence of penalty strengths, each started from the one before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit.errors import ParameterError, StopTraining
from crfkit.protocols import BlockNorm, GrowingLoss, Kind, Loss, Penalty, Vector
from crfkit.result import Result, Status
from crfkit.solvers import make_solver


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
    penalty : L1, L2, ElasticNet or another that has a strength; its own does not matter. An elastic net keeps its
        proportion of L1 and L2, and strengths are those of its L1 part.
    strengths : in any order. None (not with L2): n in geometric progression, from the least strength at which all
        weights are zero down to `ratio` times that (of ByBlock: at which all blocks are, were the others zero too).
    solver : a name or a solver. None: L-BFGS; where the penalty has corners OWL-QN, FISTA if they are not those of L1,
        Grafting-Light if the loss has candidates.
    score : a number to keep with each solution, such as F1 on a development set; of the weights of all attributes where
        the loss has those of some.
    callback : called after each solution; raises StopTraining to end the path there.

    A loss that can grow goes on as it was grown at the last strength.

    A path that is interrupted by Ctrl-C ends with the point it was interrupted at (`result.status` says so).

    Examples
    --------
    >>> from crfkit import L1, regularisation_path
    >>> from crfkit.encoders.sequences import learn
    >>> from crfkit.training.chain import ChainTraining
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
    if penalty.strength is None:
        raise ParameterError(f"a path needs a penalty that has a strength (L1, L2, ElasticNet), not {penalty.name}")
    w = np.zeros(loss.size)
    grid = _grid(loss, penalty, w, n, ratio) if strengths is None else _descending(strengths)
    solver = make_solver(_usual(loss, penalty) if solver is None else solver).for_path()
    points: list[PathPoint] = []
    for strength in grid:
        result = solver.minimize(loss, penalty.at(strength), w)
        w, loss = result.w, loss if result.loss is None else result.loss
        found = None if score is None else float(score(loss.in_full(w)))
        points.append(PathPoint(strength, result.value, int((w != 0).sum()), found, result))
        try:
            if callback is not None:
                callback(points[-1])
        except StopTraining:
            break
        if result.status is Status.INTERRUPTED:
            break
    return tuple(points)


def _usual(loss: Loss, penalty: Penalty) -> str:
    rest = penalty.bind(loss).split()[1]
    if rest is None:
        return "lbfgs"
    if isinstance(loss, GrowingLoss) and loss.n_candidates:
        return "grafting-light"
    return "owlqn" if Kind.L1 in rest.kinds else "fista"


def _grid(loss: Loss, penalty: Penalty, zeros: Vector, n: int, ratio: float) -> list[float]:
    penalty = penalty.bind(loss)
    if n < 1:
        raise ParameterError(f"n must be >= 1, not {n!r}")
    if not 0 < ratio < 1:
        raise ParameterError(f"ratio must be between 0 and 1, not {ratio!r}")
    start = loss.at(zeros)
    largest = penalty.critical_strength(start.grad)
    if largest is None:
        raise ParameterError(f"no strength of {penalty.name} makes all weights zero: give the strengths of the path")
    if isinstance(loss, GrowingLoss):
        rest = penalty.split()[1]
        rule = None if rest is None else rest.selection
        norm = BlockNorm.MAX if rule is None else rule.norm
        largest = max([largest, *loss.candidates(start, norm)[1][:1]])
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
