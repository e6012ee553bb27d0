"""Limited-memory curvature pairs, in the compact form of Byrd, Nocedal & Schnabel (1994), Theorem 2.2.

With S = [s_i], Y = [y_i], R the upper triangle of SᵀY, D its diagonal and H₀ = γI,

    H = γI + [S, γY] · [[R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ], [−R⁻¹, 0]] · [Sᵀ; γYᵀ].

The pairs lie in one array, so H·g is one product with it (all inner products with g) and one with its
transpose (the combination): half the memory traffic of the two-loop recursion. The small matrices cost
no further passes, since s_i·y and y_i·y are differences of successive inner products with g.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from crfkit.arrays import curvature_pair, dot, namespace, row_type, rows_descent, rows_dot
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.solvers.parts.saved import HANDED_OVER, saved_matrix, saved_number, saved_vector


class CurvaturePairs:
    """The last `capacity` pairs s = x⁺ − x, y = g⁺ − g.

    γ = sᵀy/yᵀy of the newest pair, or 1 unless `rescaled`. With a vector `scale`, H₀ = γ·diag(scale²): the pairs are
    kept in the variables x/scale, where H₀ = γI. Unless `double`, long pairs are kept as single floats.
    """

    def __init__(
        self,
        capacity: int,
        saved: Mapping[str, Any] | None = None,
        scale: Vector = None,
        rescaled: bool = True,
        double: bool = False,
    ) -> None:
        self.capacity = capacity
        self._scale = scale
        self._rescaled = rescaled
        self._double = double
        self.slope: float | None = None  # of the last direction
        self.clear()
        if saved:
            self._restore(saved)

    def clear(self) -> None:
        m = self.capacity
        self._basis: Vector = None  # [2m, n]: s of slot k in row k, y in row m + k
        self._slots: list[int] = []  # oldest first
        self._pending: int | None = None  # slot whose products with the older pairs are not known yet
        self._sy = np.zeros((m, m))  # s_i·y_j, by slot
        self._yy = np.zeros((m, m))
        self._products = np.zeros(2 * m)  # basis @ g of the last direction
        self._gamma = 1.0

    def saved(self) -> Mapping[str, Any]:
        """Return all that the next direction depends on."""
        if not self._slots:
            return {}
        return {
            "pairs": self._basis,
            "slots": np.array(self._slots),
            "pending": -1 if self._pending is None else self._pending,
            "sy": self._sy,
            "yy": self._yy,
            "products": self._products,
            "gamma": self._gamma,
        }

    def _restore(self, saved: Mapping[str, Any]) -> None:
        if "pairs" not in saved:
            return
        m, pairs = self.capacity, saved["pairs"]
        if pairs.ndim != 2 or pairs.shape[0] != 2 * m:
            raise ParameterError(f"the saved state has a memory of {pairs.shape[0] // 2}, not {m}")
        _check_rows(pairs)
        # a saved state may be resumed again
        self._basis = pairs if saved.get(HANDED_OVER) else array_namespace(pairs).asarray(pairs, copy=True)
        slots = [int(k) for k in saved["slots"]]
        pending = int(saved_number(saved, "pending", low=-1, high=m - 1))
        if len(set(slots)) < len(slots) or not all(0 <= k < m for k in slots) or pending not in (-1, *slots[-1:]):
            raise ParameterError("the saved state is damaged: its pairs are not in order")
        self._slots, self._pending = slots, None if pending < 0 else pending
        self._sy, self._yy = (saved_matrix(saved, name, m, m) for name in ("sy", "yy"))
        self._products = saved_vector(saved, "products", self._products)
        self._gamma = saved_number(saved, "gamma", low=0.0)

    def __len__(self) -> int:
        return len(self._slots)

    def direction(self, g: Vector) -> Vector:
        """Return d = −H·g; `slope` is then d·g. The next `add` must be of a step from where the gradient is g."""
        if not self._slots:
            return self._steepest(g)
        m, used, gamma = self.capacity, np.array(self._slots), self._gamma
        products = rows_dot(self._basis, g, self._scale)
        self._complete(products)
        a, b = products[used], products[m + used]  # Sᵀg, Yᵀg
        sy, yy = self._sy[np.ix_(used, used)], self._yy[np.ix_(used, used)]
        r, c = np.triu(sy), np.zeros(2 * m)
        try:
            ra = np.linalg.solve(r, a)
            c[used] = np.linalg.solve(r.T, np.diag(sy) * ra + gamma * (yy @ ra) - gamma * b)
        except np.linalg.LinAlgError:  # the pairs are of no use
            self.clear()
            return self._steepest(g)
        c[m + used] = -gamma * ra
        d, self.slope = rows_descent(-c, self._basis, -gamma, g, self._scale)
        return d

    def _steepest(self, g: Vector) -> Vector:
        d = -1.0 * g if self._scale is None else self._scale * (-1.0 * (self._scale * g))
        self.slope = dot(d, g)
        return d

    def add(self, x: Vector, g: Vector, x_new: Vector, g_new: Vector) -> bool:
        """Add the pair of a step unless its curvature is not safely positive; return whether it was added."""
        m = self.capacity
        if self._basis is None:
            xp = namespace(x)
            self._basis = xp.zeros(
                (2 * m, x.shape[0]), dtype=x.dtype if self._double else row_type(x), device=device(x)
            )
        free = (k for k in range(m) if k not in self._slots)
        slot = self._slots.pop(0) if len(self) == m else next(free)
        s, y = self._basis[slot, :], self._basis[m + slot, :]
        sy, yy = curvature_pair(x, g, x_new, g_new, self._scale, s, y)
        if not sy > 2.0**-52 * yy:
            return False  # the slot is free again; what lies in it is not used
        self._slots.append(slot)
        self._pending = slot
        self._sy[slot, slot], self._yy[slot, slot] = sy, yy
        self._gamma = sy / yy if self._rescaled else 1.0
        return True

    def _complete(self, products: Any) -> None:
        """Fill in s_i·y and y_i·y of the newest pair for the older i: y = g⁺ − g."""
        if self._pending is not None:
            new, m = self._pending, self.capacity
            for i in self._slots[:-1]:
                self._sy[i, new] = products[i] - self._products[i]
                self._yy[i, new] = self._yy[new, i] = products[m + i] - self._products[m + i]
            self._pending = None
        self._products = products


def _check_rows(pairs: Any) -> None:
    """Raise ParameterError unless these are rows of the kinds that `row_type` names, all finite."""
    if type(pairs) is np.ndarray and pairs.dtype == np.uint16:
        sound = not any(((row & 0x7F80) == 0x7F80).any() for row in pairs)  # the exponent of infinity and NaN
    else:
        sound = array_namespace(pairs).isdtype(pairs.dtype, "real floating")  # and finite: see check_state
    if not sound:
        raise ParameterError("the saved state is damaged: pairs are not finite numbers")
