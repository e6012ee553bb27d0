"""The adaptive nonmonotone reference of Dai & Fletcher (2005), after Toint (1996) and Dai & Zhang (2001).

    first step   C = f(x_0)
    then         C = ∞: every step is taken
    a new best value         best = candidate = f(x_k), count = 0
    any other                candidate = max(candidate, f(x_k)), count + 1; when count is L:
                             C = candidate, candidate = f(x_k), count = 0

C falls to the largest value since the best one when L steps in a row have not improved on the best: a run of
Barzilai–Borwein steps that makes progress is never cut. Dai & Fletcher minimise quadratic functions and take the exact
minimiser along d where a step is refused; here it is that of the interpolation that all nonmonotone searches share.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from crfkit.solvers.parts.line_searches.references import Kept, Options

NO_LIMIT = sys.float_info.max  # finite, so that it can be saved


class Adaptive(NamedTuple):
    level: float  # C
    best: float
    candidate: float
    waited: float  # steps since the best value or since C was set; −1 before the first step


class DaiFletcher:
    """L is the option `memory`."""

    def start(self, value: float) -> Kept:
        return Adaptive(value, value, value, -1.0)

    def after(self, kept: Kept, value: float, options: Options) -> Kept:
        level, best, candidate, count = kept
        if count < 0:
            level, count = NO_LIMIT, 0.0
        if value < best:
            return Adaptive(level, value, value, 0.0)
        candidate, count = max(candidate, value), count + 1
        if count >= options.memory:
            return Adaptive(candidate, best, value, 0.0)
        return Adaptive(level, best, candidate, count)

    def level(self, kept: Kept) -> float:
        return kept[0]

    def decrease(self, kept: Kept, options: Options) -> float:
        return options.nu

    def saved(self, kept: Kept) -> Any:
        return np.array([kept])

    def restored(self, saved: Any, options: Options) -> Kept | None:
        return Adaptive(*saved[0].tolist()) if saved.shape == (1, 4) else None
