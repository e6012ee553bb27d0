"""Stochastic gradient descent, sequence by sequence (Bottou 2010; L1 by Tsuruoka, Tsujii & Ananiadou 2009).

With N sequences, λ = l2/N and t updates made:  η_t = η₀ / (1 + η₀·λ·t);  where there is no L2, and so no known lower
bound on the curvature, more slowly:  η₀ / (1 + t/(10·N))^¾.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crfkit._checks import check_count, check_online, check_positive
from crfkit._types import Floats
from crfkit.protocols import Capability, Epochs, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.online import OnlineState, opened
from crfkit.solvers.parts.saved import saved_count, saved_number
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class SGD(IterativeSolver):
    """Minimise losses that have an online form, with L2, L1 or both. An iteration is an epoch.

    Parameters
    ----------
    step_size : η₀. None: chosen by short trials on a sample.
    sample : number of sequences in that sample.
    seed : random seed for the order of the sequences.
    """

    stopping: StoppingRule = field(default_factory=lambda: PeriodDecrease(1e-4, 5))
    max_iterations: int = 100
    seed: int = 0
    step_size: float | None = None
    sample: int = 1000

    name: ClassVar[str] = "sgd"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.ONLINE})
    handles_smooth: ClassVar[frozenset[Kind]] = frozenset({Kind.L2})
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.L1})
    numpy_only: ClassVar[bool] = True
    averaged: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_online(self.max_iterations, self.seed)
        check_count(sample=self.sample)
        if self.step_size is not None:
            check_positive(step_size=self.step_size)

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> OnlineState:
        online = opened(objective, w0, saved)
        step_size = saved_number(saved, "step_size", 0.0, low=0.0) or self.step_size
        if step_size is None:
            step_size = calibrate(online, objective, w0, self.sample, self.seed)
        more = {"step_size": float(step_size), "updates": saved_count(saved, "updates", 0)}
        return OnlineState(objective.at(w0), online, saved_count(saved, "epoch", 0), online.save(), more)

    def step(self, objective: Objective, state: OnlineState) -> OnlineState | Status:
        online = state.online
        updates = state.more["updates"]
        run_epoch(online, objective, state.more["step_size"], self.seed, state.epoch, updates, self.averaged)
        point = objective.at(online.average() if self.averaged else online.weights())
        more = {**state.more, "updates": updates + online.n_sequences}
        return OnlineState(point, online, state.epoch + 1, online.save(), more)


@dataclass(frozen=True)
class ASGD(SGD):
    """Averaged stochastic gradient descent (Polyak & Juditsky 1992; Xu 2011): returns the mean of all iterates."""

    name: ClassVar[str] = "asgd"
    averaged: ClassVar[bool] = True


def strengths(objective: Objective) -> tuple[float, float]:
    """Return the strengths of the L2 and the L1 part."""
    return objective.l2, objective.l1


def run_epoch(
    online: Epochs, objective: Objective, step_size: float, seed: int, epoch: int, updates: int, averaged: bool
) -> float:
    """Run one epoch after `updates` updates; return the summed loss."""
    n = online.n_sequences
    l2, l1 = strengths(objective)
    order = objective.loss.order(n, seed, epoch)
    return float(online.sgd(order, step_sizes(step_size, l2, n, updates, n), l2, l1, averaged))


def step_sizes(step_size: float, l2: float, n: int, first: int, count: int) -> Floats:
    """Return η of the updates first … first + count."""
    epochs = (first + np.arange(count, dtype=np.float64)) / n
    if l2 > 0:
        return step_size / (1.0 + step_size * l2 * epochs)
    return step_size / (1.0 + 0.1 * epochs) ** 0.75


def calibrate(online: Epochs, objective: Objective, w0: Vector, sample: int, seed: int, start: float = 0.1) -> float:
    """Return the step size among start·2^k that makes the objective of a sample smallest in one epoch over it."""
    n = online.n_sequences
    l2, l1 = strengths(objective)
    order = np.random.default_rng([seed, 2**31]).permutation(n)[:sample]
    part = len(order) / n  # of the data, hence of the penalty

    def after(step_size: float) -> float:
        # within the bound that keeps 1 − η·l2/N positive
        if step_size * l2 >= 0.5 * n:
            return math.inf
        online.start(w0)
        online.sgd(order, np.full(len(order), step_size), l2, l1, False)
        penalty = 0.5 * l2 * online.square()
        if objective.nonsmooth is not None:
            penalty += objective.nonsmooth.value(online.weights())
        value = online.sgd(order, np.zeros(len(order)), 0.0, 0.0, False)
        return float(value + part * penalty)

    best, value = start, after(start)
    # Longer steps if that is better at all, shorter ones if it is clearly better: on noisy data one epoch flatters
    # steps that lead nowhere.
    for factor, enough in ((2.0, 1.0), (0.5, 0.98)):
        improved = False
        for _ in range(12):
            trial = after(best * factor)
            if not trial < enough * value and math.isfinite(value):
                break
            best, value, improved = best * factor, trial, True
        if improved:
            break
    online.start(w0)
    return best
