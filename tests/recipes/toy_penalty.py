"""A smooth penalty that grows like w² near zero and like |w| far from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_strength
from crfkit.parameters import Parameters
from crfkit.protocols import Kind, SmoothPenalty, Vector


@dataclass(frozen=True)
class ToyPenalty(Parameters, SmoothPenalty):
    """``strength · Σ (√(1 + w²) − 1)``"""

    strength: float = 1.0

    kinds: ClassVar[frozenset[Kind]] = frozenset()  # no solver treats it specially

    def __post_init__(self) -> None:
        check_strength("ToyPenalty", self.strength)

    @property
    def name(self) -> str:
        return f"ToyPenalty({self.strength:g})"

    def at(self, strength: float) -> ToyPenalty:
        """Return the same kind of penalty with another strength."""
        return ToyPenalty(strength)

    def value(self, w: Vector) -> float:
        xp = array_namespace(w)
        return self.strength * float(xp.sum(xp.sqrt(1.0 + w * w) - 1.0))

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        gradient += self.strength * w / array_namespace(w).sqrt(1.0 + w * w)

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        product += self.strength * v * (1.0 + w * w) ** -1.5

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        self.add_hessp(w, array_namespace(w).ones_like(w), diagonal)

    def lipschitz(self) -> float:
        """Return how fast its gradient changes at most."""
        return self.strength
