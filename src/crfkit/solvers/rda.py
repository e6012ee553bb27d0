"""Regularised dual averaging (Xiao 2010): the mean of all gradients so far, of mini-batches, in one proximal step.

With ḡ the mean of k unbiased estimates of the loss's gradient and β_k = γ·√k:

    w = argmin_x  ḡ·x + penalty(x) + (β_k/k)/2·‖x − centre‖²

An L2 part is in the minimum, too. The penalty is not divided among the mini-batches, so that zeros are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from array_api_compat import array_namespace

from crfkit.arrays import add_scaled, combine, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Loss, Vector
from crfkit.solvers.descent import saved_vector
from crfkit.solvers.loop import IterativeSolver
from crfkit.solvers.objective import Objective, Point
from crfkit.solvers.online import check_count, check_online, check_positive, shuffled
from crfkit.solvers.proximal import start
from crfkit.solvers.stopping import PeriodDecrease, StoppingRule

MOST_IN_BATCH = 32
LEAST_BATCHES = 10
TRIALS = 12  # of γ, in each direction
LEAST_UPDATES = 30  # of a trial
MOST_UPDATES = 100


@dataclass(frozen=True)
class RDAState:
    point: Point
    batches: Sequence[Loss]
    total: Vector  # of gradients
    centre: Vector
    k: int  # gradients in the total
    epoch: int
    gamma: float

    def saved(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("total", "centre", "k", "epoch", "gamma")}


@dataclass(frozen=True)
class RDA(IterativeSolver):
    """Minimises losses that can be split into mini-batches with any penalty that has a prox, near the optimum.

    An iteration is an epoch. The last iterate is returned, which has the penalty's zeros; a mean would not.

    Parameters
    ----------
    batch : sequences or graphs in a mini-batch. None: 32, or fewer if there would be less than ten mini-batches.
    gamma : γ; a larger one makes smaller steps. None: the power of 2 with the least losses on the way in short trials.
    seed : of the mini-batches and of the noise.
    random_start : scale of normal noise that is added to the start, which is also the centre.

    >>> RDA(batch=8, gamma=10.0).gamma
    10.0
    """

    stopping: StoppingRule = field(default_factory=lambda: PeriodDecrease(1e-4, 5))
    max_iterations: int = 100
    seed: int = 0
    batch: int | None = None
    gamma: float | None = None
    random_start: float = 0.0

    name: ClassVar[str] = "rda"
    needs: ClassVar[frozenset[str]] = frozenset({"smooth", "subset"})
    handles_smooth: ClassVar[frozenset[str]] = frozenset({"l2"})
    handles_rest: ClassVar[frozenset[str]] = frozenset({"prox"})

    def __post_init__(self) -> None:
        check_online(self.max_iterations, self.seed)
        check_count(batch=1 if self.batch is None else self.batch)
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        if not (math.isfinite(self.random_start) and self.random_start >= 0):
            raise ParameterError(f"random_start must be a finite number >= 0, not {self.random_start!r}")

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> RDAState:
        loss: Any = objective.loss
        n = len(loss.data)
        order = shuffled(self.seed, 2**31, n)
        size = self.batch if self.batch is not None else max(min(MOST_IN_BATCH, n // LEAST_BATCHES), 1)
        batches = [loss.subset(order[k : k + size]) for k in range(0, n, size)]
        point = objective.at(start(w0, self.random_start, self.seed, saved))
        if saved:
            total, centre = (saved_vector(saved, name, w0) for name in ("total", "centre"))
            k, epoch, gamma = int(saved["k"]), int(saved["epoch"]), float(saved["gamma"])
            return RDAState(point, batches, total, centre, k, epoch, gamma)
        gamma = self.gamma if self.gamma is not None else self._calibrate(objective, batches, point)
        return RDAState(point, batches, array_namespace(w0).zeros_like(w0), point.w, 0, 0, gamma)

    def step(self, objective: Objective, state: RDAState) -> RDAState:
        total, w = 1.0 * state.total, state.point.w
        order = (state.batches[b] for b in shuffled(self.seed, state.epoch, len(state.batches)))
        k = state.k
        for batch in order:
            share = _share(objective, batch)
            add_scaled(total, 1.0 / share, batch.at(w).grad)
            k += 1
            w = _dual_step(objective, total, state.centre, k, state.gamma)
        return RDAState(objective.at(w), state.batches, total, state.centre, k, state.epoch + 1, state.gamma)

    def _calibrate(self, objective: Objective, batches: Sequence[Loss], point: Point) -> float:
        """The power of two times the gradient's norm with which the mini-batches' losses on the way are least."""
        count = min(max(len(batches), LEAST_UPDATES), MOST_UPDATES)

        def losses(gamma: float) -> float:
            total, w, lost = 0.0 * point.w, point.w, 0.0
            for k, batch in enumerate(_cycle(batches, self.seed, count)):
                share = _share(objective, batch)
                evaluation = batch.at(w)
                lost += evaluation.value / share + objective.penalty.value(w)
                if not math.isfinite(lost):
                    return math.inf
                add_scaled(total, 1.0 / share, evaluation.grad)
                w = _dual_step(objective, total, point.w, k + 1, gamma)
            return lost

        best = point.grad_norm if 0 < point.grad_norm < math.inf else 1.0
        least = losses(best) if batches else 0.0
        for factor in (0.5, 2.0):
            for _ in range(TRIALS):
                trial = losses(best * factor)
                if not trial < least:
                    break
                best, least = best * factor, trial
        return best


def _share(objective: Objective, batch: Any) -> float:
    loss: Any = objective.loss
    return len(batch.data) / len(loss.data)


def _cycle(batches: Sequence[Loss], seed: int, count: int) -> Iterator[Loss]:
    for k in range(count):
        epoch, place = divmod(k, len(batches))
        yield batches[shuffled(seed, epoch, len(batches))[place]]


def _dual_step(objective: Objective, total: Vector, centre: Vector, k: int, gamma: float) -> Vector:
    """argmin_x total/k·x + l2/2·‖x‖² + rest(x) + γ/(2√k)·‖x − centre‖²."""
    pull = gamma / math.sqrt(k)
    a = float(getattr(objective.smooth, "strength", 0.0)) + pull
    w = combine((pull / a) * centre, -1.0 / (k * a), total)
    if not norm(w) < 1e100:
        return math.nan * w  # it diverges
    return w if objective.rest is None else objective.rest.prox(w, 1.0 / a)
