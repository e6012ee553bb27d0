"""Dense matrices of all pairs of weights: whether they fit, the Hessian, a step from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from crfkit.errors import ParameterError
from crfkit.protocols import Capability, Vector
from crfkit.solvers.parts.objective import Objective, Point

Matrix = Any


def check_memory(w: Vector, matrices: int, max_memory: float, solver: str, instead: str) -> None:
    """Raise if so many matrices of the size of w do not fit."""
    n = w.shape[0]
    needed = matrices * n * n * (array_namespace(w).finfo(w.dtype).bits // 8)
    if needed > max_memory:
        kept = "a matrix" if matrices == 1 else f"{matrices} matrices"
        raise ParameterError(
            f"the solver {solver} keeps {kept} of {n} × {n} numbers and needs {_bytes(needed)}, but max_memory allows "
            f"{_bytes(max_memory)}; raise max_memory, or use {instead}"
        )


def hessian(objective: Objective, point: Point) -> Matrix:
    """Return the matrix [n, n], as the loss knows it, or from n products with unit vectors."""
    w = point.w
    xp, n = array_namespace(w), w.shape[0]
    if Capability.HESSIAN in objective.loss.capabilities:
        evaluation: Any = point.evaluation
        H = evaluation.hessian()
        if objective.smooth is not None:
            for k in range(n):
                unit = xp.zeros_like(w)
                unit[k] = 1.0
                objective.smooth.add_hessp(w, unit, H[k, :])
        return H
    H = xp.empty((n, n), dtype=w.dtype, device=device(w))
    for k in range(n):
        unit = xp.zeros_like(w)
        unit[k] = 1.0
        H[k, :] = objective.hessp(point, unit)
    return 0.5 * (H + H.T)


def newton_direction(H: Matrix, g: Vector) -> Vector:
    """Return −(H + τI)⁻¹g with the first τ of 0, τ₀, 16·τ₀, 16²·τ₀ … that makes the matrix safely positive definite.

    −g where there is none: H is not finite.
    """
    xp = array_namespace(g)
    eye = xp.eye(g.shape[0], dtype=g.dtype, device=device(g))
    scale = float(xp.max(xp.abs(H))) or 1.0
    for shift in (0.0, *(16.0**k * scale for k in range(-8, 8))):
        shifted = H + shift * eye
        if _positive_definite(shifted):
            return -1.0 * xp.linalg.solve(shifted, g[:, None])[:, 0]
    return -1.0 * g


def _positive_definite(H: Matrix) -> bool:
    """Return whether it has a Cholesky factor that is not singular to rounding."""
    xp = array_namespace(H)
    try:
        pivots = xp.linalg.diagonal(xp.linalg.cholesky(H)) ** 2
    except (np.linalg.LinAlgError, RuntimeError):  # RuntimeError: that of torch
        return False
    return bool(xp.min(pivots) > 2.0**-46 * xp.max(pivots))


def _bytes(n: float) -> str:
    unit = 0
    while n >= 1024 and unit < 5:
        n, unit = n / 1024, unit + 1
    return f"{n:.2f} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[unit]}"
