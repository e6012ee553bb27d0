"""Small functions with known derivatives, as losses; and losses that fail on purpose."""

from __future__ import annotations

import itertools
import math
from functools import cached_property

import numpy as np

from crfkit.protocols import Loss


class FunctionLoss(Loss):
    """A loss from `both(w) → (value, gradient)` and `hessian(w)`; counts the calls that were completed."""

    name = "test loss"
    capabilities = frozenset({"smooth", "hessp", "hess_diag"})

    def __init__(self, size, both, hessian=None):
        self.size, self.both, self.hessian = size, both, hessian or (lambda w: np.zeros((size, size)))
        self.calls = self.products = 0

    @property
    def layout(self):
        return {"all": slice(0, self.size)}

    def at(self, w, warm=None):
        evaluation = FunctionEvaluation(self, w)
        self.calls += 1
        return evaluation


class FunctionEvaluation:
    def __init__(self, loss, w):
        value, gradient = loss.both(w)
        self.value, self.grad = float(value), np.array(gradient, dtype=float)
        self._loss, self._w = loss, w.copy()

    @cached_property
    def _hessian(self):
        return self._loss.hessian(self._w)

    def hessp(self, v):
        product = self._hessian @ v
        self._loss.products += 1
        return product

    def hess_diag(self):
        return np.maximum(np.diag(self._hessian), 0.0)


def quadratic(seed=0, n=8, condition=100.0):
    """(½ (w − m)ᵀA(w − m) with eigenvalues of A from 1 to `condition`, m)."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = basis * np.geomspace(1.0, condition, n) @ basis.T
    m = rng.normal(size=n)
    return FunctionLoss(n, lambda w: (0.5 * (w - m) @ A @ (w - m), A @ (w - m)), lambda w: A), m


def logistic(seed=0, n=6, samples=40, spread=10.0):
    """Σ log(1 + exp(−y·xᵀw)) with columns of x of scales from 1/spread to spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, n)) * np.geomspace(1 / spread, spread, n)
    y = np.sign(X @ rng.normal(size=n) + rng.normal(size=samples))

    def both(w):
        margin = y * (X @ w)
        return np.logaddexp(0, -margin).sum(), -X.T @ (y * np.exp(-np.logaddexp(0, margin)))

    def hessian(w):
        margin = X @ w
        return X.T * np.exp(-np.logaddexp(0, margin) - np.logaddexp(0, -margin)) @ X

    return FunctionLoss(n, both, hessian)


def rosenbrock(n=4, steepness=100.0):
    """Σ steepness·(w_{i+1} − w_i²)² + (1 − w_i)²: a curved valley with its minimum at 1."""

    def both(w):
        side, along = w[1:] - w[:-1] ** 2, 1 - w[:-1]
        gradient = np.zeros(n)
        gradient[1:] += 2 * steepness * side
        gradient[:-1] -= 4 * steepness * side * w[:-1] + 2 * along
        return steepness * side @ side + along @ along, gradient

    def hessian(w):
        diagonal = np.zeros(n)
        diagonal[1:] += 2 * steepness
        diagonal[:-1] += 2 - 4 * steepness * (w[1:] - 3 * w[:-1] ** 2)
        off = np.diag(-4 * steepness * w[:-1], 1)
        return np.diag(diagonal) + off + off.T

    return FunctionLoss(n, both, hessian)


def barrier():
    """−Σ log(1 − w) − 5·w with NaN beyond the wall at 1; optimum at 0.8."""

    def both(w):
        if (w >= 1).any():
            return math.inf, np.full_like(w, math.nan)
        return -np.log1p(-w).sum() - 5 * w.sum(), 1 / (1 - w) - 5

    return FunctionLoss(3, both, lambda w: np.diag(1 / (1 - w) ** 2))


def falling():
    """−Σ w: no minimum."""
    return FunctionLoss(3, lambda w: (-w.sum(), -np.ones_like(w)))


def ever_steeper():
    """−Σ w + w²: no minimum."""
    return FunctionLoss(3, lambda w: (-w.sum() - w @ w, -1 - 2 * w), lambda w: -2 * np.eye(3))


def wrong_sign():
    """A gradient that points the wrong way."""
    return FunctionLoss(3, lambda w: (w @ w - w.sum(), 1 - 2 * w), lambda w: 2 * np.eye(3))


def altered(loss, at, alter):
    """The loss, with `alter(value, gradient)` in place of its results from evaluation number `at` on."""
    loss.inner = inner = loss.both
    count = itertools.count(1)

    def both(w):
        number, (value, gradient) = next(count), inner(w)
        return alter(value, gradient) if number >= at else (value, gradient)

    loss.both = both
    return loss


def interrupted_at(loss, k):
    """Ctrl-C in the middle of evaluation number k."""

    def alter(value, gradient):
        raise KeyboardInterrupt

    return altered(loss, k, alter)


def turned_round_after(loss, k):
    """A gradient that points the wrong way from evaluation number k + 1 on."""
    return altered(loss, k + 1, lambda value, gradient: (value, -gradient))
