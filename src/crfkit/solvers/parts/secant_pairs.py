"""The last curvature pairs as a value, for methods that need the L-BFGS matrix B itself or a shift of it.

B = σI − [σS, Y]·M⁻¹·[σS, Y]ᵀ with M = [[σ·SᵀS, L], [Lᵀ, −D]], σ = yᵀy/sᵀy of the newest pair, D the diagonal and L the
strictly lower triangle of SᵀY (Byrd, Nocedal & Schnabel 1994, Theorem 2.3).

L-BFGS has a store of its own, :mod:`~crfkit.solvers.parts.memory`. It needs H alone and keeps the pairs in one array
that it overwrites in place, with inner products that follow from successive gradients: half the memory traffic of the
recursion below. The methods here need B, or add a multiple of s to every y, and go back to earlier pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from crfkit.arrays import combine, dot, dots, inner, rows_combine, rows_dot
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.solvers.parts.saved import saved_matrix

Pair = tuple[Vector, Vector]
LEAST, MOST = 1e-150, 1e150  # of inner products of saved pairs: beyond them B would overflow


@dataclass(frozen=True)
class SecantPairs:
    """Pairs (s, y), oldest first; `after` gives the next value."""

    capacity: int
    pairs: tuple[Pair, ...] = ()

    @classmethod
    def of(cls, capacity: int, saved: Mapping[str, Any], like: Vector) -> SecantPairs:
        if "s" not in saved:
            return cls(capacity)
        s = saved_matrix(saved, "s", like.shape[0])
        y = saved_matrix(saved, "y", like.shape[0], s.shape[0])
        pairs = tuple((s[k, :], y[k, :]) for k in range(s.shape[0]))[-capacity:]
        if not all(dot(s, y) > LEAST and max(dot(s, s), dot(y, y)) < MOST for s, y in pairs):
            raise ParameterError("the saved state is damaged: it has steps without positive curvature")
        return cls(capacity, pairs)

    def saved(self) -> Mapping[str, Any]:
        if not self.pairs:
            return {}
        xp = array_namespace(self.pairs[0][0])
        return {"s": xp.stack([s for s, _ in self.pairs]), "y": xp.stack([y for _, y in self.pairs])}

    def __len__(self) -> int:
        return len(self.pairs)

    def after(self, x: Vector, g: Vector, x_new: Vector, g_new: Vector) -> SecantPairs:
        """Return the pairs with that of a step, unless its curvature is not safely positive."""
        s, y = combine(x_new, -1.0, x), combine(g_new, -1.0, g)
        if not dot(s, y) > 2.0**-40 * dot(y, y) ** 0.5 * dot(s, s) ** 0.5:
            return self
        return SecantPairs(self.capacity, (*self.pairs, (s, y))[-self.capacity :])

    @cached_property
    def sigma(self) -> float:
        s, y = self.pairs[-1]
        return dot(y, y) / dot(s, y)

    @cached_property
    def _compact(self) -> tuple[Vector, Any]:
        """([σS; Y] as rows, M⁻¹)."""
        xp = array_namespace(self.pairs[0][0])
        rows = xp.stack([*(self.sigma * s for s, _ in self.pairs), *(y for _, y in self.pairs)])
        m = len(self)
        gram = np.array([rows_dot(rows, s) for s, _ in self.pairs])  # [m, 2m]: s_i·(σ s_j), s_i·y_j
        ss, sy = gram[:, :m], gram[:, m:]
        lower = np.tril(sy, -1)
        return rows, np.linalg.pinv(np.block([[ss, lower], [lower.T, -np.diag(np.diag(sy))]]), hermitian=True)

    def product(self, v: Vector) -> Vector:
        """Return B·v."""
        rows, inverse = self._compact
        return rows_combine(-(inverse @ rows_dot(rows, v)), rows, self.sigma, v)

    def direction(self, g: Vector, shift: float = 0.0) -> Vector:
        """Return −H·g of the pairs (s, y + shift·s)."""
        return -1.0 * two_loop(g, [(s, combine(y, shift, s)) for s, y in self.pairs])[0]


def two_loop(g: Vector, pairs: Sequence[Pair], diagonal: Vector | float = 1.0) -> tuple[Vector, float | None]:
    """Return (H·g, γ) by the two-loop recursion (Nocedal 1980) with H₀ = γ·diag(diagonal), pairs oldest first.

    Pairs without positive curvature are left out; γ is None if none is left, and H₀ is then the diagonal itself.
    """
    used = []
    gamma = None
    products = dots(product for s, y in pairs for product in ((s, y), (y, diagonal * y)))
    for (s, y), sy, yy in zip(pairs, products[::2], products[1::2], strict=True):
        if sy > 1e-10 * yy > 0:
            used.append((s, y, sy))
            gamma = sy / yy
    q, alphas = 1.0 * g, []
    for s, y, sy in reversed(used):
        alpha = inner(s, q) / sy
        q -= alpha * y
        alphas.append(alpha)
    q = (gamma or 1.0) * diagonal * q
    for (s, y, sy), alpha in zip(used, reversed(alphas), strict=True):
        q += (alpha - inner(y, q) / sy) * s
    return q, gamma
