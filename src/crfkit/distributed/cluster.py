"""Connections to a Dask cluster: an address, a cluster or client object, or processes on this machine."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import math
import multiprocessing
import numbers
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import NoReturn, TypeVar

from crfkit import __version__
from crfkit._threads import count_threads
from crfkit._values import Client
from crfkit.errors import ClusterError, ParameterError
from crfkit.extras import load
from crfkit.wording import counted

Result = TypeVar("Result")
LOCAL = re.compile(r"local(?::(\d+))?")
MOST_LOCAL = 256
CONNECT = 15.0  # seconds
START_ATTEMPTS = 5  # of all processes of a local cluster: Dask gives up if one of them ends before it has registered
NOTES = "CRFKIT_LOCAL_NOTES"  # variable of the environment: a folder
IMPORTED = "imported"  # file there: a worker has imported a script that starts a cluster
# Dask has workers return memory at every chance, so vectors of weights and gradients would take new pages in every
# evaluation; ours keep it.
LOCAL_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 28), "MALLOC_TRIM_THRESHOLD_": str(1 << 28)}


@dataclass(frozen=True)
class Cluster:
    """A cluster and how to use it. Wherever an estimator takes a cluster, it takes one of these as well.

    Parameters
    ----------
    address : "tcp://host:port" or "tls://host:port" of a scheduler, the path of a scheduler file (.json), "local:4" for
        four processes on this machine, or an object: ``dask.distributed.Client`` or a cluster such as
        ``LocalCluster``. An object may have a ``Security``; for an address, it comes from Dask's configuration
    shards : number of parts that the training set is split into; None for one per worker. Dask bags and frames have a
        shard per partition instead
    transport : "double", or "single" to send weights and gradients as 32-bit numbers while the shards compute in single
        precision, which chains of 32,768 positions and more do until a solver sees rounding errors: half the bytes
    timeout : seconds that one evaluation may take; after that, workers that do not answer count as lost
    retries : how many times in a row workers may be lost, or not answer, before training gives up

    >>> Cluster("local:2", shards=4).shards
    4
    """

    address: object
    shards: int | None = None
    transport: str = "double"
    timeout: float = 600.0
    retries: int = 5

    def __post_init__(self) -> None:
        if isinstance(self.address, Cluster):
            raise ParameterError("the address of a Cluster must not be another Cluster")
        for name, least in (("shards", 1), ("retries", 0)):
            value = getattr(self, name)
            if value is None and name == "shards":
                continue
            if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
                raise ParameterError(f"{name} must be a whole number >= {least}, not {value!r}")
        if self.transport not in ("double", "single"):
            raise ParameterError(f"transport must be 'double' or 'single', not {self.transport!r}")
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, numbers.Real):
            raise ParameterError(f"timeout must be a number of seconds, not {self.timeout!r}")
        if not 0 < self.timeout < math.inf:
            raise ParameterError(f"timeout must be a positive number of seconds, not {self.timeout!r}")

    @classmethod
    def of(cls, given: object) -> Cluster:
        """Return what an estimator was given as a Cluster."""
        return given if isinstance(given, Cluster) else cls(given)


@contextmanager
def connect(cluster: object) -> Iterator[Client]:
    """Yield a ``distributed.Client`` of a cluster that has at least one worker with this version of crfkit.

    Whatever this started or opened is closed at the end; a given client or cluster object stays open.

    >>> with connect("local:1") as client:
    ...     client.submit(sum, [1, 2]).result()
    3
    """
    options = Cluster.of(cluster)
    distributed = load("distributed", "cluster needs")
    wait = min(options.timeout, CONNECT)
    with ExitStack() as opened:
        client = _opened(distributed, options.address, wait, opened)
        _check_workers(client, wait)
        yield client


def _opened(distributed: ModuleType, address: object, wait: float, opened: ExitStack) -> Client:
    """Return a client; what is opened for it is entered in the stack."""
    if isinstance(address, distributed.Client):
        return address
    if isinstance(address, str) and (match := LOCAL.fullmatch(address)):
        # a worker that was killed is replaced, however often; Dask would give it up after 15 seconds
        patience = load("dask.config", "cluster needs").set({"distributed.deploy.lost-worker-timeout": "1 hour"})
        opened.enter_context(patience)
        address = opened.enter_context(_local(distributed, int(match[1]) if match[1] else count_threads(None)))
    elif isinstance(address, str):
        address = _scheduler(address)
    elif not hasattr(address, "scheduler_address"):  # that of a cluster object
        raise ParameterError(
            f"cluster must be an address such as 'tcp://host:8786', 'local:4', or a Dask client or cluster, not "
            f"{address!r}"
        )
    try:
        client = distributed.Client(address, timeout=wait, direct_to_workers=True, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ClusterError(
            f"no scheduler answers at {address}: {short(error)}; start one with `dask scheduler`, or check host, port "
            "and firewall"
        ) from error
    return opened.enter_context(client)


def _scheduler(address: str) -> str:
    """Return the address of a scheduler, which may be in a file."""
    if address.endswith(".json"):
        try:
            with open(address, encoding="utf-8") as file:
                return str(json.load(file)["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ClusterError(
                f"{address} is not a scheduler file: {short(error)}; `dask scheduler --scheduler-file FILE` writes one"
            ) from error
    if not re.match(r"[a-z]+://.", address):
        raise ParameterError(f"cluster is {address!r}; expected an address such as 'tcp://host:8786', or 'local:4'")
    return address


@contextmanager
def _local(distributed: ModuleType, n: int) -> Iterator[Client]:
    """Yield a cluster of n processes on this machine, which share its cores and trust only each other.

    All ports are on the loopback interface, and connections need a certificate that only these processes have.
    """
    if not 1 <= n <= MOST_LOCAL:
        raise ParameterError(f"local:{n} must have 1 to {MOST_LOCAL} processes")
    if _is_imported_by_a_worker():
        _tell_parent()
    threads = max(1, count_threads(None) // n)
    load("cryptography", "cluster='local' needs")  # Dask makes the certificates with it
    with tempfile.TemporaryDirectory(prefix="crfkit-") as folder, _configured(folder):
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                cluster = distributed.LocalCluster(
                    n_workers=n,
                    threads_per_worker=threads,
                    processes=True,
                    host="127.0.0.1",
                    protocol="tls://",
                    security=distributed.Security.temporary(),
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL,
                    env=LOCAL_ENVIRONMENT,
                    preload=["crfkit.distributed.local_worker"],
                )
                break
            except (RuntimeError, OSError, LookupError, TimeoutError, asyncio.TimeoutError) as error:
                if os.path.exists(os.path.join(folder, IMPORTED)):
                    raise ClusterError(
                        f"the processes of local:{n} import the script that starts them; put the call under "
                        "if __name__ == '__main__':"
                    ) from error
                if attempt == START_ATTEMPTS:
                    raise ClusterError(
                        f"the processes of local:{n} ended {attempt} times while they started ({short(error)}); use "
                        "fewer processes if memory is short"
                    ) from error
    with cluster:
        yield cluster


@contextmanager
def _configured(folder: str) -> Iterator[None]:
    """Tell processes that are started here where to leave a note; let no port answer questions over HTTP."""
    config = load("dask.config", "cluster needs")
    before = config.get("distributed.nanny.pre-spawn-environ", {}) or {}
    settings = {
        "distributed.nanny.pre-spawn-environ": {**before, NOTES: folder},
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    # Dask sets these variables in this process, and prefers the values that it finds here.
    outer = os.environ.pop(NOTES, None)
    try:
        with config.set(settings):
            yield
    finally:
        os.environ.pop(NOTES, None)
        if outer is not None:
            os.environ[NOTES] = outer


def _is_imported_by_a_worker() -> bool:
    """Return whether this process was spawned and is still importing the script of the process that spawned it."""
    return bool(getattr(multiprocessing.current_process(), "_inheriting", False))


def _tell_parent() -> NoReturn:
    """End a process that would start a cluster while it imports a script; leave a note for the process above."""
    folder = os.environ.get(NOTES)
    if folder is None or not os.path.isdir(folder):
        raise ClusterError("a process that another one spawned imports a script that starts a cluster; put the call "
                           "under if __name__ == '__main__':")  # fmt: skip
    with open(os.path.join(folder, IMPORTED), "w", encoding="utf-8"):
        pass
    raise SystemExit(1)


def _check_workers(client: Client, wait: float) -> None:
    """Raise ClusterError unless there are workers and all of them have this version of crfkit."""
    try:
        client.wait_for_workers(1, timeout=wait)
    except (TimeoutError, asyncio.TimeoutError):
        raise ClusterError(
            f"the scheduler has no workers after {wait:g} s; start some with `dask worker {client.scheduler.address}`"
        ) from None
    try:
        found = _versions(client, wait)
    except TimeoutError:
        raise ClusterError(
            f"a worker has not answered for {wait:g} s; look at the workers of {client.scheduler.address}, and close "
            "those that hang"
        ) from None
    except ImportError as error:
        raise ClusterError(
            f"a worker cannot import crfkit ({short(error)}); run pip install 'crfkit[distributed]' on every worker"
        ) from error
    except OSError as error:
        raise ClusterError(f"the cluster does not answer: {short(error)}") from error
    others = sorted({version for version in found.values() if version != __version__})
    if others:
        wrong = sorted(address for address, version in found.items() if version != __version__)
        raise ClusterError(
            f"{counted(len(wrong), 'worker')} ({wrong[0]}{', …' if len(wrong) > 1 else ''}) "
            f"{'have' if len(wrong) > 1 else 'has'} crfkit {others[0]}, "
            f"but this is {__version__}; install the same version everywhere"
        )


def _versions(client: Client, wait: float) -> dict[str, str]:
    """Return the version of every worker; ask again if a worker is lost meanwhile."""
    end = time.monotonic() + wait
    while True:
        try:
            return bounded(lambda: client.run(_version), max(0.1, end - time.monotonic()))
        except OSError as error:
            if isinstance(error, TimeoutError) or time.monotonic() > end:
                raise
        time.sleep(0.1)
        client.wait_for_workers(1, timeout=wait)


def _version() -> str:
    """Return the version of crfkit on a worker."""
    return __version__


def short(error: BaseException) -> str:
    """Return the first line of an error."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


def bounded(call: Callable[[], Result], seconds: float) -> Result:
    """Return call(), or raise TimeoutError if it takes longer; it then continues in a thread that nobody waits for."""
    done: concurrent.futures.Future[Result] = concurrent.futures.Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name="crfkit-cluster").start()
    try:
        return done.result(seconds)
    except concurrent.futures.TimeoutError as error:
        raise TimeoutError(str(error) or f"no answer in {seconds:g} s") from error
