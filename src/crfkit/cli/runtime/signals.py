"""Ctrl-C, SIGTERM and SIGHUP: they raise KeyboardInterrupt in the command.

They wait where :mod:`crfkit.interrupts` says that they must: while a file is written or a native module is loaded and,
once `result_is_kept` was called, everywhere but in the loop of the solver, which ends with the weights so far.
"""

from __future__ import annotations

import signal
import sys
import threading
from importlib import import_module
from types import FrameType
from typing import Any

from crfkit import interrupts

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated"}
own_process = False  # whether the process runs nothing but one command
_AGAIN = 0.005  # seconds until an exception that got lost is raised again

_current: Interrupts | None = None


class Interrupts:
    """Looks after the signals while a command runs."""

    def __init__(self) -> None:
        self.first: signal.Signals | None = None  # that came
        self.remark = ""
        self._before: dict[int, Any] = {}
        self._unraisable = sys.unraisablehook

    def __enter__(self) -> Interrupts:
        global _current
        _current = self
        interrupts.keep_result(False)
        if threading.current_thread() is threading.main_thread():
            for name in WORDS:
                number = getattr(signal, name, None)
                before = None if number is None else signal.getsignal(number)
                if number is not None and (before is signal.SIG_DFL or (name == "SIGINT" and callable(before))):
                    self._before[number] = signal.signal(number, self._came)
            if self._before and hasattr(signal, "setitimer"):
                self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._again)
                sys.unraisablehook = self._lost
        return self

    def __exit__(self, *_: object) -> None:
        global _current
        _current = None
        if hasattr(signal, "SIGALRM") and signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.unraisablehook = self._unraisable
        for number, before in self._before.items():
            # the command is over: what comes now shall not disturb the end of the process
            signal.signal(number, signal.SIG_IGN if own_process else before)
        interrupts.keep_result(False)

    @property
    def code(self) -> int:
        """The exit code: 128 and the number of the signal."""
        return 128 + (self.first or signal.SIGINT)

    @property
    def word(self) -> str:
        return WORDS[signal.Signals(self.first or signal.SIGINT).name] + self.remark

    def _came(self, number: int, _: FrameType | None) -> None:
        self.first = self.first or signal.Signals(number)
        interrupts.arrive()

    def _again(self, *_: object) -> None:
        interrupts.arrive()

    def _lost(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Try again if the exception came where none can be raised, such as in a destructor."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            self._unraisable(unraisable)


def load_native() -> None:
    """Load NumPy and crfkit's core. Ctrl-C waits for it: inside of NumPy it would become an ImportError or get lost."""
    with interrupts.deferred():
        import_module("numpy")
        import_module("crfkit._core")


def result_is_kept(*_: object) -> None:
    """Let signals interrupt the loop of the solver only, from now on: its result will be written. Also a callback."""
    interrupts.keep_result()


def remark(text: str) -> None:
    """Add to the line that reports the interruption."""
    if _current is not None:
        _current.remark = f"; {text}"
