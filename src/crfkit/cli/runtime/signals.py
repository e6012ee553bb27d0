"""Ctrl-C, SIGTERM and SIGHUP: when they interrupt a command, and when they have to wait.

They raise KeyboardInterrupt in the command. They wait while a module is imported, because the exception would get lost
or become another one there; while a model is written; and, once `result_is_kept` was called, everywhere but in the loop
of the solver, which ends with the weights so far.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated"}
own_process = False  # whether the process runs nothing but one command
_AGAIN = 0.005  # seconds until a signal that had to wait is tried again
_LOOP = {("loop.py", "__iter__"), ("loop.py", "_call_back")}
_WRITING = {("modelfile.py", "write"), ("atomic.py", "check_writable"), ("temporary.py", "__init__")}

_current: Interrupts | None = None


class Interrupts:
    """Looks after the signals while a command runs."""

    def __init__(self) -> None:
        self.first: signal.Signals | None = None  # that came
        self.only_loop = False
        self.remark = ""
        self._before: dict[int, Any] = {}
        self._unraisable = sys.unraisablehook

    def __enter__(self) -> Interrupts:
        global _current
        _current = self
        if threading.current_thread() is threading.main_thread():
            for name in WORDS:
                number = getattr(signal, name, None)
                before = None if number is None else signal.getsignal(number)
                if number is not None and (before is signal.SIG_DFL or (name == "SIGINT" and callable(before))):
                    self._before[number] = signal.signal(number, self._came)
            if self._before and hasattr(signal, "setitimer"):
                self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._try)
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

    @property
    def code(self) -> int:
        """The exit code: 128 and the number of the signal."""
        return 128 + (self.first or signal.SIGINT)

    @property
    def word(self) -> str:
        return WORDS[signal.Signals(self.first or signal.SIGINT).name] + self.remark

    def _came(self, number: int, frame: FrameType | None) -> None:
        self.first = self.first or signal.Signals(number)
        self._try(number, frame)

    def _try(self, _: int, frame: FrameType | None) -> None:
        if self.first is None:
            return
        if self._must_wait(frame) and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
            return
        raise KeyboardInterrupt

    def _must_wait(self, frame: FrameType | None) -> bool:
        looping = False
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                return True
            place = (name.replace("\\", "/").rpartition("/")[2], frame.f_code.co_name)
            if place in _WRITING:
                return True
            looping = looping or place in _LOOP
            frame = frame.f_back
        return self.only_loop and not looping

    def _lost(self, unraisable: Any) -> None:
        """Try again if the exception came where none can be raised, such as in a destructor."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            self._unraisable(unraisable)


def result_is_kept(*_: object) -> None:
    """Let signals interrupt the loop of the solver only, from now on: its result will be written. Also a callback."""
    if _current is not None:
        _current.only_loop = True


def came() -> signal.Signals | None:
    """Return the first signal that came, if any."""
    return None if _current is None else _current.first


def remark(text: str) -> None:
    """Add to the line that says that the command was interrupted."""
    if _current is not None:
        _current.remark = f"; {text}"
