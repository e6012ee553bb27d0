"""Vectors of words for text features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfkit import _core
from crfkit._checks import unmasked
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import read_chunks
from crfkit.files.lines import whole_lines, with_newlines


class Embeddings:
    """Hold words and their vectors. A word that is not among them is looked up in lower case.

    >>> Embeddings.of({"rome": [0.5, 1.0], "in": [0.0, 0.25]})
    <2 vectors of 2 dimensions>
    """

    def __init__(self, words: _core.StringTable, vectors: NDArray[np.float32]) -> None:
        if len(words) == 0 or len(words) != len(vectors) or vectors.ndim != 2 or vectors.shape[1] == 0:
            raise ParameterError("embeddings need words, and for each a vector of the same length")
        if not np.isfinite(vectors).all():
            bad = int(np.argmin(np.isfinite(vectors).all(axis=1)))
            raise ParameterError(f"embeddings: the vector of {words[bad]!r} has a value that is not finite")
        self.words, self.vectors = words, vectors

    @classmethod
    def of(cls, given: object) -> Embeddings:
        """Return the vectors of a mapping from words, or of a text file."""
        if isinstance(given, Embeddings):
            return given
        if isinstance(given, (str, Path)):
            return cls.read(given)
        if not isinstance(given, Mapping) or not given:
            raise ParameterError(f"embeddings must be a mapping from words to vectors or a path, not {given!r}")
        vectors = []
        for word, vector in given.items():
            if not isinstance(word, str):
                raise ParameterError(f"embeddings: the word {word!r} is not a string")
            vector = unmasked(vector, f"embeddings: the vector of {word!r}")
            try:
                vectors.append(np.asarray(vector, dtype=np.float32).reshape(-1))
            except (TypeError, ValueError):
                raise ParameterError(f"embeddings: the vector of {word!r} is not made of numbers") from None
            if len(vectors[-1]) != len(vectors[0]):
                raise ParameterError(
                    f"embeddings: the vector of {word!r} has {len(vectors[-1])} numbers, but those before have "
                    f"{len(vectors[0])}"
                )
        return cls(_core.StringTable.from_strings(list(given)), np.stack(vectors))

    @classmethod
    def read(cls, path: str | Path) -> Embeddings:
        """Read the text format of word2vec, whose first line has the numbers of words and dimensions, or GloVe's."""
        try:
            return cls._parsed(_read_lines(path), path)
        except UnicodeDecodeError:
            raise DataError(
                "the embeddings are not UTF-8; convert binary files to word2vec's text format", path
            ) from None

    @classmethod
    def _parsed(cls, lines: Iterable[str], path: str | Path) -> Embeddings:
        vectors: dict[str, NDArray[np.float32]] = {}
        dimensions = 0
        for number, line in enumerate(lines, start=1):
            cells = line.rstrip(" ").split(" ")
            if number == 1 and len(cells) == 2 and all(cell.isdigit() for cell in cells):
                dimensions = int(cells[1])
                continue
            if cells == [""]:
                continue
            dimensions = dimensions or len(cells) - 1
            if len(cells) <= dimensions or dimensions == 0:
                raise DataError(
                    f"{len(cells) - 1} numbers after the word; expected {dimensions or 'some'}", path, number
                )
            try:
                vector = np.array(cells[-dimensions:], dtype=np.float32)
            except ValueError:
                raise DataError("a value after the word is not a number", path, number) from None
            vectors.setdefault(" ".join(cells[:-dimensions]), vector)
        if not vectors:
            raise DataError("the file has no vectors", path)
        return cls(_core.StringTable.from_strings(list(vectors)), np.stack(list(vectors.values())))

    @property
    def dimensions(self) -> int:
        return int(self.vectors.shape[1])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Embeddings)
            and np.array_equal(self.vectors, other.vectors)
            and np.array_equal(self.words.bytes, other.words.bytes)
            and np.array_equal(self.words.offsets, other.words.offsets)
        )

    def __hash__(self) -> int:
        return hash(self.vectors.shape)

    def __repr__(self) -> str:
        return f"<{len(self.words)} vectors of {self.dimensions} dimensions>"

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickle, (np.array(self.words.offsets), np.array(self.words.bytes), np.array(self.vectors))


def _read_lines(path: str | Path) -> Iterator[str]:
    for block in whole_lines(with_newlines(read_chunks(path, what="the embeddings"), str(path))):
        yield from block.decode("utf-8").removesuffix("\n").split("\n")


def _unpickle(offsets: NDArray[np.uint64], data: NDArray[np.uint8], vectors: NDArray[np.float32]) -> Embeddings:
    return Embeddings(_core.StringTable.from_bytes(offsets, data), vectors)
