"""Orthant-wise quasi-Newton for ``f(w) + strength·‖w‖₁`` (Andrew & Gao 2007), with the curvature of the free weights.

With p = −(the shortest sub-gradient), a weight is free if it is not zero, and leaves zero if p says so. The direction
is H·p on the free weights, where H is the L-BFGS matrix of the free weights alone, and the diagonal H₀·p on the weights
that leave zero (Gafni & Bertsekas's two metrics). A step stays in the orthant of sgn(w), or of p where w = 0; what
would leave it becomes zero:

    w⁺ = Π(w + η·d),   η = 1, ½, ¼ … until  J(w⁺) ≤ J(w) − c₁·p·(w⁺ − w)

The method as published (variant "original") has H of all weights, and d is H·p without the coordinates whose sign
disagrees with p. Free weights then answer to weights that cannot move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from crfkit._checks import is_whole
from crfkit.arrays import dot, namespace, norm, put
from crfkit.errors import ParameterError
from crfkit.names import check_name
from crfkit.protocols import Capability, Kind, Vector
from crfkit.result import Status
from crfkit.solvers.parts.descent import check_iterations
from crfkit.solvers.parts.free_curvature import POWER, FreeCurvature
from crfkit.solvers.parts.head import Head
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.preconditioner import NeedsHead
from crfkit.solvers.parts.progress import Progress
from crfkit.solvers.parts.rounding import ROUNDING
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule
from crfkit.solvers.parts.whole_curvature import WholeCurvature

MAX_TRIALS = 40
EXPANSION = 4.0
MAX_STEP = 1e20
DECREASE = 1e-4  # c₁
FLATTER = 0.9
VARIANTS = ("free", "original")
HEAD_AFTER = 20  # steps: before, most weights of the optimum are zero, and most labels uncertain
FEW_PAIRS, PAIR_NUMBERS = 20, 1 << 21  # as many pairs are always kept; more, while each of s and y has fewer numbers


@dataclass(frozen=True)
class OWLQNState:
    point: Point
    curvature: FreeCurvature | WholeCurvature
    progress: Progress

    def saved(self) -> Mapping[str, Any]:
        return {**self.curvature.saved(), **self.progress.saved()}

    def grown(self, point: Point, place: Any) -> OWLQNState:
        """Return the state in a larger space, where weight i stands at place[i]: its curvature stays."""
        return OWLQNState(point, self.curvature.extended(place, point.w.shape[0]), Progress.at(point, {}))


@dataclass(frozen=True)
class OWLQN(IterativeSolver):
    """Minimise a smooth loss with an L1 penalty or an elastic net; without a penalty it is L-BFGS.

    Parameters
    ----------
    memory : number of curvature pairs; each takes two vectors of the non-zero weights. More than 20 are kept only while
        all of them take less than 32 MB.
    variant : "free" learns the curvature of the weights that are not zero. "original" is the method of Andrew & Gao
        (2007) as published, for comparison: the curvature of all weights, a first step of length 1, which is never
        lengthened, and an end where a line search fails.
    head : number of weights of most curvature for which H₀ is a power of the inverse of the whole block of the Hessian,
        estimated after 20 steps from labellings that are drawn from the model. Needs a loss with "hess_sample" and
        NumPy vectors. 0: none.

    >>> OWLQN(variant="original").name
    'owlqn'
    """

    memory: int = 20
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    variant: Literal["free", "original"] = "free"
    head: int = 0

    name: ClassVar[str] = "owlqn"
    preconditioned: ClassVar[bool] = False
    needs = NeedsHead(Capability.SMOOTH)
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset(
        {Kind.L1, Kind.ORTHANTS}
    )  # L1 of all weights, or of some of them

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ParameterError(f"memory must be >= 1, not {self.memory!r}")
        check_iterations(self.max_iterations)
        check_name("variant", self.variant, VARIANTS)
        if not is_whole(self.head) or self.head < 0 or (self.head and self.variant != "free"):
            raise ParameterError(f"head must be 0, or a whole number > 0 with the variant 'free', not {self.head!r}")

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> OWLQNState:
        start = objective.at(w0)
        curvature: FreeCurvature | WholeCurvature = (
            WholeCurvature.at(start, saved, self.memory)
            if self.variant == "original"
            else FreeCurvature.at(start, saved)
        )
        return OWLQNState(start, curvature, Progress.at(start, saved))

    def step(self, objective: Objective, state: OWLQNState) -> OWLQNState | Status:
        point, curvature = state.point, state.curvature
        if point.optimality == 0.0:
            return Status.CONVERGED
        new = _search(objective, point, curvature)
        if new is Status.LINE_SEARCH_FAILED and isinstance(curvature, FreeCurvature) and len(curvature) > 0:
            curvature = curvature.forgotten()  # try again along the sub-gradient
            new = _search(objective, point, curvature)
        if isinstance(new, Status):
            return new
        progress = state.progress.after(new)
        if isinstance(progress, Status):
            return progress
        if isinstance(curvature, WholeCurvature):
            return OWLQNState(new, curvature.after(point, new), progress)
        free = int(new.moving.free.shape[0])
        capacity = min(self.memory, max(FEW_PAIRS, PAIR_NUMBERS // max(free, 1)))
        curvature = curvature.after(point, new, capacity)
        if self.head and curvature.steps == HEAD_AFTER:
            diagonal = np.where(new.w != 0, objective.hess_diag(new), 0.0)
            curvature = replace(curvature, head=Head.sampled(objective, new, diagonal, self.head, POWER))
        return OWLQNState(new, curvature, progress)


def _search(objective: Objective, point: Point, curvature: FreeCurvature | WholeCurvature) -> Point | Status:
    """Search within the orthant: halve the step until the objective falls enough.

    Without curvature the step is lengthened, except in the original method.
    """
    moving = point.moving
    xp = namespace(moving.p)
    index, p = moving.index, moving.p
    d, curved = curvature.direction(moving)
    w = xp.take(point.w, index)
    orthant = xp.where(w != 0, xp.sign(w), xp.sign(p)) if objective.nonsmooth is not None else None
    whole = isinstance(curvature, WholeCurvature)
    if whole and orthant is not None:
        d = xp.where(d * p > 0, d, xp.zeros_like(d))
    slack = ROUNDING * abs(point.value)

    def tried(step: float) -> Point | None:
        moved = w + step * d
        if orthant is not None:
            moved = xp.where(moved * orthant > 0, moved, xp.zeros_like(moved))
        gain = dot(p, moved - w)  # of the linear model
        full = 1.0 * point.w
        put(full, index, moved)
        new = objective.at(full, point.evaluation)
        falls = new.finite and new.value <= point.value - DECREASE * max(gain, 0.0) + slack
        return new if falls and _improves(point, new) else None

    step = 1.0 if curved else 1.0 / norm(d)
    new = tried(step)
    if new is not None and not curved and not whole:
        while (longer := tried(step * EXPANSION)) is not None and longer.value < new.value:
            step, new = step * EXPANSION, longer
            if step * norm(d) > MAX_STEP:
                return Status.DIVERGED
    for _ in range(MAX_TRIALS):
        if new is not None:
            break
        step *= 0.5
        new = tried(step)
    return new if new is not None else Status.LINE_SEARCH_FAILED


def _improves(old: Point, new: Point) -> bool:
    """Return whether the objective falls or, where it is flat to rounding, its slope does."""
    if new.value < old.value or new.optimality < old.optimality:
        return True
    s = new.w - old.w
    return abs(dot(new.subgradient, s)) < FLATTER * abs(dot(old.subgradient, s))
