"""Penalties that make whole groups of weights zero at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from array_api_compat import array_namespace

from crfkit.errors import ParameterError
from crfkit.penalties.groups import Groups
from crfkit.protocols import RestPenalty, SmoothPenalty, Vector


@dataclass(frozen=True)
class _Group:
    strength: float
    groups: Any  # a Groups, or what it is made from

    kinds: ClassVar[frozenset[str]] = frozenset({"group", "prox"})

    def __post_init__(self) -> None:
        what = type(self).__name__
        if not (math.isfinite(self.strength) and self.strength >= 0):
            raise ParameterError(f"the strength of {what} must be a finite number >= 0, not {self.strength!r}")
        if not isinstance(self.groups, Groups):
            object.__setattr__(self, "groups", Groups(self.groups))

    @property
    def name(self) -> str:
        return f"{type(self).__name__}({self.strength:g}, {len(self.groups)} groups)"

    def split(self) -> tuple[SmoothPenalty | None, RestPenalty | None]:
        return None, self  # type: ignore[return-value]


@dataclass(frozen=True)
class GroupL2(_Group):
    """``strength · Σ_G ‖w_G‖₂`` (Yuan & Lin 2006): a group is zero as a whole, or dense.

    `groups` is an integer for every weight, −1 for weights that are not penalised, or a list of slices or of lists of
    indices.

    >>> import numpy as np
    >>> GroupL2(1.0, [slice(0, 2), slice(2, 4)]).prox(np.array([3.0, 4.0, 0.1, 0.2]), step=1.0).round(9).tolist()
    [2.4, 3.2, 0.0, 0.0]
    """

    def at(self, strength: float) -> GroupL2:
        """The same kind of penalty with another strength."""
        return GroupL2(strength, self.groups)

    def value(self, w: Vector) -> float:
        return self.strength * sum(float(array_namespace(w).sum(_lengths(x))) for x in self.groups.rows(w))

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """``g + s·w/‖w‖`` where a group is not zero; where it is, what of ‖g‖ exceeds the strength."""

        def least(x: Vector, g: Vector) -> Vector:
            length = _lengths(x)
            xp = array_namespace(x)
            direction = x / xp.where(length > 0, length, xp.ones_like(length))
            return xp.where(length > 0, g + self.strength * direction, _shrink(g, self.strength))

        return self.groups.map(least, w, gradient)

    def prox(self, w: Vector, step: float) -> Vector:
        """Of every group ``x·max(1 − step·strength/‖x‖, 0)``."""
        return self.groups.map(lambda x: _shrink(x, step * self.strength), w)

    def critical_strength(self, gradient: Vector) -> float:
        """The least strength at which w = 0 is optimal for the weights of groups, from the gradient there."""
        xp = array_namespace(gradient)
        return max((float(xp.max(_lengths(g))) for g in self.groups.rows(gradient)), default=0.0)


@dataclass(frozen=True)
class GroupLinf(_Group):
    """``strength · Σ_G max_{j∈G} |w_j|``: within a group that is not zero, several weights have the largest size.

    `groups` as in :class:`GroupL2`.

    >>> import numpy as np
    >>> GroupLinf(1.0, [0, 0, 1, 1]).prox(np.array([3.0, -4.0, 0.1, 0.2]), step=2.0).tolist()
    [2.5, -2.5, 0.0, 0.0]
    """

    def at(self, strength: float) -> GroupLinf:
        """The same kind of penalty with another strength."""
        return GroupLinf(strength, self.groups)

    def value(self, w: Vector) -> float:
        xp = array_namespace(w)
        return self.strength * sum(float(xp.sum(xp.max(xp.abs(x), axis=1))) for x in self.groups.rows(w))

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """The sub-differential of a group is the L1 ball of radius s at zero; elsewhere s times the convex hull of
        sgn(w_j)·e_j over the largest weights j: the sub-gradient is −g less its projection onto it."""

        def least(x: Vector, g: Vector) -> Vector:
            xp = array_namespace(x)
            size = xp.abs(x)
            top = xp.max(size, axis=1, keepdims=True)
            inside = g - _project_ball(g, self.strength)
            largest = size == top
            h = -1.0 * xp.sign(x) * g
            on_face = xp.sign(x) * (_project_simplex(h, largest, self.strength) - h)
            return xp.where(top > 0, xp.where(largest, on_face, g), inside)

        return self.groups.map(least, w, gradient)

    def prox(self, w: Vector, step: float) -> Vector:
        """``x − (projection of x onto the L1 ball of radius step·strength)``: sizes are cut off at one threshold."""
        radius = step * self.strength

        def cut(x: Vector) -> Vector:
            xp = array_namespace(x)
            size = xp.abs(x)
            return xp.sign(x) * xp.minimum(size, _threshold(size, radius))

        return self.groups.map(cut, w)

    def critical_strength(self, gradient: Vector) -> float:
        """The least strength at which w = 0 is optimal for the weights of groups, from the gradient there."""
        xp = array_namespace(gradient)
        return max((float(xp.max(xp.sum(xp.abs(g), axis=1))) for g in self.groups.rows(gradient)), default=0.0)


# --- rows: [groups][size]


def _lengths(x: Vector) -> Vector:
    """Euclidean, [groups][1]; scaled so that squares neither overflow nor vanish."""
    xp = array_namespace(x)
    top = xp.max(xp.abs(x), axis=1, keepdims=True)
    unit = x / xp.where(top > 0, top, xp.ones_like(top))
    return top * xp.sqrt(xp.sum(unit * unit, axis=1, keepdims=True))


def _shrink(x: Vector, by: float) -> Vector:
    """x·max(1 − by/‖x‖, 0)."""
    xp = array_namespace(x)
    length = _lengths(x)
    left = xp.maximum(length - by, xp.zeros_like(length))
    return x * (left / xp.where(length > 0, length, xp.ones_like(length)))


def _threshold(size: Vector, radius: float) -> Vector:
    """τ ≥ 0 with Σ max(size − τ, 0) = radius, or 0 where the sum of all sizes is less.

    τ = max_j (Σ_{i≤j} size_i − radius)/j, the largest sizes first.
    """
    xp = array_namespace(size)
    sums = xp.cumulative_sum(xp.sort(size, axis=1, descending=True), axis=1)
    count = xp.arange(1, size.shape[1] + 1, dtype=size.dtype)
    tau = xp.max((sums - radius) / count, axis=1, keepdims=True)
    return xp.maximum(tau, xp.zeros_like(tau))


def _project_ball(x: Vector, radius: float) -> Vector:
    """Onto {u : ‖u‖₁ ≤ radius}."""
    xp = array_namespace(x)
    size = xp.abs(x)
    return xp.sign(x) * xp.maximum(size - _threshold(size, radius), xp.zeros_like(x))


def _project_simplex(h: Vector, members: Vector, radius: float) -> Vector:
    """Onto {u ≥ 0 : Σ u = radius} over the members of each row; what stands elsewhere has no meaning."""
    xp = array_namespace(h)
    low = xp.min(h, axis=1, keepdims=True) - radius  # too low to be part of the projection
    h = xp.where(members, h, low)
    sums = xp.cumulative_sum(xp.sort(h, axis=1, descending=True), axis=1)
    tau = xp.max((sums - radius) / xp.arange(1, h.shape[1] + 1, dtype=h.dtype), axis=1, keepdims=True)
    return xp.maximum(h - tau, xp.zeros_like(h))
