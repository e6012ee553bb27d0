"""The epigraph form of a penalty: f(w) + rest(w) = min_α f(w) + cost·α over a set of x = (w, α) to project onto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crfkit.arrays import combine, dot, namespace, norm
from crfkit.protocols import Vector
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.saved import saved_vector


@dataclass(frozen=True)
class Lifted:
    """x = (w, α) with the value and gradient of f(w) + cost·α."""

    x: Vector
    value: float
    grad: Vector
    point: Point  # the objective itself at w


class EpigraphForm:
    """A smooth objective over a convex set. Without a rest it is the objective, over all w."""

    def __init__(self, objective: Objective, w0: Vector) -> None:
        self.objective = objective
        rest: Any = objective.nonsmooth
        self.nonsmooth = rest  # an EpigraphPenalty
        self.n = w0.shape[0]
        if rest is not None:
            self._alpha, self._cost = rest.epigraph_start(w0)

    def start(self, w0: Vector, saved: Mapping[str, Any]) -> Lifted:
        """Return w0, or the nearest point that the penalty allows, with the least α or that of a saved state."""
        if self.nonsmooth is None:
            return self.at(w0)
        alpha = saved_vector(saved, "alpha", self._alpha) if "alpha" in saved else self._alpha
        return self.at(self.project(namespace(w0).concat([w0, alpha])))

    def at(self, x: Vector, near: Lifted | None = None) -> Lifted:
        """Return the objective at x; `near` is the iterate that it is tried from."""
        point = self.objective.at(x[: self.n], None if near is None else near.point.evaluation)
        if self.nonsmooth is None:
            return Lifted(x, point.smooth_value, point.grad, point)
        value = point.smooth_value + (dot(self._cost, x[self.n :]) if x.shape[0] > self.n else 0.0)
        return Lifted(x, value, namespace(x).concat([point.grad, self._cost]), point)

    def project(self, x: Vector) -> Vector:
        if self.nonsmooth is None:
            return x
        return namespace(x).concat(list(self.nonsmooth.project_epigraph(x[: self.n], x[self.n :])))

    def residual(self, at: Lifted) -> float:
        """‖P(x − ∇f) − x‖: zero at an optimum and only there."""
        return norm(combine(self.project(combine(at.x, -1.0, at.grad)), -1.0, at.x))

    def saved(self, at: Lifted) -> Mapping[str, Any]:
        return {} if self.nonsmooth is None else {"alpha": 1.0 * at.x[self.n :]}
