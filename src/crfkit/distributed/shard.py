"""One part of a training set on a worker: a loss of its own weights, and the shards below it in the tree."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import using_threads
from crfkit._types import Floats, Ints
from crfkit.distributed.branches import Answer, Part, summed, united
from crfkit.distributed.calls import Place, Request, ask, narrowed, widened
from crfkit.errors import DataError
from crfkit.extras import load
from crfkit.protocols import Capability, Epochs, Evaluation, Loss

# Makes (the loss, the places of its weights in the whole vector or None for all) from arguments and a thread count.
Maker = Callable[..., tuple[Loss, Ints | None]]


@dataclass(frozen=True)
class About:
    """The facts about a shard that the client needs."""

    name: str
    capabilities: frozenset[Capability]
    n_weights: int
    n_terms: float
    convex: bool
    epoch_cost: float | None
    finest: float
    tolerance: float
    rounding: float
    trusted: float


class Shard:
    """The loss of some sequences or graphs. Dask keeps it on a worker, as an actor.

    `number` is its place among all shards; `begin` and `end` say which sequences or graphs it has.
    """

    def __init__(self, number: int, begin: int, end: int, make: Maker, *args: object) -> None:
        self.number = number
        self._begin, self._end = begin, end
        self._n_threads = int(_worker().state.nthreads)
        self._loss, self._places = make(*args, self._n_threads)
        if self._loss.data is not None and len(self._loss.data) != end - begin:
            raise DataError(f"{end - begin} sequences became {len(self._loss.data)} since training began; train again")
        self._part = Part(None, self._loss.size)
        self._size = self._loss.size  # of the union
        self._below: list[tuple[Place, Part]] = []
        self._evaluations: dict[int, Evaluation] = {}  # by version
        self._fallen = False  # single precision could not hold the weights
        self._online: dict[tuple[bool, float | None], Epochs] = {}  # by what they are: plain or not, and how precise

    # --- the tree

    def about(self) -> About:
        loss = self._loss
        return About(
            loss.name,
            frozenset(loss.capabilities),
            loss.size,
            loss.n_terms,
            loss.convex,
            loss.epoch_cost() if Capability.ONLINE in loss.capabilities else None,
            loss.finest,
            loss.tolerance,
            loss.rounding,
            loss.trusted,
        )

    async def link(self, places: Sequence[Place], unions: Sequence[Ints | None]) -> Ints | None:
        """Set the shards below, whose unions are given; return the union of their weights and those of this shard.

        None means all weights of the whole vector.
        """
        if self._places is None or any(union is None for union in unions):
            if self._places is not None or any(union is not None for union in unions):
                raise ValueError("some shards have all weights and some do not")
            self._below = [(place, Part(None, self._size)) for place in places]
            return None
        union, parts = united([self._places, *(union for union in unions if union is not None)])
        self._part, self._size = parts[0], len(union)
        self._below = list(zip(places, parts[1:], strict=True))
        return union

    async def alive(self) -> bool:
        return True

    # --- what is asked of it

    async def compute(self, request: Request, w: object, v: object) -> Answer:
        """Return the sum of what this shard and those below it compute; w and v are vectors of the union, or None."""
        w, v = widened(w), widened(v)
        loop, rpc = asyncio.get_running_loop(), _worker().rpc
        own = loop.run_in_executor(_turns(), self._timed, request, self._part.of(w), self._part.of(v))
        below = [asked_below(rpc, place, part, request, w, v) for place, part in self._below]
        answers = await asyncio.gather(own, *below)
        total = summed(self._size, [self._part, *(part for _, part in self._below)], answers)
        return replace(total, vector=narrowed(total.vector, request.single))

    def _timed(self, request: Request, w: Floats | None, v: Floats | None) -> Answer:
        began = time.perf_counter()
        with using_threads(self._n_threads):
            answer: Answer = getattr(self, f"_{request.what}")(request, w, v)
        seconds = time.perf_counter() - began
        return replace(answer, seconds=seconds, slowest=self.number, computed=seconds)

    def _evaluate(self, request: Request, w: Floats, _: None) -> Answer:
        """Value and gradient."""
        evaluation = self._at(request, w)
        if evaluation is None:
            return Answer(0.0, np.zeros(len(w)))
        return Answer(evaluation.value, evaluation.grad)

    def _hessp(self, request: Request, w: Floats | None, v: Floats) -> Answer:
        """The Hessian times v, where the weights of this version are."""
        evaluation = self._known(request, w)
        return self._unknown(request) if evaluation is None else Answer(vector=evaluation.hessp(v))

    def _hess_diag(self, request: Request, w: Floats | None, _: None) -> Answer:
        evaluation = self._known(request, w)
        return self._unknown(request) if evaluation is None else Answer(vector=evaluation.hess_diag())

    def _unknown(self, request: Request) -> Answer:
        """Return nothing if this shard has none of the sequences, otherwise that the weights must be sent."""
        none = request.ids is not None and len(self._own_ids(request.ids)[1]) == 0
        return Answer(vector=np.zeros(self._loss.size)) if none else Answer(missing=True)

    def _lipschitz(self, request: Request, *_: object) -> Answer:
        return Answer(self._loss.lipschitz())

    def _holds(self, request: Request, *_: object) -> Answer:
        """The number of sequences of this shard, for each of its weights."""
        return Answer(vector=np.full(self._loss.size, float(self._end - self._begin)))

    def _epoch(self, request: Request, w: Floats, _: None) -> Answer:
        """Run stochastic steps over the sequences of this shard among `ids`; the change of the weights, times their
        number in this shard."""
        steps, l2, l1, whole, plain = request.options
        own = self._own_ids(request.ids)
        loss = self._loss
        if request.tolerance is not None and not self._fallen:
            loss.tolerance = request.tolerance
        kind = (plain, request.tolerance)
        if kind not in self._online:
            self._online = {kind: loss.epochs() if plain else loss.online()}
        online = self._online[kind]
        online.start(w)
        share = (self._end - self._begin) / whole  # of the penalty: `sgd` divides it by the shard's sequences
        value = online.sgd(own[1], np.asarray(steps)[own[0]], l2 * share, l1 * share, False)
        return Answer(float(value), (online.weights() - w) * float(self._end - self._begin))

    # --- evaluations

    def _at(self, request: Request, w: Floats) -> Evaluation | None:
        """Return the loss at w, of all sequences or of some; None if this shard has none of them."""
        loss = self._loss
        if request.ids is not None:
            _, own = self._own_ids(request.ids)
            if len(own) == 0:
                return None
            loss = loss.subset(own)
        if request.tolerance is not None and not self._fallen:
            loss.tolerance = request.tolerance
        evaluation: Evaluation = loss.at(w, self._evaluations.get(request.warm))
        _ = evaluation.value
        if request.tolerance is not None and loss.tolerance < request.tolerance:
            self._fallen = True
        kept = (request.warm, request.version)
        self._evaluations = {k: e for k, e in self._evaluations.items() if k in kept}
        self._evaluations[request.version] = evaluation
        return evaluation

    def _known(self, request: Request, w: Floats | None) -> Evaluation | None:
        """Return the evaluation at this version of the weights; None if it must be sent."""
        known = self._evaluations.get(request.version)
        return self._at(request, w) if known is None and w is not None else known

    def _own_ids(self, ids: ArrayLike | None) -> tuple[Ints, Ints]:
        """Return which of these ids are of this shard, and their numbers in it."""
        order = np.asarray(ids, dtype=np.int64)
        own = np.flatnonzero((order >= self._begin) & (order < self._end))
        return own, order[own] - self._begin


async def asked_below(
    rpc: Any, place: Place, part: Part, request: Request, w: Floats | None, v: Floats | None
) -> Answer:
    """Return the answer of a shard and all below it, whose weights are a part of w; the bytes of this call count."""
    down = [narrowed(part.of(vector), request.single) for vector in (w, v)]
    answer: Answer = await ask(rpc, place, "compute", request, *down)
    sent = sum(0 if vector is None else vector.nbytes for vector in down)
    back = 0 if answer.vector is None else answer.vector.nbytes
    return replace(answer, vector=widened(answer.vector), sent=answer.sent + sent, received=answer.received + back)


def _worker() -> Any:
    """Return the worker of Dask that this runs on."""
    return load("distributed", "a cluster needs").get_worker()


@cache
def _turns() -> ThreadPoolExecutor:
    """Return the one thread in which the shards of a worker compute by turns, each with all threads of the worker."""
    return ThreadPoolExecutor(1, thread_name_prefix="crfkit-shard")
