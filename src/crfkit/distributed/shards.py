"""All shards of a training set: places them, sends requests, and replaces shards when a worker is lost.

A shard can be made again from its recipe at any time. If a worker does not answer, its shards are made on other
workers, the tree is linked again, and the request is repeated: the sum has the same terms in the same order.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from crfkit._types import Client, Floats, Future, Ints, Samples
from crfkit.distributed.branches import Answer, Part, branches_of, summed
from crfkit.distributed.calls import LOST, Place, Request, ask
from crfkit.distributed.cluster import Cluster, short
from crfkit.distributed.shard import About, Maker, Shard, asked_below
from crfkit.errors import ClusterError, CrfkitError, DataError
from crfkit.extras import load
from crfkit.wording import counted

TIMED_OUT = (TimeoutError, asyncio.TimeoutError)
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
BALANCE = 5.0  # seconds between looks for workers without a shard
LIVENESS_INTERVAL = 2.0  # seconds between looks whether workers that data are sent to are still there
PING_TIMEOUT = 10.0  # seconds in which a worker that computes must still answer
LOST_CONNECTION = (
    "the scheduler has gone; start it and its workers again, and continue from the last checkpoint (--resume, or "
    "fit(resume=…))"
)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Recipe:
    """A recipe for making a shard: `make(own, shared, n_threads)` on the worker."""

    make: Maker
    own: Samples  # arrays, names of files, or a Delayed of Dask
    begin: int  # the shard has the sequences or graphs begin … end − 1
    end: int
    name: str  # for messages
    ready: Future | None = None  # a future of what stands for `own` when the shard is first made


@dataclass
class Traffic:
    """Count the bytes sent and the time it took. Bytes count the vectors, on all branches of the tree."""

    requests: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0  # from a request to its answer
    computing: float = 0.0  # of which the slowest shard computed
    computed: float = 0.0  # of all shards together
    slowest: int = -1  # the shard that was slowest in the last request
    lost: int = 0  # shards that had to be made again

    def add(self, answer: Answer, seconds: float) -> None:
        self.requests += 1
        self.sent += answer.sent
        self.received += answer.received
        self.seconds += seconds
        self.computing += answer.seconds
        self.computed += answer.computed
        self.slowest = answer.slowest


class LostError(Exception):
    """A worker was lost; what was asked must be asked again."""


class Shards:
    """The shards of a training set on the workers of a cluster. `size` is the number of weights of the whole."""

    def __init__(self, client: Client, recipes: Sequence[Recipe], shared: object, size: int, options: Cluster) -> None:
        self.recipes = tuple(recipes)
        self.size = size
        self.traffic = Traffic()
        self._client = client
        self._shared = shared
        self._options = options
        self._name = f"crfkit-shard-{uuid.uuid4().hex[:8]}"
        self._made = 0
        self._futures: dict[int, Future] = {}
        self._places: dict[int, Place] = {}
        self._top: list[tuple[Place, Part]] = []
        self._failures = 0
        self._looked = time.monotonic()
        self._avoided: set[str] = set()  # workers that did not answer
        self._direct = _reaches_workers(client)
        self._retrying(self._restore_all)
        self.recipes = tuple(replace(recipe, ready=None) for recipe in self.recipes)  # the workers may forget it

    def __len__(self) -> int:
        return len(self.recipes)

    def about(self) -> list[About]:
        """Return the description of every shard."""

        async def go() -> list[About]:
            return list(await asyncio.gather(*(ask(self._rpc, self._places[i], "about") for i in range(len(self)))))

        return self._retrying(lambda: self._sync(go))

    def ask(self, request: Request, w: Floats | None = None, v: Floats | None = None) -> Answer:
        """Return the sum of the answers of all shards; lost shards are made again."""
        self._balance()
        began = time.perf_counter()
        answer: Answer = self._retrying(lambda: self._sync(lambda: self._asked(request, w, v)))
        self.traffic.add(answer, time.perf_counter() - began)
        return answer

    def close(self) -> None:
        """Let the workers forget the shards."""
        futures, self._futures = self._futures, {}
        for future in futures.values():
            future.release()

    # --- asking

    async def _asked(self, request: Request, w: Floats | None, v: Floats | None) -> Answer:
        answers = await asyncio.gather(
            *(asked_below(self._rpc, place, part, request, w, v) for place, part in self._top)
        )
        total = summed(self.size, [part for _, part in self._top], answers)
        # Solvers change gradients in place; what has arrived from another process may be read-only and unaligned.
        return (
            total
            if total.vector is None
            else replace(total, vector=np.require(total.vector, requirements=["C", "A", "W"]))
        )

    def _rpc(self, address: str) -> Any:
        if self._direct:
            return self._client.rpc(address)
        # by way of the scheduler
        return load("distributed.actor", "a cluster needs").ProxyRPC(self._client.scheduler, address)

    def _sync(self, function: Callable[[], Any]) -> Any:
        """Run a coroutine of the client; raise LostError if a worker does not answer."""
        try:
            return self._client.sync(lambda: asyncio.wait_for(function(), self._options.timeout))
        except LOST as error:
            raise LostError(short(error)) from error
        except RuntimeError as error:
            if self._client.status not in ("closing", "closed"):
                raise
            raise ClusterError(f"{LOST_CONNECTION}: {short(error)}") from error

    def _retrying(self, function: Callable[[], Value]) -> Value:
        """Return what a function returns; when workers are lost, replace their shards and call it again."""
        while True:
            try:
                value = function()
                self._failures = 0
                return value
            except LostError as error:
                reason = error
            while True:
                self._failures += 1
                if self._failures > self._options.retries:
                    raise ClusterError(
                        f"workers were lost {self._failures} times in a row ({reason}); look at the logs of the "
                        "workers, which may have too little memory, or use more shards"
                    ) from reason
                time.sleep(min(0.1 * 2.0**self._failures, 5.0))
                try:
                    self._repair(isinstance(reason.__cause__, TIMED_OUT))
                    break
                except LostError as error:
                    reason = error

    # --- creating and repairing shards

    def _restore_all(self) -> None:
        """Make the shards that do not stand, and link the tree."""
        alive = self._workers()
        self._restore([i for i in range(len(self)) if not self._is_alive(i, alive)], self._avoided)

    def _repair(self, timed_out: bool) -> None:
        """Make lost shards again; raise ClusterError if all workers are there and merely slow."""
        alive = self._workers()
        lost = [i for i in range(len(self)) if not self._is_alive(i, alive)]
        if not lost:
            silent = self._silent()
            self._avoided |= silent
            lost = [i for i, place in self._places.items() if place.address in silent]
            if timed_out and not lost:
                raise ClusterError(
                    f"an evaluation took longer than {self._options.timeout:g} s though all workers answer; allow more "
                    "with Cluster(timeout=…), or use more workers"
                )
        self.traffic.lost += len(lost)
        self._restore(lost, self._avoided)

    def _is_alive(self, number: int, alive: Collection[str]) -> bool:
        future, place = self._futures.get(number), self._places.get(number)
        return future is not None and future.status == "finished" and place is not None and place.address in alive

    def _silent(self) -> set[str]:
        """Return the workers that do not answer though the scheduler believes that they are there."""

        async def go() -> list[Any]:
            calls = [asyncio.wait_for(ask(self._rpc, place, "alive"), PING_TIMEOUT) for place in self._places.values()]
            return await asyncio.gather(*calls, return_exceptions=True)

        answers = self._client.sync(go)
        return {
            place.address
            for place, answer in zip(self._places.values(), answers, strict=True)
            if isinstance(answer, LOST)
        }

    def _workers(self) -> dict[str, int]:
        """Return the addresses of all workers, and their threads."""
        try:
            # asyncio's own limit, since a scheduler that has gone would be waited for
            found = self._client.sync(lambda: asyncio.wait_for(self._client.scheduler.identity(), PING_TIMEOUT))
        except TIMED_OUT as error:
            raise LostError(f"the scheduler has not answered for {PING_TIMEOUT:g} s") from error
        except LOST as error:
            raise ClusterError(f"{LOST_CONNECTION}: {short(error)}") from error
        return {address: int(about["nthreads"]) for address, about in found["workers"].items()}

    def _restore(self, numbers: Sequence[int], avoid: Collection[str]) -> None:
        """Make these shards, spread over the workers, and link the tree."""
        if len(numbers):
            self._make(numbers, avoid)
        self._link()

    def _make(self, numbers: Sequence[int], avoid: Collection[str]) -> None:
        workers = self._workers_but(avoid)
        load = Counter(dict.fromkeys(workers, 0))
        load.update(p.address for i, p in self._places.items() if i not in set(numbers) and p.address in load)
        shared: dict[str, Future] = {}
        made = {}
        for number in numbers:
            recipe = self.recipes[number]
            worker = min(workers, key=lambda address: (load[address], workers.index(address)))
            load[worker] += 1
            if worker not in shared:
                shared[worker] = self._scattered(self._shared, worker)
            own = self._sent(recipe, worker)
            self._made += 1
            made[number] = self._client.submit(
                Shard,
                number,
                recipe.begin,
                recipe.end,
                recipe.make,
                own,
                shared[worker],
                actor=True,
                key=f"{self._name}-{number}-{self._made}",
                workers=[worker],
                allow_other_workers=True,
            )
        try:
            self._wait(made)
        finally:
            self._register(made)
        missing = [number for number in numbers if self._futures.get(number) is not made[number]]
        if missing:
            raise LostError(f"the worker of shard {missing[0]} is gone")

    def _register(self, made: dict[int, Future]) -> None:
        """Remember where shards live that are finished."""
        keys = {future.key: number for number, future in made.items() if future.status == "finished"}
        where = self._sync(lambda: self._client.scheduler.who_has(keys=list(keys))) if keys else {}
        for key, number in keys.items():
            addresses = where.get(key) or ()
            if addresses:
                self._futures[number] = made[number]
                self._places[number] = Place(next(iter(addresses)), key)

    def _sent(self, recipe: Recipe, worker: str) -> Future:
        """Return a shard's own argument in a form that does not travel by way of the scheduler if it is large."""
        if recipe.ready is not None and recipe.ready.status in ("pending", "finished"):
            return recipe.ready
        if hasattr(recipe.own, "__dask_graph__"):
            return self._client.compute(recipe.own)
        return recipe.own if getattr(recipe.own, "small", False) else self._scattered(recipe.own, worker)

    def _scattered(self, value: object, worker: str) -> Future:
        """Send a value to a worker; Dask's own limit does not hold for workers that are stopped.

        Not to several at once: Dask's scheduler would try for ever to copy it to one that has gone, and would copy
        nothing else meanwhile.
        """
        send = partial(self._client.scatter, [value], workers=[worker], hash=False)

        async def go() -> Any:
            sending, begin = asyncio.ensure_future(send(direct=self._direct, asynchronous=True)), time.monotonic()
            try:
                while not (await asyncio.wait({sending}, timeout=LIVENESS_INTERVAL))[0]:
                    # Dask waits on for a worker that has gone
                    found = await asyncio.wait_for(self._client.scheduler.identity(), PING_TIMEOUT)
                    if worker not in found["workers"]:
                        raise OSError(f"{worker} has gone")
                    if time.monotonic() - begin > PING_TIMEOUT and not await self._answers(worker):
                        self._avoided.add(worker)
                        raise OSError(f"{worker} does not answer")
                return sending.result()
            finally:
                sending.cancel()

        (future,) = self._sync(go)
        return future

    async def _answers(self, address: str) -> bool:
        """Return whether a worker that the scheduler knows answers it."""
        ask_worker = self._client.scheduler.broadcast(msg={"op": "identity"}, workers=[address])
        try:
            await asyncio.wait_for(ask_worker, PING_TIMEOUT)
        except LOST:
            return False
        return True

    def _wait(self, made: dict[int, Future]) -> None:
        """Wait for new shards; raise what went wrong in one of them."""
        wait = load("distributed", "a cluster needs").wait
        try:
            with self._client.as_current():
                wait(list(made.values()), timeout=self._options.timeout)
        except LOST as error:
            raise LostError(short(error)) from error
        except CANCELLED as error:  # what they are made of was lost with a worker
            raise LostError("the data of a shard were lost with a worker") from error
        for number, future in made.items():
            if future.status == "finished":
                continue
            self._raise(number, future)

    def _raise(self, number: int, future: Future) -> None:
        recipe = self.recipes[number]
        if future.status != "error":
            raise LostError(f"{recipe.name} is {future.status}")
        try:
            error = future.exception(timeout=PING_TIMEOUT)
        except (*CANCELLED, *LOST) as gone:
            raise LostError(f"{recipe.name} was lost with a worker") from gone
        if isinstance(error, DataError) and not error.path:
            raise DataError(str(error), recipe.name)
        if isinstance(error, CrfkitError):
            raise error
        if isinstance(error, (FileNotFoundError, PermissionError)):
            raise DataError(f"a worker cannot read it: {short(error)}; every worker must be able to", recipe.name)
        killed = load("distributed", "a cluster needs").KilledWorker
        actor_lost = isinstance(error, RuntimeError) and "Actor was lost" in str(error)
        if actor_lost or isinstance(error, (killed, MemoryError, OSError, *TIMED_OUT)):
            raise LostError(short(error))
        raise ClusterError(f"{recipe.name}: {type(error).__name__}: {short(error)}") from error

    def _workers_but(self, avoid: Collection[str]) -> list[str]:
        """Return the workers that can be used; wait for some if there are none."""
        end = time.monotonic() + self._options.timeout
        while not (workers := self._preferred(avoid)):
            if time.monotonic() > end:
                raise ClusterError(
                    f"no worker is left, and none came within {self._options.timeout:g} s; start workers, and continue "
                    "from the last checkpoint"
                )
            time.sleep(0.2)
        return workers

    def _preferred(self, avoid: Collection[str]) -> list[str]:
        alive = list(self._workers())
        return [address for address in alive if address not in avoid] or [
            address for address in alive if address not in self._avoided
        ]

    def _link(self) -> None:
        """Tell every shard which ones are below it, from the leaves up."""
        n = len(self)
        unions: dict[int, Ints | None] = {}
        for number in reversed(range(n)):
            below = branches_of(number, n)
            places, theirs = [self._places[i] for i in below], [unions.pop(i) for i in below]
            call = partial(ask, self._rpc, self._places[number], "link", places, theirs)
            unions[number] = self._sync(call)
        self._top = [(self._places[i], self._part(unions[i])) for i in branches_of(-1, n)]

    def _part(self, union: Ints | None) -> Part:
        """Return the weights of a shard of the top as a part of all weights."""
        if union is None or len(union) == self.size:
            return Part(None, self.size)
        return Part(np.asarray(union).astype(np.int32 if self.size < 2**31 else np.int64), len(union))

    def _balance(self) -> None:
        """Move a shard from a worker with several to each worker that has none, if there are such workers."""
        now = time.monotonic()
        if now - self._looked < BALANCE:
            return
        self._looked = now
        try:
            load: dict[str, list[int]] = {address: [] for address in self._workers()}
        except (LostError, ClusterError):
            return  # the workers may answer though the scheduler does not
        for number, place in self._places.items():
            if place.address not in load:
                return  # lost: the next request finds out
            load[place.address].append(number)
        idle = [address for address, own in load.items() if not own and address not in self._avoided]
        crowded = sorted((own for own in load.values() if len(own) > 1), key=len, reverse=True)
        moved = [own[-1] for own, _ in zip(crowded, idle)]  # noqa: B905 - as many as there are of both
        if not moved:
            return
        try:
            self._restore(moved, [address for address in load if address not in idle])
        except LostError:
            self._retrying(self._restore_all)

    def describe(self) -> str:
        """Return how many shards there are, and on how many workers."""
        workers = len({place.address for place in self._places.values()})
        return f"{counted(len(self), 'shard')} on {counted(workers, 'worker')}"


def _reaches_workers(client: Client) -> bool:
    """Return whether the client can connect to a worker itself; otherwise calls go by way of the scheduler."""

    async def go() -> bool:
        address = next(iter((await client.scheduler.identity())["workers"]), None)
        return address is not None and bool(await client.rpc(address).identity())

    try:
        return bool(client.sync(lambda: asyncio.wait_for(go(), PING_TIMEOUT)))
    except LOST:
        return False
