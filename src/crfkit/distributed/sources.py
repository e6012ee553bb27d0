"""Sources of shards: pieces of files, or partitions of Dask collections. Only workers read them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from crfkit._values import Delayed, Label
from crfkit.chain.encoding.attribute_files import begins_with_attributes, is_attributes
from crfkit.chain.encoding.frames import FrameColumns, frame_sequences
from crfkit.chain.encoding.pieces import RawPiece, raw_files, raw_sequences
from crfkit.chain.encoding.vocabulary import Inputs
from crfkit.chain.training.train import NEEDS_FEATURES
from crfkit.errors import DataError, ParameterError
from crfkit.extras import load
from crfkit.files.columns import ColumnFile

BLOCK = 1 << 16
BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
PACKED = (".gz", ".bz2", ".xz", ".zip", ".zst", ".lz4")


@dataclass(frozen=True)
class Piece:
    """Bytes begin … end − 1 of a file; its boundaries lie between sequences."""

    url: str
    begin: int = 0
    end: int | None = None  # None for the end of the file


@dataclass(frozen=True)
class FileSource:
    """Some pieces of files, one after the other."""

    pieces: tuple[Piece, ...]
    attributes: bool  # data of CRFsuite instead of columns
    encoding: str = "utf-8"
    format: str = "auto"
    label_column: str | int | None = None
    small = True  # the client sends names only

    @property
    def name(self) -> str:
        urls = list(dict.fromkeys(piece.url for piece in self.pieces))
        return urls[0] if len(urls) == 1 else f"{urls[0]} … {urls[-1]}"

    def read(self, inputs: Inputs) -> RawPiece:
        """Encode the pieces. Errors name the file and the line in it."""
        files = []
        for piece in self.pieces:
            stream: Any = PieceStream(piece)
            files.append(ColumnFile(stream, self.encoding, self.format, self.label_column))
        try:
            return raw_files(files, inputs, self.attributes)
        except DataError as error:
            raise _in_whole_file(error, self.pieces) from None


@dataclass(frozen=True)
class PartitionSource:
    """A partition of a Dask bag of (tokens, labels), or with `columns` of a DataFrame with a row per token."""

    partition: Delayed  # a Delayed
    name: str
    columns: FrameColumns | None = None
    attributes: bool = False  # whether tokens of a frame are attributes

    def delayed(self, inputs: Inputs) -> Delayed:
        """Return the piece that a worker will encode."""
        read = load("dask", "a cluster needs").delayed(_of_bag if self.columns is None else _of_frame)
        return read(self.partition, inputs, self.name, self.columns, self.attributes)


def _of_bag(partition: Delayed, inputs: Inputs, name: str, *_: object) -> RawPiece:
    pairs = list(partition)
    return _named(name, lambda: raw_sequences([x for x, _ in pairs], [y for _, y in pairs], inputs, name))


def _named(name: str, encode: Callable[[], RawPiece]) -> RawPiece:
    """Return what a function encodes; its errors name the partition."""
    try:
        return encode()
    except DataError as error:
        raise error if error.path else DataError(str(error), name) from None
    except TypeError as error:  # a label that is a set or a list
        raise DataError(f"a label must be a string or a number ({error}); unknown labels need lists", name) from None


def _of_frame(partition: Delayed, inputs: Inputs, name: str, columns: FrameColumns, attributes: bool) -> RawPiece:
    if len(partition) == 0:
        return raw_sequences([], [], inputs, name)
    found = frame_sequences(partition, columns, attributes)
    y: list[list[Label]] = found.y or []
    if any(label is None for row in y for label in row):
        raise DataError("a label is missing; on a cluster all labels must be known", name)
    weights = None if found.weights is None else np.array(found.weights)
    return _named(name, lambda: raw_sequences(found.X, y, inputs, name)).with_weights(weights)


class PieceStream:
    """A piece of a file as a binary stream, which is opened when it is first read."""

    def __init__(self, piece: Piece) -> None:
        self.name = piece.url
        self._piece = piece
        self._left = None if piece.end is None else piece.end - piece.begin
        self._file: BinaryIO | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, none at the end of the piece."""
        if self._file is None:
            self._file = opened(self.name)
            if self._piece.begin:
                self._file.seek(self._piece.begin)
        wanted = size if self._left is None else self._left if size < 0 else min(size, self._left)
        block = self._file.read(wanted) if wanted else b""
        if self._left is not None:
            self._left -= len(block)
        if not block:
            self._file.close()
        return block


def opened(url: str) -> Any:
    """Return a binary stream of a file at any URL that fsspec knows; packed files are unpacked."""
    fsspec = load("fsspec", "files on a cluster need")
    try:
        return fsspec.open(url, "rb", compression="infer").open()
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"cannot read the file: {getattr(error, 'strerror', None) or error}", url) from error


def expanded(patterns: Sequence[str]) -> list[tuple[str, int]]:
    """Return the files of paths, URLs and globs, each with its size in bytes; those of a glob in the order of names."""
    fsspec = load("fsspec", "files on a cluster need")
    found: list[tuple[str, int]] = []
    for pattern in patterns:
        try:
            fs, _, paths = fsspec.get_fs_token_paths(pattern)
            paths = sorted(paths) if any(c in pattern for c in "*?[") else paths
            local = "file" in (fs.protocol if isinstance(fs.protocol, (list, tuple)) else [fs.protocol])
            sizes = [(path if local else fs.unstrip_protocol(path), int(fs.size(path))) for path in paths]
        except (OSError, ValueError, ImportError, TypeError) as error:
            raise DataError(f"cannot read the file: {getattr(error, 'strerror', None) or error}", pattern) from error
        if not sizes:
            raise DataError("no file matches", pattern)
        found += sizes
    return found


def file_sources(
    patterns: Sequence[str],
    n: int,
    columns: bool,
    encoding: str = "utf-8",
    format: str = "auto",
    label_column: str | int | None = None,
) -> list[FileSource]:
    """Return at most n sources with about as many bytes each, which cover the files in their order.

    Files are split at blank lines, except for packed ones and for encodings in which a blank line has other bytes.
    `columns` if a template or features need column files.
    """
    files = expanded(patterns)
    first: Any = PieceStream(Piece(files[0][0]))
    attributes = is_attributes([ColumnFile(first, encoding, format, label_column)], columns, begins_with_attributes)
    if not (columns or attributes):
        raise ParameterError(NEEDS_FEATURES)
    total = sum(size for _, size in files)
    divisible = codecs.lookup(encoding).name in ASCII_LIKE
    shares: list[list[Piece]] = [[] for _ in range(n)]
    done = 0
    for url, size in files:
        ends = [0]
        if divisible and not url.endswith(PACKED):
            # the boundaries of shares that fall into this file
            inner = [total * k // n - done for k in range(1, n) if 0 < total * k // n - done < size]
            ends += sorted({end for end in boundaries(url, inner) if 0 < end < size})
        for begin, end in zip(ends, [*ends[1:], None], strict=True):
            middle = done + (begin + (size if end is None else end)) // 2
            shares[min(n - 1, middle * n // max(total, 1))].append(Piece(url, begin, end))
        done += size
    return [FileSource(tuple(pieces), attributes, encoding, format, label_column) for pieces in shares if pieces]


ASCII_LIKE = frozenset({"utf-8", "utf-8-sig", "ascii", "iso8859-1", "iso8859-2", "iso8859-15", "cp1250", "cp1252"})


def boundaries(url: str, offsets: Sequence[int]) -> Iterator[int]:
    """Yield, for each offset in a file, where the first sequence after it begins."""
    if not offsets:
        return
    with opened(url) as file:
        for offset in offsets:
            file.seek(offset)
            before, place = b"", offset
            while block := file.read(BLOCK):
                text = before + block
                if match := BLANK_LINE.search(text):
                    yield place - len(before) + match.end()
                    break
                before, place = text[-256:], place + len(block)


def _in_whole_file(error: DataError, pieces: Sequence[Piece]) -> DataError:
    """Return an error with the line number of the file, where it has that of a piece."""
    begins = [piece.begin for piece in pieces if piece.url == str(error.path)]
    if not error.line or not begins or not begins[0]:
        return error
    before, left = 0, begins[0]
    with opened(str(error.path)) as file:
        while left and (block := file.read(min(left, 1 << 20))):
            before += block.count(b"\n")
            left -= len(block)
    message = str(error).removeprefix(f"{error.path}:{error.line}: ")
    return type(error)(message, error.path, error.line + before)
