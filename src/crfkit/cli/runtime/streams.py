"""Standard output that writes everything or fails, and standard error that never fails."""

from __future__ import annotations

import io
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from crfkit.errors import DataError


@contextmanager
def dependable() -> Iterator[None]:
    """Replace the standard streams of this process for the time of a command."""
    before = sys.stdout, sys.stderr
    sys.stdout = _output(sys.stdout)
    sys.stderr = _errors(sys.stderr)
    try:
        yield
    finally:
        for ours, theirs in zip((sys.stdout, sys.stderr), before, strict=True):
            if ours is not theirs:
                with suppress(OSError, ValueError, DataError, NoReaderError):
                    ours.flush()
        sys.stdout, sys.stderr = before


def _output(stream: Any) -> Any:
    if stream is None:
        return ClosedOutput()
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")  # a question mark for what the console cannot show
    return _wrapped(stream, _Patient) if stream is sys.__stdout__ else stream


def _errors(stream: Any) -> Any:
    if stream is None:
        return io.TextIOWrapper(_Nowhere(), encoding="utf-8", errors="replace", write_through=True)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return _wrapped(stream, _Forgiving, line_buffering=True) if stream is sys.__stderr__ else stream


def _wrapped(stream: Any, kind: type[_Patient], line_buffering: bool = False) -> Any:
    """Return a stream on the same file. One that Python does not buffer (`python -u`) would ignore short writes."""
    try:
        stream.flush()
        raw = kind(stream.fileno(), "wb", closefd=False)
    except (OSError, ValueError, AttributeError):
        return stream
    unbuffered = isinstance(stream.buffer, io.RawIOBase)
    return io.TextIOWrapper(
        _Through(raw) if unbuffered else io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering or line_buffering,
        write_through=unbuffered,
    )


class NoReaderError(Exception):
    """The program that reads standard output has ended, as in `crfkit tag … | head`.

    It is no OSError, because typer would handle that.
    """


class _Patient(io.FileIO):
    """A file that waits where it cannot be written to at once, as a pipe that somebody has made non-blocking."""

    def write(self, data: Any, /) -> int:
        try:
            while (n := super().write(data)) is None:
                select.select([], [self], [])
        except BrokenPipeError:
            raise NoReaderError from None
        return n


class _Forgiving(_Patient):
    """A file that takes everything, and loses what it cannot write: messages must not end the work they are about."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except (OSError, NoReaderError):
            return memoryview(data).nbytes


class _Through(io.BufferedWriter):
    """A buffer that is empty after each call."""

    def write(self, data: Any, /) -> int:
        n = super().write(data)
        self.flush()
        return n


class _Nowhere(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return memoryview(data).nbytes


class ClosedOutput(io.TextIOBase):
    """Takes the place of a standard output that is closed: whoever writes to it gets an error."""

    encoding = "utf-8"
    errors = "replace"

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        if text:
            raise DataError("standard output is closed, so the output of the command is lost")
        return 0

    @property
    def buffer(self) -> Any:
        raise DataError("standard output is closed; give a file for the output")
