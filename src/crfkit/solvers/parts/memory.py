"""Limited-memory curvature pairs, in the compact form of Byrd, Nocedal & Schnabel (1994), Theorem 2.2.

With S = [s_i], Y = [y_i], R the upper triangle of SᵀY, D its diagonal and H₀ = γI,

    H = γI + [S, γY] · [[R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ], [−R⁻¹, 0]] · [Sᵀ; γYᵀ].

The pairs lie in one array, so H·g is one product with it (all inner products with g) and one with its
transpose (the combination): half the memory traffic of the two-loop recursion. The small matrices cost
no further passes, since s_i·y and y_i·y are differences of successive inner products with g.

Long pairs are kept with fewer digits, and so are directions: a step t along the rounded d is s = t·d to its last
digit, so that x⁺ − x need not be read. Then an iteration reads the pairs twice: for d, and for the inner products with
the next gradient, which are taken while the new pair is written.

With a head (:mod:`crfkit.solvers.parts.head`), H₀ = γ·P there, P = I + E. Then Y becomes H₀Y/γ in the first bracket and
in YᵀY, and g becomes H₀g/γ. All passes over long vectors stay as they are; what E adds to products and directions is
computed from the few entries of Y and g that belong to the head (by the compiled core: threads of BLAS would go on to
wait actively while the loss is evaluated).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace

from crfkit._types import Floats
from crfkit.arrays import (
    add_step,
    curvature_pair,
    dot,
    empty_row,
    is_narrow,
    is_native,
    matvec,
    put_row,
    row_type,
    row_values,
    rows_combine,
    rows_descent,
    rows_direction,
    rows_dot,
    zero_rows,
)
from crfkit.errors import ParameterError
from crfkit.protocols import Vector
from crfkit.solvers.parts.descent import Moved
from crfkit.solvers.parts.directions import Direction, ScaledRow
from crfkit.solvers.parts.head import Head
from crfkit.solvers.parts.objective import Point
from crfkit.solvers.parts.quasi_newton import Curvature
from crfkit.solvers.parts.saved import HANDED_OVER, saved_matrix, saved_number, saved_vector

FEW_PAIRS = 12  # up to which loops take less time than a call of LAPACK, which is most of what few weights cost


class CurvaturePairs(Curvature):
    """The last `capacity` pairs s = x⁺ − x, y = g⁺ − g.

    γ = sᵀy/yᵀy of the newest pair, or 1 unless `rescaled`. With a vector `scale`, H₀ = γ·diag(scale²): the pairs are
    kept in the variables x/scale, where H₀ = γI. Unless `double`, long pairs are kept with fewer digits. With a `head`,
    whose entries of `scale` are 1, H₀ is γ·(I + head.excess) there.
    """

    def __init__(
        self,
        capacity: int,
        saved: Mapping[str, Any] | None = None,
        scale: Vector = None,
        rescaled: bool = True,
        double: bool = False,
        head: Head | None = None,
    ) -> None:
        self.capacity = capacity
        self._scale = scale
        self._rescaled = rescaled
        self._double = double
        self._head = head
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
        self._products = np.zeros(2 * m)  # basis @ g of the last direction, or of `_measured`
        self._measured: Vector = None  # the gradient after the last step, if its products are known
        self._row: Any = None  # the last direction, where that is a row
        self._gamma = 1.0
        self._head_y = np.zeros((m, 0 if self._head is None else len(self._head.places)))  # y of the head, by slot

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
        if self._head is not None:
            self._head_y[slots] = row_values(pairs[[m + k for k in slots]], self._head.places)

    def __len__(self) -> int:
        return len(self._slots)

    def direction(self, g: Vector) -> Vector:
        """Return d = −H·g; `slope` is then d·g. The next `add` must be of a step from where the gradient is g."""
        c = self._coefficients(g)
        if c is None:
            d = -1.0 * g if self._scale is None else self._scale * (-1.0 * (self._scale * g))
            self.slope = dot(d, g)
        else:
            d, self.slope = rows_descent(c, self._basis, -self._gamma, g, self._scale)
        if self._head is not None:
            self.slope += self._turn(d, c, g)
        return d

    def descent(self, g: Vector) -> tuple[Direction, float]:
        """Return `direction` and its slope; the direction is a row where pairs have fewer digits than g."""
        if not (is_native(g) and is_narrow(self._row_type(g))):
            return super().descent(g)
        c = self._coefficients(g)
        self._make_rows(g)
        rows, gamma = (self._basis[:0, :], 1.0) if c is None else (self._basis, self._gamma)
        slope = rows_direction([] if c is None else c, rows, -gamma, g, self._scale, self._row)
        if self._head is not None:
            slope += self._turn(self._row, c, g)
        return ScaledRow(self._row, self._scale), slope

    def _turn(self, d: Any, c: Any, g: Vector) -> float:
        """Add E·(−γ·g + Y·c) to the direction of the head, in place; return what that adds to d·g."""
        assert self._head is not None
        places = self._head.places
        before, g_head = row_values(d, places), g[places]
        inner = -g_head if c is None else rows_combine(c[self.capacity :], self._head_y, -self._gamma, g_head)
        put_row(d, places, before + matvec(self._head.excess, inner))
        return dot(row_values(d, places) - before, g_head)

    def _products_with(self, g: Vector, products: Any) -> Any:
        """Return the products of all rows with g, those of Y with H₀g/γ; `products` lacks the head's share of these."""
        if self._head is not None:
            products[self.capacity :] += rows_dot(self._head_y, matvec(self._head.excess, g[self._head.places]))
        return products

    def _coefficients(self, g: Vector) -> Any:
        """Return c with −H·g = scale·(−γ·scale·g + Σ_i c_i·basis_i); None without pairs, where H₀ is diag(scale²)."""
        if not self._slots:
            return None
        m, used, gamma = self.capacity, np.array(self._slots), self._gamma
        if g is not self._measured:
            self._complete(self._products_with(g, rows_dot(self._basis, g, self._scale)))
        products, self._measured = self._products, None
        a, b = products[used], products[m + used]  # Sᵀg, Yᵀg
        sy, yy = self._sy[used[:, None], used], self._yy[used[:, None], used]
        c, diagonal = np.zeros(2 * m), sy.diagonal()
        if not diagonal.all():  # the pairs are of no use
            self.clear()
            return None
        ra = _solve_upper(sy, a)
        # R in reverse order is a transpose of an upper triangle
        c[used] = -_solve_upper(sy.T[::-1, ::-1], (diagonal * ra + gamma * (yy @ ra - b))[::-1])[::-1]
        c[m + used] = gamma * ra
        return c

    def _row_type(self, x: Vector) -> Any:
        if self._basis is not None:
            return self._basis.dtype
        return x.dtype if self._double else row_type(x)

    def _make_rows(self, x: Vector) -> None:
        """Make the rows that there are not yet."""
        kind = self._row_type(x)
        if self._basis is None:
            self._basis = zero_rows(2 * self.capacity, x, kind)
        if self._row is None and is_native(x) and is_narrow(kind):
            self._row = empty_row(x.shape[0], kind)

    def add(self, x: Vector, g: Vector, x_new: Vector, g_new: Vector) -> bool:
        """Add the pair of a step unless its curvature is not safely positive; return whether it was added."""
        self._make_rows(x)
        slot = self._free_slot()
        s, y = self._basis[slot, :], self._basis[self.capacity + slot, :]
        self._measured = None
        return self._take(slot, *curvature_pair(x, g, x_new, g_new, self._scale, s, y))

    def add_step(self, before: Point, moved: Moved) -> bool:
        g, g_new = before.grad, moved.point.grad
        if self._row is None or not is_native(g, g_new):
            return super().add_step(before, moved)
        slot = self._free_slot()
        rows = self._basis, slot, self.capacity + slot
        products, sy, yy = add_step(*rows, moved.step, self._row, g, g_new, self._scale)
        taken = self._take(slot, sy, yy)
        self._complete(self._products_with(g_new, products))
        self._measured = g_new
        return taken

    def _free_slot(self) -> int:
        """Return a slot for the next pair: that of the oldest if all are in use."""
        if len(self) == self.capacity:
            return self._slots.pop(0)
        return next(k for k in range(self.capacity) if k not in self._slots)

    def _take(self, slot: int, sy: float, yy: float) -> bool:
        """Use the pair that lies in a slot, if its curvature is safely positive."""
        if self._head is not None:
            y = self._head_y[slot] = row_values(self._basis[self.capacity + slot], self._head.places)
            yy += dot(y, matvec(self._head.excess, y))
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


def _solve_upper(matrix: Floats, b: Floats) -> Floats:
    """Return the solution of R·x = b, R the upper triangle of a small matrix; what lies below is not read."""
    if len(b) > FEW_PAIRS:
        return cast("Floats", np.linalg.solve(np.triu(matrix), b))
    rows, x = matrix.tolist(), b.tolist()
    for i in range(len(x) - 1, -1, -1):
        row = rows[i]
        for j in range(i + 1, len(x)):
            x[i] -= row[j] * x[j]
        x[i] /= row[i]
    return np.array(x)


def _check_rows(pairs: Any) -> None:
    """Raise ParameterError unless these are rows of the kinds that `row_type` names, all finite."""
    if type(pairs) is np.ndarray and pairs.dtype == np.uint16:
        sound = not any(((row & 0x7F80) == 0x7F80).any() for row in pairs)  # the exponent of infinity and NaN
    else:
        sound = array_namespace(pairs).isdtype(pairs.dtype, "real floating")  # and finite: see check_state
    if not sound:
        raise ParameterError("the saved state is damaged: pairs are not finite numbers")
