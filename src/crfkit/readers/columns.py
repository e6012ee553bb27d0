"""Column files (CoNLL, CRF++): a token per line, columns separated by tabs or spaces, blank lines between sequences.

UTF-8 with or without BOM, any line end; there are no comments. Files that end in .gz are unpacked on the way.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from crfkit.errors import DataError

CHUNK = 1 << 20


def read_chunks(source: str | Path | BinaryIO, chunk: int = CHUNK) -> Iterator[bytes]:
    """The bytes of a file or an open binary stream, as they come."""
    if hasattr(source, "read"):
        read = getattr(source, "read1", source.read)
        while block := read(chunk):
            yield block
        return
    path = Path(source)
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as stream:
            while block := stream.read(chunk):
                yield block
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot read the file: {reason}", path) from error


def read_columns(path: str | Path, label: bool = True) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """Reads a whole column file into lists: (tokens as tuples of columns, labels of the last column).

    With label=False every column is a feature column and the second list is empty. Training from a file does not
    need this: :meth:`ChainCRF.fit_file` streams.
    """
    X: list[list[tuple[str, ...]]] = []
    y: list[list[str]] = []
    for rows in _sequences(path, 2 if label else 1):
        X.append([row[:-1] if label else row for row in rows])
        if label:
            y.append([row[-1] for row in rows])
    return X, y


def _sequences(path: str | Path, least: int) -> Iterator[list[tuple[str, ...]]]:
    rows: list[tuple[str, ...]] = []
    width = 0
    for number, raw in enumerate(_lines(path), start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"not UTF-8 at byte {error.start + 1} of the line", path, number) from None
        cells = tuple(cell for cell in line.removesuffix("\r").replace("\t", " ").split(" ") if cell)
        if not cells:
            if rows:
                yield rows
            rows = []
            continue
        width = width or len(cells)
        if len(cells) != width:
            raise DataError(f"{len(cells)} column(s), but the lines before have {width}", path, number)
        if len(cells) < least:
            raise DataError("1 column, but a feature column and, last, the label column are needed", path, number)
        rows.append(cells)
    if rows:
        yield rows


def _lines(path: str | Path) -> Iterator[bytes]:
    rest = b""
    for block in read_chunks(path):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    if rest:
        yield rest
