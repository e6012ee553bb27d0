"""A logistic regression with L1 for every node of a conditional field, chosen by the extended BIC or by validation.

Node i has its own features f_i and, for every other node j, [1, f_i, f_j] times ±1 of y_j, or times the indicators of
both its states: the interactions of the field. The extended BIC is that of refits without L1 along a path:

- "coefficients": −2·log-likelihood + k·log n + 2γ·k·log P, of k chosen coefficients out of P;
- "edges": all coefficients of a neighbour are refitted, and a neighbour has to gain what is as unlikely by chance, for
  its number of coefficients, as log n + 2γ·log(p − 1) is for one: the price of an edge of StructureLearner.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri
from scores import Pairs, Scores
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from crfkit.synthetic import PairwiseTable

STRENGTHS = np.geomspace(0.01, 1.0, 7)  # C of the cross-validation
PATH = np.geomspace(0.003, 1.0, 14)  # C of the extended BIC, the strongest penalty first
RIDGE = 1e-2
PRICES = ("coefficients", "edges")


@dataclass(frozen=True, eq=False)
class Design:
    """What a node is regressed on; `owner` is the neighbour of each column, −1 of the node's own features."""

    Z: NDArray
    y: NDArray
    owner: NDArray

    @classmethod
    def of(cls, table: PairwiseTable, i: int, indicators: bool) -> Design:
        X, Y = table.X, table.Y
        n, p, d = X.shape
        columns, owner = [X[:, i]], [np.full(d, -1)]
        for j in range(p):
            if j == i:
                continue
            x = np.hstack([np.ones((n, 1)), X[:, i], X[:, j]])
            seen = [(Y[:, j] == k)[:, None] * x for k in (0, 1)] if indicators else [(2 * Y[:, j] - 1)[:, None] * x]
            columns += seen
            owner.append(np.full(len(seen) * x.shape[1], j))
        return cls(np.hstack(columns), Y[:, i], np.concatenate(owner))

    def sizes(self, w: NDArray, p: int) -> NDArray:
        """Return [p] the length of the coefficients of each neighbour."""
        return np.array([np.linalg.norm(w[self.owner == j]) for j in range(p)])


def validated(table: PairwiseTable, indicators: bool) -> NDArray:
    """Return [p, p] lengths of coefficients at the strength of five-fold cross-validation, a row for each node."""
    p = table.X.shape[1]
    sizes = np.zeros((p, p))
    for i in range(p):
        design = Design.of(table, i, indicators)
        model = LogisticRegressionCV(
            Cs=STRENGTHS, cv=5, penalty="l1", solver="liblinear", scoring="neg_log_loss", max_iter=300
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(design.Z, design.y)
        sizes[i] = design.sizes(model.coef_[0], p)
    return sizes


def by_ebic(table: PairwiseTable, indicators: bool, gammas: list[float]) -> dict[str, tuple[NDArray, NDArray]]:
    """Return "price γ" → ([p, p] lengths of coefficients that are chosen, [p, p] strengths of entry)."""
    n, p, _ = table.X.shape
    found = {f"{price} {gamma:g}": (np.zeros((p, p)), np.zeros((p, p))) for price in PRICES for gamma in gammas}
    for i in range(p):
        design = Design.of(table, i, indicators)
        steps = list(_path(design))
        entries = np.zeros(p)
        for strength, w, *_ in reversed(steps):
            entries[design.sizes(w, p) > 0] = strength
        for name, (sizes, entered) in found.items():
            price, gamma = name.split()
            scores = [_score(step, design, price, float(gamma), n, p) for step in steps]
            sizes[i] = design.sizes(steps[int(np.argmin(scores))][1], p)
            entered[i] = entries
    return found


def _path(design: Design) -> Any:
    """Yield (strength, coefficients, log-likelihood of refitted coefficients, of refitted neighbours)."""
    own, last, refits = design.owner < 0, None, (0.0, 0.0)
    model = LogisticRegression(penalty="l1", solver="liblinear", max_iter=300)
    for C in PATH:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            w = model.set_params(C=float(C)).fit(design.Z, design.y).coef_[0]
        support = w != 0
        if last is None or (support != last).any():
            near = np.isin(design.owner, design.owner[support & ~own])
            refits = _refit(design.Z[:, support | own], design.y), _refit(design.Z[:, near | own], design.y)
        last = support
        yield 1.0 / C, w, *refits


def _score(step: Any, design: Design, price: str, gamma: float, n: int, p: int) -> float:
    _, w, coefficients, neighbours = step
    chosen = (w != 0) & (design.owner >= 0)
    if price == "coefficients":
        return -2 * coefficients + chosen.sum() * (math.log(n) + 2 * gamma * math.log((design.owner >= 0).sum()))
    width = int((design.owner == design.owner[-1]).sum())
    each = chdtri(width, chdtrc(1.0, math.log(n) + 2 * gamma * math.log(p - 1)))
    return -2 * neighbours + len(set(design.owner[chosen])) * float(each)


def _refit(Z: NDArray, y: NDArray) -> float:
    """The log-likelihood of a logistic regression by Newton's method; a trace of L2 keeps it finite."""
    Z = np.hstack([np.ones((len(Z), 1)), Z])
    w = np.zeros(Z.shape[1])
    value = -math.inf
    for _ in range(30):
        L = Z @ w
        new = float((y * L - np.logaddexp(0.0, L)).sum())
        if new - value < 1e-6:
            break
        value, q = new, 1 / (1 + np.exp(-L))
        H = (Z.T * (q * (1 - q))) @ Z + RIDGE * np.eye(len(w))
        w = w - np.linalg.solve(H, Z.T @ (q - y) + RIDGE * w)
    return max(value, new)


def pairs_and_scores(sizes: NDArray, rule: str) -> tuple[Pairs, Scores]:
    """(pairs that both ends choose, or that either does; the length of the coefficients of both ends)."""
    pairs = list(combinations(range(len(sizes)), 2))
    count = (sizes > 0).astype(int) + (sizes.T > 0)
    chosen = {(i, j) for i, j in pairs if count[i, j] >= (2 if rule == "and" else 1)}
    return chosen, {(i, j): float(np.hypot(sizes[i, j], sizes[j, i])) for i, j in pairs}
