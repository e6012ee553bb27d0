"""Sentences of frames that come in pieces: partitions of Dask, batches of Spark. A piece may end inside a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._checks import check_count
from crfkit._values import Frame, Label
from crfkit.chain.encoding.frames import FrameColumns, as_column, check_columns, columns_to_read, frame_rows, rows_of
from crfkit.errors import DataError, ParameterError
from crfkit.extras import load

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

PROBABILITY = "probability"
BATCH = 1000  # sentences


@dataclass(frozen=True)
class FrameOptions:
    """The columns that are read and written, and how many sentences are tagged at a time."""

    sequence: str | None
    token: str | tuple[str, ...] | None
    label: str
    probability: bool
    position: str | None
    batch_size: int

    @property
    def new(self) -> list[str]:
        """The columns that are added."""
        return [self.label, PROBABILITY] if self.probability else [self.label]

    def columns(self, model: ChainModel, frame: Frame) -> FrameColumns:
        """Return the columns to read; raise an error if the frame lacks one, or has one that would be added."""
        frame = with_index(frame, self.sequence)
        found = columns_to_read(model.training.get("frame"), frame, self.sequence, self.token)
        frame = with_index(frame, found.sequence)
        check_columns(frame, [found.sequence, *found.token, *filter(None, [self.position])])
        for name in self.new:
            if name in list(frame.columns):
                more = "choose another name with label=" if name == self.label else "drop or rename it"
                raise ParameterError(f"the frame already has a column {name!r}; {more}")
        return FrameColumns(found.sequence, found.token)

    def rows(self, frame: Frame, columns: FrameColumns, attributes: bool) -> Rows:
        """Return what is read of a frame; with `attributes`, columns are attributes."""
        frame = with_index(frame, columns.sequence)
        names, tokens = frame_rows(frame, columns, attributes)
        return Rows(names, tokens, None if self.position is None else frame[self.position].to_list())

    def tagged(self, frame: Frame, labels: Sequence[Label], chances: Sequence[float] | None, dtype: object) -> Frame:
        """Return the frame with the new columns."""
        new = {self.label: as_column(frame, self.label, labels).astype(dtype)}
        if chances is not None:
            new[PROBABILITY] = as_column(frame, PROBABILITY, chances).astype("float64")
        return frame.assign(**new)


@dataclass(frozen=True)
class Rows:
    """Rows of a frame as lists: the sentence, the token and, if a column has it, the place in the sentence."""

    names: list[Label]
    tokens: list[object]
    positions: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __add__(self, other: Rows) -> Rows:
        both = None
        if self.positions is not None and other.positions is not None:
            both = self.positions + other.positions
        return Rows(self.names + other.names, self.tokens + other.tokens, both)

    def part(self, begin: int, end: int) -> Rows:
        return Rows(
            self.names[begin:end],
            self.tokens[begin:end],
            None if self.positions is None else self.positions[begin:end],
        )

    def sentences(self) -> list[list[int]]:
        """Return the rows of each sentence, in the order of its tokens."""
        found = list(rows_of(self.names).values())
        if self.positions is None:
            return found
        try:
            return [sorted(rows, key=self.positions.__getitem__) for rows in found]
        except TypeError as error:
            raise DataError(f"the column of positions cannot be sorted: {error}") from None


def names_of(frame: Frame, sequence: str) -> list[Label]:
    """Return the sentence of each row."""
    return list(with_index(frame, sequence)[sequence].to_list())


def first_run(names: Sequence[Label]) -> int:
    """Return how many rows at the beginning are of the first sentence.

    >>> first_run([3, 3, 4])
    2
    """
    return next((k for k, name in enumerate(names) if name != names[0]), len(names))


def last_run(names: Sequence[Label]) -> int:
    """Return how many rows at the end are of the last sentence.

    >>> last_run([3, 3, 4])
    1
    """
    return next((k for k, name in enumerate(reversed(names)) if name != names[-1]), len(names))


def tag_rows(
    model: ChainModel, rows: Rows, batch_size: int, probability: bool
) -> tuple[list[Label], list[float] | None]:
    """Return the label of each row and, if requested, its marginal probability."""
    ids = np.zeros(len(rows), dtype=np.int64)
    chances = np.zeros(len(rows)) if probability else None
    for batch in batches(rows.sentences(), batch_size):
        data = model.encode([[rows.tokens[row] for row in sentence] for sentence in batch])
        places = np.array([row for sentence in batch for row in sentence], dtype=np.int64)
        best, _ = model.inference.decode(data)
        ids[places] = best
        if chances is not None:
            node = model.inference.node_marginals(data)
            chances[places] = np.minimum(node[np.arange(len(best)), best], 1.0)
    named = model.class_list
    return [named[k] for k in ids.tolist()], None if chances is None else chances.tolist()


def batches(values: Sequence[object], size: int) -> Iterator[Sequence[Any]]:
    """Yield so many values at a time."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]


def with_index(frame: Frame, sequence: str | None) -> Frame:
    """Return a frame that has the sentences in a column, if they are in its index."""
    if sequence is None or sequence in list(frame.columns) or frame.index.name != sequence:
        return frame
    return frame.assign(**{sequence: frame.index})


def label_type(model: ChainModel) -> Any:
    """Return the type that pandas gives to a column of the labels of a model."""
    return load("pandas", "frames need").Series(model.class_list).dtype


def frame_options(
    sequence: str | None,
    token: str | Sequence[str] | None,
    label: str,
    probability: bool,
    position: str | None,
    batch_size: int,
) -> FrameOptions:
    """Return the options of tagging frames; raise ParameterError for those that cannot be."""
    check_count(batch_size=batch_size)
    for name, value in (("sequence", sequence), ("label", label), ("position", position)):
        if not isinstance(value, str) and (value is not None or name == "label"):
            raise ParameterError(f"{name} must be the name of a column, not {value!r}")
    if probability and label == PROBABILITY:
        raise ParameterError(f"label must not be {PROBABILITY!r}, the name of the column of probabilities")
    tokens = token if token is None or isinstance(token, str) else tuple(token)
    return FrameOptions(sequence, tokens, label, bool(probability), position, int(batch_size))
