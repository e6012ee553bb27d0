"""Conjugate gradients for min q(v) = gᵀv + ½vᵀHv inside ‖v‖ ≤ Δ (Steihaug 1983; Algorithm 2 of the TRON thesis)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from crfkit.arrays import add_scaled, combine, dot
from crfkit.protocols import Vector


class Exit(Enum):
    """Why the inner iteration stopped."""

    INTERIOR = "the residual is small: ‖r‖ ≤ ξ‖g‖"
    BOUNDARY = "the next step would leave the region: v lies on its boundary"
    NEGATIVE_CURVATURE = "dᵀHd ≤ 0: v goes along d to the boundary"
    MAX_PRODUCTS = "the limit on products was reached"


@dataclass(frozen=True)
class Subproblem:
    """An approximate minimiser v of q, with its residual r = −g − Hv."""

    v: Vector
    r: Vector
    exit: Exit
    products: int


def steihaug(
    hessp: Callable[[Vector], Vector], g: Vector, radius: float, xi: float, max_products: int = 1000
) -> Subproblem:
    """Minimise q; with an infinite radius, negative curvature ends at the current v (at −g if it is met at once)."""
    r = -1.0 * g
    v, d = 0.0 * g, 1.0 * r
    rr = dot(r, r)
    goal = xi * math.sqrt(rr)
    for products in range(1, max_products + 1):
        hd = hessp(d)
        curvature = dot(d, hd)
        if not curvature > 0:
            if math.isinf(radius):
                return Subproblem(v if products > 1 else d, r, Exit.NEGATIVE_CURVATURE, products)
            tau = _to_boundary(v, d, radius)
            return Subproblem(combine(v, tau, d), combine(r, -tau, hd), Exit.NEGATIVE_CURVATURE, products)
        alpha = rr / curvature
        inner = combine(v, alpha, d)
        if dot(inner, inner) >= radius * radius:
            tau = _to_boundary(v, d, radius)
            return Subproblem(combine(v, tau, d), combine(r, -tau, hd), Exit.BOUNDARY, products)
        v = inner
        add_scaled(r, -alpha, hd)
        rr, before = dot(r, r), rr
        if math.sqrt(rr) <= goal:
            return Subproblem(v, r, Exit.INTERIOR, products)
        d = combine(r, rr / before, d)
    return Subproblem(v, r, Exit.MAX_PRODUCTS, max_products)


def _to_boundary(v: Vector, d: Vector, radius: float) -> float:
    """Return the τ ≥ 0 with ‖v + τd‖ = Δ, without cancellation."""
    vd, dd = dot(v, d), dot(d, d)
    inside = max(radius * radius - dot(v, v), 0.0)
    root = math.sqrt(vd * vd + dd * inside)
    if vd < 0:
        return (root - vd) / dd
    return inside / (vd + root) if root > 0 else 0.0  # no τ if d is zero to rounding
