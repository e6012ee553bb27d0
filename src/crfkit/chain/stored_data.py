"""Encoded sequences in files: a folder of arrays that is read when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from crfkit._types import Array
from crfkit.chain.data import SequenceData
from crfkit.errors import DataError


@dataclass(frozen=True)
class Block:
    """Some sequences of a data set, written to a folder."""

    folder: Path
    n_sequences: int
    n_positions: int
    n_attributes: int  # of all positions

    @classmethod
    def write(cls, folder: Path, data: SequenceData) -> Block:
        """Write encoded sequences, a file for each array."""
        write_arrays(folder, {item.name: getattr(data, item.name) for item in fields(data)})
        return cls(folder, len(data), data.n_positions, len(data.attributes))

    def read(self) -> SequenceData:
        """Return the sequences; their arrays are mapped into memory, and read as they are used."""
        found = read_arrays(self.folder)
        try:
            if len(found.get("starts", ())) != self.n_sequences + 1:
                raise ValueError("sequences are missing")
            return SequenceData(**found)
        except (TypeError, ValueError) as error:
            raise gone(self.folder, error) from error

    def __len__(self) -> int:
        return self.n_sequences


def write_arrays(folder: Path, arrays: Mapping[str, Array | None]) -> None:
    """Write arrays to a folder, each to a file with its name."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            if array is not None:
                np.save(folder / f"{name}.npy", array)
    except OSError as error:
        raise DataError(
            f"cannot write the encoded sequences: {error.strerror}; the variable TMPDIR names another folder for them",
            folder,
        ) from error


def read_arrays(folder: Path) -> dict[str, Array]:
    """Return the arrays of a folder, mapped into memory; an empty one is read."""
    try:
        paths = [path for path in folder.iterdir() if path.suffix == ".npy"]
        return {path.stem: _read(path) for path in paths}
    except (OSError, ValueError, EOFError) as error:
        raise gone(folder, error) from error


def _read(path: Path) -> Array:
    array: Array = np.load(path, mmap_mode="r")
    return array if array.size else np.load(path)


def gone(folder: Path, error: Exception | str) -> DataError:
    """Return the error of files that were removed or cut during training."""
    return DataError(
        f"the encoded sequences are gone or incomplete ({error}): somebody emptied the temporary folder during "
        "training; the variable TMPDIR names another one",
        folder,
    )
