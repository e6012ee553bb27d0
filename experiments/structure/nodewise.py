"""Nodewise logistic regression with L1 and the extended BIC (Ravikumar et al. 2010; van Borkulo et al. 2014).

Every column is regressed on all others along a path of strengths of its own, on standardised columns as glmnet has
them; the extended BIC −2·log-likelihood + k·log n + 2γ·k·log(p − 1) chooses a strength for each. The AND rule keeps an
edge that both regressions keep. The log-likelihood is that of the penalised fit, as IsingFit has it, or of a refit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pairs = set[tuple[int, int]]
STRENGTHS, RATIO = 40, 0.01
STEPS = 500


def nodewise(Y: NDArray[np.int32], gamma: float = 0.25) -> tuple[Pairs, Pairs]:
    """(edges by the likelihood of penalised fits, edges by that of refits)."""
    n, p = Y.shape
    s = 2.0 * Y - 1.0
    spread = s.std(axis=0)
    usable = spread > 0
    X = np.where(usable, (s - s.mean(axis=0)) / np.where(usable, spread, 1.0), 0.0)
    step = 4.0 * n / np.linalg.norm(X, 2) ** 2
    off = np.eye(p, dtype=bool)
    b, W = np.log((Y.mean(axis=0) + 1e-9) / (1 - Y.mean(axis=0) + 1e-9)), np.zeros((p, p))
    residual = Y.mean(axis=0) - Y
    largest = np.abs(np.where(off, 0.0, X.T @ residual / n)).max(axis=0)  # [p] for each regression
    best = [np.full(p, np.inf), np.full(p, np.inf)]
    chosen = [np.zeros((p, p), dtype=bool), np.zeros((p, p), dtype=bool)]
    last = np.zeros((p, p), dtype=bool)
    refitted = _likelihoods(X, Y, b, W)
    for strength in np.geomspace(1.0, RATIO, STRENGTHS):
        b, W = _solve(X, Y, b, W, strength * largest, step, off)
        support = W != 0
        for i in np.flatnonzero((support != last).any(axis=0)):
            refitted[i] = _refit(X[:, support[:, i]], Y[:, i])
        last = support
        price = support.sum(axis=0) * (np.log(n) + 2 * gamma * np.log(p - 1))
        for kind, likelihood in enumerate((_likelihoods(X, Y, b, W), refitted)):
            score = -2 * likelihood + price
            better = score < best[kind] - 1e-9
            best[kind] = np.where(better, score, best[kind])
            chosen[kind][:, better] = support[:, better]
    return tuple({(i, j) for i, j in zip(*np.nonzero(np.triu(c & c.T)), strict=True)} for c in chosen)  # type: ignore[return-value]


def _likelihoods(X: NDArray, Y: NDArray, b: NDArray, W: NDArray) -> NDArray:
    L = X @ W + b
    return (Y * L - np.logaddexp(0.0, L)).sum(axis=0)


def _solve(X, Y, b, W, strengths, step, off):  # type: ignore[no-untyped-def]
    """FISTA with restarts on all regressions at once; column i of W is that of column i."""
    n = len(X)
    V, a, t = W, b, 1.0
    for k in range(STEPS):
        R = 1 / (1 + np.exp(-(X @ V + a))) - Y
        new = V - step * (X.T @ R / n)
        new = np.sign(new) * np.maximum(np.abs(new) - step * strengths, 0.0)
        new[off] = 0.0
        bias = a - 4.0 * R.mean(axis=0)
        moved, shift = new - W, bias - b
        if k % 5 == 4 and max(np.abs(moved).max(), np.abs(shift).max()) < 1e-5:
            return bias, new
        if ((V - new) * moved).sum() + ((a - bias) * shift).sum() > 0:
            t, V, a = 1.0, new, bias
        else:
            later = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
            V, a, t = new + (t - 1) / later * moved, bias + (t - 1) / later * shift, later
        W, b = new, bias
    return b, W


def _refit(X: NDArray, y: NDArray) -> float:
    """The log-likelihood of a logistic regression by Newton's method; a trace of L2 keeps it finite."""
    Z = np.hstack([np.ones((len(X), 1)), X])
    w = np.zeros(Z.shape[1])
    for _ in range(25):
        q = 1 / (1 + np.exp(-(Z @ w)))
        g = Z.T @ (q - y) + 1e-3 * w
        d = np.linalg.solve((Z.T * (q * (1 - q))) @ Z + 1e-3 * np.eye(len(w)), g)
        w = w - d
        if np.abs(d).max() < 1e-6:
            break
    L = Z @ w
    return float((y * L - np.logaddexp(0.0, L)).sum())
