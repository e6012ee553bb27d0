"""Orthant-wise quasi-Newton for ``f(w) + strength·‖w‖₁`` (Andrew & Gao 2007), with the curvature of the free weights.

With p = −(the shortest sub-gradient), a weight is free if it is not zero, and leaves zero if p says so. The direction
is H·p on the free weights, where H is the L-BFGS matrix of the curvature pairs *restricted to the free weights*, and
the diagonal H₀·p on the weights that leave zero. (Restricting H·p after the fact, as the original method does, gives
directions in which the free weights answer to weights that cannot move: steps are halved again and again.) A step
stays in the orthant of sgn(w), or of p where w = 0; what would leave it becomes zero:

    w⁺ = Π(w + η·d),   η = 1, ½, ¼ … until  J(w⁺) ≤ J(w) − c₁·p·(w⁺ − w)

H₀ = γ·diag(h + δ)^(−power), where h is the diagonal of the Hessian if the loss has one, renewed now and then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from array_api_compat import array_namespace

from crfkit.arrays import dot, norm
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.result import Status
from crfkit.solvers.descent import Progress, check_iterations
from crfkit.solvers.loop import IterativeSolver
from crfkit.solvers.objective import Objective, Point
from crfkit.solvers.stopping import PeriodDecrease, StoppingRule

MAX_TRIALS = 40
EXPANSION = 4.0
MAX_STEP = 1e20
DECREASE = 1e-4  # c₁
FLOOR = 0.1  # δ, in units of the strength


@dataclass(frozen=True)
class OWLQNState:
    point: Point
    pairs: tuple[tuple[Vector, Vector], ...]  # (s, y), oldest first
    diagonal: Vector  # (h + δ)^power, or None: 1
    iteration: int
    progress: Progress

    def saved(self) -> Mapping[str, Any]:
        xp = array_namespace(self.point.w)
        arrays: dict[str, Any] = {}
        if self.pairs:
            arrays = {"s": xp.stack([s for s, _ in self.pairs]), "y": xp.stack([y for _, y in self.pairs])}
        if self.diagonal is not None:
            arrays["diagonal"] = self.diagonal
        return {**arrays, "iteration": self.iteration, **self.progress.saved()}


@dataclass(frozen=True)
class OWLQN(IterativeSolver):
    """Minimises a smooth loss with an L1 penalty or an elastic net; without either it is an L-BFGS.

    Parameters
    ----------
    memory : how many curvature pairs to keep; two vectors each.
    preconditioned : use the Hessian's diagonal where the loss has it.
    power : of the diagonal in H₀.
    """

    memory: int = 10
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    preconditioned: bool = True
    power: float = 0.5

    name: ClassVar[str] = "owlqn"
    needs: ClassVar[frozenset[str]] = frozenset({"smooth"})
    handles_rest: ClassVar[frozenset[str]] = frozenset({"l1"})

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ParameterError(f"memory must be >= 1, not {self.memory!r}")
        if not 0 <= self.power <= 1:
            raise ParameterError(f"power must be between 0 and 1, not {self.power!r}")
        check_iterations(self.max_iterations)

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> OWLQNState:
        start = objective.at(w0)
        pairs = tuple(zip(saved["s"], saved["y"], strict=True))[-self.memory :] if "s" in saved else ()
        if pairs and pairs[0][0].shape != w0.shape:
            raise ParameterError(f"the saved state has {pairs[0][0].shape[0]} weights, not {w0.shape[0]}")
        progress = Progress.at(start, saved)
        return OWLQNState(start, pairs, saved.get("diagonal"), int(saved.get("iteration", 0)), progress)

    def step(self, objective: Objective, state: OWLQNState) -> OWLQNState | Status:
        point = state.point
        if point.optimality == 0.0:
            return Status.CONVERGED
        diagonal = self._diagonal(objective, state)
        p = -1.0 * point.subgradient
        new = _search(objective, point, p, _direction(point.w, p, state.pairs, diagonal))
        if new is Status.LINE_SEARCH_FAILED and state.pairs:  # once more along the sub-gradient
            new = _search(objective, point, p, _direction(point.w, p, (), diagonal))
        if isinstance(new, Status):
            return new
        pairs = (*state.pairs, (new.w - point.w, new.grad - point.grad))[-self.memory :]
        progress = state.progress.after(new)
        if isinstance(progress, Status):
            return progress
        return OWLQNState(new, pairs, diagonal, state.iteration + 1, progress)

    def _diagonal(self, objective: Objective, state: OWLQNState) -> Vector:
        if not self.preconditioned or "hess_diag" not in objective.loss.capabilities:
            return None
        k = state.iteration
        if state.diagonal is not None and not (k < 20 and k % 5 == 0) and k not in (30, 60, 120, 240):
            return state.diagonal
        floor = FLOOR * (getattr(objective.rest, "strength", 0.0) or 1.0)
        return (objective.hess_diag(state.point) + floor) ** self.power


@dataclass(frozen=True)
class Direction:
    index: Any  # places of the weights that move
    d: Vector
    curved: bool  # whether curvature has given it a length


def _direction(w: Vector, p: Vector, pairs: Sequence[tuple[Vector, Vector]], diagonal: Vector) -> Direction:
    xp = array_namespace(w)
    (index,) = xp.nonzero((w != 0) | (p != 0))
    free = xp.take(w, index) != 0
    part = xp.take(p, index)
    h0 = xp.ones_like(part) if diagonal is None else 1.0 / xp.take(diagonal, index)
    of_free = [(xp.take(s, index[free]), xp.take(y, index[free])) for s, y in pairs]
    d, gamma = _two_loop(part[free], of_free, h0[free])
    result = (gamma or 1.0) * h0 * part
    result[free] = d
    return Direction(index, result, gamma is not None)


def _two_loop(p: Vector, pairs: Sequence[tuple[Vector, Vector]], h0: Vector) -> tuple[Vector, float | None]:
    """(H·p, γ) by the two-loop recursion with H₀ = γ·diag(h0); pairs without positive curvature are left out."""
    used = []
    gamma = None
    for s, y in pairs:
        sy, yy = dot(s, y), dot(y, h0 * y)
        if sy > 1e-10 * yy > 0:
            used.append((s, y, sy))
            gamma = sy / yy
    q, alphas = 1.0 * p, []
    for s, y, sy in reversed(used):
        alpha = dot(s, q) / sy
        q -= alpha * y
        alphas.append(alpha)
    q = (gamma or 1.0) * h0 * q
    for (s, y, sy), alpha in zip(used, reversed(alphas), strict=True):
        q += (alpha - dot(y, q) / sy) * s
    return q, gamma


def _search(objective: Objective, point: Point, p: Vector, direction: Direction) -> Point | Status:
    """A step within the orthant: halved until the objective falls enough; without curvature, longer while it falls."""
    xp = array_namespace(point.w)
    index, d = direction.index, direction.d
    w, p = xp.take(point.w, index), xp.take(p, index)
    orthant = xp.where(w != 0, xp.sign(w), xp.sign(p)) if objective.rest is not None else None
    slack = 4 * 2.0**-52 * abs(point.value)

    def tried(step: float) -> Point | None:
        moved = w + step * d
        if orthant is not None:
            moved = xp.where(moved * orthant > 0, moved, xp.zeros_like(moved))
        gain = dot(p, moved - w)  # of the linear model
        full = 1.0 * point.w
        full[index] = moved
        new = objective.at(full, point.evaluation)
        falls = new.finite and new.value <= point.value - DECREASE * max(gain, 0.0) + slack
        return new if falls else None

    step = 1.0 if direction.curved else 1.0 / norm(d)
    new = tried(step)
    if new is not None and not direction.curved:
        while (longer := tried(step * EXPANSION)) is not None and longer.value < new.value:
            step, new = step * EXPANSION, longer
            if step * norm(d) > MAX_STEP:
                return Status.DIVERGED
    for _ in range(MAX_TRIALS):
        if new is not None:
            break
        step *= 0.5
        new = tried(step)
    if new is None or not (new.value < point.value or new.optimality < point.optimality):
        return Status.LINE_SEARCH_FAILED
    return new
