"""Line searches that may rise a little: f(x + t·d) ≤ C_k + ν·t·∇f(x)·d.

armijo        C_k = f(x_k): every step falls
gll           C_k = the largest of the last M values (Grippo, Lampariello & Lucidi 1986)
zhang-hager   C_k = a mean of all values, the newer the heavier (Zhang & Hager 2004):
              Q_{k+1} = η·Q_k + 1,  C_{k+1} = (η·Q_k·C_k + f(x_{k+1}))/Q_{k+1},  Q_0 = 1
dai-fletcher  C_k stays while the best value improves within L steps (Dai & Fletcher 2005), see dai_fletcher.py
huang         as zhang-hager, but C_{k+1} ≤ C_k + ν·t·∇f(x)·d is asked for (Huang, Wan & Chen 2015), see huang.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crfkit._checks import check_count
from crfkit.errors import ParameterError
from crfkit.solvers.parts.line_searches.dai_fletcher import DaiFletcher
from crfkit.solvers.parts.line_searches.huang import Huang
from crfkit.solvers.parts.line_searches.interpolation import cubic_minimiser, inside
from crfkit.solvers.parts.line_searches.references import Kept, Options, ReferenceRule
from crfkit.solvers.parts.line_searches.trial import Trial, check_range
from crfkit.solvers.parts.rounding import ROUNDING

MAX_TRIALS = 40


class Last:
    """armijo: only the last value counts."""

    def start(self, value: float) -> Kept:
        return [value]

    def after(self, kept: Kept, value: float, options: Options) -> Kept:
        return [value]

    def level(self, kept: Kept) -> float:
        return max(kept)

    def decrease(self, kept: Kept, options: Options) -> float:
        return options.nu

    def saved(self, kept: Kept) -> Any:
        return np.array(kept)

    def restored(self, saved: Any, options: Options) -> Kept | None:
        return None


class Largest(Last):
    """gll: the last M values."""

    def after(self, kept: Kept, value: float, options: Options) -> Kept:
        return [*kept, value][-options.memory :]

    def restored(self, saved: Any, options: Options) -> Kept | None:
        return saved[-options.memory :].tolist() if saved.ndim == 1 else None


class Mean(NamedTuple):
    C: float
    Q: float


class ZhangHager(Huang):
    """zhang-hager: a mean, and a fixed ν."""

    def start(self, value: float) -> Kept:
        return Mean(value, 1.0)

    def after(self, kept: Kept, value: float, options: Options) -> Kept:
        return Mean(*super().after(kept, value, options))

    def decrease(self, kept: Kept, options: Options) -> float:
        return options.nu

    def saved(self, kept: Kept) -> Any:
        return np.array([kept])

    def restored(self, saved: Any, options: Options) -> Kept | None:
        return Mean(*saved[0].tolist()) if saved.shape == (1, 2) else None


SEARCHES: Mapping[str, ReferenceRule] = {
    "armijo": Last(),
    "gll": Largest(),
    "zhang-hager": ZhangHager(),
    "dai-fletcher": DaiFletcher(),
    "huang": Huang(),
}


@dataclass(frozen=True)
class Reference:
    """The value that trials are compared with, and how it follows the iterates."""

    kind: str
    memory: int = 10  # M of gll, L of dai-fletcher
    eta: float = 0.7
    nu: float = 1e-4

    def __post_init__(self) -> None:
        if self.kind not in SEARCHES:
            raise ParameterError(f"search must be one of {', '.join(SEARCHES)}, not {self.kind!r}")
        check_count(memory=self.memory)
        if not 0 <= self.eta <= 1:
            raise ParameterError(f"eta must be between 0 and 1, not {self.eta!r}")
        check_range("nu", 0.0, self.nu, 1.0)

    @property
    def rule(self) -> ReferenceRule:
        return SEARCHES[self.kind]

    def start(self, value: float, saved: Mapping[str, Any]) -> Kept:
        """Return what to keep at the first point, or what the same kind of search saved there."""
        old = np.asarray(saved.get("reference", ()))
        kept = self.rule.restored(old, self) if old.size else None
        return self.rule.start(value) if kept is None else kept

    def after(self, kept: Kept, value: float) -> Kept:
        return self.rule.after(kept, value, self)

    def saved(self, kept: Kept) -> Any:
        """Return an array to save."""
        return self.rule.saved(kept)

    def search(self, kept: Kept, start: Trial, phi: Callable[[float], Trial]) -> Trial | None:
        """Return the first of t = 1, …, each at most half the one before, that is low enough; None: none is."""
        C = max(self.rule.level(kept), start.value)  # in exact arithmetic the level is not below
        nu = self.rule.decrease(kept, self)
        slack = ROUNDING * abs(start.value)
        t = 1.0
        for _ in range(MAX_TRIALS):
            trial = phi(t)
            if trial.finite and trial.value <= C + nu * t * start.slope + slack:
                return trial
            t = inside(cubic_minimiser(start, trial) if trial.finite else math.nan, 0.0, t, most=0.5)
        return None
