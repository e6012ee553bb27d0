"""Read the weights of tokens from a column of column files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crfkit._types import Floats
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import ColumnFile, rows_of


def read_weights(files: Sequence[ColumnFile], column: int) -> Floats:
    """Return the numbers of a column (1 is the first, −1 the last, which is the label) of all tokens of the files."""
    if isinstance(column, bool) or not isinstance(column, int) or column in (0, -1):
        raise ParameterError(
            f"weight_column must be the number of a column other than the last, which is the label, not {column!r}; 1 "
            "is the first, -2 the one before the label"
        )
    weights: list[float] = []
    for file in files:
        if not isinstance(file.source, (str, Path)):
            raise ParameterError("weights are read in a second pass, which standard input does not allow; give a file")
        for line, cells in rows_of(file):
            if not cells:
                continue
            if not -len(cells) <= column <= len(cells):
                raise DataError(f"{len(cells)} columns, so there is no column {column}", file.name, line)
            text = cells[column - 1 if column > 0 else column]
            try:
                weight = float(text)
            except ValueError:
                weight = float("nan")
            if not (np.isfinite(weight) and weight >= 0):
                raise DataError(f"the weight in column {column} is {text!r}; expected a number >= 0", file.name, line)
            weights.append(weight)
    return np.array(weights)
