"""Adam (Kingma & Ba 2015) for losses that have a noisy gradient and no value.

At update t of iteration e, with the gradient estimate g:

    m ← β₁m + (1 − β₁)g,   v ← β₂v + (1 − β₂)g²,   w ← w − a/√e · m̂/(√v̂ + ε),   m̂ = m/(1 − β₁ᵗ),  v̂ = v/(1 − β₂ᵗ)

The step falls with √e and the result is a mean of the iterates in which late ones count more (Shamir & Zhang 2013, with
η = 3), so that noise averages out:  w̄ ← w̄ + (η + 1)/(t + η)·(w − w̄).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_count, check_positive
from crfkit.arrays import combine, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Saved, Vector
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.saved import saved_count, saved_vector
from crfkit.solvers.parts.stopping import GradientNorm, StoppingRule

EPSILON = 1e-8
ETA = 3.0
OVERFLOW = 1e100  # weights beyond it have diverged: leave before numbers overflow


@dataclass(frozen=True)
class Mean:
    """The mean of the iterates. There is no value; `optimality` is the norm of the last iteration's mean gradient."""

    w: Vector
    optimality: float
    value: float = math.nan

    @property
    def finite(self) -> bool:
        return norm(self.w) < OVERFLOW and math.isfinite(self.optimality)


@dataclass(frozen=True)
class AdamState:
    point: Mean
    w: Vector  # the iterate
    m: Vector
    v: Vector
    t: int  # updates made

    def saved(self) -> Saved:
        return {"iterate": self.w, "m": self.m, "v": self.v, "t": self.t}


@dataclass(frozen=True)
class Adam(IterativeSolver):
    """Follow a noisy gradient, such as in contrastive divergence, without evaluating the loss.

    Parameters
    ----------
    stopping : when to stop; only rules that look at the gradient work, because the trace's values are NaN.
    max_iterations : maximum number of iterations.
    updates : number of gradients in an iteration.
    step_size : a; about how far a weight moves in each of the first updates.
    beta1, beta2 : decay of the means of gradients and of their squares; closer to 1 remembers longer.
    """

    stopping: StoppingRule = field(default_factory=lambda: GradientNorm(1e-3))
    max_iterations: int = 100
    updates: int = 20
    step_size: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.999

    name: ClassVar[str] = "adam"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.GRADIENT})
    own_objective: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        check_count(updates=self.updates)
        check_positive(step_size=self.step_size)
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise ParameterError(f"beta1 and beta2 must be in [0, 1), not {self.beta1!r} and {self.beta2!r}")

    def objective_name(self, objective: Objective) -> str:
        return f"{objective.name}, a gradient without a value"

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> AdamState:
        start = Mean(w0, objective.at(w0).grad_norm)
        zeros = 0.0 * w0
        if "iterate" not in saved:
            return AdamState(start, 1.0 * w0, zeros, zeros, 0)
        w, m = (saved_vector(saved, name, w0) for name in ("iterate", "m"))
        return AdamState(start, w, m, saved_vector(saved, "v", w0, low=0.0), saved_count(saved, "t"))

    def step(self, objective: Objective, state: AdamState) -> AdamState:
        xp = array_namespace(state.w)
        w, m, v, t, mean = state.w, state.m, state.v, state.t, state.point.w
        total = 0.0 * w
        step_size = self.step_size / math.sqrt(1 + t // self.updates)
        for _ in range(self.updates):
            g = objective.at(w).grad
            t += 1
            m = self.beta1 * m + (1.0 - self.beta1) * g
            v = self.beta2 * v + (1.0 - self.beta2) * g * g
            scale = xp.sqrt(v / (1.0 - self.beta2**t)) + EPSILON
            w = combine(w, -step_size / (1.0 - self.beta1**t), m / scale)
            mean = combine(mean, (ETA + 1.0) / (t + ETA), w - mean)
            total += g
            if not norm(w) < OVERFLOW:
                break
        return AdamState(Mean(mean, norm(total) / self.updates), w, m, v, t)
