"""Where a command reads its input and writes its results."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from crfkit.errors import DataError
from crfkit.files import make_ordinary


def open_input(path: Path) -> Path | BinaryIO:
    """Return what to read: the file, or standard input for "-"."""
    if path != Path("-"):
        return path
    if sys.stdin is None:
        raise DataError("standard input is closed; name a file")
    return sys.stdin.buffer


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """stdout, or a file that replaces what was there only when it is complete."""
    if path is None:
        if sys.stdout is None:
            raise DataError("standard output is closed")
        yield sys.stdout.buffer
        return
    if path.is_dir() or not path.name:
        raise DataError("cannot write the output: it is a directory", path)
    if path.exists() and not path.is_file():  # a pipe or a device
        with open(path, "wb") as stream:
            yield stream
        return
    import tempfile

    target = path.resolve()
    temporary = None
    try:
        try:
            handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        except OSError as error:
            raise DataError(f"cannot write the output: {error.strerror}", path) from error
        with os.fdopen(handle, "wb") as stream:
            yield stream
        make_ordinary(temporary)
        os.replace(temporary, target)
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
