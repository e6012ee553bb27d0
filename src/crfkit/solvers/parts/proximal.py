"""Parts that the proximal solvers share: one step, a random start, checks of their options."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from crfkit._checks import check_online
from crfkit.arrays import combine
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.solvers.parts.lipschitz import check_constant
from crfkit.solvers.parts.objective import Objective, Point


def forward_backward(objective: Objective, x: Point, L: float) -> Point:
    """Step to prox(x − ∇f(x)/L): the minimum of the quadratic bound at x plus the rest of the penalty."""
    w = combine(x.w, -1.0 / L, x.grad)
    return objective.at(w if objective.nonsmooth is None else objective.nonsmooth.prox(w, 1.0 / L))


def start(w0: Vector, random_start: float, seed: int, saved: Mapping[str, Any]) -> Vector:
    """Return w0, plus normal noise of this scale; a resumed run adds none."""
    if random_start == 0.0 or saved:
        return w0
    noise = random_start * np.random.default_rng(seed).standard_normal(w0.shape[0])
    return w0 + array_namespace(w0).asarray(noise, dtype=w0.dtype, device=device(w0))


def check_proximal(
    max_iterations: int, seed: int, random_start: float, lipschitz: float | None, backtracking: bool | None
) -> None:
    check_online(max_iterations, seed)
    check_constant(lipschitz, backtracking)
    if not (math.isfinite(random_start) and random_start >= 0):
        raise ParameterError(f"random_start must be a finite number >= 0, not {random_start!r}")
