"""Chains that are updated sequence by sequence, in the compiled core; what online solvers ask of a loss.

Notation: f(y) counts the features of labelling y, y* is the best labelling under the current weights, Δ = f(y) − f(y*)
for a sequence's labels y, N is the number of sequences. Every epoch goes through the sequences `order`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._types import Floats
from crfkit.arrays import empty
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.errors import DataError, ParameterError

_SAVED = (
    "theta", "sums", "reached", "covariances", "multipliers", "scale", "scale_sum", "penalty", "steps"
)  # fmt: skip


class OnlineChain:
    """Weights that change with every sequence. `start` sets them; a sequence's weight multiplies its updates."""

    def __init__(
        self,
        data: SequenceData,
        field: ChainField,
        kernels: str = "auto",
        cost: Floats | None = None,
        hinge: bool = False,
    ) -> None:
        self.size = field.size
        self.n_sequences = len(data)
        try:
            self._native = _core.Online(
                data.native, field.native, kernels, None if cost is None else cost.ravel(), hinge
            )
        except ParameterError:  # CRFKIT_KERNELS
            raise
        except ValueError as error:
            raise DataError(str(error)) from None

    def start(self, w: Floats, variances: Floats | None = None) -> None:
        """Sets the weights; forgets averages, cumulative penalties and multipliers. `variances` are AROW's."""
        self._native.start(np.ascontiguousarray(w, dtype=np.float64), variances)

    def weights(self) -> Floats:
        w = empty(self.size)
        self._native.weights(w)
        return w

    def square(self) -> float:
        """Return ``‖w‖²``."""
        return self._native.square()

    def average(self) -> Floats:
        """The mean of the weights after each sequence since `start`."""
        w = np.empty(self.size)
        self._native.average(w)
        return w

    @property
    def mistakes(self) -> tuple[int, int]:
        """(sequences, positions) that the last epoch labelled wrongly before its updates; `sgd` counts none."""
        return self._native.mistakes

    @property
    def mistake_share(self) -> float:
        """The share of wrong positions of each sequence of the last epoch, times its weight, summed."""
        return self._native.mistake_share

    def measure(self) -> tuple[int, int]:
        """(sequences, positions) that the current weights label wrongly."""
        self._native.measure(np.arange(self.n_sequences))
        return self._native.mistakes

    def save(self) -> Mapping[str, Any]:
        """All that later epochs depend on, and the weights."""
        w = np.empty(self.size)
        self._native.weights(w)
        by_weight = {"w": w}
        variances = self.variances()
        if variances is not None:
            by_weight["variances_by_weight"] = variances
        return {**by_weight, **dict(zip(_SAVED, self._native.save(), strict=True))}

    def variances(self) -> Floats | None:
        """AROW's variance of each weight; None before its first epoch."""
        variances = np.empty(self.size)
        return variances if self._native.variances(variances) else None

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Goes on from what `save` returned for the same data and field."""
        try:
            self._native.restore(*(saved[name] for name in _SAVED))
        except ValueError as error:
            raise ParameterError(str(error)) from None

    def sgd(
        self,
        order: ArrayLike,
        steps: ArrayLike,
        l2: float = 0.0,
        l1: float = 0.0,
        averaged: bool = True,
        shrink_first: bool = False,
    ) -> float:
        """``w ← (1 − η·l2/N)·w − η·∇ℓ_n(w)`` with η = steps[k]; L1 by the cumulative penalty of Tsuruoka et al. (2009).

        Returns the sum of the losses, each before its update. Without `averaged` there is no `average`, and an epoch
        takes less time. With `shrink_first`, loss and gradient are those at the shrunk weights, as in CRFsuite.
        """
        sizes = np.ascontiguousarray(steps, dtype=np.float64)
        try:
            return self._native.sgd(_ids(order), sizes, l2, l1, averaged, shrink_first)
        except ValueError as error:
            raise ParameterError(str(error)) from None

    def perceptron(self, order: ArrayLike) -> tuple[int, int]:
        """``w += Δ``; returns how many sequences and positions were wrong."""
        self._native.perceptron(_ids(order))
        return self._native.mistakes

    def passive_aggressive(self, order: ArrayLike, kind: int, c: float, count_errors: bool = True) -> float:
        """``w += τ·Δ`` (Crammer et al. 2006): kind 0, 1, 2 is PA, PA-I, PA-II.

        The loss is ``score(y*) − score(y) + √(wrong positions)`` where y* ≠ y, with 1 in place of the root unless
        `count_errors`; returns the sum.
        """
        return self._native.passive_aggressive(_ids(order), kind, c, count_errors)

    def arow(self, order: ArrayLike, variance: float, gamma: float) -> float:
        """Adaptive regularisation of weights (Crammer et al. 2009), diagonal covariances; returns the summed loss."""
        return self._native.arow(_ids(order), variance, gamma)

    def mira(self, order: ArrayLike, c: float, shortened: bool = False) -> float:
        """``w += μ·Δ``, the smallest change that separates y from y* by the number of wrong positions; the sum of a
        sequence's multipliers μ is at most c. Returns the summed loss.

        With `shortened`, μ falls with the score that y* has more than y, as in CRF++, instead of rising with it."""
        return self._native.mira(_ids(order), c, shortened)


class SingleEpochs:
    """Plain stochastic gradients in single precision: what a start for another method needs, and faster."""

    def __init__(
        self, data: SequenceData, field: ChainField, kernels: str = "auto", cost: Floats | None = None
    ) -> None:
        self.size = field.size
        self.n_sequences = len(data)
        self._native = _core.SingleOnline(data.native, field.native, kernels, None if cost is None else cost.ravel())

    def start(self, w: Floats) -> None:
        """Sets the weights."""
        self._native.start(np.ascontiguousarray(w, dtype=np.float64))

    def weights(self) -> Floats:
        w = empty(self.size)
        self._native.weights(w)
        return w

    def square(self) -> float:
        """Return ``‖w‖²``."""
        return self._native.square()

    def sgd(
        self, order: ArrayLike, steps: ArrayLike, l2: float = 0.0, l1: float = 0.0, averaged: bool = False
    ) -> float:
        """As `OnlineChain.sgd`, without L1 and averages."""
        if l1 or averaged:
            raise ParameterError("stochastic gradients in single precision have neither an L1 penalty nor an average")
        try:
            return self._native.sgd(_ids(order), np.ascontiguousarray(steps, dtype=np.float64), l2)
        except ValueError as error:
            raise ParameterError(str(error)) from None


def _ids(order: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.ascontiguousarray(order, dtype=np.int64)
