"""OWL-QN as CRFsuite runs it (Andrew & Gao 2007), so that a run that is stopped early ends where CRFsuite's does.

With the pseudo-gradient p, the direction is −H·p, without the coordinates whose sign disagrees with −p; steps are
halved until the objective falls enough, and stay in the orthant of w, or of −p where w = 0. crfkit's own `owlqn` needs
fewer iterations (see docs/guides/choose_a_solver.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crfkit._types import Floats
from crfkit.arrays import dot, norm
from crfkit.compat.pycrfsuite._searches import Watch
from crfkit.protocols import Capability, Kind, Saved, Vector
from crfkit.result import Status
from crfkit.solvers.parts.loop import IterativeSolver
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.stopping import PeriodDecrease, StoppingRule

Pair = tuple[Floats, Floats, float]  # s, y, s·y

DECREASE = 1e-4


@dataclass(frozen=True)
class OrthantState:
    point: Point
    pairs: tuple[Pair, ...] = ()  # oldest first

    def saved(self) -> Saved:
        return {}


@dataclass(frozen=True)
class OrthantWise(IterativeSolver):
    """Minimise a smooth loss with an L1 penalty or an elastic net."""

    memory: int = 6
    stopping: StoppingRule = field(default_factory=PeriodDecrease)
    max_iterations: int = 1000
    max_trials: int = 20
    watch: Watch = field(default_factory=Watch)

    name: ClassVar[str] = "crfsuite-owlqn"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.SMOOTH})
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.L1})
    numpy_only: ClassVar[bool] = True

    def init(self, objective: Objective, w0: Vector, saved: Saved) -> OrthantState:
        return OrthantState(objective.at(w0))

    def step(self, objective: Objective, state: OrthantState) -> OrthantState | Status:
        point, p = state.point, state.point.subgradient
        if point.optimality == 0.0:
            return Status.CONVERGED
        d = _direction(p, state.pairs)
        if state.pairs:
            d[d * p >= 0] = 0.0
        step = 1.0 if state.pairs else 1.0 / norm(d)
        orthant = np.where(point.w != 0, point.w, -p)
        for trials in range(1, self.max_trials + 1):
            w = point.w + step * d
            w[w * orthant <= 0] = 0.0
            new = objective.at(w)
            if new.finite and new.value <= point.value + DECREASE * dot(w - point.w, p):
                self.watch.step, self.watch.trials = step, trials
                break
            step *= 0.5
        else:
            return Status.LINE_SEARCH_FAILED
        s, y = w - point.w, new.grad - point.grad
        curvature = dot(s, y)
        pairs = (*state.pairs, (s, y, curvature)) if curvature > 0 else state.pairs
        return OrthantState(new, pairs[-self.memory :])


def _direction(p: Floats, pairs: tuple[Pair, ...]) -> Floats:
    """Return −H·p by the two-loop recursion (Nocedal 1980)."""
    d = -1.0 * p
    alphas = []
    for s, y, curvature in reversed(pairs):
        alphas.append(dot(s, d) / curvature)
        d -= alphas[-1] * y
    if pairs:
        _, y, curvature = pairs[-1]
        d *= curvature / dot(y, y)
    for (s, y, curvature), alpha in zip(pairs, reversed(alphas), strict=True):
        d += (alpha - dot(y, d) / curvature) * s
    return d
