"""The number of threads to use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from crfkit.errors import ParameterError

MAX_THREADS = 1024

_threads: ContextVar[int] = ContextVar("crfkit_threads", default=1)
_most: ContextVar[int] = ContextVar("crfkit_most_threads", default=MAX_THREADS)


def count_threads(n_threads: int | None) -> int:
    """Return the number of threads to use: as given, or as many as this process may run on; see `limited_threads`.

    Raises ParameterError for a number that no machine has and that would take memory for each of them.
    """
    if n_threads is not None:
        if n_threads > MAX_THREADS:
            raise ParameterError(f"n_threads is {n_threads}; at most {MAX_THREADS} threads are supported")
        return min(max(1, n_threads), _most.get())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _most.get())


@contextmanager
def limited_threads(n: int) -> Iterator[None]:
    """Let nothing inside this block use more than n threads, for example in one of several tasks that share a machine.

    >>> with limited_threads(1):
    ...     count_threads(None), count_threads(4)
    (1, 1)
    """
    token = _most.set(max(1, n))
    try:
        yield
    finally:
        _most.reset(token)


@contextmanager
def using_threads(n: int) -> Iterator[None]:
    """Let vector operations use n threads inside this block."""
    token = _threads.set(n)
    try:
        yield
    finally:
        _threads.reset(token)


def thread_count() -> int:
    """Return how many threads vector operations may use here."""
    return _threads.get()
