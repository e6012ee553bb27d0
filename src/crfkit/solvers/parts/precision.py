"""How precisely a loss is evaluated: roughly far from the optimum, more precisely as the solver gets near.

Approximate inference is iterative, and most of its time goes into digits that a solver far from the optimum has no use
for. A gradient g̃ with ‖g̃ − g‖ ≤ ERROR·‖g‖ still leads to the optimum of the exact loss. So the error is measured from
time to time: the loss is evaluated again at the accepted point, ten times as precisely, from where inference stood.
If the gradient moves by more than ERROR times its length, the loss is evaluated that precisely from then on. A loss
that knows its rounding errors is trusted without a measurement while the gradient is longer than `loss.trusted`.
"""

from __future__ import annotations

from typing import Any

from crfkit.arrays import combine, norm
from crfkit.protocols import Capability
from crfkit.solvers.parts.objective import Objective
from crfkit.solvers.parts.rounding import EPSILON
from crfkit.solvers.parts.saved import HANDED_OVER

ERROR = 0.05  # of the gradient, relative to that of the objective
STEP = 0.1  # from one tolerance to the next
NEARER = 0.3  # the error is measured again when the gradient is so much shorter than at the last time


def rounding_of(loss: Any) -> float:
    """Return the relative rounding error of the values of a loss."""
    return float(loss.rounding) if Capability.PRECISION in loss.capabilities else EPSILON


class Precision:
    """Watch the error of a loss with the capability "precision" and tighten its tolerance; never loosen it."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.active = Capability.PRECISION in objective.loss.capabilities
        self._checked_at = float("inf")  # the optimality when the error was last measured
        self._finest: Any = None

    @property
    def finest(self) -> Any:
        """The point of the last check, evaluated more precisely; None if there was none."""
        return self._finest

    def at_limit(self) -> bool:
        """Return whether the loss cannot be evaluated more precisely."""
        loss: Any = self.objective.loss
        return not self.active or loss.tolerance <= loss.finest

    def follow(self, solver: Any, state: Any) -> Any:
        """Return the state after a step; evaluated again where the gradient has become too short for its error."""
        self._finest = None  # of the point before
        loss: Any = self.objective.loss
        if self.at_limit() or state.point.optimality > min(NEARER * self._checked_at, loss.trusted):
            return state
        return self.check(solver, state) or state

    def check(self, solver: Any, state: Any, tighten: bool = False) -> Any:
        """Measure the error at this state: the state as a more precise loss sees it, or None if that is not needed.

        With `tighten` it is needed anyway: a line search has failed on what it was given.
        """
        if self.at_limit():
            return None
        loss: Any = self.objective.loss
        before, rough = loss.tolerance, state.point
        while not self.at_limit():
            last = loss.tolerance
            loss.tolerance = max(loss.finest, STEP * last)
            fine = self.objective.at(rough.w, rough.evaluation)
            if norm(combine(fine.grad, -1.0, rough.grad)) <= ERROR * fine.optimality:
                if not tighten:
                    loss.tolerance = last
                break
            rough = fine
        self._checked_at, self._finest = fine.optimality, fine
        self.objective.accept(fine)
        if loss.tolerance == before:
            return None
        self._finest = None  # the state is evaluated as precisely
        return solver.init(self.objective, fine.w, {**state.saved(), HANDED_OVER: True})
