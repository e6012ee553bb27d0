"""Two-point step lengths: β with 1/β a curvature that the last step saw.

With s = x_k − x_{k−1}, y = g_k − g_{k−1} and φ = 4(f_{k−1} − f_k) + 2(g_k + g_{k−1})·s, ŷ = y + φ·s/s·s:

    bb1  s·s/s·y                  bb2  s·y/y·y                 Barzilai & Borwein (1988)
    bs1  s·s/s·ŷ                  bs2  s·ŷ/ŷ·ŷ                 Biglari & Solimanpur (2013)
    bs3  s·s/(ξ·s·y)              bs4  s·y/(ξ·y·y)             with ξ = 1 + φ/s·y; bs3 is bs1
    zhou          bb2 if bb2/bb1 < κ, else bb1                 Zhou, Gao & Dai (2006), κ = .5
    yu            bb1 if k is odd or cos(s, y) ≥ κ, else bb2   Yu et al. (2010), κ = .9
    agpm          bs1 if k is odd or cos(s, ŷ) ≥ κ, else bs2   Xue & Zhang (2016) in the form of the rule before, κ = .5
    agpm-printed  bs1 if k is odd or 1/cos(s, ŷ) ≥ κ, else bs2 as it is printed: always bs1, since κ < 1

Where φ is below the rounding of f, or s·ŷ ≤ 0, φ counts as zero and bs… is bb….
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from crfkit.arrays import secant_products
from crfkit.protocols import Vector

ROUNDING = 8 * 2.0**-52  # of f, four times in φ


@dataclass(frozen=True)
class Secant:
    """The last step, as step rules see it."""

    ss: float
    sy: float
    yy: float
    phi: float = 0.0  # 0 where it is nothing but rounding

    @classmethod
    def between(cls, x: Vector, f: float, g: Vector, x_new: Vector, f_new: float, g_new: Vector) -> Secant:
        ss, sy, yy, up, down = secant_products(x, g, x_new, g_new)
        phi = 4.0 * (f - f_new) + 2.0 * (up + down)
        known = abs(phi) > ROUNDING * max(abs(f), abs(f_new), abs(up), abs(down))
        return cls(ss, sy, yy, phi if known and sy + phi > 0 else 0.0)

    @property
    def curved(self) -> bool:
        """Return whether the step saw any curvature."""
        return self.sy > 0 and math.isfinite(self.ss / self.sy) and 0 < self.yy < math.inf

    @property
    def bb1(self) -> float:
        return self.ss / self.sy

    @property
    def bb2(self) -> float:
        return self.sy / self.yy

    @property
    def cosine(self) -> float:
        """Return the secant of s and y."""
        return self.sy / math.sqrt(self.ss * self.yy)

    @cached_property
    def conic(self) -> Secant:
        """The same with ŷ in place of y: s·ŷ = s·y + φ, ŷ·ŷ = y·y + 2φ·s·y/s·s + φ²/s·s."""
        sy, yy = self.sy + self.phi, self.yy + self.phi * (2.0 * self.sy + self.phi) / self.ss
        return Secant(self.ss, sy, max(yy, sy * sy / self.ss))

    @property
    def xi(self) -> float:
        return 1.0 + self.phi / self.sy


Rule = Callable[[Secant, int, float], float]  # the secant, the number k of the iteration, κ


def _zhou(at: Secant, k: int, kappa: float) -> float:
    return at.bb2 if at.bb2 < kappa * at.bb1 else at.bb1


def _yu(at: Secant, k: int, kappa: float) -> float:
    return at.bb1 if k % 2 == 1 or at.cosine >= kappa else at.bb2


def _agpm(at: Secant, k: int, kappa: float) -> float:
    return _yu(at.conic, k, kappa)


def _printed(at: Secant, k: int, kappa: float) -> float:
    return at.conic.bb1 if k % 2 == 1 or kappa * at.conic.cosine <= 1.0 else at.conic.bb2


STEP_RULES: Mapping[str, Rule] = {
    "bb1": lambda at, k, kappa: at.bb1,
    "bb2": lambda at, k, kappa: at.bb2,
    "bs1": lambda at, k, kappa: at.conic.bb1,
    "bs2": lambda at, k, kappa: at.conic.bb2,
    "bs3": lambda at, k, kappa: at.bb1 / at.xi,
    "bs4": lambda at, k, kappa: at.bb2 / at.xi,
    "zhou": _zhou,
    "yu": _yu,
    "agpm": _agpm,
    "agpm-printed": _printed,
}
KAPPA: Mapping[str, float] = {"zhou": 0.5, "yu": 0.9, "agpm": 0.5, "agpm-printed": 0.5}
