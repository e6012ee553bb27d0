"""Loss plus penalty at a point, with a count of evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from crfkit.arrays import norm
from crfkit.protocols import Evaluation, Loss, Penalty, Vector


@dataclass(frozen=True)
class Point:
    """The smooth objective (loss + smooth part of the penalty) at w."""

    w: Vector
    value: float
    grad: Vector
    evaluation: Evaluation

    @cached_property
    def grad_norm(self) -> float:
        return norm(self.grad)

    @property
    def finite(self) -> bool:
        return math.isfinite(self.value) and math.isfinite(self.grad_norm)


class Objective:
    """``J = loss + penalty``; the smooth part is evaluated here, the rest is the solver's."""

    def __init__(self, loss: Loss, penalty: Penalty) -> None:
        self.loss = loss
        self.penalty = penalty
        self.smooth, self.rest = penalty.split()
        self.evaluations = 0

    @property
    def name(self) -> str:
        return f"{self.loss.name} + {self.penalty.name}"

    def at(self, w: Vector, warm: Evaluation | None = None) -> Point:
        """Value and gradient of the smooth part at w. The gradient array belongs to the point."""
        evaluation = self.loss.at(w, warm)
        value, grad = evaluation.value, evaluation.grad
        self.evaluations += 1
        if self.smooth is not None:
            value += self.smooth.value(w)
            self.smooth.add_gradient(w, grad)
        return Point(w, value, grad, evaluation)

    def value(self, point: Point) -> float:
        """The whole objective."""
        return point.value + (self.rest.value(point.w) if self.rest is not None else 0.0)
