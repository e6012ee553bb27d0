"""Improved iterative scaling (Della Pietra, Della Pietra & Lafferty 1997), on chains as algorithm T of Lafferty,
McCallum & Pereira (2001).

With f ≥ 0 and T(x) ≥ Σ_k f_k(x, y) for all y, Jensen's inequality bounds the change of J = loss + s/2·‖w‖² from above
by a sum of functions of one δ_k each:

    J(w + δ) − J(w) ≤ Σ_k [ Σ_b E_kb·(exp(δ_k·T_b) − 1)/T_b − δ_k·observed_k + s·(w_k·δ_k + δ_k²/2) ]

where E_kb is the expected count of feature k in the sequences whose bound is T_b. A step minimises the right side, so
J never rises:  Σ_b E_kb·exp(δ_k·T_b) + s·(w_k + δ_k) = observed_k.  No line search; steps are short (about 1/T).

The total F#(x, y) = Σ_k f_k(x, y) of a labelling may be much less than the largest one of its sequence. With the total
of each labelling instead of the bound, E[f_k·exp(δ_k·F#)] + s·(w_k + δ_k) = observed_k, steps are longer; each of them
needs expectations at a few places δ (crfkit.chain.losses.tilted) instead of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import check_positive
from crfkit.errors import ParameterError
from crfkit.names import check_name
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.progress import SHORT_STEPS, Progress
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule
from crfkit.solvers.parts.tilted_scaling import TiltedStep

Floats = NDArray[np.float64]

BLOCK = 1 << 14  # weights whose equations are solved together: their expectations stay in the cache
MAX_ROUNDS = 200  # of Newton's method; a handful are needed
TOTALS = ("largest", "exact")
FIRST_PLACE = 0.01  # where tilted expectations are computed first, divided by the largest total


class Scaling(Protocol):
    """The source of the expectations at a point, and the step that follows from them."""

    def at(self, w: Vector) -> Any:
        """Return `value` and `grad` of the loss at w, and what `step` needs."""
        ...

    def step(self, objective: Objective, point: Point, limit: float) -> Floats:
        """Return the change of every weight, at most `limit` in size."""
        ...


@dataclass(frozen=True)
class LargestTotals:
    """Scaling by the largest total of a sequence; `source` is a crfkit.chain.losses.expectations.ChainExpectations."""

    source: Any

    def at(self, w: Vector) -> Any:
        return self.source.at(w)

    def step(self, objective: Objective, point: Point, limit: float) -> Floats:
        found: Any = point.evaluation
        return scaling_step(found.expected, self.source.totals, self.source.observed, objective.l2, point.w, limit)


@dataclass(frozen=True)
class ExactTotals:
    """Scaling by the total of each labelling; `source` is a crfkit.chain.losses.tilted.TiltedExpectations."""

    source: Any

    def at(self, w: Vector) -> Any:
        return self.source.at(w)

    def step(self, objective: Objective, point: Point, limit: float) -> Floats:
        found: Any = point.evaluation
        unit = FIRST_PLACE / max(self.source.largest, FIRST_PLACE)
        step = TiltedStep(found.log_counts, self.source.observed, point.w, objective.l2, unit, limit)
        delta = step.solve()
        objective.evaluations += step.places
        return delta


@dataclass(frozen=True)
class State:
    point: Point
    scaling: Scaling
    progress: Progress

    def saved(self) -> Saved:
        return self.progress.saved()


@dataclass(frozen=True)
class IIS(IterativeSolver):
    """Minimise likelihoods with feature values ≥ 0, with L2 or no penalty.

    It is of historical interest and needs many more iterations than L-BFGS.

    Parameters
    ----------
    buckets : with totals="largest", the number of groups that sequences are sorted into by their total; more groups
        need fewer iterations and more memory (a vector each).
    max_step : maximum change of a weight in one iteration. Without it and without a penalty, features that are never
        observed would go to −∞ at once.
    totals : "largest" scales by the largest total feature count that a labelling of the sequence can have. "exact"
        scales by the total of each labelling itself: fewer iterations where totals differ between labellings, as they
        do with weights for observed pairs only, but many evaluations in each.
    """

    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    buckets: int = 16
    max_step: float = 10.0
    totals: str = "largest"

    name: ClassVar[str] = "iis"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.EXPECTATIONS})
    handles_smooth: ClassVar[frozenset[Kind]] = frozenset({Kind.L2})
    numpy_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_iterations(self.max_iterations)
        check_positive(max_step=self.max_step)
        check_name("totals", self.totals, TOTALS)
        if self.buckets < 1:
            raise ParameterError(f"buckets must be >= 1, not {self.buckets!r}")

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> State:
        expectations = objective.loss.expectations()
        scaling: Scaling = (
            ExactTotals(expectations.tilted())
            if self.totals == "exact"
            else LargestTotals(expectations.grouped(self.buckets))
        )
        point = _at(objective, scaling, w0)
        return State(point, scaling, Progress.at(point, saved))

    def step(self, objective: Objective, state: State) -> State | Status:
        if state.point.grad_norm == 0:
            return Status.CONVERGED
        scaling, w = state.scaling, state.point.w
        point = _at(objective, scaling, w + scaling.step(objective, state.point, self.max_step))
        progress = state.progress.after(point, SHORT_STEPS)
        return progress if isinstance(progress, Status) else State(point, scaling, progress)


def _at(objective: Objective, scaling: Scaling, w: Vector) -> Point:
    """Return the objective at w, from one evaluation of the expectations."""
    found = scaling.at(w)
    objective.evaluations += 1
    value, grad = found.value, found.grad.copy()
    if objective.smooth is not None:
        value += objective.smooth.value(w)
        objective.smooth.add_gradient(w, grad)
    return Point(w, value, grad, found)


def scaling_step(expected: Floats, totals: Floats, observed: Floats, s: float, w: Floats, limit: float) -> Floats:
    """Return the solution δ of the equation above for every weight, at most `limit` in size."""
    delta = np.zeros(len(w))
    for first in range(0, len(w), BLOCK):
        block = slice(first, first + BLOCK)
        delta[block] = _roots(expected[:, block], totals, observed[block] - s * w[block], s, limit)
    return delta


def _roots(E: Floats, T: Floats, c: Floats, s: float, limit: float) -> Floats:
    """Return δ with Σ_b E_kb·exp(δ_k·T_b) + s·δ_k = c_k, by Newton's method.

    Both  F(δ) = Σ_b E_b·exp(δ·T_b) + s·δ − c  and, where δ < c/s,  H(δ) = log Σ_b E_b·exp(δ·T_b) − log(c − s·δ)
    rise, are convex, and are zero at the root. A tangent of either meets zero right of the root, so the lesser of the
    two places is the better one. F is nearly straight where the penalty governs, H where the exponentials do.
    """
    delta = np.zeros(len(c))
    none = E.sum(axis=0) == 0  # never expected, hence never observed
    if s > 0:
        delta[none] = np.clip(c[none] / s, -limit, limit)
    active = ~none
    if s == 0:
        delta[active & (c <= 0)] = -limit
        active &= c > 0
    ids = np.flatnonzero(active)
    x = np.zeros(len(ids))
    for _ in range(MAX_ROUNDS):
        if len(ids) == 0:
            break
        new = np.clip(_tangent_roots(E[:, ids], T, c[ids], s, x), -limit, limit)
        moved = np.abs(new - x) * T[-1] > 1e-8  # then the error of Newton's method is its square
        delta[ids] = new
        ids, x = ids[moved], new[moved]
    return delta


def _tangent_roots(E: Floats, T: Floats, c: Floats, s: float, x: Floats) -> Floats:
    """Return the lesser of the places where the tangents of F and of H at x meet zero."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        exponents = np.log(E) + T[:, None] * x
        top = exponents.max(axis=0)
        shares = np.exp(exponents - top)
        total = shares.sum(axis=0)
        slope = (T @ shares) / total  # of log Σ_b
        log_sum = top + np.log(total)
        left = c - s * x
        by_h = x - (log_sum - np.log(left)) / (slope + s / left)
        summed = np.exp(log_sum)
        by_f = x - (summed - left) / (summed * slope + s)
    # Beyond c/s there is no H; beyond what a double holds there is no F.
    lesser: Floats = np.fmin(by_f, np.where(left > 0, by_h, np.inf))
    return lesser
