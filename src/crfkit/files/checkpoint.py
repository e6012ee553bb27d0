"""A run of a solver in a file: its weights and the state from which it continues.

A run that was interrupted and continues from its checkpoint with the same data and options ends at the same weights as
one that was not.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import Array, Entries, Floats, Record
from crfkit.errors import CheckpointWarning, ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.result import LAST_WEIGHTS, Result
from crfkit.warn import warn_caller


@dataclass(frozen=True)
class Checkpoint:
    """The state that `minimize(…, w0=checkpoint.w, resume=checkpoint.state)` continues from."""

    w: Floats
    state: Record

    @classmethod
    def of(cls, result: Result) -> Checkpoint:
        """Return the checkpoint of the last iterate, which early stopping does not return."""
        state = dict(result.state)
        return cls(state.pop(LAST_WEIGHTS, result.w), state)

    @classmethod
    def at(cls, iteration: Any) -> Checkpoint:
        """Return the checkpoint of an iteration, as callbacks see it. The limit of iterations counts from there."""
        return cls(iteration.w, dict(iteration.saved()))

    def save(self, path: str | Path) -> None:
        """Write the file atomically."""
        tensors: dict[str, Array] = {"w": np.asarray(self.w)}
        numbers: Entries = {}
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


class Checkpoints:
    """A callback that writes a checkpoint from time to time, so that training can continue after a crash.

    Parameters
    ----------
    path : the file; each checkpoint replaces the one before.
    every : time between checkpoints: seconds, or a text such as "90s", "10m" or "2h"; "20it" is 20 iterations.

    If a checkpoint cannot be written, crfkit warns and continues.

    >>> import tempfile
    >>> from crfkit import ChainCRF
    >>> from crfkit.synthetic import entity_words
    >>> path = tempfile.mkdtemp() + "/run.ckpt"
    >>> X, y = entity_words(30)
    >>> crf = ChainCRF(features="ner").fit(X, y, callbacks=[Checkpoints(path, every="5it")])
    >>> Checkpoint.load(path).state["iterations"] % 5
    0
    """

    def __init__(self, path: str | Path, every: float | str = "10m") -> None:
        self._path = path
        self._seconds, self._iterations = interval(every)
        self._last = (time.monotonic(), -1)

    def __call__(self, iteration: Any) -> None:
        number = iteration.row.iteration
        before, last = self._last
        if last < 0 or number < last:  # the start, of this run or of another one, is not worth a checkpoint
            self._last = (time.monotonic(), number)
            return
        due = number - last >= self._iterations if self._iterations else time.monotonic() - before >= self._seconds
        if not due:
            return
        try:
            Checkpoint.at(iteration).save(self._path)
        except ModelFileError as error:
            warn_caller(f"{error}; training continues without this checkpoint", CheckpointWarning)
        self._last = (time.monotonic(), number)


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def interval(every: float | str) -> tuple[float, int]:
    """Return the time between two checkpoints in seconds and in iterations; one of them is 0.

    >>> interval("10m"), interval(90), interval("20it")
    ((600.0, 0), (90.0, 0), (0.0, 20))
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(s|m|h|it|)\s*", str(every))
    number = float(found[1]) if found else 0.0
    if not found or number <= 0 or (found[2] == "it" and not number.is_integer()):
        raise ParameterError(
            f"the time between checkpoints must be seconds, or a text such as 90s, 10m, 2h or 20it (iterations), not "
            f"{every!r}"
        )
    return (0.0, int(number)) if found[2] == "it" else (number * _UNITS[found[2]], 0)
