"""Loss plus penalty at a point, with a count of evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from array_api_compat import array_namespace, device

from crfkit.arrays import is_native, norm, put
from crfkit.protocols import Capability, Evaluation, GrowingLoss, Kind, Loss, NonsmoothPenalty, Penalty, Vector
from crfkit.solvers.parts.moving import Moving


def extended(vector: Vector, place: Any, size: int) -> Vector:
    """Return the vector in a larger space: its numbers at these places, zero elsewhere."""
    xp = array_namespace(vector)
    larger = xp.zeros(size, dtype=vector.dtype, device=device(vector))
    put(larger, place, vector)
    return larger


@dataclass(frozen=True)
class Point:
    """The objective at w: the smooth part (loss + smooth part of the penalty) with its gradient, and the rest."""

    w: Vector
    smooth_value: float
    grad: Vector  # of the smooth part
    evaluation: Evaluation
    nonsmooth: NonsmoothPenalty | None = None
    grad_square: float | None = None  # ‖grad‖², if it is known

    @cached_property
    def value(self) -> float:
        """The whole objective."""
        return self.smooth_value + (self.nonsmooth.value(self.w) if self.nonsmooth is not None else 0.0)

    @cached_property
    def grad_norm(self) -> float:
        return norm(self.grad) if self.grad_square is None else math.sqrt(self.grad_square)

    @cached_property
    def subgradient(self) -> Vector:
        """The shortest sub-gradient of the whole objective; the gradient where there is no rest."""
        return self.grad if self.nonsmooth is None else self.nonsmooth.min_norm_subgradient(self.w, self.grad)

    @cached_property
    def moving(self) -> Moving:
        """The weights that can move."""
        return Moving.at(self.w, self.grad, self.nonsmooth)

    @cached_property
    def optimality(self) -> float:
        if self.nonsmooth is None:
            return self.grad_norm
        one_pass = Kind.L1 in self.nonsmooth.kinds and is_native(self.w, self.grad)
        return self.moving.norm if one_pass else norm(self.subgradient)

    @property
    def smooth_finite(self) -> bool:
        """Return whether the smooth part is finite; a constraint need not hold."""
        return math.isfinite(self.smooth_value) and math.isfinite(self.grad_norm)

    @property
    def finite(self) -> bool:
        return math.isfinite(self.value) and math.isfinite(self.optimality)


class Objective:
    """``J = loss + penalty``; the smooth part is evaluated here, the rest is the solver's."""

    def __init__(self, loss: Loss, penalty: Penalty) -> None:
        self._bind(loss, penalty)
        self.evaluations = 0
        self.products = 0
        self.passes = 0  # over candidates
        self._accepted: Evaluation | None = None  # where losses that can start from another evaluation begin

    def _bind(self, loss: Loss, penalty: Penalty) -> None:
        self.loss = loss
        self.penalty = penalty
        self.smooth, self.nonsmooth = penalty.split()

    @property
    def name(self) -> str:
        return f"{self.loss.name} + {self.penalty.name}"

    @property
    def l2(self) -> float:
        """The strength of the smooth part, for solvers that take no other than L2."""
        return 0.0 if self.smooth is None or self.smooth.strength is None else self.smooth.strength

    @property
    def l1(self) -> float:
        """The strength of the rest, for solvers that take no other than L1."""
        return 0.0 if self.nonsmooth is None or self.nonsmooth.strength is None else self.nonsmooth.strength

    def at(self, w: Vector, warm: Evaluation | None = None) -> Point:
        """Evaluate value and gradient of the smooth part at w. The gradient array belongs to the point."""
        evaluation = self.loss.at(w, warm if warm is not None else self._accepted)
        self.evaluations += 1
        return self.point(w, evaluation)

    def point(self, w: Vector, evaluation: Evaluation) -> Point:
        """Return the point of an evaluation of the loss that was made elsewhere."""
        value, grad = evaluation.value, evaluation.grad
        if self.smooth is None:
            return Point(w, value, grad, evaluation, self.nonsmooth)
        more, grad_square = self.smooth.add(w, grad)
        return Point(w, value + more, grad, evaluation, self.nonsmooth, grad_square)

    def grow(self, loss: GrowingLoss, point: Point, place: Any) -> Point:
        """Continue with a loss that has grown; return the point in its space, with the new weights at zero."""
        self._bind(loss, self.penalty.bind(loss))
        self._accepted = None
        w = extended(point.w, place, loss.size)
        evaluation = loss.carry(point.evaluation, place)
        if evaluation is None:
            return self.at(w, point.evaluation)
        grad = 0.0 * w
        if self.smooth is not None:
            self.smooth.add_gradient(w, grad)
        grad += evaluation.grad
        grad[place] = point.grad
        return Point(w, point.smooth_value, grad, evaluation, self.nonsmooth)

    def accept(self, point: Any) -> None:
        """Start later evaluations from this iterate; with the last trial, a line search would see several functions."""
        if Capability.WARM in self.loss.capabilities:
            self._accepted = point.evaluation

    def hessp(self, point: Point, v: Vector) -> Vector:
        """Return the Hessian of the smooth part at the point, times v."""
        product = point.evaluation.hessp(v)
        self.products += 1
        if self.smooth is not None:
            self.smooth.add_hessp(point.w, v, product)
        return product

    def hess_diag(self, point: Point) -> Vector:
        """Return the diagonal of that Hessian, as the loss approximates it."""
        diagonal = point.evaluation.hess_diag()
        if self.smooth is not None:
            self.smooth.add_hess_diag(point.w, diagonal)
        return diagonal
