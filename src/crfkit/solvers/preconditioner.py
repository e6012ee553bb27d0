"""Variables w/scale in which the Hessian's diagonal is closer to one."""

from __future__ import annotations

import math
from typing import Any

from array_api_compat import array_namespace

from crfkit.protocols import Vector
from crfkit.solvers.objective import Objective, Point


class NeedsDiagonal:
    """What a solver needs of a loss: the class with its default options, and "hess_diag" too if it is preconditioned."""

    def __init__(self, *needs: str) -> None:
        self._needs = frozenset(needs)

    def __get__(self, solver: Any, owner: type) -> frozenset[str]:
        return self._needs | {"hess_diag"} if solver is not None and solver.preconditioned else self._needs


def jacobi_scale(objective: Objective, point: Point, power: float = 1.0) -> Vector:
    """``diag(∇²f)^(−power/2)``; entries of the diagonal below √ε of the largest are raised to that, a zero one to 1."""
    diagonal = objective.hess_diag(point)
    xp = array_namespace(diagonal)
    largest = float(xp.max(diagonal))
    if not 0 < largest < math.inf:
        return xp.ones_like(diagonal)
    floor = xp.full_like(diagonal, 2.0**-26 * largest)
    return xp.where(diagonal > floor, diagonal, floor) ** (-power / 2)
