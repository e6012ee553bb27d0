"""Curvature of the free weights: pairs that follow the set of weights that are not zero, and a diagonal learned from
the steps.

The pairs s = w⁺ − w, y = ∇f⁺ − ∇f hold the free weights only. A weight that becomes zero leaves them, one that becomes
free enters them with zeros, so that H acts on the free weights alone and stays positive definite; there are few of
them, and many pairs cost little. H is the L-BFGS matrix of the pairs with H₀ = γ·diag(h)^(−power),

    h_k = (Σ max(s_k·y_k, 0) + δ·mean) / (Σ s_k² + δ·mean),

the curvature that weight k has met, where sums are over the steps in which it could move (old ones fade) and the means
are those of the free weights. Unlike the pairs, h outlives the time that a weight spends at zero. For the free weights
of a head (:mod:`~.head`), H₀ is γ·(I + their block of the head's excess).

The rows are arrays of their own, not a :class:`~.secant_pairs.SecantPairs`: they change their columns with the free set
at every step, all rows at once. The recursion is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from crfkit._compiled import _core
from crfkit._types import Floats, Ints
from crfkit.arrays import is_native, namespace, put
from crfkit.protocols import Vector
from crfkit.solvers.parts.head import Head
from crfkit.solvers.parts.moving import Moving
from crfkit.solvers.parts.objective import Point, extended
from crfkit.solvers.parts.saved import saved_count, saved_matrix, saved_vector
from crfkit.solvers.parts.secant_pairs import two_loop

POWER = 0.6  # 1 would be Jacobi's: features overlap, so that the Hessian is far from its diagonal
DELTA = 1e-3
FADE = 0.8
RAMP = 15  # steps after which h is trusted in full; the first ones have met little
RANGE = 1e6  # of h, around the mean


@dataclass(frozen=True)
class FreeCurvature:
    index: Any  # places of the free weights, ascending
    s: Vector  # [pairs, free], oldest first
    y: Vector  # [pairs, free]
    met: Vector  # [n]: Σ max(s·y, 0)
    moved: Vector  # [n]: Σ s²
    steps: int
    head: Head | None = None

    @classmethod
    def at(cls, point: Point, saved: Mapping[str, Any]) -> FreeCurvature:
        """Return the curvature at the start of a run, or as it was saved at this point."""
        xp, w, index = array_namespace(point.w), point.w, point.moving.free
        if "met" not in saved:
            empty = xp.zeros((0, index.shape[0]), dtype=w.dtype, device=device(w))
            return cls(index, empty, empty, xp.zeros_like(w), xp.zeros_like(w), 0, None)
        met, moved = (saved_vector(saved, name, w, low=0.0) for name in ("met", "moved"))
        s = saved_matrix(saved, "s", index.shape[0], what="free weights")
        y = saved_matrix(saved, "y", index.shape[0], s.shape[0], "free weights")
        return cls(index, s, y, met, moved, saved_count(saved, "steps"), Head.restored(saved, w.shape[0]))

    def __len__(self) -> int:
        return int(self.s.shape[0])

    def saved(self) -> Mapping[str, Any]:
        head = {} if self.head is None else self.head.saved()
        return {"s": self.s, "y": self.y, "met": self.met, "moved": self.moved, "steps": self.steps, **head}

    def forgotten(self) -> FreeCurvature:
        """Return it without the pairs."""
        return replace(self, s=self.s[:0, :], y=self.y[:0, :])

    def extended(self, place: Any, size: int) -> FreeCurvature:
        """Return the curvature in a larger space, where weight i stands at place[i] and the new weights are zero.

        It has no head.
        """
        xp = array_namespace(self.met)
        index = xp.take(xp.asarray(place, device=device(self.met)), self.index)
        order = xp.argsort(index)
        s, y = (xp.take(rows, order, axis=1) for rows in (self.s, self.y))
        met, moved = (extended(vector, place, size) for vector in (self.met, self.moved))
        return FreeCurvature(xp.take(index, order), s, y, met, moved, self.steps)

    def direction(self, moving: Moving) -> tuple[Vector, bool]:
        """Return (H·p of the free weights, then H₀·p of the entering ones; whether a pair has given them a length)."""
        xp = namespace(moving.p_free)
        h0, h0_entering = self._diagonals(moving.entering)
        gamma: float | None
        if is_native(moving.p_free, self.s, self.y, h0):
            places, excess = self._free_head
            h0[places] = 1.0
            d, gamma = _core.two_loop(moving.p_free, self.s, self.y, h0, places, excess)
        else:
            pairs = [(self.s[k, :], self.y[k, :]) for k in range(len(self))]
            d, gamma = two_loop(moving.p_free, pairs, h0)
        return xp.concat([d, (gamma or 1.0) * h0_entering * moving.p_entering]), bool(gamma)

    @cached_property
    def _free_head(self) -> tuple[Ints, Floats]:
        """Return where the free weights of the head stand among the free weights, and their block of its excess."""
        if self.head is None or len(self.index) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 0))
        found = np.minimum(np.searchsorted(self.index, self.head.places), len(self.index) - 1)
        free = self.index[found] == self.head.places
        return found[free], np.ascontiguousarray(self.head.excess[np.ix_(free, free)])

    def _diagonals(self, entering: Any) -> tuple[Vector, Vector]:
        """diag(h)^(−power) of the free weights and of those that leave zero."""
        xp = array_namespace(self.met)
        met, moved = xp.take(self.met, self.index), xp.take(self.moved, self.index)
        new_met, new_moved = xp.take(self.met, entering), xp.take(self.moved, entering)
        if self.index.shape[0] == 0:
            return xp.ones_like(met), xp.ones_like(new_met)
        a, b = DELTA * float(xp.mean(met)), DELTA * float(xp.mean(moved))
        if not (a > 0 and b > 0):
            return xp.ones_like(met), xp.ones_like(new_met)

        power = POWER * min(1.0, self.steps / RAMP)

        def diagonal(met: Vector, moved: Vector) -> Vector:
            return xp.clip((met + a) / (moved + b) * (b / a), 1 / RANGE, RANGE) ** -power

        return diagonal(met, moved), diagonal(new_met, new_moved)

    def after(self, old: Point, new: Point, capacity: int) -> FreeCurvature:
        """Return it with the pair of a step, on the weights that are free now."""
        xp = namespace(old.w)
        tried, index = old.moving.index, new.moving.free
        s, y = _change(old.w, new.w, tried), _change(old.grad, new.grad, tried)
        met, moved = 1.0 * self.met, 1.0 * self.moved
        put(met, tried, FADE * xp.take(met, tried) + xp.maximum(s * y, xp.zeros_like(s)))
        put(moved, tried, FADE * xp.take(moved, tried) + s * s)
        s, y = _change(old.w, new.w, index), _change(old.grad, new.grad, index)
        older = max(len(self) + 1 - capacity, 0)  # the last capacity − 1
        s_rows, y_rows = self._followed(self.s[older:, :], index, s), self._followed(self.y[older:, :], index, y)
        return FreeCurvature(index, s_rows, y_rows, met, moved, self.steps + 1, self.head)

    def _followed(self, rows: Vector, index: Any, last: Vector) -> Vector:
        """Return the rows on other weights, zero where they had none, and `last` as one more."""
        xp, k, size = namespace(rows), rows.shape[0], self.index.shape[0]
        if is_native(rows, last) and self.index.dtype == index.dtype == np.int64:
            out = np.empty((k + 1, len(index)))
            _core.move_columns(rows, self.index, index, out[:k])
            out[k] = last
            return out
        if size == 0 or k == 0:
            older = xp.zeros((k, index.shape[0]), dtype=rows.dtype, device=device(rows))
        else:
            places = xp.clip(xp.searchsorted(self.index, index), 0, size - 1)
            known = xp.take(self.index, places) == index
            older = xp.where(known, xp.take(rows, places, axis=1), xp.zeros_like(rows[0, 0]))
        return xp.concat([older, last[None, :]])


def _change(old: Vector, new: Vector, index: Any) -> Vector:
    xp = namespace(old)
    return xp.take(new, index) - xp.take(old, index)
