"""The nonmonotone line search of Huang, Wan & Chen (2015): the mean of values itself has to fall.

    Q_{k+1} = η·Q_k + 1,   C_{k+1} = (η·Q_k·C_k + f(x_{k+1}))/Q_{k+1} ≤ C_k + δ·t·∇f(x_k)·d,   0 < δ ≤ δ_max/Q_{k+1} < 1

C and Q are those of Zhang & Hager (2004). Multiplied by Q_{k+1}, the condition is theirs with ν = δ·Q_{k+1}:
f(x_{k+1}) ≤ C_k + δ·Q_{k+1}·t·∇f(x_k)·d. Here δ is the option `nu`, or δ_max/Q_{k+1} where that is less.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit.solvers.parts.line_searches.references import Kept, Options

DELTA_MAX = 0.9


class FallingMean(NamedTuple):
    C: float
    Q: float


class Huang:
    def start(self, value: float) -> Kept:
        return FallingMean(value, 1.0)

    def after(self, kept: Kept, value: float, options: Options) -> Kept:
        C, Q = kept
        heavier = options.eta * Q + 1.0
        return FallingMean((options.eta * Q * C + value) / heavier, heavier)

    def level(self, kept: Kept) -> float:
        return kept[0]

    def decrease(self, kept: Kept, options: Options) -> float:
        return min(options.nu * (options.eta * kept[1] + 1.0), DELTA_MAX)

    def saved(self, kept: Kept) -> Any:
        return np.array(kept)[:, None]

    def restored(self, saved: Any, options: Options) -> Kept | None:
        return FallingMean(*saved[:, 0].tolist()) if saved.shape == (2, 1) else None
