"""A loss that is no field at all: logistic regression."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crfkit._types import Floats
from crfkit.protocols import Capability, Evaluation, Loss
from crfkit.protocols.field_loss import LazyEvaluation


class ToyLoss(Loss):
    """``Σ_n log(1 + exp(−y_n·x_nᵀw))``"""

    name = "toy loss"
    capabilities = frozenset({Capability.SMOOTH})

    def __init__(self, X: Floats, y: Floats) -> None:
        self.X, self.y, self.size = X, y, X.shape[1]

    @classmethod
    def example(cls) -> ToyLoss:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 5))
        return cls(X, np.sign(X[:, 0] + rng.normal(size=30)))

    @property
    def layout(self) -> Mapping[str, slice]:
        return {"weights": slice(0, self.size)}

    def at(self, w: Floats, warm: Evaluation | None = None) -> ToyEvaluation:
        return ToyEvaluation(self, w)


class ToyEvaluation(LazyEvaluation):
    def _evaluate(self) -> tuple[float, Floats]:
        X, y = self._loss.X, self._loss.y
        margin = y * (X @ self.w)
        return float(np.logaddexp(0.0, -margin).sum()), -X.T @ (y / (1.0 + np.exp(margin)))
