"""The bytes of model files, from wherever they come; and files that are replaced only when they are complete."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfkit.errors import ModelFileError
from crfkit.files import replacing

Source = str | Path | bytes | bytearray | memoryview


def read_bytes(source: Source) -> NDArray[np.uint8]:
    """Return the bytes of a file, mapped into memory, or those that were given."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return np.frombuffer(source, dtype=np.uint8)
    try:
        with open(source, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            buffer = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        raise ModelFileError(f"cannot read {source}: {error.strerror or error}") from error
    return np.frombuffer(buffer, dtype=np.uint8)


def write_bytes(path: str | Path, contents: bytes) -> None:
    """Write a file. An older file at `path` is replaced only when the new one is complete."""
    with replacing(path) as stream:
        stream.write(contents)
