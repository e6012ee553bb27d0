"""Nodewise logistic regression with L1 and the extended BIC (Ravikumar et al. 2010; van Borkulo et al. 2014).

Every column is regressed on all others along a path of strengths of its own, on standardised columns as glmnet has
them; the extended BIC −2·log-likelihood + k·log n + 2γ·k·log(p − 1) chooses a strength for each. The log-likelihood is
that of the penalised fit, as IsingFit has it, or of a refit. The AND rule keeps an edge that both regressions keep, the
OR rule one that either keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pairs = set[tuple[int, int]]
KINDS = ("penalised", "refitted")
RULES = ("and", "or")
STRENGTHS, RATIO = 40, 0.01
STEPS = 500


@dataclass(frozen=True, eq=False)
class Paths:
    """The regressions of all columns at all strengths; column i of a matrix is the regression of column i."""

    n: int
    weights: NDArray  # [strengths, p, p]
    strengths: NDArray  # [strengths, p]
    likelihoods: dict[str, NDArray]  # kind → [strengths, p]

    def chosen(self, gamma: float, kind: str) -> NDArray:
        """Return [p, p] the weights at the strengths that the extended BIC chooses."""
        p = self.weights.shape[1]
        price = np.log(self.n) + 2 * gamma * np.log(p - 1)
        scores = -2 * self.likelihoods[kind] + price * (self.weights != 0).sum(axis=1)
        best = (scores <= scores.min(axis=0) + 1e-9).argmax(axis=0)  # the largest strength among equal scores
        return self.weights[best, :, np.arange(p)].T

    def entries(self) -> NDArray:
        """Return [p, p] the strength at which each weight first differs from zero; 0 if it never does."""
        on = self.weights != 0
        first = on.argmax(axis=0)
        return np.where(on.any(axis=0), np.take_along_axis(self.strengths, first, axis=0), 0.0)


def pairs_of(W: NDArray, rule: str) -> Pairs:
    """Return the pairs that both regressions keep, or that either does."""
    on = W != 0
    both = on & on.T if rule == "and" else on | on.T
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(both)), strict=True)}


def sizes_of(W: NDArray, rule: str) -> NDArray:
    """Return [p, p] numbers of pairs from those of both ends: the smaller, or the larger."""
    W = np.abs(W)
    return np.minimum(W, W.T) if rule == "and" else np.maximum(W, W.T)


def follow(Y: NDArray[np.int32]) -> Paths:
    """Return the paths of all columns of a table of 0 and 1."""
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
    refitted = _likelihoods(X, Y, b, W)
    last = np.zeros((p, p), dtype=bool)
    weights, strengths, likelihoods = [], [], {kind: [] for kind in KINDS}
    for strength in np.geomspace(1.0, RATIO, STRENGTHS):
        b, W = _solve(X, Y, b, W, strength * largest, step, off)
        support = W != 0
        for i in np.flatnonzero((support != last).any(axis=0)):
            refitted[i] = _refit(X[:, support[:, i]], Y[:, i])
        last = support
        weights.append(W)
        strengths.append(strength * largest)
        likelihoods["penalised"].append(_likelihoods(X, Y, b, W))
        likelihoods["refitted"].append(refitted.copy())
    return Paths(n, np.array(weights), np.array(strengths), {kind: np.array(v) for kind, v in likelihoods.items()})


def _likelihoods(X: NDArray, Y: NDArray, b: NDArray, W: NDArray) -> NDArray:
    L = X @ W + b
    return (Y * L - np.logaddexp(0.0, L)).sum(axis=0)


def _solve(X, Y, b, W, strengths, step, off):  # type: ignore[no-untyped-def]
    """FISTA with restarts on all regressions at once."""
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
