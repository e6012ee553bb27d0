from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_strength
from crfkit.arrays import sum_absolute
from crfkit.errors import ParameterError
from crfkit.parameters import Parameters
from crfkit.protocols import BlockNorm, EpigraphPenalty, Kind, Place, Selection, Vector


@dataclass(frozen=True)
class L1(Parameters, EpigraphPenalty):
    """``strength · ‖w‖₁``: most weights become exactly zero.

    >>> L1.from_crfpp(C=2.0)
    L1(strength=0.5)
    """

    strength: float = 1.0

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.L1, Kind.PROX, Kind.EPIGRAPH})

    def __post_init__(self) -> None:
        check_strength("L1", self.strength)

    @classmethod
    def from_crfpp(cls, C: float) -> L1:
        """CRF++'s ``‖w‖₁/C`` (its CRF-L1)."""
        if not C > 0:
            raise ParameterError(f"C must be > 0, not {C!r}")
        return cls(1.0 / C)

    @classmethod
    def from_crfsuite(cls, c1: float) -> L1:
        """CRFsuite's ``c1·‖w‖₁``."""
        return cls(c1)

    @classmethod
    def from_wapiti(cls, rho1: float) -> L1:
        """Wapiti's ``rho1·‖w‖₁``."""
        return cls(rho1)

    @property
    def name(self) -> str:
        return f"L1({self.strength:g})"

    def value(self, w: Vector) -> float:
        return self.strength * sum_absolute(w)

    def at(self, strength: float) -> L1:
        """The same kind of penalty with another strength."""
        return L1(strength)

    @property
    def selection(self) -> Selection:
        """A block stays at zero where no partial derivative exceeds the strength."""
        return Selection(BlockNorm.MAX, self.strength)

    def restricted(self, places: Place) -> L1:
        return self

    def min_norm_subgradient(self, w: Vector, gradient: Vector) -> Vector:
        """``g + s·sgn(w)`` where w ≠ 0; where w = 0, what of g exceeds the strength."""
        xp = array_namespace(w)
        excess = xp.sign(gradient) * xp.maximum(xp.abs(gradient) - self.strength, xp.zeros_like(gradient))
        return xp.where(w != 0, gradient + self.strength * xp.sign(w), excess)

    def prox(self, w: Vector, step: float) -> Vector:
        """Soft thresholding: ``sgn(w)·max(|w| − step·strength, 0)``."""
        xp = array_namespace(w)
        return xp.sign(w) * xp.maximum(xp.abs(w) - step * self.strength, xp.zeros_like(w))

    def critical_strength(self, gradient: Vector) -> float:
        """The least strength at which w = 0 is optimal, from the gradient there."""
        return self.dual_norm(gradient)

    def dual_norm(self, gradient: Vector) -> float:
        """``max_k |g_k|``"""
        xp = array_namespace(gradient)
        return float(xp.max(xp.abs(gradient))) if gradient.shape[0] else 0.0

    def epigraph_size(self, n_weights: int) -> int:
        """How many α there are for so many weights."""
        return n_weights

    def epigraph_start(self, w: Vector) -> tuple[Vector, Vector]:
        """(α, the sizes of the weights; the cost of each α): every weight is a group of its own."""
        alpha = array_namespace(w).abs(w)
        return alpha, 0.0 * alpha + self.strength

    def project_epigraph(self, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """The nearest (w, α) with |w_k| ≤ α_k: the middle of both sizes where |w| > |α|, 0 where α ≤ −|w|."""
        xp = array_namespace(w)
        size = xp.abs(w)
        middle = 0.5 * (size + alpha)
        radius = xp.where(size <= alpha, alpha, xp.maximum(middle, xp.zeros_like(middle)))
        return xp.sign(w) * xp.minimum(size, radius), radius
