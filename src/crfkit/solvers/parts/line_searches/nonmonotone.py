"""Line searches that may rise a little: f(x + t·d) ≤ C_k + ν·t·∇f(x)·d.

armijo       C_k = f(x_k): every step falls
gll          C_k = the largest of the last M values (Grippo, Lampariello & Lucidi 1986)
zhang-hager  C_k = a mean of all values, the newer the heavier (Zhang & Hager 2004):
             Q_{k+1} = η·Q_k + 1,  C_{k+1} = (η·Q_k·C_k + f(x_{k+1}))/Q_{k+1},  Q_0 = 1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crfkit._checks import check_count
from crfkit.errors import ParameterError
from crfkit.solvers.parts.line_searches.interpolation import cubic_minimiser, inside
from crfkit.solvers.parts.line_searches.trial import Trial, check_range
from crfkit.solvers.parts.rounding import ROUNDING

SEARCHES = ("armijo", "gll", "zhang-hager")
MAX_TRIALS = 40


class Mean(NamedTuple):
    """The memory of zhang-hager; the others keep a list of values."""

    C: float
    Q: float


@dataclass(frozen=True)
class Reference:
    """The value that trials are compared with, and how it follows the iterates."""

    kind: str
    memory: int = 10  # M
    eta: float = 0.7
    nu: float = 1e-4

    def __post_init__(self) -> None:
        if self.kind not in SEARCHES:
            raise ParameterError(f"search must be one of {', '.join(SEARCHES)}, not {self.kind!r}")
        check_count(memory=self.memory)
        if not 0 <= self.eta <= 1:
            raise ParameterError(f"eta must be between 0 and 1, not {self.eta!r}")
        check_range("nu", 0.0, self.nu, 1.0)

    def start(self, value: float, saved: Mapping[str, Any]) -> Sequence[float]:
        """Return what to keep at the first point, or what the same kind of search saved there."""
        old = np.asarray(saved.get("reference", ()))
        if self.kind == "zhang-hager":
            return Mean(*old[0].tolist()) if old.ndim == 2 else Mean(value, 1.0)
        return old[-self.memory :].tolist() if self.kind == "gll" and old.ndim == 1 and len(old) else [value]

    def after(self, kept: Sequence[float], value: float) -> Sequence[float]:
        if self.kind == "armijo":
            return [value]
        if self.kind == "gll":
            return [*kept, value][-self.memory :]
        C, Q = kept
        heavier = self.eta * Q + 1.0
        return Mean((self.eta * Q * C + value) / heavier, heavier)

    def search(self, kept: Sequence[float], start: Trial, phi: Callable[[float], Trial]) -> Trial | None:
        """Return the first of t = 1, …, each at most half the one before, that is low enough; None: none is."""
        C = kept.C if isinstance(kept, Mean) else max(kept)
        C = max(C, start.value)  # in exact arithmetic it is
        slack = ROUNDING * abs(start.value)
        t = 1.0
        for _ in range(MAX_TRIALS):
            trial = phi(t)
            if trial.finite and trial.value <= C + self.nu * t * start.slope + slack:
                return trial
            t = inside(cubic_minimiser(start, trial) if trial.finite else math.nan, 0.0, t, most=0.5)
        return None


def saved_reference(kept: Sequence[float]) -> Any:
    """Return an array to save: the values, or [1, 2] for zhang-hager."""
    return np.array([kept]) if isinstance(kept, Mean) else np.array(kept)
