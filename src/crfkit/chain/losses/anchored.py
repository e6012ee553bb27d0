"""A loss plus a quadratic model of the loss on earlier data that are no longer there (Laplace's approximation).

    loss(w) + ½ Σ_k h_k (w_k − a_k)² − cᵀ(w − a)

Here a are the weights that the earlier data led to, h is the diagonal of the earlier loss's Hessian at a, and −c is its
gradient there. Since a minimised the earlier loss plus a penalty, c is the gradient of the penalty at a.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import Floats
from crfkit.protocols import Capability, Evaluation
from crfkit.protocols.field_loss import FieldLoss, LazyEvaluation


class Anchored(FieldLoss):
    """A loss plus the quadratic model of an earlier one.

    >>> from crfkit.chain.losses.likelihood import ChainLikelihood
    >>> loss = ChainLikelihood.example()
    >>> n = loss.size
    >>> anchored = Anchored(loss, np.zeros(n), np.full(n, 2.0), np.zeros(n))
    >>> round(anchored.at(np.ones(n)).value - loss.at(np.ones(n)).value) == n  # ½ · 2 · n
    True
    """

    name = "anchored loss"
    capabilities = frozenset({Capability.SMOOTH, Capability.HESS_DIAG})

    def __init__(self, loss: Any, anchor: Floats, stiffness: Floats, pull: Floats) -> None:
        self.loss, self.anchor, self.stiffness, self.pull = loss, anchor, stiffness, pull
        self.field = loss.field

    @property
    def n_terms(self) -> float:
        return float(self.loss.n_terms)

    def at(self, w: Floats, warm: Evaluation | None = None) -> AnchoredEvaluation:
        return AnchoredEvaluation(self, w)


class AnchoredEvaluation(LazyEvaluation):
    """Value, gradient and diagonal of the Hessian at w."""

    _inner: Evaluation | None = None

    def _evaluate(self) -> tuple[float, Floats]:
        loss, here = self._loss, self._here()
        change = self.w - loss.anchor
        force = loss.stiffness * change
        value = here.value + 0.5 * float(force @ change) - float(loss.pull @ change)
        return value, np.asarray(here.grad + force - loss.pull)

    def hess_diag(self) -> Floats:
        return np.asarray(self._here().hess_diag() + self._loss.stiffness)

    def _here(self) -> Evaluation:
        if self._inner is None:
            self._inner = self._loss.loss.at(self.w)
        return self._inner
