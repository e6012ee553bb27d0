from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from array_api_compat import array_namespace

from crfkit._checks import check_strength
from crfkit.errors import ParameterError
from crfkit.parameters import Parameters
from crfkit.protocols import Kind, SmoothPenalty, Vector


@dataclass(frozen=True)
class HuberL1(Parameters, SmoothPenalty):
    """The L1 penalty with its corner rounded off: ``strength · Σ h(w_j)``, smooth, so every solver takes it.

    ``h(x) = x²/(2·mu)`` where |x| ≤ mu, otherwise ``|x| − mu/2``; hence ``|x| − mu/2 ≤ h(x) ≤ |x|`` (Nesterov 2005).
    Its optimum has small weights instead of zeros.

    >>> HuberL1(2.0, mu=0.1).name
    'HuberL1(2, mu=0.1)'
    """

    strength: float = 1.0
    mu: float = 0.01

    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.HUBER})

    def __post_init__(self) -> None:
        check_strength("HuberL1", self.strength)
        if not (math.isfinite(self.mu) and self.mu > 0):
            raise ParameterError(f"mu must be a finite number > 0, not {self.mu!r}")

    @property
    def name(self) -> str:
        return f"HuberL1({self.strength:g}, mu={self.mu:g})"

    def at(self, strength: float) -> HuberL1:
        """The same kind of penalty with another strength."""
        return HuberL1(strength, self.mu)

    def value(self, w: Vector) -> float:
        xp = array_namespace(w)
        size = xp.abs(w)
        inner = xp.clip(size, 0.0, self.mu)  # h = inner²/(2·mu) + (size − inner)
        return self.strength * float(xp.sum(inner * inner / (2.0 * self.mu) + (size - inner)))

    def add_gradient(self, w: Vector, gradient: Vector) -> None:
        xp = array_namespace(w)
        gradient += self.strength * xp.clip(w / self.mu, -1.0, 1.0)

    def add_hessp(self, w: Vector, v: Vector, product: Vector) -> None:
        """A generalised Hessian: where |w_j| = mu the gradient has a kink."""
        xp = array_namespace(w)
        product += xp.where(xp.abs(w) <= self.mu, (self.strength / self.mu) * v, xp.zeros_like(v))

    def add_hess_diag(self, w: Vector, diagonal: Vector) -> None:
        xp = array_namespace(w)
        self.add_hessp(w, xp.ones_like(w), diagonal)

    def lipschitz(self) -> float:
        """Return how fast its gradient changes at most."""
        return self.strength / self.mu
