"""Mutual information of labels, which ranks pairs without regard to other columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scores import Pairs, Scores


def mutual_information(Y: NDArray[np.int32], gamma: float) -> tuple[Pairs, Scores]:
    """(pairs whose 2n·MI exceeds log n + 2γ·log(p − 1), as a coefficient of nodewise regressions has to; all MI)."""
    n, p = Y.shape
    scores = {}
    for i, j in combinations(range(p), 2):
        joint = np.bincount(2 * Y[:, i] + Y[:, j], minlength=4).reshape(2, 2) / n
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        scores[i, j] = float(np.sum(joint * np.log(np.where(joint > 0, joint, 1.0) / np.where(apart > 0, apart, 1.0))))
    price = np.log(n) + 2 * gamma * np.log(p - 1)
    return {pair for pair, score in scores.items() if 2 * n * score > price}, scores
