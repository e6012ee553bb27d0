"""A run of a solver in a file: its weights and the state from which it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crfkit import modelfile
from crfkit._types import Floats
from crfkit.errors import ModelFileError
from crfkit.result import Result

LAST_WEIGHTS = "last_weights"  # in a state whose result has other weights


@dataclass(frozen=True)
class Checkpoint:
    """What `minimize(…, w0=checkpoint.w, resume=checkpoint.state)` goes on from."""

    w: Floats
    state: Mapping[str, Any]

    @classmethod
    def of(cls, result: Result) -> Checkpoint:
        """Return the checkpoint of the last iterate, which early stopping does not return."""
        state = dict(result.state)
        return cls(state.pop(LAST_WEIGHTS, result.w), state)

    def save(self, path: str | Path) -> None:
        """Write the file atomically."""
        tensors: dict[str, Any] = {"w": np.asarray(self.w)}
        numbers: dict[str, Any] = {}
        for name, value in self.state.items():
            if isinstance(value, np.ndarray):
                tensors[f"state.{name}"] = value
            else:
                numbers[name] = value.item() if isinstance(value, np.generic) else value
        modelfile.write(path, "checkpoint", {"state": numbers}, tensors)

    @classmethod
    def load(cls, path: str | Path) -> Checkpoint:
        contents = modelfile.read(path)
        if contents.kind != "checkpoint":
            raise ModelFileError(f"{path}: this is a file of kind '{contents.kind}'; expected 'checkpoint'")
        arrays = {name[6:]: array for name, array in contents.tensors.items() if name.startswith("state.")}
        try:
            return cls(contents.tensor("w", np.float64), {**contents.entry("state", dict), **arrays})
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None
