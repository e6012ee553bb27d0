"""Every method that the text describes, on one objective: the likelihood of a few hundred sentences + L2."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crfkit import L2
from crfkit._threads import using_threads
from crfkit.errors import StopTraining
from crfkit.result import TraceRow
from crfkit.solvers import (
    BFGS,
    DFP,
    IIS,
    LBFGS,
    ExactLineSearch,
    GradientDescent,
    GradientNorm,
    Iteration,
    MoreThuente,
    Newton,
    StrongWolfe,
)

STRENGTH = 1.0
C1, C2 = 1e-4, 0.9  # the text's constants of the Wolfe conditions
GAP = 1e-8
MANY = 1_000_000
NAMES = ("seconds", "value", "gradient", "evaluations", "products", "iteration")  # columns of a trace
Report = dict[str, Any]


class Never:
    """A stopping rule: callbacks end the run."""

    def satisfied(self, trace: Sequence[TraceRow], w: Any) -> bool:
        return False


REST: Report = {"stopping": Never(), "max_iterations": MANY}
WOLFE, THUENTE = StrongWolfe(C1, C2), MoreThuente(C1, C2)
METHODS: dict[str, Callable[[], Any]] = {
    "steepest descent, strong Wolfe": lambda: GradientDescent(line_search=WOLFE, **REST),
    "steepest descent, Moré–Thuente": lambda: GradientDescent(line_search=THUENTE, **REST),
    "steepest descent, exact": lambda: GradientDescent(line_search=ExactLineSearch(1e-6), **REST),
    "Newton, strong Wolfe": lambda: Newton(direction="dense", line_search=WOLFE, **REST),
    "DFP, strong Wolfe": lambda: DFP(line_search=WOLFE, **REST),
    "DFP, Moré–Thuente": lambda: DFP(line_search=THUENTE, **REST),
    "DFP, strong Wolfe, c2 = 0.1": lambda: DFP(line_search=StrongWolfe(C1, 0.1), **REST),
    "BFGS, strong Wolfe": lambda: BFGS(line_search=WOLFE, **REST),
    "BFGS, Moré–Thuente": lambda: BFGS(line_search=THUENTE, **REST),
    "L-BFGS, strong Wolfe": lambda: LBFGS(5, line_search=WOLFE, double=True, **REST),
    "L-BFGS, Moré–Thuente": lambda: LBFGS(5, line_search=THUENTE, double=True, **REST),
    "IIS, largest totals": lambda: IIS(buckets=1000, **REST),
    "IIS, exact totals": lambda: IIS(totals="exact", **REST),
}


class Watch:
    """Callback: records each iteration with CPU seconds, sums Zoutendijk's terms, and ends the run."""

    def __init__(self, loss: Any, target: float, limit: float) -> None:
        self.rows: list[list[float]] = []  # see NAMES
        self.zoutendijk = 0.0  # Σ cos²θ_k·‖g_k‖²
        self.least_cosine = math.inf
        self._loss, self._penalty = loss, L2(STRENGTH)
        self._target, self._limit = target, limit
        self._last: tuple[Any, Any] | None = None
        self._begin = time.process_time()

    def __call__(self, iteration: Iteration) -> None:
        now = time.process_time()
        row, w = iteration.row, iteration.w.copy()
        self.rows.append([now - self._begin, row.value, row.optimality, row.evaluations, row.products, row.iteration])
        if self._last is not None:
            old, g = self._last
            step = w - old
            slope = -float(g @ step) / np.linalg.norm(step)  # cosθ·‖g‖
            self.zoutendijk += slope**2
            self.least_cosine = min(self.least_cosine, slope / float(np.linalg.norm(g)))
        gradient = self._loss.at(w).grad
        self._penalty.add_gradient(w, gradient)
        self._last = w, gradient
        if row.value <= self._target or self.rows[-1][0] >= self._limit:
            raise StopTraining
        self._begin += time.process_time() - now


def optimum(loss: Any) -> Report:
    """Return the least value by Newton's method, and how much lower it may be: J is s-strongly convex."""
    solver = Newton(stopping=GradientNorm(1e-12), order=2.0)
    with using_threads(1):
        result = solver.minimize(loss, L2(STRENGTH), np.zeros(loss.size))
    return {"value": result.value, "certificate": result.optimality**2 / (2 * STRENGTH)}


def one_method(loss: Any, name: str, best: float, limit: float) -> Report:
    """Return the trace of a method, and what the theory of line searches says about it."""
    watch = Watch(loss, best * (1 + GAP), limit)
    with using_threads(1):
        result = METHODS[name]().minimize(loss, L2(STRENGTH), np.zeros(loss.size), [watch])
    trace = {key: list(column) for key, column in zip(NAMES, zip(*watch.rows, strict=True), strict=True)}
    return {
        "status": result.status.name,
        "iterations": result.iterations,
        "zoutendijk": watch.zoutendijk,
        "least cosine": watch.least_cosine,
        "trace": thinned(trace),
    }


def thinned(trace: dict[str, list[float]], most: int = 400) -> dict[str, list[float]]:
    """Return the trace without rows that a figure cannot show: all of the first and last ones, some of the others."""
    n = len(trace["value"])
    if n <= most:
        return trace
    kept = sorted({*range(50), *np.unique(np.geomspace(50, n - 1, most - 60).astype(int)).tolist(), *range(n - 10, n)})
    return {name: [column[k] for k in kept] for name, column in trace.items()}


def lipschitz(loss: Any) -> float:
    """Return a bound of the Hessian's eigenvalues: s + Σ_n T_n²/2, T_n the largest total count of a sequence.

    Counts F ≥ 0 have ‖F‖₂ ≤ ‖F‖₁ ≤ T, and a vector in a set of diameter d has no variance above d²/4 in any direction.
    """
    from crfkit.chain.inference import ChainInference

    totals = ChainInference(loss.field, np.ones(loss.size), 1).decode(loss.data)[1]
    return STRENGTH + 0.5 * float(totals @ totals)
