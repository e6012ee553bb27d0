"""A step of iterative scaling by the total of each labelling, from the counts G_k(δ) = E[f_k·exp(δ·F#)].

J(w + δ) − J(w) is at most  Σ_k [ ∫₀^{δ_k} G_k(t) dt − δ_k·observed_k + s·(w_k·δ_k + δ_k²/2) ].  All weights share the
places where G is known, 0 and ±unit·1.5^i; between them it is bounded. As log G_k is convex, a line through two of its
points lies above it between them, and below it outside:

    δ > 0   an upper bound of G_k is needed: the line through both ends of the interval
    δ < 0   a lower bound (the integral runs backwards): the line through the two places right of the interval

A step goes from 0 as far as the bound falls: until  G_k(δ_k) + s·(w_k + δ_k) = observed_k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HALVINGS = 50  # of an interval: to the rounding of its ends
GROWTH = 1.5  # from one place to the next: the bounds are the better, the closer places are


@dataclass
class TiltedStep:
    """The step from a point; `places` counts where G was computed besides 0.

    Parameters
    ----------
    log_counts : returns log G_k(δ) of every weight.
    observed, w : counts of the labels and weights.
    s : strength of the L2 penalty.
    unit : the first place; the sizes of totals are about its reciprocal.
    limit : maximum change of a weight.
    """

    log_counts: Callable[[float], Floats]
    observed: Floats
    w: Floats
    s: float
    unit: float
    limit: float
    places: int = field(default=0, init=False)

    def solve(self) -> Floats:
        """Return the change of every weight."""
        here = self.log_counts(0.0)
        slope = self._residual(here, 0.0)
        delta = np.zeros(len(self.w))
        expected = np.isfinite(here)
        if self.s > 0:
            delta[~expected] = np.clip(-self.w[~expected], -self.limit, self.limit)
        upward, downward = expected & (slope < 0), expected & (slope > 0)
        if self.s == 0:
            never = downward & (self.observed == 0)
            delta[never], downward = -self.limit, downward & ~never
        if (upward | downward).any():
            first = min(self.unit, self.limit)
            beyond = self._at(first)
            self._up(delta, np.flatnonzero(upward), here, beyond, first)
            with np.errstate(invalid="ignore"):  # −∞ − (−∞) of features that no labelling has
                rise = (beyond - here) / first
            self._down(delta, np.flatnonzero(downward), here, rise, first)
        return delta

    def _at(self, place: float) -> Floats:
        self.places += 1
        return self.log_counts(place)

    def _residual(
        self, log_count: Floats, delta: Floats | float, ids: NDArray[np.intp] | slice = slice(None)
    ) -> Floats:
        """Return G + s·(w + δ) − observed: the slope of the bound at δ."""
        with np.errstate(over="ignore"):
            found: Floats = np.exp(log_count) + self.s * (self.w[ids] + delta) - self.observed[ids]
        return found

    def _up(self, delta: Floats, ids: NDArray[np.intp], left: Floats, right: Floats, b: float) -> None:
        a = 0.0
        while len(ids):
            ends = self._residual(right[ids], b, ids) >= 0
            inside = ids[ends]
            delta[inside] = self._root(inside, a, b, left[inside], (right[inside] - left[inside]) / (b - a))
            ids = ids[~ends]
            if b >= self.limit:
                delta[ids] = self.limit
                return
            if len(ids):
                a, b, left = b, min(GROWTH * b, self.limit), right
                right = self._at(b)

    def _down(self, delta: Floats, ids: NDArray[np.intp], right: Floats, rise: Floats, b: float) -> None:
        a = 0.0  # the interval is −b … −a
        while len(ids):
            with np.errstate(invalid="ignore"):
                line = np.maximum(rise, 0.0)  # rounding aside it is a mean of totals
            ends = self._residual(right[ids] - line[ids] * (b - a), -b, ids) <= 0
            inside = ids[ends]
            delta[inside] = self._root(inside, -b, -a, right[inside] - line[inside] * (b - a), line[inside])
            ids = ids[~ends]
            if b >= self.limit:
                delta[ids] = -self.limit
                return
            if len(ids):
                left = self._at(-b)
                with np.errstate(invalid="ignore"):
                    rise, right = (right - left) / (b - a), left
                a, b = b, min(GROWTH * b, self.limit)

    def _root(self, ids: NDArray[np.intp], low: float, high: float, at_low: Floats, slope: Floats) -> Floats:
        """Return where the slope of the bound is zero between low and high, by halving; log G is a line there."""
        below, above = np.full(len(ids), low), np.full(len(ids), high)
        for _ in range(HALVINGS):
            middle = 0.5 * (below + above)
            falls = self._residual(at_low + slope * (middle - low), middle, ids) < 0
            below, above = np.where(falls, middle, below), np.where(falls, above, middle)
        root: Floats = 0.5 * (below + above)
        return root
