"""Input and output of a command: files, standard input and output, CSV."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
    """Open standard output, or a file that replaces an older one only when it is complete."""
    if path is None:
        yield sys.stdout.buffer
        return
    if not path.name:
        raise DataError("cannot write the output: it is a directory", path)
    with replacing(path, unwritable(path)) as out:
        yield out


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
