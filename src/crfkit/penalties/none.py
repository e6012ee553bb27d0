from __future__ import annotations

from dataclasses import dataclass

from crfkit.parameters import Parameters
from crfkit.protocols import NonsmoothPenalty, Penalty, SmoothPenalty, Vector


@dataclass(frozen=True)
class NoPenalty(Parameters, Penalty):
    """Zero. The maximum-likelihood estimate may then lie at infinity."""

    @property
    def name(self) -> str:
        return "no penalty"

    def value(self, w: Vector) -> float:
        return 0.0

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        return None, None
