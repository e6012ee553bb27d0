"""The adaptive nonmonotone reference of Dai & Fletcher (2005), after Toint (1996) and Dai & Zhang (2001).

    at first                 C = best = candidate = f(x_0)
    a new best value         best = candidate = f(x_k), waited = 0
    any other                candidate = max(candidate, f(x_k)), waited + 1; when that is L:
                             C = candidate, candidate = f(x_k), waited = 0

C falls to the largest value since the best one when L steps in a row have not improved on the best: a run of
Barzilai–Borwein steps that makes progress is not cut. Dai & Fletcher minimise quadratic functions. Two things differ
here. They begin with C = ∞; a likelihood is nearly straight far from its minimum, where a step that nothing limits
finds no curvature to go back by. And they take the exact minimiser along d where a step is refused; here it is that of
the interpolation that all nonmonotone searches share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crfkit.solvers.parts.line_searches.references import Kept, Options


class Adaptive(NamedTuple):
    level: float  # C
    best: float
    candidate: float
    waited: float  # steps since the best value or since C was set


class DaiFletcher:
    """L is the option `memory`."""

    def start(self, value: float) -> Kept:
        return Adaptive(value, value, value, 0.0)

    def after(self, kept: Kept, value: float, options: Options) -> Kept:
        level, best, candidate, waited = kept
        if value < best:
            return Adaptive(level, value, value, 0.0)
        candidate, waited = max(candidate, value), waited + 1
        if waited >= options.memory:
            return Adaptive(candidate, best, value, 0.0)
        return Adaptive(level, best, candidate, waited)

    def level(self, kept: Kept) -> float:
        return kept[0]

    def decrease(self, kept: Kept, options: Options) -> float:
        return options.nu

    def saved(self, kept: Kept) -> Any:
        return np.array([kept])

    def restored(self, saved: Any, options: Options) -> Kept | None:
        return Adaptive(*saved[0].tolist()) if saved.shape == (1, 4) else None
