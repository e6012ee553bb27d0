"""Evaluations of the weights that can move: where L1 holds most weights at zero, the others are a smaller loss.

The active set has the weights that are not zero, and those whose derivative is above MARGIN times the strength λ of L1.
A loss of these alone takes less time (capability "part"). All others are held at zero, and their derivatives are those
that were last computed, below λ, so that a solver sees no reason to move them. Whether that is still so is checked by
evaluations of the whole loss: every PERIOD steps, and before a run ends. Those that have come above λ join the set. A
run ends only where no weight outside the set violates the optimality conditions, or after a step on all weights, so
that its end means the same as without a set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit.arrays import is_native
from crfkit.errors import CapabilityError, ParameterError
from crfkit.protocols import Capability, Kind, Vector
from crfkit.solvers.parts.saved import HANDED_OVER, saved_count

LEAST = 1 << 14  # weights: with fewer, evaluations take less time than making a set
MARGIN = 0.6
PERIOD = 30
FIRST = 20  # steps before the first set: early on, weights leave zero and come back in numbers
SHARE = 0.25  # of the weights: a larger set saves too little
SHRUNK = 0.7  # a set that could be so much smaller is made again


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """Some of the weights, their loss, and the derivatives of all when they were last computed."""

    places: Any  # ascending
    loss: Any  # of the weights at these places, with all others at zero
    grad: Vector  # [n]

    def at(self, w: Vector, whole: Any) -> ActiveEvaluation:
        """Return the loss `whole` at w, which is zero outside the set."""
        if Capability.PRECISION in whole.capabilities:
            self.loss.tolerance = whole.tolerance
        part = self.loss.at(w[self.places])
        grad = self.grad.copy()
        grad[self.places] = part.grad
        return ActiveEvaluation(w, part.value, grad)


class ActiveEvaluation:
    """A loss at w; the derivatives of weights outside the set are older."""

    def __init__(self, w: Vector, value: float, grad: Vector) -> None:
        self.w, self.value, self.grad = w, value, grad

    def hessp(self, v: Vector) -> Vector:
        raise CapabilityError("a loss of the active weights has no hessp")

    def hess_diag(self) -> Vector:
        raise CapabilityError("a loss of the active weights has no hess_diag")


@dataclass(frozen=True, eq=False)
class Activity:
    """The last set of a run, and how many steps have been evaluated on it since the last whole evaluation."""

    last: ActiveSet | None = None
    steps: int = 0
    pause: bool = False  # whether the next step is evaluated on all weights

    def saved(self) -> Mapping[str, Any]:
        if self.last is None:
            return {}
        return {"set_places": self.last.places, "set_steps": self.steps, "set_pause": self.pause}

    @classmethod
    def of(cls, objective: Any, w0: Vector, saved: Mapping[str, Any]) -> Activity:
        """Return that of a saved state; of one that was handed over, nothing, as all weights are evaluated again."""
        if "set_places" not in saved or saved.get(HANDED_OVER):
            return cls()
        places, size = saved["set_places"], w0.shape[0]
        wrong = not isinstance(places, np.ndarray) or places.ndim != 1 or places.dtype.kind != "i" or len(places) == 0
        if wrong or places[0] < 0 or places[-1] >= size or (np.diff(places) <= 0).any():
            raise ParameterError("the saved state is damaged: set_places must be places of weights, ascending")
        if not _possible(objective, w0) or np.count_nonzero(w0[places]) < np.count_nonzero(w0):
            raise ParameterError("the saved state is damaged: set_places do not fit the weights")
        found = ActiveSet(places.astype(np.int64), objective.loss.part(places), np.zeros(size))
        return cls(found, saved_count(saved, "set_steps", high=PERIOD), bool(saved.get("set_pause")))

    @property
    def held(self) -> ActiveSet | None:
        """The set that the point was evaluated on; None: all weights."""
        return self.last if self.steps else None

    def next(self, objective: Any, point: Any, steps: int) -> ActiveSet | None:
        """Return the set for a step from this point, the run's step of this number; None: all weights."""
        if self.pause:
            return None
        if self.steps:
            return self.last if self.steps < PERIOD else None
        if steps < FIRST or point.w.shape[0] < LEAST or not _possible(objective, point.w):
            return None
        strength = objective.rest.strength
        keep = (point.w != 0) | (np.abs(point.grad) > MARGIN * strength)
        count = int(np.count_nonzero(keep))
        if count == 0 or count > SHARE * len(keep):
            return None
        last = self.last
        if last is not None and count > SHRUNK * len(last.places) and self._suits(point):
            return replace(last, grad=point.grad)
        places = np.flatnonzero(keep)
        return ActiveSet(places, objective.loss.part(places), point.grad)

    def _suits(self, point: Any) -> bool:
        """Return whether the last set holds all that is not zero and all that moves."""
        assert self.last is not None
        return np.count_nonzero(point.w[self.last.places]) == np.count_nonzero(point.w) and not self.violated(point)

    def after(self, used: ActiveSet | None) -> Activity:
        """Return it after a step on this set, or on all weights."""
        return Activity(self.last) if used is None else Activity(used, self.steps + 1)

    def violated(self, whole: Any) -> bool:
        """Return whether a weight outside the set would leave zero at this point, evaluated on all weights."""
        assert self.last is not None
        return not bool(np.isin(whole.moving.entering, self.last.places, assume_unique=True).all())


def _possible(objective: Any, w: Vector) -> bool:
    rest, smooth = objective.rest, objective.smooth
    return (
        Capability.PART in objective.loss.capabilities
        and rest is not None
        and Kind.L1 in rest.kinds
        and (smooth is None or Kind.L2 in smooth.kinds)
        and is_native(w)
    )
