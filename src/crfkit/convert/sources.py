"""The bytes of model files, from wherever they come; and files that are replaced only when they are complete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfkit.files import atomic as files

Source = str | Path | bytes | bytearray | memoryview


def read_bytes(source: Source) -> NDArray[np.uint8]:
    """Return the bytes of a file, as a private copy, or those that were given."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return np.frombuffer(bytes(source), dtype=np.uint8)  # of those that may change, a copy
    return files.read(source)


def write_bytes(path: str | Path, contents: bytes) -> None:
    """Write a file. An older file at `path` is replaced only when the new one is complete."""
    files.write(path, contents)
