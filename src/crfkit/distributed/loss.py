"""A loss that is the sum of the losses of shards on a cluster. Solvers cannot tell it from a loss in this process.

    loss(w) = Σ_k loss_k(w_k),   ∇loss(w) = Σ_k ∇loss_k(w_k),   ∇²loss(w)·v = Σ_k ∇²loss_k(w_k)·v_k

with w_k the weights that shard k has, and the sum in the order of the tree of shards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats, Ints
from crfkit.arrays import dot
from crfkit.chain.losses.precision import DOUBLE, SINGLE
from crfkit.distributed.calls import Request
from crfkit.distributed.shards import Shards
from crfkit.errors import CapabilityError
from crfkit.protocols import Capability, Evaluation, Saved
from crfkit.protocols.field_loss import FieldLoss, LazyEvaluation

# of the loss of a shard, what its sum has as well
SUMS = frozenset(
    {
        Capability.SMOOTH,
        Capability.GRADIENT,
        Capability.HESSP,
        Capability.HESS_DIAG,
        Capability.SUBSET,
        Capability.ONLINE,
        Capability.LIPSCHITZ,
        Capability.WARM,
        Capability.PRECISION,
    }
)


class Size:
    """Stands for the data of a loss, which are on the workers: their number only."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n


class ShardedLoss(FieldLoss):
    """The sum of the losses of shards.

    `transport` is "double", or "single" to send 32-bit numbers as long as the shards themselves compute in single
    precision.
    """

    n_terms: float
    rounding: float
    trusted: float

    def __init__(self, shards: Shards, field: Any, transport: str = "double") -> None:
        self.shards = shards
        self.field = field
        self._transport = transport
        about = shards.about()
        first = about[0]
        self.name = first.name
        self.capabilities = SUMS.intersection(*(one.capabilities for one in about))
        self.convex = all(one.convex for one in about)
        self.n_terms = sum(one.n_terms for one in about)
        self._epoch_cost = max(one.epoch_cost or 0.0 for one in about)
        self.data = Size(sum(recipe.end - recipe.begin for recipe in shards.recipes))
        self.finest = self.tolerance = DOUBLE
        if Capability.PRECISION in self.capabilities:
            self.finest = min(one.finest for one in about)
            self.tolerance = max(one.tolerance for one in about)
            self.rounding = max(one.rounding for one in about)
            self.trusted = sum(one.trusted for one in about)
        self._versions = 0

    @property
    def used(self) -> str:
        """The precision of evaluations, for the record of a model."""
        if Capability.PRECISION not in self.capabilities:
            return "double"
        return "single" if self.tolerance >= SINGLE else "single, then double"

    def at(self, w: Floats, warm: Evaluation | None = None) -> ShardedEvaluation:
        return ShardedEvaluation(self, w, warm if isinstance(warm, ShardedEvaluation) else None)

    def subset(self, ids: ArrayLike) -> ShardedSubset:
        """The loss of some sequences or graphs only; each shard takes those that it has."""
        if Capability.SUBSET not in self.capabilities:
            raise self._cannot(Capability.SUBSET)
        return ShardedSubset(self, np.asarray(ids, dtype=np.int64))

    def lipschitz(self) -> float:
        if Capability.LIPSCHITZ not in self.capabilities:
            raise self._cannot(Capability.LIPSCHITZ)
        return self.shards.ask(Request("lipschitz")).value

    def online(self) -> MixedEpochs:
        """Stochastic gradients by parameter mixing: :class:`MixedEpochs`."""
        if Capability.ONLINE not in self.capabilities:
            raise self._cannot(Capability.ONLINE)
        return MixedEpochs(self)

    def epochs(self) -> MixedEpochs:
        """Plain stochastic gradients, in the precision that evaluations have now."""
        if Capability.ONLINE not in self.capabilities:
            raise self._cannot(Capability.ONLINE)
        return MixedEpochs(self, plain=True)

    def epoch_cost(self) -> float:
        """The time of an epoch in evaluations. All shards run theirs at the same time."""
        return self._epoch_cost

    def request(self, what: str, version: int = 0, warm: int = 0, ids: Ints | None = None) -> Request:
        """Return a request of evaluations in the precision that the loss has now."""
        precise = Capability.PRECISION in self.capabilities
        single = self._transport == "single" and precise and self.tolerance >= SINGLE
        return Request(what, version, warm, self.tolerance if precise else None, single, ids)

    def next_version(self) -> int:
        self._versions += 1
        return self._versions


class ShardedSubset(FieldLoss):
    """The loss of some sequences or graphs of a sharded loss."""

    capabilities = frozenset({Capability.SMOOTH, Capability.GRADIENT, Capability.HESSP, Capability.HESS_DIAG})

    def __init__(self, whole: ShardedLoss, ids: Ints) -> None:
        self.whole = whole
        self.ids = ids
        self.field = whole.field
        self.name = whole.name
        self.convex = whole.convex
        self.capabilities = self.capabilities & whole.capabilities
        self.data = Size(len(ids))

    def at(self, w: Floats, warm: Evaluation | None = None) -> ShardedEvaluation:
        return ShardedEvaluation(self.whole, w, None, self.ids)


class ShardedEvaluation(LazyEvaluation):
    """The sum at w; the shards keep what Hessian products and warm starts need, under a version of the weights."""

    def __init__(self, loss: ShardedLoss, w: Floats, warm: ShardedEvaluation | None, ids: Ints | None = None) -> None:
        super().__init__(loss, w)
        self._ids = ids
        self.version: int = 0
        self._warm: int = 0 if warm is None else warm.version

    def _evaluate(self) -> tuple[float, Floats]:
        loss = self._loss
        self.version = loss.next_version()
        answer = loss.shards.ask(loss.request("evaluate", self.version, self._warm, self._ids), self.w)
        return answer.value, answer.vector

    def hessp(self, v: Floats) -> Floats:
        """∇²loss(w)·v."""
        return self._product(Capability.HESSP, np.ascontiguousarray(v))

    def hess_diag(self) -> Floats:
        return self._product(Capability.HESS_DIAG, None)

    def _product(self, what: Capability, v: Floats | None) -> Floats:
        loss = self._loss
        if what not in loss.capabilities:
            raise CapabilityError(f"the {loss.name} has no {what}")
        if self.version == 0:
            self.version = loss.next_version()
        request = loss.request(str(what), self.version, 0, self._ids)
        answer = loss.shards.ask(request, None, v)
        if answer.missing or answer.vector is None:  # shards that were made anew, or never were at w
            answer = loss.shards.ask(request, self.w, v)
        vector: Floats = answer.vector
        return vector


class MixedEpochs:
    """Stochastic gradient steps by iterative parameter mixing (McDonald, Hall & Mann 2010).

    Every shard goes through its own sequences from the same weights, all at once. Then each weight becomes the mean of
    what the shards made of it, in proportion to their sequences; shards without its attribute do not count.
    """

    def __init__(self, loss: ShardedLoss, plain: bool = False) -> None:
        self._loss = loss
        self._plain = plain  # without what averages and L1 need, which takes less time
        self._w = np.zeros(loss.size)
        self._holders: Floats | None = None
        self.n_sequences = len(loss.data)

    def start(self, w: Floats, variances: Floats | None = None) -> None:
        self._w = np.array(w)

    def weights(self) -> Floats:
        return self._w.copy()

    def square(self) -> float:
        return dot(self._w, self._w)

    def average(self) -> Floats:
        raise CapabilityError("a loss on a cluster has no averaged weights; use the solver 'sgd' or 'lbfgs'")

    def save(self) -> Saved:
        return {"w": self.weights(), "theta": self.weights()}

    def restore(self, saved: Saved) -> None:
        self.start(np.asarray(saved["theta"]))

    def sgd(
        self,
        order: ArrayLike,
        steps: ArrayLike,
        l2: float = 0.0,
        l1: float = 0.0,
        averaged: bool = True,
        shrink_first: bool = False,
    ) -> float:
        """Run the steps of :meth:`OnlineChain.sgd` on every shard, over its sequences in this order; then mix."""
        if averaged:
            self.average()
        loss = self._loss
        if self._holders is None:
            held = loss.shards.ask(Request("holds")).vector
            assert held is not None
            self._holders = np.maximum(held, 1.0)
        sizes = np.ascontiguousarray(steps, dtype=np.float64)
        request = replace(
            loss.request("epoch", ids=np.asarray(order, dtype=np.int64)),
            options=(sizes, l2, l1, self.n_sequences, self._plain),
        )
        answer = loss.shards.ask(request, self._w)
        assert answer.vector is not None
        if np.any(sizes):
            self._w = self._w + answer.vector / self._holders
        return answer.value
