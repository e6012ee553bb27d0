"""What structure learning is compared with: mutual information of labels, and a logistic regression for every node."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegressionCV

from crfkit.synthetic import PairwiseTable

Pair = tuple[int, int]
STRENGTHS = np.geomspace(0.01, 1.0, 7)


def mutual_information(Y: NDArray[np.int32]) -> tuple[dict[Pair, float], set[Pair]]:
    """(scores of all pairs, those whose 2n·MI exceeds log n, the price of a weight in BIC)."""
    n, p = Y.shape
    scores = {}
    for i, j in combinations(range(p), 2):
        joint = np.bincount(2 * Y[:, i] + Y[:, j], minlength=4).reshape(2, 2) / n
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        scores[i, j] = float(np.sum(joint * np.log(np.where(joint > 0, joint, 1.0) / np.where(apart > 0, apart, 1.0))))
    return scores, {pair for pair, score in scores.items() if 2 * n * score > np.log(n)}


def logistic_regressions(table: PairwiseTable, indicators: bool) -> tuple[dict[Pair, float], set[Pair], set[Pair]]:
    """(length of the coefficients of each pair, pairs that either end selects, pairs that both ends select).

    Node i has its own features f_i and, for every other node j, [1, f_i, f_j] times ±1, or times the indicators of both
    states, of y_j: the interactions of the field. L1 with the strength of five-fold cross-validation.
    """
    X, Y = table.X, table.Y
    n, p, d = X.shape
    sizes = np.zeros((p, p))
    for i in range(p):
        columns, owner = [X[:, i]], [np.full(d, -1)]
        for j in range(p):
            if j == i:
                continue
            x = np.hstack([np.ones((n, 1)), X[:, i], X[:, j]])
            seen = [(Y[:, j] == k)[:, None] * x for k in (0, 1)] if indicators else [(2 * Y[:, j] - 1)[:, None] * x]
            columns += seen
            owner.append(np.full(len(seen) * x.shape[1], j))
        model = LogisticRegressionCV(
            Cs=STRENGTHS, cv=5, penalty="l1", solver="liblinear", scoring="neg_log_loss", max_iter=300
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(np.hstack(columns), Y[:, i])
        sizes[i] = [np.linalg.norm(model.coef_[0][np.concatenate(owner) == j]) for j in range(p)]
    pairs = list(combinations(range(p), 2))
    scores = {(i, j): float(np.hypot(sizes[i, j], sizes[j, i])) for i, j in pairs}
    either = {(i, j) for i, j in pairs if sizes[i, j] > 0 or sizes[j, i] > 0}
    return scores, either, {(i, j) for i, j in either if sizes[i, j] > 0 and sizes[j, i] > 0}
