"""Stochastic gradients of the chain likelihood on tensors, for solvers such as Adam that need no values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from crfkit._checks import check_count
from crfkit.protocols import Capability, Evaluation
from crfkit.protocols.field_loss import FieldLoss, LazyEvaluation
from crfkit.torch.chain_loss import TensorChainEvaluation, TensorChainLikelihood


class TensorChainBatches(FieldLoss):
    """The likelihood of a random part of the sequences, another one at every evaluation, as an estimate of the whole.

    Each epoch goes through all sequences in a random order; the last batch of an epoch may be smaller.
    """

    name = "chain likelihood of batches"
    capabilities = frozenset({Capability.GRADIENT})

    def __init__(self, loss: TensorChainLikelihood, size: int = 256, seed: int = 0) -> None:
        check_count(size=size)
        self._loss = loss
        self._size, self._seed = size, seed
        self._evaluations = 0
        self._order = np.zeros(0, dtype=np.int64)
        self.data = loss.data

    @property
    def size(self) -> int:
        return self._loss.size

    @property
    def layout(self) -> Mapping[str, slice]:
        return self._loss.layout

    def at(self, w: Tensor, warm: Evaluation | None = None) -> BatchEvaluation:
        n = len(self.data)
        epoch, batch = divmod(self._evaluations, max(1, -(-n // self._size)))
        if batch == 0:
            self._order = np.random.default_rng([self._seed, epoch]).permutation(n)
        ids = self._order[batch * self._size : (batch + 1) * self._size]
        self._evaluations += 1
        return BatchEvaluation(self, self._loss.subset(ids).at(w), n / max(1, len(ids)))


class BatchEvaluation(LazyEvaluation):
    """An evaluation of a batch, scaled to the whole."""

    def __init__(self, loss: TensorChainBatches, part: TensorChainEvaluation, scale: float) -> None:
        super().__init__(loss, part.w)
        self._part, self._scale = part, scale

    def _evaluate(self) -> tuple[float, Tensor]:
        return self._scale * self._part.value, self._part.grad * self._scale
