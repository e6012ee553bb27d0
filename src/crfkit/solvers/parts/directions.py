"""Directions d of line searches: vectors, or rows of fewer digits that take less memory and less time to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from crfkit.arrays import advance, combine, dot, row_dot
from crfkit.protocols import Vector


class Direction(Protocol):
    large: ClassVar[bool]  # whether vectors are so long that memory counts

    def ahead(self, w: Vector, step: float) -> Vector:
        """Return ``w + step·d`` as a new vector."""
        ...

    def slope(self, g: Vector) -> float:
        """Return ``d·g``"""
        ...


@dataclass(frozen=True)
class Plain:
    """d is a vector."""

    large: ClassVar[bool] = False

    d: Vector

    def ahead(self, w: Vector, step: float) -> Vector:
        return combine(w, step, self.d)

    def slope(self, g: Vector) -> float:
        return dot(g, self.d)


@dataclass(frozen=True)
class ScaledRow:
    """d = scale·row, where the row has the type of curvature pairs; a scale of None is 1."""

    large: ClassVar[bool] = True

    row: Any
    scale: Vector

    def ahead(self, w: Vector, step: float) -> Vector:
        return advance(w, step, self.row, self.scale)

    def slope(self, g: Vector) -> float:
        return row_dot(self.row, self.scale, g)
