"""Variables w/scale in which the Hessian's diagonal is closer to one."""

from __future__ import annotations

import math
from typing import Any

from crfkit.arrays import namespace
from crfkit.protocols import Capability, Vector
from crfkit.solvers.parts.objective import Objective, Point

ALPHA = 0.01  # of the diagonal, next to the identity


class NeedsCurvature:
    """The capabilities that a solver needs: those given and, if it is preconditioned, also "hess_diag"."""

    def __init__(self, *needs: Capability) -> None:
        self._needs = frozenset(needs)

    def __get__(self, solver: Any, owner: type) -> frozenset[Capability]:
        return self._needs | {Capability.HESS_DIAG} if solver is not None and solver.preconditioned else self._needs


class NeedsHead(NeedsCurvature):
    """The same and, with a head, "hess_sample"."""

    def __get__(self, solver: Any, owner: type) -> frozenset[Capability]:
        needs = super().__get__(solver, owner)
        return needs | {Capability.HESS_DIAG, Capability.HESS_SAMPLE} if solver is not None and solver.head else needs


def jacobi_scale(objective: Objective, point: Point, power: float = 1.0, dtype: Any = None) -> Vector:
    """Return ``diag(∇²f)^(−power/2)`` at a point; see `power_scale`."""
    return power_scale(objective.hess_diag(point), power, dtype)


def mixed_scale(objective: Objective, point: Point) -> Vector:
    """Return ``(α·diag(∇²f) + 1 − α)^(−1/2)`` at a point, for trust regions (Hsia, Chiang & Lin 2018)."""
    return (ALPHA * objective.hess_diag(point) + (1.0 - ALPHA)) ** -0.5


def power_scale(diagonal: Vector, power: float, dtype: Any = None) -> Vector:
    """Return ``diagonal^(−power/2)``, with the mean in place of negligible entries (below √ε of the largest)."""
    xp = namespace(diagonal)
    largest, mean = float(xp.max(diagonal)), float(xp.mean(diagonal))
    if dtype is not None:
        diagonal = xp.astype(diagonal, dtype, copy=False)
    if not 0 < largest < math.inf:
        return xp.ones_like(diagonal)
    return xp.where(diagonal > 2.0**-26 * largest, diagonal, xp.full_like(diagonal, mean)) ** (-power / 2)
