"""Files that are read and written whole: models, checkpoints, output, plots.

Reading is private: the bytes are copied into memory once, and nothing that happens to the file later (it is overwritten
in place, truncated, deleted) can change or break what was loaded.

Writing goes through a temporary file beside the target, ``.NAME.xxxxxxxx.crfkit-tmp``: it is written, flushed to the
disk and then renamed, so that at every moment, also after a crash of the machine, the old or the new file is there
whole. Temporary files of processes that were killed are removed by the next one that writes the same target.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from crfkit.files.temporary import Temporary
from crfkit.interrupts import deferred

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PARALLEL = 1 << 24  # bytes of files that two threads read
ATTEMPTS, WAIT = 20, 0.006  # how often a file that is being written is read, with so many seconds between
Loaded = TypeVar("Loaded")
_AT_ONCE = 1 << 30  # bytes; systems read at most 2 GB at once

# --- reading


def read(path: str | Path, check_head: Callable[[bytes, int], None] | None = None) -> NDArray[np.uint8]:
    """Return the contents of a regular file as one private copy; raise ModelFileError if it cannot be read.

    `check_head` is called with the first 64 bytes and the size, before the rest is read. A file that changes while it
    is read is read again, up to three times.
    """
    from crfkit.errors import ModelFileError

    try:
        for attempt in range(3):
            with _regular(path) as stream:
                before = os.fstat(stream.fileno())
                if before.st_size > _memory():
                    raise ModelFileError(
                        f"cannot read {path}: it has {before.st_size:,} bytes, more than this machine has memory",
                        path,
                    )
                if check_head is not None:
                    check_head(stream.read(64), before.st_size)
                contents = _contents(stream, before.st_size)
                after = os.fstat(stream.fileno())
            unchanged = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
            if unchanged and len(contents) == before.st_size:
                break
            if attempt == 2:
                raise ModelFileError(f"cannot read {path}: it changes while it is read", path)
        contents.flags.writeable = False
        return contents
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}", path) from error
    except MemoryError:
        raise ModelFileError(f"cannot read {path}: there is not enough memory for it", path) from None


def _contents(stream: io.FileIO, size: int) -> NDArray[np.uint8]:
    """Return so many bytes from the beginning of a file, or what there is."""
    from crfkit import _core

    buffer = _core.empty_bytes(size)
    if size < PARALLEL or not hasattr(os, "preadv"):
        stream.seek(0)
        return buffer[: _fill(lambda view, _: stream.readinto(view) or 0, buffer.data, 0)]
    from concurrent.futures import ThreadPoolExecutor

    def part(begin: int, end: int) -> int:
        return _fill(lambda view, at: os.preadv(stream.fileno(), [view], at), buffer.data[begin:end], begin)

    half = size // 2
    with ThreadPoolExecutor(1) as other:
        try:
            second = other.submit(part, half, size)
        except RuntimeError:  # there is no memory for another thread
            return buffer[: part(0, size)]
        n = part(0, half)
        return buffer[: n + second.result() if n == half else n]


def _fill(read_into: Callable[[memoryview, int], int], view: memoryview, begin: int) -> int:
    """Read into a view as long as there is something; return the number of bytes."""
    n = 0
    while n < len(view) and (got := read_into(view[n : n + _AT_ONCE], begin + n)):
        n += got
    return n


def read_head(path: str | Path, size: int = 64) -> bytes:
    """Return the first bytes of a regular file; raise ModelFileError if it cannot be read."""
    from crfkit.errors import ModelFileError

    try:
        with _regular(path) as stream:
            head = bytearray(size)
            return bytes(head[: stream.readinto(head) or 0])
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}", path) from error


@dataclass(frozen=True)
class Signature:
    """Return what changes when a file is written to."""

    inode: int
    size: int
    modified: int
    fresh: bool = field(compare=False)  # whether it was written to in the last second


def signature(path: str | Path) -> Signature | None:
    """Return the current signature of a file, or None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Signature(found.st_ino, found.st_size, found.st_mtime_ns, abs(time.time() - found.st_mtime) < 1)


def patiently(path: str | Path, load: Callable[[], Loaded]) -> Loaded:
    """Return what `load` makes of a file. While the file changes, a ModelFileError makes it try again.

    A file that is overwritten in place is incomplete for a moment, and may look old at the beginning of it.
    """
    from crfkit.errors import ModelFileError

    for _ in range(ATTEMPTS - 1):
        before = signature(path)
        try:
            return load()
        except ModelFileError:
            now = signature(path)
            if now is None or (now == before and not now.fresh):
                raise
            time.sleep(WAIT)
            if signature(path) == before:
                raise
    return load()


def _regular(path: str | Path) -> io.FileIO:
    """Open a regular file for reading; a pipe or a device raises OSError instead of blocking."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return io.FileIO(handle)
    except BaseException:
        os.close(handle)
        raise


def _memory() -> int:
    """Return the bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


# --- writing


def is_special(path: str | Path) -> bool:
    """Return whether a path is a device, a pipe or the like; a file must not take its place."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # reported when it is opened
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def replacing(
    path: str | Path, error: Callable[[str], Exception] | None = None, durable: bool = True
) -> Iterator[BinaryIO]:
    """Open a file for writing; it replaces an older one only when it is complete and on the disk.

    A new file has the permissions that the process gives to new files, and a file that takes the place of an older one
    has those of the older one. A device or a pipe, such as /dev/null, is written to and never replaced. Where the
    system refuses, `error(reason)` is raised, by default ModelFileError; errors of the block itself are not touched.
    With `durable` off, the file is not forced to the disk before it replaces the older one.
    """
    fail = _failure(path, error)
    if is_special(path):  # before links are followed: that of /dev/stdout may lead to no path at all
        with fail.converted():
            handle = os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            yield from _written(handle, fail)
        finally:
            os.close(handle)
        return
    temporary = None
    try:
        with deferred(), fail.converted():
            temporary = Temporary(_target(path))
        yield from _written(temporary.handle, fail)
        with deferred(), fail.converted():
            temporary.replace(durable)
    finally:
        if temporary is not None:
            with deferred():
                temporary.discard()


def check_writable(path: str | Path) -> None:
    """Raise an error now if `path` could not be replaced later; remove what killed processes left beside it."""
    fail = _failure(path, None)
    with deferred(), fail.converted():
        if is_special(path):
            raise OSError(errno.EINVAL, "it is not a regular file")
        Temporary(_target(path)).discard()


def write(path: str | Path, contents: bytes, error: Callable[[str], Exception] | None = None) -> None:
    """Write a file whole; see `replacing`."""
    with replacing(path, error) as stream:
        stream.write(contents)


class _Failure:
    """Turns system errors into errors of the caller's class and wording."""

    def __init__(self, error: Callable[[str], Exception]) -> None:
        self._error = error

    @contextmanager
    def converted(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error


def _failure(path: str | Path, error: Callable[[str], Exception] | None) -> _Failure:
    if error is not None:
        return _Failure(error)
    from crfkit.errors import ModelFileError

    return _Failure(lambda reason: ModelFileError(f"cannot write {path}: {reason}", path))


class _Raw(io.FileIO):
    """The file under a buffer. Once writing has failed it takes everything, so that closing does not fail again."""

    def __init__(self, handle: int, fail: _Failure) -> None:
        super().__init__(handle, "wb", closefd=False)
        self._fail, self._failed = fail, False

    def write(self, data: Any, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        try:
            with self._fail.converted():
                return super().write(data)
        except BaseException:
            self._failed = True
            raise


def _written(handle: int, fail: _Failure) -> Iterator[BinaryIO]:
    raw = _Raw(handle, fail)
    stream = io.BufferedWriter(raw, 1 << 16)
    try:
        yield stream
        if not stream.closed:
            stream.flush()
    except BaseException:
        raw._failed = True
        raise
    finally:
        stream.close()


def _target(path: str | Path) -> str:
    """Return the file that a path means, through symbolic links; raise OSError if none can be written there."""
    target = os.path.realpath(path)
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is write-protected")
    return target
