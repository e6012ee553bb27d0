"""Data files as Wapiti reads them: tokens between any blanks, a blank line after each sequence, rows of any width."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from crfkit import _core
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import Vocabulary, sorted_data
from crfkit.errors import DataError
from crfkit.files.columns import read_chunks
from crfkit.files.lines import checked_lines, whole_lines

_BLANK = rb"[ \t\v\f\r]*\n"  # what C's isspace takes for a blank
_FIRST_LINES = re.compile(b"(?:%s)*" % _BLANK)
_END = re.compile(b"\n(?:%s)+" % _BLANK)  # of a sequence


@dataclass(eq=False)
class Batch:
    """Whole sequences, and the text that they stand in."""

    text: bytes
    first: int  # number of its first line

    @cached_property
    def lines(self) -> list[list[bytes]]:
        """Return the lines of each sequence, as they stand in the file."""
        start = _FIRST_LINES.match(self.text)
        blocks = _END.split(self.text[start.end() if start else 0 :])
        found = [block.split(b"\n") for block in blocks]
        while found[-1] and not found[-1][-1].strip():  # the end of the file
            found[-1].pop()
        return found if found[-1] else found[:-1]

    @cached_property
    def cells(self) -> list[list[list[bytes]]]:
        """Return the columns of each line of each sequence."""
        return [[line.split() for line in lines] for lines in self.lines]

    def labels(self, numbers: Mapping[bytes, int], needed: int = 0) -> list[list[int]]:
        """Return the numbers of the labels in the last column, −1 for others.

        A column among the first `needed` is no label: patterns name it.
        """
        return [[numbers.get(row[-1], -1) if len(row) > needed else -1 for row in rows] for rows in self.cells]

    def label_texts(self, name: str) -> list[list[str]]:
        """Return the labels in the last column; raise DataError if one is not UTF-8."""
        try:
            return [[row[-1].decode("utf-8") for row in rows] for rows in self.cells]
        except UnicodeDecodeError as error:
            bad = error.object
        n, t = next((n, t) for n, rows in enumerate(self.cells) for t, row in enumerate(rows) if row[-1] == bad)
        raise DataError("the label is not UTF-8; labels must be, unlike other columns", name, self.line(n, t))

    def line(self, n: int, t: int) -> int:
        """Return the line number of position t in sequence n."""
        tokens = [number for number, line in enumerate(self.text.split(b"\n"), start=self.first) if line.strip()]
        return tokens[sum(len(lines) for lines in self.lines[:n]) + t]


def read_batches(stream: BinaryIO) -> Iterator[Batch]:
    """Yield the sequences of a stream as they arrive, many at a time if many are there."""
    waiting: list[bytes] = []  # whole lines of the sequence under way
    number = 1
    for block in whole_lines(_blocks(stream)):
        before = b"\n" if waiting else b""
        end = max((found.end() for found in _END.finditer(before + block)), default=0) - len(before)
        if end <= 0:
            waiting.append(block)
            continue
        batch = Batch(b"".join([*waiting, block[:end]]), number)
        number += batch.text.count(b"\n")
        waiting = [block[end:]] if end < len(block) else []
        if batch.lines:
            yield batch
    if any(block.strip() for block in waiting):
        yield Batch(b"".join(waiting), number)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    return checked_lines(read_chunks(stream), str(getattr(stream, "name", "the stream")))


def read_whole(stream: BinaryIO) -> Batch:
    """Return all sequences of a stream."""
    return Batch(b"".join(_blocks(stream)), 1)


class Encoding:
    """Encode sequences for a model, without the label in their last column if there is one. Texts are any bytes."""

    def __init__(self, vocabulary: Vocabulary, name: str, labelled: bool) -> None:
        self._encoder = vocabulary.encoder(loose=True)
        self._rows = vocabulary.template is not None
        self._name, self._labelled = name, labelled

    def __call__(self, batch: Batch) -> SequenceData:
        if self._rows:
            self._add_rows(batch)
        else:
            self._add_observations(batch)
        return sorted_data(self._encoder.take())

    def _add_rows(self, batch: Batch) -> None:
        before = self._encoder.line
        try:
            self._encoder.feed(batch.text)
            self._encoder.feed(b"", end=True)
        except _core.LineError as error:
            line, message = error.args
            raise DataError(message, self._name, line - before + batch.first - 1) from None

    def _add_observations(self, batch: Batch) -> None:
        done = 0
        try:
            for rows in batch.cells:
                self._encoder.add_items([row[:-1] for row in rows] if self._labelled else rows)
                done += 1
        except _core.BadInput as error:
            raise DataError(str(error), self._name, batch.line(done, 0)) from None
