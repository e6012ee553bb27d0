"""What the text proves or states of its methods, measured: forward–backward, DFP on a quadratic, rates."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from methods import Never
from problems import Quadratic

from crfkit import NoPenalty
from crfkit.solvers import BFGS, DFP, ExactLineSearch, GradientDescent, Iteration, Newton, UnitStep
from crfkit.solvers.parts.memory import CurvaturePairs

Report = dict[str, Any]
LABELS = 4


def brute_force(M: Any) -> tuple[float, Any]:
    """Return Z and the pair marginals by enumeration of all labellings; M[n, l, l′], with M[0] the same in all rows."""
    N, L = M.shape[:2]
    Z, pair = 0.0, np.zeros(M.shape)
    for y in itertools.product(range(L), repeat=N):
        weight = M[0, 0, y[0]]
        for n in range(1, N):
            weight *= M[n, y[n - 1], y[n]]
        Z += weight
        for n in range(1, N):
            pair[n, y[n - 1], y[n]] += weight
    return Z, pair / Z


def forward_backward(M: Any) -> tuple[float, Any]:
    """Return the same by eq. (7), and the pair marginals α_{n−1}(l)·M_n(l, l′)·β_n(l′)/Z."""
    N, L = M.shape[:2]
    alpha, beta = np.zeros((N, L)), np.ones((N, L))
    alpha[0] = M[0, 0]
    for n in range(1, N):
        alpha[n] = alpha[n - 1] @ M[n]
    for n in range(N - 2, -1, -1):
        beta[n] = M[n + 1] @ beta[n + 1]
    Z, pair = float(alpha[-1].sum()), np.zeros(M.shape)
    for n in range(1, N):
        pair[n] = alpha[n - 1][:, None] * M[n] * beta[n]
    return Z, pair / Z


def clocked(work: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def chains(longest: int) -> Report:
    """Return times and differences of both ways for chains of growing length."""
    rng = np.random.default_rng(0)
    rows = []
    for N in range(2, longest + 1):
        M = np.exp(rng.normal(size=(N, LABELS, LABELS)))
        M[0] = M[0, 0]
        (Z, pair), (Z_, pair_) = brute_force(M), forward_backward(M)
        rows.append(
            {
                "length": N,
                "brute force": clocked(lambda M=M: brute_force(M), 1 if N > 5 else 3),
                "forward–backward": clocked(lambda M=M: forward_backward(M), 20),
                "difference": max(abs(Z / Z_ - 1), float(np.abs(pair - pair_).max())),
            }
        )
    return {"labels": LABELS, "rows": rows}


def quadratic(size: int = 20, condition: float = 100.0) -> Report:
    """Return how far DFP and BFGS are after `size` exact steps, and facts on steepest descent and Newton's method."""
    loss = Quadratic(size, condition)
    inverse = np.linalg.inv(loss.matrix)
    found: Report = {"size": size, "condition": condition}
    rest: Report = {"stopping": Never(), "line_search": ExactLineSearch()}
    for method in (DFP, BFGS):
        result = method(max_iterations=size, initial_scaling=False, **rest).minimize(loss, NoPenalty(), np.zeros(size))
        matrix = result.state.get("inverse")
        found[method.name] = {
            "iterations": result.iterations,
            "gradient": result.optimality / result.trace[0].optimality,
            "inverse": None if matrix is None else float(np.linalg.norm(matrix - inverse) / np.linalg.norm(inverse)),
        }
    visited: list[Any] = []

    def keep(iteration: Iteration) -> None:
        visited.append(iteration.w.copy())

    GradientDescent(max_iterations=60, **rest).minimize(loss, NoPenalty(), np.zeros(size), [keep])
    steps = np.diff(np.array(visited), axis=0)
    errors = np.array([loss.at(w).value for w in visited])
    found["steepest descent"] = {
        "cosine of successive directions": max(abs(cosine(a, b)) for a, b in itertools.pairwise(steps)),
        "largest factor": float((errors[1:] / errors[:-1]).max()),
        "bound": ((condition - 1) / (condition + 1)) ** 2,
    }
    one = Newton(direction="dense", line_search=UnitStep(), max_iterations=1, stopping=Never())
    result = one.minimize(loss, NoPenalty(), np.zeros(size))
    found["newton"] = {"gradient after one step": result.optimality / result.trace[0].optimality}
    return found


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def two_loops(size: int = 30, pairs: int = 5) -> Report:
    """Return how far the two loops of L-BFGS are from the product with the matrix of eq. (12)."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(size, size))
    G = root @ root.T + np.eye(size)
    memory = CurvaturePairs(pairs, {}, None, True, True)
    points = [rng.normal(size=size) for _ in range(pairs + 1)]
    S = [b - a for a, b in itertools.pairwise(points)]
    Y = [G @ s for s in S]
    for a, b in itertools.pairwise(points):
        memory.direction(G @ a)  # a step follows each direction
        memory.add(a, G @ a, b, G @ b)
    H = np.eye(size) * (S[-1] @ Y[-1]) / (Y[-1] @ Y[-1])
    for s, y in zip(S, Y, strict=True):
        rho = 1 / (y @ s)
        V = np.eye(size) - rho * np.outer(y, s)
        H = V.T @ H @ V + rho * np.outer(s, s)
    g = G @ points[-1]
    exact = -H @ g
    return {"difference": float(np.linalg.norm(memory.direction(g) - exact) / np.linalg.norm(exact))}
