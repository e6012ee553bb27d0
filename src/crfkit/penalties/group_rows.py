"""Norms, shrinkage and projections of the rows of a matrix [groups][size], one group a row."""

from __future__ import annotations

from array_api_compat import array_namespace

from crfkit.protocols import Vector


def lengths(x: Vector) -> Vector:
    """Euclidean, [groups][1]; scaled so that squares neither overflow nor vanish."""
    xp = array_namespace(x)
    top = xp.max(xp.abs(x), axis=1, keepdims=True)
    unit = x / xp.where(top > 0, top, xp.ones_like(top))
    return top * xp.sqrt(xp.sum(unit * unit, axis=1, keepdims=True))


def shrink(x: Vector, by: float) -> Vector:
    """x·max(1 − by/‖x‖, 0)."""
    xp = array_namespace(x)
    length = lengths(x)
    left = xp.maximum(length - by, xp.zeros_like(length))
    return x * (left / xp.where(length > 0, length, xp.ones_like(length)))


def threshold(size: Vector, radius: float) -> Vector:
    """τ ≥ 0 with Σ max(size − τ, 0) = radius, or 0 where the sum of all sizes is less.

    τ = max_j (Σ_{i≤j} size_i − radius)/j, the largest sizes first.
    """
    xp = array_namespace(size)
    sums = xp.cumulative_sum(xp.sort(size, axis=1, descending=True), axis=1)
    count = xp.arange(1, size.shape[1] + 1, dtype=size.dtype)
    tau = xp.max((sums - radius) / count, axis=1, keepdims=True)
    return xp.maximum(tau, xp.zeros_like(tau))


def project_ball(x: Vector, radius: float) -> Vector:
    """Onto {u : ‖u‖₁ ≤ radius}."""
    xp = array_namespace(x)
    size = xp.abs(x)
    return xp.sign(x) * xp.maximum(size - threshold(size, radius), xp.zeros_like(x))


def project_simplex(h: Vector, members: Vector, radius: float) -> Vector:
    """Onto {u ≥ 0 : Σ u = radius} over the members of each row; what stands elsewhere has no meaning."""
    xp = array_namespace(h)
    low = xp.min(h, axis=1, keepdims=True) - radius  # too low to be part of the projection
    h = xp.where(members, h, low)
    sums = xp.cumulative_sum(xp.sort(h, axis=1, descending=True), axis=1)
    tau = xp.max((sums - radius) / xp.arange(1, h.shape[1] + 1, dtype=h.dtype), axis=1, keepdims=True)
    return xp.maximum(h - tau, xp.zeros_like(h))


# --- onto the epigraphs {(x, a) : ‖x‖ ≤ a}; a [groups][1]


def linf_cone(x: Vector, a: Vector) -> tuple[Vector, Vector]:
    """Onto |x_k| ≤ a: sizes are cut off at θ = max(0, max_{j≥0} (a + the j largest sizes)/(1 + j))."""
    xp = array_namespace(x)
    theta = _largest_mean(xp.abs(x), a)
    theta = xp.maximum(theta, xp.zeros_like(theta))
    return xp.sign(x) * xp.minimum(xp.abs(x), theta), theta


def l1_cone(x: Vector, a: Vector) -> tuple[Vector, Vector]:
    """Onto Σ|x_k| ≤ a: soft thresholding by τ = max(0, max_{j≥0} (the j largest sizes − a)/(1 + j)), and a + τ."""
    xp = array_namespace(x)
    size = xp.abs(x)
    tau = _largest_mean(size, -1.0 * a)
    tau = xp.maximum(tau, xp.zeros_like(tau))
    return xp.sign(x) * xp.maximum(size - tau, xp.zeros_like(size)), a + tau


def l2_cone(x: Vector, a: Vector) -> tuple[Vector, Vector]:
    """Onto ‖x‖₂ ≤ a: the middle of ‖x‖ and a, or 0 where it is negative."""
    xp = array_namespace(x)
    length = lengths(x)
    middle = 0.5 * (length + a)
    middle = xp.where(length <= a, a, xp.maximum(middle, xp.zeros_like(middle)))
    ratio = xp.where(length <= a, xp.ones_like(a), middle / xp.where(length > 0, length, xp.ones_like(a)))
    return x * ratio, middle


def _largest_mean(size: Vector, a: Vector) -> Vector:
    """[groups][1] max_{j≥0} (a + Σ of the j largest sizes)/(1 + j)."""
    xp = array_namespace(size)
    sums = xp.cumulative_sum(xp.sort(size, axis=1, descending=True), axis=1)
    count = xp.arange(2, size.shape[1] + 2, dtype=size.dtype)
    return xp.maximum(a, xp.max((a + sums) / count, axis=1, keepdims=True))
