"""A function of many items, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from crfkit._threads import count_threads

Item = TypeVar("Item")
Value = TypeVar("Value")


def in_threads(function: Callable[[Item], Value], items: Iterable[Item], n_threads: int | None) -> Iterator[Value]:
    """Yield function(item) of each item in order; after an error or Ctrl-C, no further item is started."""
    pool = ThreadPoolExecutor(count_threads(n_threads))
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
