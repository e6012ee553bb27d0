"""Places where Ctrl-C has to wait, and places where it may interrupt.

The library marks the places; a program with a handler of its own asks :func:`arrive` what to do with a signal. The
command line is such a program (crfkit.cli.runtime.signals). Without one, the marks do nothing.

Signals reach the main thread only, so the marks count there only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _State:
    deferred = 0  # open blocks of `deferred`
    result_kept = False  # whether signals wait everywhere but in `welcome`
    welcome = False  # whether a block of `welcome` is open
    pending = False  # whether a signal waits


_state = _State()


@contextmanager
def deferred() -> Iterator[None]:
    """Let a signal that arrives in the block wait for its end. If the block raises an error, that goes first.

    >>> with deferred():
    ...     written = "whole"
    """
    if not _in_main_thread():
        yield
        return
    _state.deferred += 1
    try:
        yield
    finally:
        _state.deferred -= 1
    _deliver()


@contextmanager
def welcome() -> Iterator[None]:
    """Let signals interrupt the block even when the result is kept: it ends early and returns what it has."""
    if not _in_main_thread():
        yield
        return
    before, _state.welcome = _state.welcome, True
    try:
        _deliver()
        yield
    finally:
        _state.welcome = before


def keep_result(kept: bool = True) -> None:
    """Let signals wait from now on, except in blocks of `welcome`; with False, end that and forget one that waits."""
    _state.result_kept = kept
    if not kept:
        _state.pending = _state.welcome = False


def arrive() -> None:
    """Raise KeyboardInterrupt for a signal, now or where the marks allow it. Handlers of signals call it."""
    _state.pending = True
    _deliver()


def _deliver() -> None:
    if not _state.pending or _state.deferred or (_state.result_kept and not _state.welcome):
        return
    _state.pending = _state.welcome = False  # a second signal must not cut off how the block ends
    raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
