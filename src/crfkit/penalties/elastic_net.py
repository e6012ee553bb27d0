from __future__ import annotations

from dataclasses import dataclass

from crfkit.errors import ParameterError
from crfkit.parameters import Parameters
from crfkit.penalties.l1 import L1
from crfkit.penalties.l2 import L2
from crfkit.protocols import NonsmoothPenalty, Penalty, SmoothPenalty, Vector


@dataclass(frozen=True)
class ElasticNet(Parameters, Penalty):
    """``l1·‖w‖₁ + l2/2·‖w‖²``

    >>> ElasticNet.from_crfsuite(c1=0.1, c2=0.5)
    ElasticNet(l1=0.1, l2=1.0)
    """

    l1: float = 1.0
    l2: float = 1.0

    def __post_init__(self) -> None:
        self.split()  # checks the strengths

    @classmethod
    def from_crfsuite(cls, c1: float, c2: float) -> ElasticNet:
        """CRFsuite's ``c1·‖w‖₁ + c2·‖w‖²``."""
        return cls(L1.from_crfsuite(c1).strength, L2.from_crfsuite(c2).strength)

    @classmethod
    def from_wapiti(cls, rho1: float, rho2: float) -> ElasticNet:
        """Wapiti's ``rho1·‖w‖₁ + rho2/2·‖w‖²``."""
        return cls(rho1, rho2)

    @property
    def name(self) -> str:
        return f"ElasticNet({self.l1:g}, {self.l2:g})"

    def value(self, w: Vector) -> float:
        return L1(self.l1).value(w) + L2(self.l2).value(w)

    def split(self) -> tuple[SmoothPenalty | None, NonsmoothPenalty | None]:
        return L2(self.l2), L1(self.l1)

    @property
    def strength(self) -> float:
        """That of the L1 part; `at` keeps the proportion of the two."""
        return self.l1

    def at(self, strength: float) -> ElasticNet:
        """The same proportion of L1 and L2 with another strength of the L1 part."""
        if self.l1 == 0:
            raise ParameterError("an elastic net without an L1 part cannot be scaled by it")
        return ElasticNet(strength, self.l2 * strength / self.l1)

    def critical_strength(self, gradient: Vector) -> float:
        """The least strength at which w = 0 is optimal, from the gradient there."""
        return L1(self.l1).critical_strength(gradient)
