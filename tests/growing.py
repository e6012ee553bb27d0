"""A logistic regression that can grow: the blocks of its columns are candidates."""

from __future__ import annotations

import numpy as np

from crfkit.protocols import GrowingLoss

NORMS = {"max": np.inf, "l1": 1, "l2": 2}


class GrowingRegression(GrowingLoss):
    """Σ log(1 + exp(−y·Xᵀw)) over the columns whose block is active; block −1 always is."""

    name = "growing regression"
    capabilities = frozenset({"smooth", "candidates"})

    def __init__(self, X, y, blocks, active=(), calls=None):
        self.X, self.y, self.blocks = X, y, np.asarray(blocks)
        self.active_ids = np.array(sorted(active), dtype=np.int64)
        self.columns = np.flatnonzero(np.isin(self.blocks, [-1, *self.active_ids]))
        self.block_index = self.blocks[self.columns]
        self.calls = calls if calls is not None else {"at": 0, "candidates": 0}

    @property
    def size(self):
        return len(self.columns)

    @property
    def layout(self):
        return {"all": slice(0, self.size)}

    @property
    def n_candidates(self):
        return len(set(self.blocks.tolist()) - {-1, *self.active_ids.tolist()})

    def at(self, w, warm=None):
        self.calls["at"] += 1
        return RegressionEvaluation(self, w)

    def candidates(self, evaluation, norm="max", above=0.0):
        self.calls["candidates"] += 1
        gradient = self.X.T @ evaluation.slopes
        ids = np.setdiff1d(self.blocks, [-1, *self.active_ids])
        scores = np.array([np.linalg.norm(gradient[self.blocks == i], NORMS[norm]) for i in ids])
        order = np.lexsort((ids, -scores))
        order = order[scores[order] > above] if len(order) else order
        return ids[order], scores[order]

    def activate(self, ids):
        larger = GrowingRegression(self.X, self.y, self.blocks, {*self.active_ids, *np.asarray(ids)}, self.calls)
        return larger, np.searchsorted(larger.columns, self.columns)

    def add_candidates(self, X, blocks):
        more = np.concatenate([self.blocks, blocks])
        return GrowingRegression(np.hstack([self.X, X]), self.y, more, self.active_ids, self.calls)

    def whole(self):
        """With all blocks active."""
        return self.activate(np.setdiff1d(self.blocks, [-1]))[0]


class RegressionEvaluation:
    def __init__(self, loss, w):
        X, y = loss.X[:, loss.columns], loss.y
        margin = y * (X @ w)
        self.w = w.copy()
        self.value = float(np.logaddexp(0, -margin).sum())
        self.slopes = -y * np.exp(-np.logaddexp(0, margin))
        self.grad = X.T @ self.slopes


def growing_regression(seed=0, n_blocks=12, size=2, samples=80, rest=1):
    rng = np.random.default_rng(seed)
    blocks = np.concatenate([np.full(rest, -1), np.repeat(np.arange(n_blocks), size)])
    X = rng.normal(size=(samples, len(blocks)))
    truth = rng.normal(size=len(blocks)) * (rng.random(len(blocks)) < 0.3)
    y = np.where(X @ truth + 0.5 * rng.normal(size=samples) > 0, 1.0, -1.0)
    return GrowingRegression(X, y, blocks)
