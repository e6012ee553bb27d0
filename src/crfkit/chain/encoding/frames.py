"""Frames of pandas and polars as sequences: a row per token, and a column with the sequence it belongs to."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crfkit._types import Entries, Frame, Ints, Label
from crfkit.errors import DataError, ParameterError
from crfkit.extras import how_to_install, load


@dataclass(frozen=True)
class FrameColumns:
    """Name the columns of a frame: the sequence of a row, what is observed, the label, the weight of the sequence."""

    sequence: str
    token: tuple[str, ...]
    label: str | None = None
    sample_weight: str | None = None

    def to_json(self) -> Entries:
        return {"sequence": self.sequence, "token": list(self.token), "label": self.label}

    @classmethod
    def from_json(cls, entry: object) -> FrameColumns | None:
        """Return the columns that a model was trained on, or None if it does not say."""
        if not isinstance(entry, dict):
            return None
        sequence, token, label = entry.get("sequence"), entry.get("token"), entry.get("label")
        if not isinstance(sequence, str) or not isinstance(label, str) or not isinstance(token, list) or not token:
            return None
        return cls(sequence, tuple(token), label) if all(isinstance(name, str) for name in token) else None


@dataclass(frozen=True, eq=False)
class FrameSequences:
    """Hold the sequences of a frame, and which rows they are made of."""

    X: list[list[object]]
    y: list[list[Label]] | None
    weights: list[float] | None
    rows: Ints  # the row of each position, all sequences one after the other


def frame_sequences(frame: Frame, columns: FrameColumns, attributes: bool = False) -> FrameSequences:
    """Return the sequences of a frame, in the order in which they begin; their rows need not lie together.

    A token is the string of one column, or a tuple of the strings of several; with `attributes`, it is a dict of
    columns, whose numbers are values. Labels that are missing (None, NaN) are None, which is unknown.
    """
    import numpy as np

    names, tokens = frame_rows(frame, columns, attributes)
    places = rows_of(names)
    if not places:
        raise DataError("the frame has no rows")
    labels = None if columns.label is None else _labels(frame, columns.label)
    rows = list(places.values())
    return FrameSequences(
        [[tokens[row] for row in part] for part in rows],
        None if labels is None else [[labels[row] for row in part] for part in rows],
        None if columns.sample_weight is None else _weights(frame, columns.sample_weight, places),
        np.array([row for part in rows for row in part], dtype=np.int64),
    )


def frame_rows(frame: Frame, columns: FrameColumns, attributes: bool = False) -> tuple[list[Label], list[Any]]:
    """Return the name of the sequence and the token of each row; see `frame_sequences`."""
    check_frame(frame)
    wanted = [columns.sequence, *columns.token, *filter(None, (columns.label, columns.sample_weight))]
    check_columns(frame, wanted)
    names = _values(frame, columns.sequence)
    if not _complete(names) and (lost := [row for row, name in enumerate(names) if _missing(name)]):
        raise DataError(f"row {lost[0]} of the frame has no value in the column {columns.sequence!r}")
    return names, _tokens(frame, columns.token, attributes)


def rows_of(names: Sequence[Label]) -> dict[Label, list[int]]:
    """Return the rows of each sequence, in the order in which the sequences begin."""
    places: dict[Label, list[int]] = {}
    for row, name in enumerate(names):
        places.setdefault(name, []).append(row)
    return places


def columns_to_read(
    remembered: object, frame: Frame, sequence: str | None, token: str | Sequence[str] | None
) -> FrameColumns:
    """Return the columns that a prediction reads: those that are named, otherwise those that the model remembers."""
    known = FrameColumns.from_json(remembered)
    if known is None and (sequence is None or token is None):
        raise ParameterError(
            "the model was not trained on a frame; name the columns, as in sequence='sentence', token='word'"
        )
    chosen = sequence if sequence is not None else known.sequence if known else ""
    tokens = known.token if token is None and known else token_columns(frame, token, ())
    return FrameColumns(chosen, tokens, known.label if known else None)


def token_columns(frame: Frame, token: str | Sequence[str] | None, others: Sequence[str | None]) -> tuple[str, ...]:
    """Return the columns of the token: those that are named, or all that have no other meaning."""
    check_frame(frame)
    if token is None:
        found = tuple(name for name in frame.columns if name not in others)
    else:
        found = (token,) if isinstance(token, str) else tuple(token)
    if not found:
        raise ParameterError("there is no column for the token; name one, as in token='word'")
    check_columns(frame, found)
    return found


def as_column(frame: Frame, name: str, values: Sequence[object]) -> Frame:
    """Return values, one per row, as a column of the library and with the index of the frame."""
    if _library(frame) == "polars":
        return load("polars", "this frame needs").Series(name, values)
    return load("pandas", "this frame needs").Series(list(values), index=frame.index, name=name)


def as_frame(frame: Frame, columns: Sequence[Frame]) -> Frame:
    """Return columns of `as_column` side by side."""
    if _library(frame) == "polars":
        return load("polars", "this frame needs").DataFrame(list(columns))
    return load("pandas", "this frame needs").concat(list(columns), axis=1)


def check_frame(frame: Frame) -> None:
    """Raise ParameterError if this is no frame of pandas or polars."""
    if _library(frame) is None:
        raise ParameterError(
            f"expected a DataFrame of pandas or polars ({how_to_install('pandas')}), not {type(frame).__name__}"
        )


def check_columns(frame: Frame, names: Sequence[str]) -> None:
    """Raise DataError if the frame lacks a column."""
    known = list(frame.columns)
    for name in names:
        if name not in known:
            raise DataError(f"the frame has no column {name!r}; it has {', '.join(map(repr, known)) or 'no columns'}")
        if known.count(name) > 1:
            raise DataError(f"the frame has {known.count(name)} columns named {name!r}; rename them")


def _library(frame: Frame) -> str | None:
    for name in ("pandas", "polars"):
        module = sys.modules.get(name)  # if it is not loaded, the frame is not of it
        if module is not None and isinstance(frame, module.DataFrame):
            return name
    return None


def _values(frame: Frame, name: str) -> list[Any]:
    return list(frame[name].to_list())


def _missing(value: object) -> bool:
    if isinstance(value, (str, int)):
        return False
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) in ("<NA>", "NaT")


def _complete(values: list[Any]) -> bool:
    """Return whether it is quick to say that no value is missing; if not, each must be looked at."""
    kinds = set(map(type, values))
    return kinds <= {str, int, bool} or (kinds == {float} and not any(map(math.isnan, values)))


def _labels(frame: Frame, name: str) -> list[Label]:
    values = _values(frame, name)
    return values if _complete(values) else [None if _missing(value) else value for value in values]


def _tokens(frame: Frame, names: tuple[str, ...], attributes: bool) -> list[Any]:
    if attributes:
        parts = [_values(frame, name) for name in names]
        if all(map(_complete, parts)):
            return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        return [
            {name: value for name, value in zip(names, row, strict=True) if not _missing(value)}
            for row in zip(*parts, strict=True)
        ]
    parts = [_texts(frame, name) for name in names]
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _texts(frame: Frame, name: str) -> list[str]:
    values = _values(frame, name)
    return values if set(map(type, values)) <= {str} else [_text(v, name, row) for row, v in enumerate(values)]


def _text(value: object, name: str, row: int) -> str:
    if isinstance(value, str):
        return value
    if _missing(value):
        raise DataError(f"row {row} of the frame has no value in the column {name!r}; fill it, e.g. with '_'")
    return str(value)


def _weights(frame: Frame, name: str, places: dict[Label, list[int]]) -> list[float]:
    values, found = _values(frame, name), []
    for sequence, rows in places.items():
        weights = {values[row] for row in rows}
        if len(weights) > 1:
            raise DataError(f"the rows of the sequence {sequence!r} have different weights in the column {name!r}")
        found.append(weights.pop())
    return found
