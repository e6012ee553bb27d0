"""Stochastic epochs before another method: how many of them pay, and their steps.

L-BFGS from zero takes about √κ evaluations, κ ≈ (curvature of the most frequent feature)/(strength of the L2 penalty)
≤ n/(4·strength) for n positions. The first epochs save about half of them and each further one less. They run on one
thread and cost (`loss.epoch_cost()`) 2 to 3 evaluations on the same thread, more where sequences are short and labels
many, and as many times more as evaluations have threads. Everything is counted, nothing is timed, so that runs can be
repeated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crfkit.arrays import add_scaled
from crfkit.protocols import Vector
from crfkit.solvers.parts.loop import InterruptedStepError
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.saved import saved_count, saved_number
from crfkit.solvers.sgd import calibrate, run_epoch, step_sizes, strengths

SHARE = 0.4  # of √κ: evaluations that all epochs together may cost
MOST_EPOCHS = 8
WEAKEST = 0.1  # an L2 strength below it does not make more epochs pay
CALIBRATION = 0.5  # epochs that the choice of the step size costs
PARTS = 8  # of the last epoch, whose weights are averaged
LEAST_SAMPLE, MOST_SAMPLE = 30, 300  # sequences for that choice; between them, one of 20


def epochs_that_pay(objective: Objective) -> int:
    """Return how many epochs cost less than they save; 0 where choosing a step size and one epoch cost too much."""
    loss: Any = objective.loss
    condition = float(loss.n_terms) / (4.0 * max(strengths(objective)[0], WEAKEST))
    cost = float(loss.epoch_cost())
    return max(0, min(MOST_EPOCHS, math.floor(SHARE * math.sqrt(condition) / cost - CALIBRATION)))


def sample_size(n: int) -> int:
    """Return how many of n sequences the step size is tried on."""
    return min(max(n // 20, LEAST_SAMPLE), MOST_SAMPLE)


def mean_of_epoch(online: Any, objective: Objective, step_size: float, seed: int, epoch: int) -> Vector:
    """Run an epoch; return the mean of the weights after each of some parts of it.

    The noise of the last steps averages out: on CoNLL-2000 the mean is 2.5 times nearer to the optimal value than the
    last weights are, which takes three more epochs otherwise.
    """
    n = online.n_sequences
    order = objective.loss.order(n, seed, epoch)
    steps = step_sizes(step_size, strengths(objective)[0], n, epoch * n, n)
    mean: Vector = None
    for k in range(PARTS):
        part = slice(n * k // PARTS, n * (k + 1) // PARTS)
        online.sgd(order[part], steps[part], *strengths(objective), False)
        w = online.weights()
        if mean is None:
            mean = w
        else:
            add_scaled(mean, 1.0, w)
    mean *= 1.0 / PARTS
    return mean


@dataclass(frozen=True)
class StartState:
    """The state of the start. An epoch depends on the weights, its number and the step size alone."""

    point: Point
    planned: int  # epochs in all
    epoch: int = 0  # whole epochs made
    step_size: float | None = None  # chosen before the first epoch
    online: Any = None  # opened before the first epoch
    rows: int = 0  # of the trace so far, but for the first

    @classmethod
    def resumed(cls, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> StartState:
        step_size = saved_number(saved, "step_size", low=0.0) or None
        planned, rows = saved_count(saved, "start_epochs"), saved_count(saved, "rows", default=0)
        return cls(objective.at(w0), planned, saved_count(saved, "epoch"), step_size, rows=rows)

    def saved(self) -> Mapping[str, Any]:
        step_size = self.step_size or 0.0
        return {"start_epochs": self.planned, "epoch": self.epoch, "step_size": step_size, "rows": self.rows}

    def after_epochs(self, objective: Objective, seed: int) -> StartState | None:
        """Return the state after the first epoch or, from there, after all of them; only then is the objective known.

        None if there are none left or they do not lower the objective.
        """
        if self.epoch >= self.planned:
            return None
        online = self.online if self.online is not None else objective.loss.epochs()
        n = online.n_sequences
        step_size = self.step_size
        if step_size is None:
            step_size = calibrate(online, objective, self.point.w, sample_size(n), seed)
        online.start(self.point.w)  # without what rounding left in its scale: a resumed run does the same
        ready = replace(self, step_size=step_size, online=online, rows=self.rows + 1)
        end = self.planned if self.epoch > 0 else 1
        try:
            for epoch in range(self.epoch, end):
                if epoch + 1 == self.planned:
                    w = mean_of_epoch(online, objective, step_size, seed, epoch)
                else:
                    run_epoch(online, objective, step_size, seed, epoch, epoch * n, False)
                    w = online.weights() if epoch + 1 == end else None
            kept = None if end == self.planned else online  # its tables are as large as some vectors
            later = replace(ready, point=objective.at(w), epoch=end, online=kept)
        except KeyboardInterrupt:
            reached = replace(ready, point=objective.at(online.weights()))
            if reached.falls(self):
                raise InterruptedStepError(reached) from None
            raise
        return later if later.falls(self) else None

    def falls(self, before: StartState) -> bool:
        return self.point.finite and self.point.value < before.point.value
