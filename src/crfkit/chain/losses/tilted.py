"""Expected feature counts of chains under tilted distributions, for iterative scaling by the total of each labelling.

With F#(x, y) = Σ_k f_k(x, y), the total of a labelling, scaling by each labelling's own total needs, for numbers δ,

    G_k(δ) = Σ_n weight_n · E[f_k·exp(δ·F#) | x_n]

Adding δ to every weight multiplies the probability of a labelling by exp(δ·F#) and some constant. Hence

    G_k(δ) = Σ_n weight_n · Z_n(w + δ)/Z_n(w) · E_{w+δ}[f_k | x_n]

which are the expected counts at w + δ of sequences with other weights. log G_k is convex in δ, and its slope is a
mean of totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Floats
from crfkit.chain.inference import ChainInference
from crfkit.chain.losses.expectations import ROUNDING, check_values, observed_counts

if TYPE_CHECKING:
    from crfkit.chain.losses.likelihood import ChainLoss


class TiltedExpectations:
    """Observed counts of a likelihood and the expected ones; sequences of weight 0 have no part in them."""

    def __init__(self, loss: ChainLoss) -> None:
        weights = loss.data.weights
        ids = np.arange(len(loss.data)) if weights is None else np.flatnonzero(weights)
        self._loss = loss.subset(ids)
        check_values(self._loss.data, ids)
        bounds = self._inference(np.ones(loss.size)).decode(self._loss.data)[1]
        self.largest = float(bounds.max(initial=0.0))  # total of any labelling of any sequence

    @cached_property
    def observed(self) -> Floats:
        """Feature counts of the labels, with the weights of the sequences."""
        return observed_counts(self._loss.data, self._loss.field)

    def at(self, w: Floats) -> TiltedCounts:
        """Return the loss at w with its expected counts."""
        here = self._loss.at(w)
        return TiltedCounts(self, w, here.value, here.grad)

    def log_partition(self, w: Floats) -> Floats:
        return self._inference(w).log_partition(self._loss.data)

    def log_counts(self, w: Floats, log_weights: Floats) -> Floats:
        """Return the logarithms of expected counts at w, with sequences weighted by exp(log_weights) besides."""
        data, loss = self._loss.data, self._loss
        top = log_weights.max(initial=-np.inf)
        weights = np.exp(log_weights - top) if len(log_weights) else log_weights
        weighted = data.with_weights(weights if data.weights is None else weights * data.weights)
        part = type(loss)(weighted, loss.field, loss.n_threads, loss.kernels)
        with np.errstate(divide="ignore"):
            found: Floats = top + np.log(counts(part.at(w).grad, observed_counts(weighted, loss.field)))
        return found

    def _inference(self, w: Floats) -> ChainInference:
        return ChainInference(self._loss.field, w, self._loss.n_threads, self._loss.kernels)


@dataclass(frozen=True, eq=False)
class TiltedCounts:
    """The loss at w, and log G_k."""

    source: TiltedExpectations
    w: Floats
    value: float
    grad: Floats  # [n]

    @cached_property
    def _log_partition(self) -> Floats:
        return self.source.log_partition(self.w)

    def log_counts(self, delta: float) -> Floats:
        """Return log G_k(δ) of every weight; −∞ for features that no labelling has."""
        if delta == 0.0:
            with np.errstate(divide="ignore"):
                return np.log(counts(self.grad, self.source.observed))
        there = self.w + delta
        return self.source.log_counts(there, self.source.log_partition(there) - self._log_partition)


def counts(grad: Floats, observed: Floats) -> Floats:
    """Return expected counts from the gradient, which is expected − observed.

    Where almost nothing is expected the sum is lost in rounding; it is not negative, and not zero for what has been
    observed.
    """
    return np.maximum(grad + observed, ROUNDING * observed)
