"""How long a proximal step may be: 1/L, where L bounds how fast the gradient of the smooth part f changes.

L is found by backtracking: a step d from x is taken if

    f(x + d) ≤ f(x) + ∇f(x)·d + L/2·‖d‖²

and L is doubled if not. A bound that holds at every w is a worst case that few steps meet: where the loss knows one,
it only ends the doubling, and a step with L at that bound is taken without a check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from crfkit.arrays import combine, dot, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Capability
from crfkit.result import Status
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.rounding import EPSILON
from crfkit.solvers.parts.saved import saved_number

GROW = 2.0
SHRINK = 0.9  # of L after every step that was taken; about one trial in seven is then too long
MAX_TRIALS = 100
MAX_STEP = 1e20  # weights beyond it have diverged


@dataclass(frozen=True)
class StepLength:
    """L, whether steps are checked against it, and the bound above which it need not grow."""

    L: float  # 0: not known yet
    checked: bool
    ceiling: float = math.inf

    @classmethod
    def backtracked(
        cls, objective: Objective, lipschitz: float | None, backtracking: bool | None, saved: Mapping[str, Any]
    ) -> StepLength:
        """Start from a local estimate of L, with the bound that the loss and its penalty know as the ceiling.

        A given `lipschitz` is trusted. `backtracking` True: it is the first guess, and there is no ceiling (a bound
        costs many Hessian products, too many for a loss that grows). False: trust the loss's bound.
        """
        if backtracking is False or (backtracking is None and lipschitz is not None):
            return cls.trusted(objective, lipschitz, backtracking, saved)
        ceiling = math.inf if backtracking else _known(objective) or math.inf
        first = saved_number(saved, "lipschitz", lipschitz or 0.0, low=0.0)
        return cls(min(first, ceiling), True, ceiling)

    @classmethod
    def trusted(
        cls, objective: Objective, lipschitz: float | None, backtracking: bool | None, saved: Mapping[str, Any]
    ) -> StepLength:
        """Trust a given `lipschitz` or the loss's bound; backtrack where there is neither, or on request."""
        known = lipschitz if lipschitz is not None else _known(objective)
        checked = known is None or known == 0.0 if backtracking is None else backtracking
        if not checked and known is None:
            raise ParameterError(
                f"without backtracking the {objective.loss.name} needs a Lipschitz constant of its gradient: give "
                "lipschitz"
            )
        return cls(
            saved_number(saved, "lipschitz", low=0.0) if checked and "lipschitz" in saved else known or 0.0, checked
        )

    def ready(self, objective: Objective, point: Point) -> StepLength | Status:
        """Return the length with a first guess of L, if there is none: the curvature along the gradient."""
        if self.L > 0:
            return self
        found = _curvature(objective, point)
        return found if isinstance(found, Status) else replace(self, L=min(found, self.ceiling))

    def allows(self, x: Any, new: Any, more: float = 0.0) -> bool:
        """Return whether the step from x to `new` may be taken; `more` is the curvature of a smoothed penalty."""
        return not self.checked or self.ceiling <= self.L or bound_holds(x, new, self.L + more)

    def longer(self) -> StepLength:
        """Lengthen the next step: L may be smaller near the optimum than on the way."""
        return replace(self, L=SHRINK * self.L) if self.checked else self

    def shorter(self) -> StepLength:
        """Shorten the step after one that was too long."""
        return replace(self, L=min(GROW * self.L, self.ceiling))

    def saved(self) -> Mapping[str, Any]:
        return {"lipschitz": self.L} if self.checked else {}


def check_constant(lipschitz: float | None, backtracking: bool | None) -> None:
    if lipschitz is not None and not (math.isfinite(lipschitz) and lipschitz > 0):
        raise ParameterError(f"lipschitz must be None or a finite number > 0, not {lipschitz!r}")
    if backtracking not in (None, True, False):
        raise ParameterError(f"backtracking must be True, False or None, not {backtracking!r}")


def bound_holds(x: Any, new: Any, L: float) -> bool:
    """Return whether the quadratic bound at x holds at the new point. Both have w, smooth_value and grad.

    Where the values differ by little more than rounding, the gradients decide: (∇f(new) − ∇f(x))·d ≤ L·‖d‖².
    """
    if not (math.isfinite(new.smooth_value) and math.isfinite(norm(new.grad))):
        return False
    d = combine(new.w, -1.0, x.w)
    model = 0.5 * L * dot(d, d)
    size = max(abs(x.smooth_value), abs(new.smooth_value))
    if model > 1e5 * EPSILON * size:
        return bool(new.smooth_value - x.smooth_value - dot(x.grad, d) <= model)
    change = dot(combine(new.grad, -1.0, x.grad), d)
    return change <= 2.0 * model or L * norm(d) <= 64.0 * EPSILON * (1.0 + size)


def _known(objective: Objective) -> float | None:
    """Return L of the loss and of the smooth part of the penalty, where both are known."""
    loss, smooth = objective.loss, objective.smooth
    if Capability.LIPSCHITZ not in loss.capabilities:
        return None
    of_smooth = 0.0 if smooth is None else smooth.lipschitz()
    return None if of_smooth is None else float(loss.lipschitz() + of_smooth)


def _curvature(objective: Objective, point: Point) -> float | Status:
    """Return gᵀ∇²f·g/gᵀg by a difference, over longer steps while it is not positive; f is unbounded if it never is."""
    g = point.grad
    length = norm(g)
    if length == 0.0:
        return 1.0
    step = 1e-3 * max(1.0, norm(point.w)) / length
    while step * length < MAX_STEP:
        ahead = objective.at(combine(point.w, -step, g))
        found = 1.0 - dot(ahead.grad, g) / length**2  # step times the curvature
        if not math.isfinite(found):
            break
        if found > 1e-9:
            return found / step
        if objective.nonsmooth is not None or not ahead.smooth_value < point.smooth_value:
            break  # the rest may bound what f does not; and a gradient along which f rises is wrong
        step *= 4.0
    else:
        return Status.DIVERGED
    return length
