from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crfkit._checks import check_strength
from crfkit.arrays import add_and_measure, add_scaled, dot
from crfkit.errors import ParameterError, option_error
from crfkit.parameters import Parameters
from crfkit.protocols import Kind, SmoothPenalty, Vector


@dataclass(frozen=True)
class L2(Parameters, SmoothPenalty):
    """``strength/2 · ‖w‖²``.

    Other tools write the same penalty differently; each has its own constructor:

    >>> L2.from_crfpp(C=2.0)
    L2(strength=0.5)
    >>> L2.from_crfsuite(c2=1.0)
    L2(strength=2.0)
    """

    strength: float = 1.0

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.L2})

    def __post_init__(self) -> None:
        check_strength("L2", self.strength)

    @classmethod
    def from_crfpp(cls, C: float) -> L2:
        """CRF++'s ``‖w‖²/(2C)``."""
        if not C > 0:
            raise ParameterError(f"C must be > 0, not {C!r}")
        return cls(1.0 / C)

    @classmethod
    def from_crfsuite(cls, c2: float) -> L2:
        """CRFsuite's ``c2·‖w‖²``."""
        if not c2 >= 0:
            raise option_error("c2", f" must be >= 0, not {c2!r}")
        return cls(2.0 * c2)

    @classmethod
    def from_wapiti(cls, rho2: float) -> L2:
        """Wapiti's ``rho2/2·‖w‖²``."""
        return cls(rho2)

    @classmethod
    def from_sigma(cls, sigma: float) -> L2:
        """A Gaussian prior of standard deviation sigma: ``‖w‖²/(2σ²)``."""
        if not sigma > 0:
            raise ParameterError(f"sigma must be > 0, not {sigma!r}")
        return cls(1.0 / sigma**2)

    @property
    def name(self) -> str:
        return f"L2({self.strength:g})"

    def at(self, strength: float) -> L2:
        """The same kind of penalty with another strength."""
        return L2(strength)

    def value(self, w: Vector) -> float:
        return 0.5 * self.strength * dot(w, w)

    def add(self, w: Vector, gradient: Vector) -> tuple[float, float]:
        square, of_gradient = add_and_measure(gradient, self.strength, w)
        return 0.5 * self.strength * square, of_gradient

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        add_scaled(gradient, self.strength, w)

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        add_scaled(product, self.strength, v)

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        diagonal += self.strength

    def lipschitz(self) -> float:
        """Return how fast its gradient changes."""
        return self.strength
