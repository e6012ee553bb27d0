"""Data files as Wapiti reads them: tokens between any blanks, a blank line after each sequence, rows of any width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from crfkit import _core
from crfkit.data.sequences import SequenceData
from crfkit.encoders.sequences import Vocabulary, sorted_data
from crfkit.errors import DataError
from crfkit.wording import counted

CHUNK = 1 << 20


@dataclass
class Sequence:
    """One sequence: its lines as they stand in the file, and their cells."""

    lines: list[bytes]
    first: int  # number of the first line
    cells: list[list[bytes]] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = [line.split() for line in self.lines]  # of ASCII blanks, as C's isspace has them


def read_batches(stream: BinaryIO) -> Iterator[list[Sequence]]:
    """Yield the sequences of a stream as they arrive, many at a time if many are there."""
    number, lines, rest, ready = 0, list[bytes](), b"", list[Sequence]()
    read = getattr(stream, "read1", stream.read)

    def take(line: bytes) -> None:
        nonlocal number, lines
        number += 1
        if line.strip():
            lines.append(line)
        elif lines:
            ready.append(Sequence(lines, number - len(lines)))
            lines = []

    while block := read(CHUNK):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            take(line)
        if ready:
            yield ready
            ready = []
    if rest:
        take(rest)
    take(b"")
    if ready:
        yield ready


class Encoding:
    """Encode sequences for a model, without the label in their last column if there is one. Texts are any bytes."""

    def __init__(self, vocabulary: Vocabulary, name: str, labelled: bool) -> None:
        self._encoder = vocabulary.encoder(any_bytes=True)
        self._needed = vocabulary.template.n_columns if vocabulary.template is not None else None
        self._name, self._labelled = name, labelled

    def __call__(self, batch: list[Sequence]) -> SequenceData:
        if self._needed is None:
            self._add_observations(batch)
        else:
            self._add_rows(batch, self._needed)
        return sorted_data(self._encoder.take())

    def _add_rows(self, batch: list[Sequence], needed: int) -> None:
        text = []
        for sequence in batch:
            for t, cells in enumerate(sequence.cells):
                check_width(len(cells), needed, self._name, sequence.first + t)
                text.append(b" ".join(cells[: max(needed, 1)]))
            text.append(b"")
        self._encoder.feed(b"\n".join(text) + b"\n")

    def _add_observations(self, batch: list[Sequence]) -> None:
        at = 0
        try:
            for sequence in batch:
                at = sequence.first
                self._encoder.add_items([cells[:-1] for cells in sequence.cells] if self._labelled else sequence.cells)
        except _core.BadInput as error:
            raise DataError(str(error), self._name, at) from None


def label_numbers(sequence: Sequence, labels: Mapping[bytes, int], needed: int = 0) -> list[int]:
    """Return the numbers of the labels in the last column, −1 for others; columns that patterns need are no labels."""
    return [labels.get(cells[-1], -1) if len(cells) > needed else -1 for cells in sequence.cells]


def label_text(label: bytes, name: str, number: int) -> str:
    """Return a label as a string; raise DataError if it is not UTF-8."""
    try:
        return label.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(
            f"the label {label!r} is not UTF-8; labels must be, unlike other columns", name, number
        ) from None


def check_width(given: int, needed: int, name: str, number: int) -> None:
    """Raise DataError if a row lacks a column that a pattern names."""
    if given < needed:
        raise DataError(
            f"{counted(given, 'feature column')}, but the patterns need {needed}, numbered from 0", name, number
        )


class UniformColumns:
    """A stream of labelled rows in which every row has the columns that patterns need, and the label last."""

    def __init__(self, stream: BinaryIO, needed: int, name: str) -> None:
        self._needed, self.name = max(needed, 1), name
        self._blocks = self._read(stream)

    def read(self, size: int = CHUNK) -> bytes:
        """Return the next rows, as many as there are in a block of the stream, or nothing at its end."""
        return next(self._blocks, b"")

    def _read(self, stream: BinaryIO) -> Iterator[bytes]:
        number, rest = 0, b""
        while block := stream.read(CHUNK):
            *whole, rest = (rest + block).split(b"\n")
            if whole:
                yield b"".join(self._row(line, number + i) for i, line in enumerate(whole, start=1))
                number += len(whole)
        if rest:
            yield self._row(rest, number + 1)

    def _row(self, line: bytes, number: int) -> bytes:
        cells = line.split()
        if not cells:
            return b"\n"
        check_width(len(cells) - 1, self._needed, self.name, number)
        label_text(cells[-1], self.name, number)
        return b" ".join([*cells[: self._needed], cells[-1]]) + b"\n"
