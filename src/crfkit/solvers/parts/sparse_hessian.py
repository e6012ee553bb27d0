"""Newton's direction where the Hessian of a loss is a sparse matrix, by conjugate gradients or a factorisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit.protocols import Vector
from crfkit.solvers.parts.objective import Objective, Point

SHARE = 1e-9  # of the gradient: the residual of a direction
MOST = 2000  # products with the matrix


def sparse_hessian(objective: Objective, point: Point) -> Any:
    """Return the Hessian [n, n] of the smooth part; the penalty's must be diagonal."""
    from scipy.sparse import diags

    evaluation: Any = point.evaluation
    extra = np.zeros(point.w.shape[0])
    if objective.smooth is not None:
        objective.smooth.add_hess_diag(point.w, extra)
    return (evaluation.sparse_hessian() + diags(extra)).tocsr()


def sparse_direction(objective: Objective, point: Point) -> Vector:
    """Return −H⁻¹g."""
    g = np.asarray(point.grad)
    d: Vector = conjugate_gradients(sparse_hessian(objective, point), -g, np.zeros_like(g), SHARE, MOST)
    return d


def factored_direction(objective: Objective, point: Point) -> Vector:
    """Return −H⁻¹g from a sparse factor of H; by conjugate gradients if rounding spoils that."""
    from scipy.sparse.linalg import splu

    g = np.asarray(point.grad)
    try:
        # H is symmetric and positive definite: pivots stay on the diagonal, in an order of least fill-in
        factor = splu(
            sparse_hessian(objective, point).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        d: Vector = -factor.solve(g)
    except RuntimeError:  # singular to rounding
        return sparse_direction(objective, point)
    return d if np.isfinite(d).all() and float(d @ g) < 0 else sparse_direction(objective, point)


def conjugate_gradients(A: Any, b: Any, x: Any, share: float, most: int) -> Any:
    """x with ‖A·x − b‖ ≤ share·‖b‖, by conjugate gradients with the diagonal as preconditioner."""
    diagonal = A.diagonal()
    inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
    r = b - A @ x
    z = inverse * r
    p, rho = z, float(r @ z)
    limit = share * float(np.linalg.norm(b))
    for _ in range(most):
        if np.linalg.norm(r) <= limit:
            break
        q = A @ p
        curvature = float(p @ q)
        if not curvature > 0:
            break
        alpha = rho / curvature
        x = x + alpha * p
        r = r - alpha * q
        z = inverse * r
        rho, old = float(r @ z), rho
        p = z + (rho / old) * p
    return x
