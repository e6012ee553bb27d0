"""The likelihood of chains whose data lie on disk, in blocks that are in memory one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats, Ints
from crfkit.data.stored import Block
from crfkit.errors import CapabilityError
from crfkit.fields.chain import ChainField
from crfkit.losses.base import FieldLoss, LazyEvaluation
from crfkit.losses.chain import ChainLikelihood
from crfkit.protocols import Capability, Evaluation


class StoredChain(FieldLoss):
    """The negative log-likelihood of sequences in files of encoded blocks; exact. An evaluation reads all of them."""

    name = "chain likelihood"
    capabilities = frozenset({Capability.SMOOTH, Capability.ONLINE})

    def __init__(self, blocks: Sequence[Block], field: ChainField, n_threads: int | None = None) -> None:
        self.blocks = tuple(blocks)
        self.field = field
        self.n_threads = n_threads

    @property
    def n_terms(self) -> float:
        return float(sum(block.n_positions for block in self.blocks))

    def part(self, block: Block) -> ChainLikelihood:
        """Return the loss of one block, which is read from disk."""
        return ChainLikelihood(block.read(), self.field, self.n_threads)

    def at(self, w: Floats, warm: Evaluation | None = None) -> StoredEvaluation:
        return StoredEvaluation(self, w)

    def online(self) -> StoredOnline:
        return StoredOnline(self)


class StoredEvaluation(LazyEvaluation):
    """The sum of the blocks' losses."""

    def _evaluate(self) -> tuple[float, Floats]:
        value, gradient = 0.0, np.zeros(len(self.w))
        for block in self._loss.blocks:
            part = self._loss.part(block).at(self.w)
            value += part.value
            gradient += part.grad
            del part  # before the next block is read
        return value, gradient


class StoredOnline:
    """Stochastic gradient steps, block by block: the order of the sequences is kept within a block only."""

    def __init__(self, loss: StoredChain) -> None:
        self._loss = loss
        self._w = np.zeros(loss.size)
        self._ends = np.cumsum([len(block) for block in loss.blocks])
        self.n_sequences = int(self._ends[-1])

    def start(self, w: Floats, variances: Floats | None = None) -> None:
        self._w = np.array(w)

    def weights(self) -> Floats:
        return self._w.copy()

    def average(self) -> Floats:
        raise CapabilityError("data on disk have no averaged weights; use the solver 'sgd' or 'lbfgs'")

    def save(self) -> Mapping[str, Any]:
        return {"w": self.weights(), "theta": self.weights()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.start(saved["theta"])

    def sgd(
        self,
        order: ArrayLike,
        steps: ArrayLike,
        l2: float = 0.0,
        l1: float = 0.0,
        averaged: bool = True,
        shrink_first: bool = False,
    ) -> float:
        """Run the steps of :meth:`OnlineChain.sgd`; blocks come in the order in which their first sequence does."""
        if averaged:
            self.average()
        ids, sizes = np.asarray(order, dtype=np.int64), np.asarray(steps, dtype=np.float64)
        total, done = 0.0, 0
        for number, own in self._by_block(ids):
            block = self._loss.blocks[number]
            chain = self._loss.part(block).online()
            chain.start(self._w)
            share = len(block) / self.n_sequences  # of the penalty: `sgd` divides it by the block's sequences
            total += chain.sgd(own, sizes[done : done + len(own)], l2 * share, l1 * share, False, shrink_first)
            self._w = chain.weights()
            del chain  # before the next block is read
            done += len(own)
        return total

    def _by_block(self, ids: Ints) -> Sequence[tuple[int, Ints]]:
        of = np.searchsorted(self._ends, ids, side="right")
        first = {int(number): k for k, number in reversed(list(enumerate(of.tolist())))}
        begins = np.concatenate([[0], self._ends[:-1]])
        return [(number, ids[of == number] - begins[number]) for number in sorted(first, key=first.__getitem__)]
