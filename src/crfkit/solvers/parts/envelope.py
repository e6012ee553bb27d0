"""Smoothing a penalty r that has a prox (Nesterov 2005): its Moreau envelope

    r_μ(w) = min_x r(x) + ‖x − w‖²/(2γ),   ∇r_μ(w) = (w − prox(w, γ))/γ,   γ = μ/strength

For strength·‖w‖₁ that is the Huber function of width μ. Where strengths differ between blocks of the weights, each has
a γ of its own, so that the width is μ in every block; the curvature is at most that of the strongest, max strength/μ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crfkit.arrays import combine, dot
from crfkit.protocols import NonsmoothPenalty, Vector
from crfkit.solvers.parts.objective import Point


@dataclass(frozen=True)
class Smoothed:
    """An objective at w with the rest of the penalty smoothed: as much of it as the quadratic bound needs."""

    w: Vector
    smooth_value: float
    grad: Vector


@dataclass(frozen=True)
class Envelope:
    """The Moreau envelope of the rest of a penalty; without a rest, or with one of strength 0, nothing is added."""

    nonsmooth: NonsmoothPenalty | None
    mu: float

    @property
    def lipschitz(self) -> float:
        """The largest 1/γ."""
        if self.nonsmooth is None:
            return 0.0
        return max((self._rate(penalty) for _, penalty in self.nonsmooth.pieces), default=0.0)

    def at(self, point: Point) -> Smoothed:
        if self.nonsmooth is None or self.lipschitz == 0.0 or not math.isfinite(point.smooth_value):
            return Smoothed(point.w, point.smooth_value, point.grad)
        value, grad = point.smooth_value, 1.0 * point.grad
        for place, penalty in self.nonsmooth.pieces:
            rate = self._rate(penalty)
            if rate > 0.0:
                w = point.w[place]
                near = penalty.prox(w, 1.0 / rate)
                away = combine(w, -1.0, near)
                value += penalty.value(near) + 0.5 * rate * dot(away, away)
                grad[place] = combine(grad[place], rate, away)
        return Smoothed(point.w, value, grad)

    def _rate(self, penalty: NonsmoothPenalty) -> float:
        """Return 1/γ of a piece."""
        strength = penalty.strength
        return (1.0 if strength is None else strength) / self.mu  # a constraint has none
