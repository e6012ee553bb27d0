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
from typing import Any

import numpy as np

from crfkit.errors import ParameterError
from crfkit.solvers.line_search import ROUNDING, Trial, check_range
from crfkit.solvers.line_searches.interpolation import cubic_minimiser, inside

SEARCHES = ("armijo", "gll", "zhang-hager")
MAX_TRIALS = 40


@dataclass(frozen=True)
class Reference:
    """What values are compared with, and how it follows them."""

    kind: str
    memory: int = 10  # M
    eta: float = 0.7
    nu: float = 1e-4

    def __post_init__(self) -> None:
        if self.kind not in SEARCHES:
            raise ParameterError(f"search must be one of {', '.join(SEARCHES)}, not {self.kind!r}")
        if isinstance(self.memory, bool) or not isinstance(self.memory, int) or self.memory < 1:
            raise ParameterError(f"memory must be an integer >= 1, not {self.memory!r}")
        if not 0 <= self.eta <= 1:
            raise ParameterError(f"eta must be between 0 and 1, not {self.eta!r}")
        check_range("nu", 0.0, self.nu, 1.0)

    def start(self, value: float, saved: Mapping[str, Any]) -> Sequence[float]:
        """What is kept at the first point: the last values, or (C, Q)."""
        if "reference" in saved:
            return [float(number) for number in saved["reference"]]
        return [value, 1.0] if self.kind == "zhang-hager" else [value]

    def after(self, kept: Sequence[float], value: float) -> Sequence[float]:
        if self.kind == "armijo":
            return [value]
        if self.kind == "gll":
            return [*kept, value][-self.memory :]
        C, Q = kept
        heavier = self.eta * Q + 1.0
        return [(self.eta * Q * C + value) / heavier, heavier]

    def search(self, kept: Sequence[float], start: Trial, phi: Callable[[float], Trial]) -> Trial | None:
        """The first of t = 1, …, each at most half the one before, that is low enough; None: none is."""
        C = kept[0] if self.kind == "zhang-hager" else max(kept)
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
    return np.array(kept)
