"""Encoded sequences in files: a folder of arrays that is read when it is needed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from crfkit.data.sequences import SequenceData
from crfkit.errors import DataError


@dataclass(frozen=True)
class Block:
    """Some sequences of a data set, written to a folder."""

    folder: Path
    n_sequences: int
    n_positions: int

    @classmethod
    def write(cls, folder: Path, data: SequenceData) -> Block:
        """Write encoded sequences, a file for each array."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for item in fields(data):
                array = getattr(data, item.name)
                if array is not None:
                    np.save(folder / f"{item.name}.npy", array)
        except OSError as error:
            raise DataError(
                f"cannot write the encoded sequences: {error.strerror}; the variable TMPDIR names another folder for "
                "them", folder
            ) from error  # fmt: skip
        return cls(folder, len(data), data.n_positions)

    def read(self) -> SequenceData:
        """Return the sequences; their arrays are mapped into memory, and read as they are used."""
        names = [item.name for item in fields(SequenceData)]
        paths = {name: self.folder / f"{name}.npy" for name in names}
        try:
            found = {name: np.load(path, mmap_mode="r") for name, path in paths.items() if path.exists()}
            if len(found.get("starts", ())) != self.n_sequences + 1:
                raise ValueError("sequences are missing")
            return SequenceData(**found)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(
                f"the encoded sequences have gone ({error}); somebody has emptied the temporary folder while training "
                "went on; the variable TMPDIR names another one", self.folder
            ) from error  # fmt: skip

    def __len__(self) -> int:
        return self.n_sequences
