"""Input and output of a command: files, standard input and output, CSV."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from crfkit.errors import DataError
from crfkit.files.atomic import replacing
from crfkit.wording import printable


def say(text: object, err: bool = False) -> None:
    """Print what a person reads, with control characters of names shown as escapes."""
    import typer

    typer.echo(printable(str(text)), err=err)


def open_input(path: Path) -> Path | BinaryIO:
    """Return the file to read, or standard input for "-"."""
    if path != Path("-"):
        return path
    if sys.stdin is None:
        raise DataError("standard input is closed; give a file instead of -")
    return sys.stdin.buffer


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Open standard output, or a file that replaces an older one only when it is complete.

    A terminal shows control characters as escapes; files and pipes get every byte as it is.
    """
    if path is None:
        yield cast(BinaryIO, OnTerminal(sys.stdout.buffer)) if sys.stdout.isatty() else sys.stdout.buffer
        return
    if not path.name:
        raise DataError("cannot write the output: it is a directory", path)
    with replacing(path, unwritable(path)) as out:
        yield out


class OnTerminal(io.BufferedIOBase):
    r"""Write to a terminal, with the control characters of UTF-8 that `printable` escapes shown as escapes.

    >>> stream = io.BytesIO()
    >>> _ = OnTerminal(stream).write(b"B-\x1b[2J\r\n")
    >>> print(stream.getvalue())
    b'B-\\x1b[2J\r\n'
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(_CONTROLS.sub(_escaped, bytes(data)))
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


_CONTROLS = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]"
)


def _escaped(found: re.Match[bytes]) -> bytes:
    return found[0].decode("utf-8").encode("unicode_escape")


def unwritable(path: Path) -> Callable[[str], DataError]:
    """Return a function that makes the error of an output from the reason why it cannot be written."""
    return lambda reason: DataError(f"cannot write the output: {reason}", path)


def csv_bytes(header: Sequence[str], rows: Iterable[Iterable[object]]) -> bytes:
    """Return a table as CSV in UTF-8.

    >>> csv_bytes(["a", "b"], [(1, "x,y")])
    b'a,b\\n1,"x,y"\\n'
    """
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8")
