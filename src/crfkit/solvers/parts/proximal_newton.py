"""Proximal Newton on a working set of blocks, for ``f(w) + strength·Σ ‖w_block‖`` with a sparse Hessian of f.

With the smooth part's gradient and Hessian at w, the step d minimises the quadratic model plus the penalty. Weights v
of no block (biases) have no corner and leave the model exactly, by S = H_ee − H_ev·H_vv⁻¹·H_ve. The rest is solved by
FISTA with restarts and, where the penalty is L1, by conjugate gradients among the weights that it does not make zero.

    w⁺ = w + η·d,   η = 1, ½, ¼ … until  J(w⁺) ≤ J(w) + c₁·η·(∇·d + penalty(w + d) − penalty(w))

When the working set is optimal, the candidates that violate are switched on. One iteration is one step, or one such
pass.

It is a part, not a member of the registry: the structure learner chooses it for binary tables. Its losses must have a
sparse Hessian, and its penalties must be smooth outside the blocks, which no solver can declare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import diags
from scipy.sparse.linalg import splu

from crfkit.protocols import Kind, NonsmoothPenalty, Vector
from crfkit.result import Status, TraceRow
from crfkit.solvers.parts.objective import Objective, Point
from crfkit.solvers.parts.sparse_hessian import conjugate_gradients, sparse_hessian
from crfkit.solvers.parts.stopping import GradientNorm, StoppingRule
from crfkit.solvers.parts.working_set import Bare, Batches, Violations, WholePoint, WorkingSetSolver, select, strength

DECREASE = 1e-4  # c₁
MAX_TRIALS = 30
INNER = 400  # steps of FISTA for one model
POLISH = 200  # steps of conjugate gradients
FLAT = 1e-13  # of the objective: a predicted decrease below is rounding


@dataclass(frozen=True)
class NewtonSetState:
    """A point of the working set, and the candidates that violate there."""

    inner: Any
    loss: Any
    violations: Violations
    passes: int
    checked: bool = False  # whether candidates were looked at here, and none violates
    flat: bool = False  # whether no step decreases the objective any more

    @property
    def point(self) -> WholePoint:
        return WholePoint(self.inner.point, self.violations.waiting)

    def saved(self) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True)
class ProximalNewton(WorkingSetSolver):
    """Minimise a loss with candidates whose evaluations have `sparse_hessian`, with a penalty of its blocks.

    Parameters
    ----------
    tolerance : the working set is optimal when the norm of the shortest sub-gradient is at most this share of
        strength·√(number of weights).
    select_unit : how many candidates are switched on at a time.
    max_iterations : maximum number of steps and passes over the candidates.
    stopping : not used: `tolerance` ends the run.
    """

    tolerance: float = 1e-5
    select_unit: int = 1000
    max_iterations: int = 200
    stopping: StoppingRule = field(default_factory=lambda: GradientNorm(0.0))

    name: ClassVar[str] = "proximal-newton"
    handles_nonsmooth: ClassVar[frozenset[Kind]] = frozenset({Kind.BY_BLOCK})
    numpy_only: ClassVar[bool] = True

    def init(self, objective: Objective, w0: Vector, saved: Mapping[str, Any]) -> NewtonSetState:
        start = objective.at(w0)
        return NewtonSetState(Bare(start), objective.loss, Violations(), objective.passes)

    def step(self, objective: Objective, state: NewtonSetState) -> NewtonSetState | Status:
        point: Point = state.inner.point
        if state.flat or self._small(point):
            grown = select(objective, Bare(point), self.select_unit, Batches(()))
            few = grown.violations.excess <= max(self.tolerance, 1e-6) * strength(point.nonsmooth)
            return NewtonSetState(grown.inner, objective.loss, grown.violations, objective.passes, few)
        d = direction(objective, point)
        rest: Any = point.nonsmooth
        predicted = float(point.grad @ d) + rest.value(point.w + d) - rest.value(point.w)
        if predicted > -FLAT * max(1.0, abs(point.value)):
            return replace(state, flat=True)
        step = 1.0
        for _ in range(MAX_TRIALS):
            new = objective.at(point.w + step * d, point.evaluation)
            if new.finite and new.value <= point.value + DECREASE * step * predicted:
                return NewtonSetState(Bare(new), objective.loss, Violations(), objective.passes)
            step *= 0.5
        return replace(state, flat=True)

    def _small(self, point: Point) -> bool:
        scale = max(strength(point.nonsmooth), 1e-12) * np.sqrt(point.w.shape[0])
        return bool(point.optimality <= self.tolerance * scale)

    def finished(self, trace: Sequence[TraceRow], state: NewtonSetState) -> bool:
        return state.checked


def direction(objective: Objective, point: Point) -> Any:
    """Return the step to the minimum of the quadratic model plus the penalty."""
    rest: Any = point.nonsmooth
    H = sparse_hessian(objective, point)
    w, g = np.asarray(point.w), np.asarray(point.grad)
    index = np.asarray(objective.loss.block_index)  # type: ignore[attr-defined]
    edges, nodes = np.flatnonzero(index >= 0), np.flatnonzero(index < 0)
    d = np.zeros_like(w)
    Hv = H[nodes]
    inverse = _inverse(Hv[:, nodes])
    cross = Hv[:, edges]  # [nodes, edges]
    if len(edges):
        S = (H[edges][:, edges] - cross.T @ inverse(cross)).tocsr()
        gs = g[edges] - cross.T @ inverse(g[nodes])
        d[edges] = _model(S, gs, w[edges], rest.restricted(edges)) - w[edges]
    d[nodes] = -inverse(g[nodes] + cross @ d[edges])
    return d


def _inverse(H: Any) -> Any:
    """Return a function that divides by the matrix; biases of a table meet in no conditional, and it is diagonal."""
    diagonal = H.diagonal()
    if H.nnz == np.count_nonzero(diagonal):
        return lambda x: diags(1.0 / diagonal) @ x
    factor = splu(H.tocsc())
    return lambda x: factor.solve(x if isinstance(x, np.ndarray) else x.toarray())


def _model(S: Any, g: Any, start: Any, rest: NonsmoothPenalty) -> Any:
    """Return argmin_x g·(x − start) + ½(x − start)ᵀS(x − start) + penalty(x)."""
    bound, prox = _largest(S), rest.prox
    if not bound > 0:
        return start
    b = g - S @ start  # the gradient of the model is S·x + b
    x, y, t = start.copy(), start, 1.0
    small = 1e-6 * max(float(np.abs(g).max(initial=0.0)), 1e-12)
    for k in range(INNER):
        new = prox(y - (S @ y + b) / bound, 1.0 / bound)
        moved = new - x
        if k % 10 == 9 and bound * np.abs(new - y).max() <= small:
            x = new
            break
        if (y - new) @ moved > 0:  # the momentum goes uphill
            t, y = 1.0, new
        else:
            later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            y = new + ((t - 1.0) / later) * moved
            t = later
        x = new
    return _polished(S, b, x, strength(rest)) if Kind.L1 in rest.kinds else x


def _polished(S: Any, b: Any, x: Any, cost: float) -> Any:
    """Solve S·x = −b − cost·sgn(x) among the weights that are not zero, if that keeps their signs."""
    free = np.flatnonzero(x)
    if not len(free):
        return x
    A = S[free][:, free]
    target = -b[free] - cost * np.sign(x[free])
    found = conjugate_gradients(A, target, x[free], 1e-10, POLISH)
    if (np.sign(found) != np.sign(x[free])).any():
        return x
    out = np.zeros_like(x)
    out[free] = found
    return out


def _largest(S: Any) -> float:
    """Return a bound of the largest eigenvalue: of |S| by rows, or from the power method where that is tighter."""
    rows = float(abs(S).sum(axis=1).max())
    v = np.cos(np.arange(S.shape[0], dtype=float))  # any start that is not special
    value = 0.0
    for _ in range(30):
        v = v / np.linalg.norm(v)
        v = S @ v
        value = float(np.linalg.norm(v))
    return min(rows, 1.3 * value)
