"""Forward–backward in logarithms: slower than :mod:`crfkit.torch.scaled`, for scores of any size.

    α_t(j) = u_t(j) + log Σ_i exp(α_{t−1}(i) + w(i, j)),    β_{t−1}(i) = log Σ_j exp(w(i, j) + u_t(j) + β_t(j))

Both are normalised at every step, so that nothing grows. Their tangents are means: α̇_t(j) = u̇_t(j) + Σ_i f_t(i | j)·
(α̇_{t−1}(i) + ẇ(i, j)) with the weights f_t(i | j) ∝ exp(α_{t−1}(i) + w(i, j)), and β̇ likewise.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from crfkit.torch.packing import Packing

CELLS = 1 << 24  # numbers of a table [sequences, labels, labels] that is made at a time


class LogChains:
    """The distributions of all sequences; see :class:`crfkit.torch.scaled.ScaledChains`, whose methods these are."""

    def __init__(self, unary: Tensor, pairs: Tensor, packing: Packing) -> None:
        self.packing, self._pairs, self._unary = packing, pairs, unary
        self.pair_top = pairs.new_zeros(())
        self._alpha = alpha = unary.clone()
        self._beta = beta = torch.zeros_like(unary)
        self.log_z_terms = terms = torch.empty_like(unary[:, 0])
        _normalise(alpha, slice(0, packing.n_begun), terms)
        for here, there in self._steps():
            alpha[here] += torch.logsumexp(alpha[there, :, None] + pairs, dim=1)
            _normalise(alpha, here, terms)
        for here, there in self._steps_back():
            beta[there] = torch.logsumexp(pairs + (unary[here] + beta[here])[:, None, :], dim=2)
            _normalise(beta, there, None)
        self.nodes = torch.softmax(alpha + beta, dim=1)

    def lost(self) -> Tensor:
        return self._alpha.new_zeros((), dtype=torch.float64)

    def pair_sums(self, weights: Tensor | None, square: bool = False) -> Tensor:
        total = torch.zeros_like(self._pairs, dtype=torch.float64)
        for rows, p in self._pair_marginals():
            total += _sum_of(p**2 if square else p, weights, rows)
        return total

    def tangent(self, unary: Tensor, pairs: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
        alpha, beta, w = self._alpha, self._beta, self._pairs
        d_alpha, d_beta = unary.clone(), torch.zeros_like(unary)
        for here, there in self._steps():
            f = torch.nan_to_num(torch.softmax(alpha[there, :, None] + w, dim=1))
            d_alpha[here] += (f * (d_alpha[there, :, None] + pairs)).sum(dim=1)
            d_alpha[here] -= (alpha[here].exp() * d_alpha[here]).sum(dim=1, keepdim=True)
        for here, there in self._steps_back():
            f = torch.nan_to_num(torch.softmax(w + (self._unary[here] + beta[here])[:, None, :], dim=2))
            d_beta[there] = (f * (pairs + (unary[here] + d_beta[here])[:, None, :])).sum(dim=2)
        change = d_alpha + d_beta
        d_nodes = self.nodes * (change - (self.nodes * change).sum(dim=1, keepdim=True))
        total = torch.zeros_like(w, dtype=torch.float64)
        for rows, p in self._pair_marginals():
            here, last = self._rows(rows)
            change = d_alpha[last, :, None] + pairs + (unary[here] + d_beta[here])[:, None, :]
            change -= (p * change).sum(dim=(1, 2), keepdim=True)
            total += _sum_of(p * change, weights, rows)
        return d_nodes, total

    def _steps(self) -> Iterator[tuple[slice, slice]]:
        """Yield (rows of a step, rows of the step before), a part of the sequences at a time."""
        for before, begin, n in self.packing.steps():
            yield from self._parts(before, begin, n)

    def _steps_back(self) -> Iterator[tuple[slice, slice]]:
        for before, begin, n in self.packing.steps_back():
            yield from self._parts(before, begin, n)

    def _parts(self, before: int, begin: int, n: int) -> Iterator[tuple[slice, slice]]:
        most = max(1, CELLS // self._pairs.numel())
        for k in range(0, n, most):
            end = min(k + most, n)
            yield slice(begin + k, begin + end), slice(before + k, before + end)

    def _pair_marginals(self) -> Iterator[tuple[slice, Tensor]]:
        """Yield (some of the later rows, counted from the first of them, their pair marginals)."""
        n_later = self.packing.n_rows - self.packing.n_begun
        most = max(1, CELLS // self._pairs.numel())
        for k in range(0, n_later, most):
            rows = slice(k, min(k + most, n_later))
            here, last = self._rows(rows)
            p = self._alpha[last, :, None] + self._pairs + (self._unary[here] + self._beta[here])[:, None, :]
            yield rows, torch.softmax(p.flatten(1), dim=1).view_as(p)

    def _rows(self, later: slice) -> tuple[slice, Tensor]:
        n = self.packing.n_begun
        return slice(n + later.start, n + later.stop), self.packing.before[later]


def _normalise(table: Tensor, rows: slice, terms: Tensor | None) -> None:
    """Subtract the log-sum of each row; keep it in `terms`."""
    total = torch.logsumexp(table[rows], dim=1)
    table[rows] -= total[:, None]
    if terms is not None:
        terms[rows] = total


def _sum_of(p: Tensor, weights: Tensor | None, rows: slice) -> Tensor:
    p = p.double()
    return p.sum(dim=0) if weights is None else torch.tensordot(weights[rows].double(), p, dims=1)
