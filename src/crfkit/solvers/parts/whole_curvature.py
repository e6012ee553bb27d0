"""Curvature of all weights: the L-BFGS matrix of the pairs s = w⁺ − w, y = ∇f⁺ − ∇f, as OWL-QN was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crfkit.arrays import namespace, put
from crfkit.protocols import Vector
from crfkit.solvers.parts.moving import Moving
from crfkit.solvers.parts.objective import Point, extended
from crfkit.solvers.parts.secant_pairs import SecantPairs, two_loop


@dataclass(frozen=True)
class WholeCurvature:
    """The last pairs; the interface is that of :class:`~.free_curvature.FreeCurvature`."""

    pairs: SecantPairs
    like: Vector  # a vector of all weights

    @classmethod
    def at(cls, point: Point, saved: Mapping[str, Any], capacity: int) -> WholeCurvature:
        """Return the curvature at the start of a run, or as it was saved at this point."""
        return cls(SecantPairs.of(capacity, saved, point.w), point.w)

    def __len__(self) -> int:
        return len(self.pairs)

    def saved(self) -> Mapping[str, Any]:
        return self.pairs.saved()

    def extended(self, place: Any, size: int) -> WholeCurvature:
        """Return the curvature in a larger space, where weight i stands at place[i] and the new weights are zero."""
        pairs = tuple((extended(s, place, size), extended(y, place, size)) for s, y in self.pairs.pairs)
        return WholeCurvature(SecantPairs(self.pairs.capacity, pairs), extended(self.like, place, size))

    def direction(self, moving: Moving) -> tuple[Vector, bool]:
        """Return (H·p at the places of `moving`, where p is zero elsewhere; whether a pair has given it a length)."""
        p = 0.0 * self.like
        put(p, moving.index, moving.p)
        d, gamma = two_loop(p, self.pairs.pairs)
        return namespace(d).take(d, moving.index), bool(gamma)

    def after(self, old: Point, new: Point) -> WholeCurvature:
        """Return it with the pair of a step, unless the curvature along it is not positive."""
        return WholeCurvature(self.pairs.after(old.w, old.grad, new.w, new.grad), self.like)
