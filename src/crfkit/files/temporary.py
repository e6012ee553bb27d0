"""Temporary files beside the file that they will become; leftovers of killed processes are found and removed."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

SUFFIX = ".crfkit-tmp"
_LONGEST = 200  # bytes of a target's name that its temporary files carry; file systems allow 255 in all


class Temporary:
    """A locked temporary file beside a target; `replace` makes it the target, `discard` removes it."""

    def __init__(self, target: str) -> None:
        remove_strays(target)
        self._target = target
        self._older = _stat(target)
        self._path = ""
        self.handle = -1
        while self.handle < 0:
            self._create()

    def _create(self) -> None:
        """Create the file. In the moment before it is locked it may be taken for a stray: then there is another."""
        folder, name = os.path.split(self._target)
        self._path = os.path.join(folder, f"{_stem(name)}{os.urandom(4).hex()}{SUFFIX}")
        mode = 0o666 if self._older is None else 0o600  # of 0o666 the system leaves what the umask allows
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            self.handle = os.open(self._path, flags, mode)
        except FileExistsError:
            return
        _lock(self.handle, wait=True)
        if not _same(_stat(self._path), os.fstat(self.handle)):
            os.close(self.handle)
            self.handle = -1

    def replace(self, durable: bool) -> None:
        if self._older is not None:
            _keep_permissions(self.handle, self._path, self._older)
        if durable:
            os.fsync(self.handle)
        if os.name == "nt":  # where a file that is open cannot be renamed
            os.close(self.handle)
            self.handle = -1
        os.replace(self._path, self._target)
        self._path = ""
        if durable:
            _sync_folder(os.path.dirname(self._target))

    def discard(self) -> None:
        """Remove the file unless it has replaced the target, and unlock it."""
        if self.handle >= 0 and os.name == "nt":
            os.close(self.handle)
            self.handle = -1
        if self._path:
            with suppress(OSError):
                os.unlink(self._path)
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


def remove_strays(target: str | Path) -> None:
    """Remove temporary files of the target whose writers do not live any more.

    A writer holds a lock on its file until the file has its final name. A file that can be locked here has no writer.
    """
    folder, name = os.path.split(os.path.abspath(target))
    ours = re.compile(re.escape(_stem(name)) + r"[0-9a-f]{8}" + re.escape(SUFFIX))
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_stray(entry.path)


def _stem(name: str) -> str:
    """Return how the names of the temporary files of a target begin.

    >>> _stem("model.crf")
    '.model.crf.'
    """
    encoded = os.fsencode(name)
    if len(encoded) > _LONGEST:
        import zlib

        name = f"{encoded[:_LONGEST].decode('utf-8', 'ignore')}~{zlib.crc32(encoded):08x}"
    return f".{name}."


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    return one is not None and other is not None and (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _lock(handle: int, wait: bool) -> bool:
    """Lock a file; return False if another process holds it, or where files cannot be locked."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


def _remove_stray(path: str) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        if _lock(handle, wait=False) and _same(_stat(path), os.fstat(handle)):
            os.unlink(path)
    finally:
        os.close(handle)


def _keep_permissions(handle: int, path: str, older: os.stat_result) -> None:
    """Give a file the owner, as far as the system permits it, and the permissions of the one that it replaces."""
    mode = stat.S_IMODE(older.st_mode) & 0o777
    if hasattr(os, "fchown"):
        own = os.fstat(handle)
        if own.st_gid != older.st_gid:
            try:
                os.fchown(handle, -1, older.st_gid)
            except OSError:  # the new group may do what everybody may
                mode = (mode & ~0o070) | ((mode & 0o007) << 3)
        if own.st_uid != older.st_uid:
            with suppress(OSError):
                os.fchown(handle, older.st_uid, -1)
    os.chmod(path, mode)


def _sync_folder(folder: str) -> None:
    """Force the names in a folder to the disk, where the system can."""
    if os.name == "nt":
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
