"""The likelihood of chains whose data lie on disk, in blocks that are in memory one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Floats, Ints
from crfkit.arrays import add_scaled, dot
from crfkit.chain.fields.field import ChainField
from crfkit.chain.losses.likelihood import ChainLikelihood
from crfkit.chain.losses.online import OnlineChain, SingleEpochs
from crfkit.chain.losses.online_cost import epoch_cost
from crfkit.chain.losses.precision import SINGLE, RoundedLoss
from crfkit.chain.stored_data import Block, gone, read_arrays, write_arrays
from crfkit.errors import CapabilityError
from crfkit.protocols import Capability, Evaluation
from crfkit.protocols.field_loss import LazyEvaluation

PLAN = "plan"  # the folder in that of a block


class StoredChain(RoundedLoss):
    """The negative log-likelihood of sequences in files of encoded blocks; exact. An evaluation reads all of them.

    The first evaluation writes the plan of each block, the form that the kernels read, next to its data.
    """

    name = "chain likelihood"
    capabilities = frozenset({Capability.SMOOTH, Capability.ONLINE, Capability.HESS_DIAG})

    def __init__(
        self, blocks: Sequence[Block], field: ChainField, n_threads: int | None = None, precision: str = "double"
    ) -> None:
        self.data = StoredData(blocks)
        self.field = field
        self.n_threads = n_threads
        self.set_precision(precision)

    @property
    def n_terms(self) -> float:
        return float(sum(block.n_positions for block in self.data.blocks))

    def part(self, block: Block) -> ChainLikelihood:
        """Return the loss of one block, which is read from disk."""
        folder = block.folder / PLAN
        plan = read_plan(folder) if folder.exists() else None
        made = ChainLikelihood(block.read(), self.field, self.n_threads, precision=self.precision, plan=plan)
        if plan is None:
            write_arrays(folder, made.plan())
        made.tolerance = self.tolerance
        return made

    def at(self, w: Floats, warm: Evaluation | None = None) -> StoredEvaluation:
        return StoredEvaluation(self, w)

    def online(self) -> StoredOnline:
        return StoredOnline(self)

    def epochs(self) -> StoredOnline:
        """Plain stochastic gradients, in the precision that evaluations have now."""
        return StoredOnline(self, plain=True)

    def order(self, n: int, seed: int, epoch: int) -> Ints:
        """Return the sequences block by block, so that an epoch reads each block once: shuffled blocks, and sequences
        shuffled within them.
        """
        rng, data = np.random.default_rng([seed, epoch]), self.data
        blocks = rng.permutation(len(data.blocks))
        return np.concatenate([data.begins[k] + rng.permutation(len(data.blocks[k])) for k in blocks])

    def epoch_cost(self) -> float:
        """The time of an epoch, which has one thread, in evaluations; counted, not measured."""
        blocks = self.data.blocks
        n_attributes = sum(block.n_attributes for block in blocks)
        return epoch_cost(int(self.n_terms), n_attributes, len(self.data), self.field, count_threads(self.n_threads))


def read_plan(folder: Path) -> _core.KeptPlan:
    """Return the plan in a folder."""
    try:
        return _core.KeptPlan(**read_arrays(folder))
    except TypeError:
        raise gone(folder, "arrays are missing") from None


class StoredData:
    """The blocks of a data set; the length is the number of sequences."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        ends = np.cumsum([len(block) for block in blocks])
        self.begins: Ints = np.concatenate([[0], ends[:-1]])
        self._n = int(ends[-1])

    def __len__(self) -> int:
        return self._n

    def by_block(self, ids: Ints) -> Sequence[tuple[int, Ints]]:
        """Return the blocks of the ids, in the order of their first ids, each with the ids within it."""
        of = np.searchsorted(self.begins, ids, side="right") - 1
        first = {int(number): k for k, number in reversed(list(enumerate(of.tolist())))}
        return [(number, ids[of == number] - self.begins[number]) for number in sorted(first, key=first.__getitem__)]


class StoredEvaluation(LazyEvaluation):
    """The sum of the blocks' losses."""

    def _evaluate(self) -> tuple[float, Floats]:
        value, gradient = 0.0, np.zeros(len(self.w))
        for block in self._loss.data.blocks:
            part = self._loss.part(block)
            here = part.at(self.w)
            value += here.value
            add_scaled(gradient, 1.0, here.grad)
            if part.tolerance < self._loss.tolerance:
                self._loss.fall_back()
            del part, here  # before the next block is read
        return value, gradient

    def hess_diag(self) -> Floats:
        """Σ p(1−p) over the occurrences of each feature, values squared: the diagonal as if they were independent."""
        diagonal = np.zeros(len(self.w))
        for block in self._loss.data.blocks:
            add_scaled(diagonal, 1.0, self._loss.part(block).at(self.w).hess_diag())
        return diagonal


class StoredOnline:
    """Stochastic gradient steps, block by block: the order of the sequences is kept within a block only."""

    def __init__(self, loss: StoredChain, plain: bool = False) -> None:
        self._loss = loss
        self._plain = plain  # without what averages and L1 need, which takes less time
        self._w = np.zeros(loss.size)
        self.n_sequences = len(loss.data)

    def start(self, w: Floats, variances: Floats | None = None) -> None:
        self._w = np.array(w)

    def weights(self) -> Floats:
        return self._w.copy()

    def square(self) -> float:
        return dot(self._w, self._w)

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
        for number, own in self._loss.data.by_block(ids):
            block = self._loss.data.blocks[number]
            share = len(block) / self.n_sequences  # of the penalty: `sgd` divides it by the block's sequences
            now = sizes[done : done + len(own)]
            chain = self._open(block)
            chain.start(self._w)
            if isinstance(chain, OnlineChain):
                total += chain.sgd(own, now, l2 * share, l1 * share, False, shrink_first)
            else:
                total += chain.sgd(own, now, l2 * share)
            self._w = chain.weights()
            del chain  # before the next block is read
            done += len(own)
        return total

    def _open(self, block: Block) -> OnlineChain | SingleEpochs:
        kind = SingleEpochs if self._plain and self._loss.tolerance == SINGLE else OnlineChain
        return kind(block.read(), self._loss.field)
