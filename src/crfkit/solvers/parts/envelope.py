"""Smoothing a penalty r that has a prox (Nesterov 2005): its Moreau envelope

    r_μ(w) = min_x r(x) + ‖x − w‖²/(2γ),   ∇r_μ(w) = (w − prox(w, γ))/γ,   γ = μ/strength

For strength·‖w‖₁ that is the Huber function of width μ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crfkit.arrays import combine, dot
from crfkit.protocols import RestPenalty, Vector
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

    rest: RestPenalty | None
    mu: float

    @property
    def lipschitz(self) -> float:
        """1/γ."""
        if self.rest is None:
            return 0.0
        strength = self.rest.strength
        return (1.0 if strength is None else strength) / self.mu  # a constraint has none

    def at(self, point: Point) -> Smoothed:
        rate = self.lipschitz
        if self.rest is None or rate == 0.0 or not math.isfinite(point.smooth_value):
            return Smoothed(point.w, point.smooth_value, point.grad)
        near = self.rest.prox(point.w, 1.0 / rate)
        away = combine(point.w, -1.0, near)
        value = point.smooth_value + self.rest.value(near) + 0.5 * rate * dot(away, away)
        return Smoothed(point.w, value, combine(point.grad, rate, away))
