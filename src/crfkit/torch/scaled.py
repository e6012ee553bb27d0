"""Forward–backward with scaled probabilities, over all sequences of a packing at once.

With X_t(j) = exp(u_t(j) − top_t), E(i, j) = exp(w(i, j) − top) and rows as in
:class:`~crfkit.torch.packing.Packing`:

    a_t = (a_{t−1}·E) ∘ X_t / c_t,                 Σ_j a_t(j) = 1                 (forward)
    q_t = X_t ∘ b_t / c_t,   b_{t−1} = E·q_t,      b_T = 1                        (backward)
    p(y_t = j) = a_t(j)·b_t(j),   p(y_{t−1} = i, y_t = j) = a_{t−1}(i)·E(i, j)·q_t(j),   log Z = Σ_t (log c_t + tops)

What probabilities cannot hold shows: a sum c_t is too small, or Σ_j a_t(j)·b_t(j) is not 1. Then
:mod:`crfkit.torch.log_space` does the same in logarithms.
"""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.torch.packing import Packing

WIDEST = {torch.float32: 60.0, torch.float64: 600.0}  # range of the pair scores that E can hold
_LOST = 1e-3  # in a sum of probabilities: paths are missing
ROWS = 1 << 20  # at a time, where a copy of them is made
CELLS = 1 << 24  # of a table [rows, labels, labels] at a time
SMALLEST = {torch.float32: 1e-25, torch.float64: 1e-250}  # of c_t


class ScaledChains:
    """The distributions of all sequences at scores `unary` [T, L] and `pairs` [L, L]."""

    def __init__(self, unary: Tensor, pairs: Tensor, packing: Packing) -> None:
        self.packing = packing
        tops = unary.amax(dim=1)
        self.pair_top = pairs.amax()
        self._E = E = torch.exp(pairs - self.pair_top)
        X = torch.exp(unary - tops[:, None])
        a, c = torch.empty_like(X), torch.empty_like(tops)
        n = packing.n_begun
        c[:n] = X[:n].sum(dim=1)
        a[:n] = X[:n] / c[:n, None]
        for before, begin, n in packing.steps():
            p = (a[before : before + n] @ E) * X[begin : begin + n]
            c[begin : begin + n] = total = p.sum(dim=1)
            a[begin : begin + n] = p / total[:, None]
        X /= c[:, None]
        b = torch.ones_like(X)
        for before, begin, n in packing.steps_back():
            b[before : before + n] = (X[begin : begin + n] * b[begin : begin + n]) @ E.T
        self._a, self._b, self._c, self._q = a, b, c, X * b
        self._ratio = X  # X/c
        self.nodes = a * b
        self._pairs = pairs
        self.log_z_terms = c.log() + tops  # with pair_top for every later position

    def lost(self) -> Tensor:
        """Return, as one number on the device, whether probabilities could not hold this."""
        off = (self.nodes.sum(dim=1) - 1.0).abs() <= _LOST  # False for NaN
        finite = torch.where(torch.isfinite(self._pairs), self._pairs, self.pair_top)
        wide = self.pair_top - finite.amin() > WIDEST[self._a.dtype]
        small = self._c >= SMALLEST[self._c.dtype]
        return ((~off).any() | (~small).any() | wide).double()

    def pair_sums(self, weights: Tensor | None, square: bool = False) -> Tensor:
        """Return ``Σ_t weight_t·p_t(i, j)`` over later positions, in double precision; `square`: of p_t²."""
        left, right, E = self._a[self.packing.before], self._q[self.packing.n_begun :], self._E
        if not square:
            return _weighted_sum(left, right, weights) * E.double()
        total = torch.zeros_like(E, dtype=torch.float64)
        most = max(1, CELLS // E.numel())
        for begin in range(0, len(left), most):  # factors may be too large for their squares
            rows = slice(begin, begin + most)
            p = ((left[rows, :, None] * E) * right[rows, None, :]).double()
            total += (p**2 if weights is None else weights[rows, None, None] * p**2).sum(dim=0)
        return total

    def tangent(self, unary: Tensor, pairs: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the derivatives of `nodes` and of `pair_sums(weights)` along changes of the scores."""
        packing, a, b, q, X, E = self.packing, self._a, self._b, self._q, self._ratio, self._E
        dE = E * pairs
        da, dc = torch.empty_like(a), torch.empty_like(self._c)  # dc is ċ/c
        n = packing.n_begun
        dp = a[:n] * unary[:n]  # ṗ/c
        dc[:n] = total = dp.sum(dim=1)
        da[:n] = dp - a[:n] * total[:, None]
        for before, begin, n in packing.steps():
            here, there = slice(begin, begin + n), slice(before, before + n)
            dp = (da[there] @ E + a[there] @ dE) * X[here] + a[here] * unary[here]
            dc[here] = total = dp.sum(dim=1)
            da[here] = dp - a[here] * total[:, None]
        db, dq = torch.zeros_like(b), torch.zeros_like(q)
        for before, begin, n in packing.steps_back():
            here, there = slice(begin, begin + n), slice(before, before + n)
            dq[here] = X[here] * db[here] + q[here] * (unary[here] - dc[here][:, None])
            db[there] = dq[here] @ E.T + q[here] @ dE.T
        last, n = packing.before, packing.n_begun
        moved = _weighted_sum(da[last], q[n:], weights) + _weighted_sum(a[last], dq[n:], weights)
        change = moved * E.double() + _weighted_sum(a[last], q[n:], weights) * dE.double()
        return da * b + a * db, change


def _weighted_sum(left: Tensor, right: Tensor, weights: Tensor | None) -> Tensor:
    """Return ``Σ_t weight_t·left_t(i)·right_t(j)`` in double precision, some rows at a time."""
    total = left.new_zeros(left.shape[1], right.shape[1], dtype=torch.float64)
    for begin in range(0, len(left), ROWS):
        rows = slice(begin, begin + ROWS)
        some = left[rows].double()
        if weights is not None:
            some = some * weights[rows, None]
        total += some.T @ right[rows].double()
    return total
