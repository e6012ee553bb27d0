"""The threads of structure learning: its own, but one for products of small matrices, in which BLAS would only wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crfkit._threads import count_threads, using_threads


@contextmanager
def structure_threads(n_threads: int | None) -> Iterator[None]:
    """Use these threads (None for all) inside this block, and one of BLAS."""
    with using_threads(count_threads(n_threads)), _BLAS:
        yield


class _OneOfBlas:
    """Limits BLAS, which is shared by all threads of the process, until the last of those that asked for it is done."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._limits = threadpool_limits(1, "blas")
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limits.restore_original_limits()
                self._limits = None


_BLAS = _OneOfBlas()
