"""Progress of a run, and its end where only rounding is left.

Near the optimum the objective cannot be told apart from its rounding errors. A step counts as progress while it lowers
the objective by more than those, or the optimality (the norm of the gradient, or of the shortest sub-gradient).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crfkit.arrays import norm
from crfkit.result import Status
from crfkit.solvers.parts.objective import Point
from crfkit.solvers.parts.rounding import EPSILON
from crfkit.solvers.parts.saved import saved_count, saved_number


@dataclass(frozen=True)
class Patience:
    """How long a solver continues without progress, and what counts as progress."""

    stalls: int  # successive steps without progress before the run ends
    flatter: float  # the optimality has improved if it is below this share of the best so far
    noise: float = 4.0 * EPSILON  # of the value: smaller decreases are rounding
    largest: float = math.inf  # a longer weight vector has diverged


LINE_SEARCH = Patience(10, 0.9)
FIRST_ORDER = Patience(30, 0.99, largest=1e20)  # these methods are slow where the objective is flat to rounding
SHORT_STEPS = Patience(10, 1.0, noise=0.0)  # of iterative scaling: any decrease counts


@dataclass(frozen=True)
class Progress:
    """The least value and optimality so far, and how many successive steps improved neither."""

    value: float  # at the current point
    best_value: float
    best_norm: float
    stalls: int = 0

    @classmethod
    def at(cls, point: Point, saved: Mapping[str, Any]) -> Progress:
        """Return the progress at the start of a run, or that of `saved` if it is of this point and objective."""
        if saved.get("value") == point.value:
            best = saved_number(saved, "best_value"), saved_number(saved, "best_norm", low=0.0)
            return cls(point.value, *best, saved_count(saved, "stalls"))
        return cls(point.value, point.value, point.optimality)

    def after(self, new: Point, patience: Patience = LINE_SEARCH, waves: bool = False) -> Progress | Status:
        """Return the progress after a step to `new`, or a status if patience is at its end or weights overflow.

        With `waves` (accelerated methods without restarts), values that rise count as progress: they fall again later.
        """
        if patience.largest < math.inf and norm(new.w) > patience.largest:
            return Status.DIVERGED
        noise = patience.noise * abs(self.best_value)
        falls = new.value < self.best_value - noise
        flattens = new.optimality < patience.flatter * self.best_norm
        rises = waves and new.value > self.best_value + 4.0 * noise
        stalls = 0 if falls or flattens or rises else self.stalls + 1
        if stalls > patience.stalls:
            return Status.LINE_SEARCH_FAILED
        return Progress(new.value, min(self.best_value, new.value), min(self.best_norm, new.optimality), stalls)

    def saved(self) -> Mapping[str, Any]:
        return vars(self)
