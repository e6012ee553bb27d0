"""A small smooth loss on vectors of any array library that follows the array API."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from crfkit.protocols import Capability, Loss


class ArrayLogistic(Loss):
    """``Σ_n log(1 + exp(−y_n·x_nᵀw))`` on arrays of the namespace `xp`; no array of another library comes near it."""

    name = "logistic"
    capabilities = frozenset(
        {Capability.SMOOTH, Capability.HESSP, Capability.HESS_DIAG, Capability.LIPSCHITZ, Capability.SUBSET}
    )

    def __init__(self, xp, X, y):
        self.xp, self.X, self.y = xp, xp.asarray(X), xp.asarray(y)
        self._numpy = X, y
        self.size, self.data = X.shape[1], range(X.shape[0])

    @classmethod
    def random(cls, xp, seed=0, samples=30, size=5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(samples, size))
        return cls(xp, X, np.sign(X @ rng.normal(size=size) + rng.normal(size=samples)))

    @property
    def layout(self):
        return {"first": slice(0, 2), "second": slice(2, self.size)}

    def start(self):
        return self.xp.zeros(self.size, dtype=self.xp.float64)

    def lipschitz(self):
        return 0.25 * float(np.linalg.norm(self._numpy[0], 2)) ** 2

    def subset(self, ids):
        X, y = self._numpy
        return type(self)(self.xp, X[np.asarray(ids)], y[np.asarray(ids)])

    def at(self, w, warm=None):
        assert type(w) is type(self.X), f"{type(w)} was handed to a loss on {type(self.X)}"
        return ArrayEvaluation(self, w)


class ArrayEvaluation:
    def __init__(self, loss, w):
        self._loss, self._xp = loss, loss.xp
        self._margin = loss.y * (loss.X @ w)

    @cached_property
    def value(self):
        xp = self._xp
        return float(xp.sum(xp.logaddexp(xp.zeros_like(self._margin), -self._margin)))

    @cached_property
    def _p(self):  # of the wrong label
        return 1 / (1 + self._xp.exp(self._margin))

    @cached_property
    def grad(self):
        return -(self._loss.X.T @ (self._loss.y * self._p))

    def hessp(self, v):
        assert type(v) is type(self._loss.X)
        X, p = self._loss.X, self._p
        return X.T @ (p * (1 - p) * (X @ v))

    def hess_diag(self):
        X, p = self._loss.X, self._p
        return (X**2).T @ (p * (1 - p))


class NoisyLogistic(ArrayLogistic):
    """The same for solvers of losses that have an estimate of a gradient and no value."""

    capabilities = frozenset({Capability.GRADIENT})
