"""Stochastic meta-descent (Schraudolph 1999; on conditional random fields Vishwanathan et al. 2006).

Every weight has a step size p_i of its own, which is learned. On a mini-batch with gradient g and Hessian H, scaled to
the whole objective divided by N:

    p ← p · clip(1 − μ·g·v, ½, 2),   w ← w − a·p·g,   v ← λ·v − a·p·(g + λ·H·v)

The factor a = 30/(30 + epoch) is ours: without it the weights keep moving about the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_count, check_online, check_positive
from crfkit.arrays import norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Loss, Saved, Vector
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.online import shuffled
from crfkit.solvers.parts.saved import saved_count, saved_vector
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule


@dataclass(frozen=True)
class SMDState:
    point: Point
    batches: Sequence[Loss]
    p: Vector
    v: Vector
    epoch: int

    def saved(self) -> Saved:
        return {"p": self.p, "v": self.v, "epoch": self.epoch}


@dataclass(frozen=True)
class SMD(IterativeSolver):
    """Minimise smooth losses that can be split into mini-batches. An iteration is an epoch.

    Parameters
    ----------
    batch : number of sequences in a mini-batch.
    step_size : p at the start. None: 1/batch.
    meta : μ, how fast step sizes change.
    decay : λ, the decay of the memory of gradients; closer to 1 remembers longer.
    seed : random seed of the mini-batches.
    """

    stopping: StoppingRule = field(default_factory=lambda: PeriodDecrease(1e-4, 5))
    max_iterations: int = 100
    seed: int = 0
    batch: int = 32
    step_size: float | None = None
    meta: float = 0.05
    decay: float = 0.9

    name: ClassVar[str] = "smd"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH, Capability.HESSP, Capability.SUBSET})

    def __post_init__(self) -> None:
        check_online(self.max_iterations, self.seed)
        check_count(batch=self.batch)
        check_positive(step_size=1.0 if self.step_size is None else self.step_size)
        if not 0 <= self.meta < math.inf or not 0 <= self.decay <= 1:
            raise ParameterError(f"meta must be >= 0 and decay between 0 and 1, not {self.meta!r} and {self.decay!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> SMDState:
        loss: Loss = objective.loss
        n = len(loss.data)
        order = shuffled(self.seed, 2**31, n)
        batches = [loss.subset(order[k : k + self.batch]) for k in range(0, n, self.batch)]
        start = objective.at(w0)
        xp = array_namespace(w0)
        first = 1.0 / self.batch if self.step_size is None else self.step_size
        p = saved_vector(saved, "p", w0, low=0.0) if "p" in saved else first * xp.ones_like(w0)
        v = saved_vector(saved, "v", w0) if "v" in saved else xp.zeros_like(w0)
        return SMDState(start, batches, p, v, saved_count(saved, "epoch", 0))

    def step(self, objective: Objective, state: SMDState) -> SMDState:
        loss: Loss = objective.loss
        n, w, p, v = len(loss.data), 1.0 * state.point.w, 1.0 * state.p, 1.0 * state.v
        xp = array_namespace(w)
        annealing = 30.0 / (30.0 + state.epoch)
        for k in shuffled(self.seed, state.epoch, len(state.batches)):
            batch: Vector = state.batches[k]
            share = len(batch.data) / n  # of the penalty
            evaluation = batch.at(w)
            g, curved = evaluation.grad, evaluation.hessp(v)
            objective.products += 1
            if objective.smooth is not None:
                term = xp.zeros_like(w)
                objective.smooth.add_gradient(w, term)
                g += share * term
                term *= 0.0
                objective.smooth.add_hessp(w, v, term)
                curved += share * term
            p *= xp.clip(1.0 - self.meta * g * v, 0.5, 2.0)
            w -= annealing * p * g
            v = self.decay * v - annealing * p * (g + self.decay * curved)
            if not norm(v) < 1e100:  # it diverges: leave before numbers overflow
                return SMDState(objective.at(xp.full_like(w, math.nan)), state.batches, p, v, state.epoch + 1)
        return SMDState(objective.at(w), state.batches, p, v, state.epoch + 1)
