"""Parts of a search as tasks on a Dask cluster: random halves of the rows, and folds that go down their paths together.

A task is a pure function of the data, which every worker has, of a small item and, for folds, of what the task before
it returned. A task that is lost is run again, anywhere, with the same result. Dask does that where a worker ends while
others have the data. `_Run` does it where the data were lost with the last worker, where Dask gives a task up because
its workers ended too often, and where nothing has been heard of any task for `Cluster.timeout` seconds.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

from crfkit._threads import limited_threads
from crfkit._values import Client, Future
from crfkit.distributed.cluster import Cluster, bounded, connect
from crfkit.errors import ClusterError, CrfkitError
from crfkit.extras import load
from crfkit.training.tasks import D, I, R, S, Tasks, V

POLL = 5.0  # seconds between questions whether the tasks are still under way
NO_ANSWER = (OSError, TimeoutError, asyncio.TimeoutError)  # what Dask raises if somebody does not answer


@contextmanager
def cluster_tasks(cluster: object) -> Iterator[ClusterTasks]:
    """Yield tasks that run on a cluster, which is whatever `connect` takes."""
    with connect(cluster) as client:
        yield ClusterTasks(client, Cluster.of(cluster))


class ClusterTasks(Tasks):
    """Runs the parts of a search on a cluster, with the results of :class:`Tasks`.

    The functions, the data and the items must be picklable.
    """

    here: ClassVar[bool] = False

    def __init__(self, client: Client, options: Cluster) -> None:
        self._client = client
        self._options = options

    def map(self, function: Callable[[D, I], R], data: D, items: Iterable[I]) -> Generator[R, None, None]:
        """Yield function(data, item) of each item, in their order."""
        parts = list(items)
        run = _Run(self._client, self._options, data, len(parts))
        for k, item in enumerate(parts):
            run.add(k, function, item)

        def results() -> Generator[R, None, None]:
            try:
                for k in range(len(parts)):
                    yield run.take(k)
            finally:
                run.close()

        return results()

    def together(
        self,
        function: Callable[[D, I, V, S | None], tuple[R, S]],
        data: D,
        items: Iterable[I],
        values: Iterable[V],
    ) -> Generator[list[R], None, None]:
        """Yield the results of all items at each value.

        The tasks of the first value are sent at once. Those of the next are sent before the results of one are waited
        for, so that no part waits for the others.
        """
        parts, coming = list(items), enumerate(values)
        run = _Run(self._client, self._options, data, len(parts))

        def send() -> None:
            for at, value in coming:
                for k, item in enumerate(parts):
                    run.add((at, k), _advanced, function, item, value, _ResultOf((at - 1, k)) if at else None, place=k)
                return

        def results() -> Generator[list[R], None, None]:
            try:
                at = 0
                while run.has((at, 0)):
                    send()
                    found = [run.take((at, k), keep=True) for k in range(len(parts))]
                    for k in range(len(parts)):
                        run.forget((at - 1, k))
                    yield [result for result, _ in found]
                    at += 1
            finally:
                run.close()

        send()
        return results()


@dataclass(frozen=True)
class _ResultOf:
    """An argument that is the result of another task."""

    key: Hashable


@dataclass(frozen=True)
class _Task:
    function: Callable[..., Any]
    arguments: tuple[object, ...]
    place: int | None  # tasks of the same place go to the same worker, which keeps what they make of the data


class _Run:
    """Tasks on the same data: sends them, waits for them, and sends them again if they are lost."""

    def __init__(self, client: Client, options: Cluster, data: object, n_parts: int) -> None:
        self._distributed = load("distributed", "cluster needs")
        self._client = client
        self._options = options
        self._data = data
        self._n_parts = n_parts
        self._sent: Future | None = None  # the future of the data
        self._workers: dict[str, int] = {}  # address → threads
        self._avoided: set[str] = set()  # workers that did not answer
        self._tasks: dict[Hashable, _Task] = {}  # whose results were not taken, in the order of dependence
        self._futures: dict[Hashable, Future] = {}  # of the same tasks
        self._kept: dict[Hashable, Any] = {}  # results that other tasks need
        self._losses: dict[Hashable, int] = {}  # how often a task was lost

    def add(self, key: Hashable, function: Callable[..., Any], *arguments: object, place: int | None = None) -> None:
        """Send a task, function(data, *arguments)."""
        task = self._tasks[key] = _Task(function, arguments, place)
        if self._sent is None:
            self._recovering(self._scatter)
        self._futures[key] = self._submit(task)

    def has(self, key: Hashable) -> bool:
        """Return whether the result of a task can be taken."""
        return key in self._tasks

    def take(self, key: Hashable, keep: bool = False) -> Any:
        """Wait for a task and return its result. With `keep`, other tasks may still ask for it."""
        value = self._wait(key)
        for known in (self._tasks, self._futures, self._losses):
            known.pop(key, None)
        if keep:
            self._kept[key] = value
        return value

    def forget(self, key: Hashable) -> None:
        """Forget a result that was kept."""
        self._kept.pop(key, None)

    def close(self) -> None:
        """Give up all tasks; those that have not begun are cancelled."""
        with suppress(Exception):
            for future in [*self._futures.values(), self._sent]:
                if future is not None:
                    future.release()
        self._futures, self._tasks, self._sent = {}, {}, None

    # --- sending

    def _scatter(self) -> None:
        """Send the data to a worker that answers; others get them from there, when they need them.

        Dask's scheduler would try for ever to copy them to one that has gone, and would copy nothing else meanwhile.
        """
        options, client = self._options, self._client
        self._workers = bounded(client.nthreads, options.timeout)
        if self._workers and self._avoided.issuperset(self._workers):
            self._avoided = bounded(self._silent, options.timeout)  # on a busy machine, some were just slow
        there = [address for address in self._workers if address not in self._avoided]
        if not there:
            raise TimeoutError("there are no workers")
        self._sent = bounded(lambda: client.scatter(self._data, workers=there[:1], hash=False), options.timeout)

    def _silent(self) -> set[str]:
        """Return the workers that the scheduler heard from much earlier than from the last that it heard from."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        heard = {address: float(worker["last_seen"]) for address, worker in workers.items()}
        newest = max(heard.values(), default=0.0)
        return {address for address, when in heard.items() if newest - when >= self._options.timeout / 2}

    def _submit(self, task: _Task) -> Future:
        arguments = [self._known(argument) for argument in task.arguments]
        threads = {address: n for address, n in self._workers.items() if address not in self._avoided}
        crowd = self._n_parts / max(1, sum(threads.values()))
        where: dict[str, object] = {}
        if task.place is not None and threads:
            where = {"workers": [_places(self._n_parts, threads)[task.place]], "allow_other_workers": True}
        elif self._avoided and threads:
            where = {"workers": list(threads), "allow_other_workers": True}
        name = getattr(task.arguments[0] if task.function is _advanced else task.function, "__name__", "task")
        return self._client.submit(
            _limited, crowd, task.function, self._sent, *arguments, key=f"{name}-{uuid4().hex}", pure=False, **where
        )

    def _known(self, argument: object) -> Any:
        if not isinstance(argument, _ResultOf):
            return argument
        return self._kept[argument.key] if argument.key in self._kept else self._futures[argument.key]

    # --- waiting

    def _wait(self, key: Hashable) -> Any:
        """Return the result of a task, which is sent again if it is lost."""
        watch = _Watch(self._client, self._options)
        while True:
            future = self._futures[key]
            try:
                error = future.exception(timeout=min(POLL, self._options.timeout / 4))
                if future.status == "finished":
                    return future.result(timeout=self._options.timeout)
            except (self._distributed.CancelledError, concurrent.futures.CancelledError) as lost:
                self._again(key, lost)
            except NO_ANSWER as silent:
                if future.status == "finished":  # but its result does not arrive
                    self._again(key, silent)
                elif not watch.alive([task.key for task in self._futures.values()]):
                    self._avoided |= watch.mute
                    self._again(key, TimeoutError(f"no task finished in {self._options.timeout:g} s"))
                else:
                    continue
            else:
                if future.status == "error":
                    self._failed(key, error)
                else:
                    self._again(key, concurrent.futures.CancelledError("the data were lost with their workers"))
            watch = _Watch(self._client, self._options)

    def _failed(self, key: Hashable, error: BaseException) -> None:
        """Raise the error of a task, unless it is that its workers ended."""
        if isinstance(error, self._distributed.KilledWorker):
            config = load("dask", "cluster needs").config
            self._again(key, error, 1 + int(config.get("distributed.scheduler.allowed-failures", 3)))
        elif isinstance(error, CrfkitError):
            raise error
        else:
            raise ClusterError(f"a task failed on a worker: {type(error).__name__}: {error}") from error

    def _again(self, key: Hashable, error: BaseException, workers: int = 1) -> None:
        """Send all tasks that are not finished again, because one was lost together with some workers.

        So are the data: Dask keeps a single copy of what no task waits for, maybe on a worker that does not answer.
        """
        self._lost(key, error, workers)
        self._recovering(self._scatter)
        for other, task in self._tasks.items():
            if other not in self._futures or other == key or self._futures[other].status != "finished":
                self._futures[other] = self._submit(task)

    def _recovering(self, send: Callable[[], None]) -> None:
        """Do something that needs workers, as often as it takes and `retries` allows."""
        while True:
            try:
                bounded(lambda: self._client.wait_for_workers(1, timeout=self._options.timeout), self._options.timeout)
            except NO_ANSWER as error:
                raise ClusterError(
                    f"the cluster has not answered, or has had no workers, for {self._options.timeout:g} s; start some "
                    f"with `dask worker {self._client.scheduler.address}`, or wait longer: Cluster(timeout=…)"
                ) from error
            try:
                send()
            except (*NO_ANSWER, concurrent.futures.CancelledError) as error:
                self._lost(None, error, 1)
            else:
                self._losses.pop(None, None)
                return

    def _lost(self, key: Hashable, error: BaseException, workers: int) -> None:
        """Count a loss; raise ClusterError if there were too many in a row."""
        losses = self._losses[key] = self._losses.get(key, 0) + workers
        if losses > self._options.retries:
            raise ClusterError(
                f"a task was lost with {losses} workers, one after the other: {str(error).strip() or type(error)}; "
                "the workers may have too little memory. More losses are allowed by Cluster(retries=…)"
            ) from error


class _Watch:
    """Tells whether any worker that has been given tasks still answers, or for how long none has."""

    def __init__(self, client: Client, options: Cluster) -> None:
        self._client = client
        self._patience = options.timeout
        self._since = time.monotonic()
        self._heard: dict[str, float] = {}  # worker with tasks → when the scheduler heard from it, by its own clock
        self.mute: set[str] = set()  # workers with tasks from which nothing was heard

    def alive(self, keys: list[str]) -> bool:
        """Return False if nothing was heard of these tasks for the timeout.

        A task may take as long as it needs, on a worker that the scheduler hears from.
        """
        with suppress(*NO_ANSWER):
            heard = bounded(lambda: self._ask(set(keys)), self._patience)
            if heard.items() - self._heard.items():
                self._since = time.monotonic()
            self.mute = {address for address, seen in heard.items() if self._heard.get(address) == seen}
            self._heard = heard
        return time.monotonic() - self._since < self._patience

    def _ask(self, keys: set[str]) -> dict[str, float]:
        processing = self._client.processing()
        seen = self._client.scheduler_info(n_workers=-1)["workers"]
        return {
            address: seen[address]["last_seen"]
            for address, tasks in processing.items()
            if address in seen and keys & set(tasks)
        }


def _limited(crowd: float, function: Callable[..., Any], data: object, *arguments: object) -> Any:
    """Run a task on a worker, with the worker's threads divided among the tasks that it runs at a time.

    `crowd` is the number of tasks for each thread of the cluster.
    """
    threads = max(1, int(load("distributed", "cluster needs").get_worker().state.nthreads))
    at_a_time = min(threads, max(1, math.ceil(crowd * threads)))
    with limited_threads(threads // at_a_time):
        return function(data, *arguments)


def _advanced(data: object, function: Callable[..., Any], item: object, value: object, before: Any) -> Any:
    """Return the result and the state of a part at its next value; `before` is that pair at the last value."""
    return function(data, item, value, None if before is None else before[1])


def _places(n: int, threads: dict[str, int]) -> list[str]:
    """Return a worker for each of n places, so that workers have places in proportion to their threads.

    >>> _places(4, {"a": 2, "b": 1})
    ['a', 'a', 'b', 'a']
    """
    given = dict.fromkeys(sorted(threads), 0)
    places = []
    for _ in range(n):
        address = min(given, key=lambda one: (given[one] + 1) / max(1, threads[one]))
        given[address] += 1
        places.append(address)
    return places
