"""Model files as bytes: mapped into memory to be read, and replaced only when they are complete."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def mapped(path: str | Path) -> mmap.mmap | bytes:
    """Return the bytes of a model file, of which only those take memory that are looked at."""
    from crfkit.errors import ModelFileError

    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error


def make_ordinary(path: str) -> None:
    """Give a temporary file the permissions that a new file would have."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(path, 0o666 & ~umask)


def is_special(path: Path) -> bool:
    """Return whether a path is a device, a pipe or the like; a file must not take its place."""
    try:
        mode = path.stat().st_mode
    except OSError:  # reported when it is opened
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a model file for writing; an older one is replaced when the new one is complete, else it stays.

    A device or a pipe, such as /dev/null, is written to and never replaced.
    """
    import tempfile

    from crfkit.errors import ModelFileError

    target = Path(path).resolve()
    temporary: str | None = None
    try:
        if is_special(target):
            with open(target, "wb") as stream:
                yield stream
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as stream:
            yield stream
        make_ordinary(temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
