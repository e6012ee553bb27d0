"""What the proximal solvers share: one step, a start at random, and an end where only rounding is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from crfkit._checks import check_online
from crfkit.arrays import combine, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.result import Status
from crfkit.solvers.parts.lipschitz import MAX_STEP, check_constant
from crfkit.solvers.parts.objective import Objective, Point

MAX_STALLS = 30
FLATTER = 0.99  # first-order methods are slow where the objective is flat to rounding


def forward_backward(objective: Objective, x: Point, L: float) -> Point:
    """prox(x − ∇f(x)/L) with the step 1/L: the minimum of the quadratic bound at x plus the rest of the penalty."""
    w = combine(x.w, -1.0 / L, x.grad)
    return objective.at(w if objective.rest is None else objective.rest.prox(w, 1.0 / L))


def start(w0: Vector, random_start: float, seed: int, saved: Mapping[str, Any]) -> Vector:
    """w0, or w0 plus normal noise of this scale; a run that goes on does not start anew."""
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


@dataclass(frozen=True)
class Patience:
    """The least value and optimality so far, and how many successive steps improved neither.

    With `waves` (accelerated methods without restarts), values that rise count as progress: they fall again later.
    """

    value: float  # at the current point
    best_value: float
    best_norm: float
    stalls: int = 0

    @classmethod
    def at(cls, point: Point, saved: Mapping[str, Any]) -> Patience:
        """At the start of a run; goes on from `saved` if that is of this point and objective."""
        if saved.get("value") == point.value:
            return cls(point.value, float(saved["best_value"]), float(saved["best_norm"]), int(saved["stalls"]))
        return cls(point.value, point.value, point.optimality)

    def after(self, new: Point, waves: bool = False, most: int = MAX_STALLS) -> Patience | Status:
        """After a step to `new`; a status if nothing but rounding has changed for a while, or weights overflow."""
        if norm(new.w) > MAX_STEP:
            return Status.DIVERGED
        noise = 2.0**-50 * abs(self.best_value)
        falls = new.value < self.best_value - noise
        flattens = new.optimality < FLATTER * self.best_norm
        rises = waves and new.value > self.best_value + 4.0 * noise
        stalls = 0 if falls or flattens or rises else self.stalls + 1
        if stalls > most:
            return Status.LINE_SEARCH_FAILED
        return Patience(new.value, min(self.best_value, new.value), min(self.best_norm, new.optimality), stalls)

    def saved(self) -> Mapping[str, Any]:
        return vars(self)
