"""Column files as CRF++ reads them: any bytes; a line that begins with a blank ends a sequence."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from crfkit.errors import DataError, LimitError, ParameterError
from crfkit.files.columns import ColumnFile, read_chunks
from crfkit.files.lines import checked_lines, whole_lines

BYTES = "latin-1"  # has a character for every byte, so files in an unknown encoding keep their bytes

_SEPARATORS = re.compile(rb"[\t ]+")
_LINE_ENDS = re.compile(rb"[\t ]+(?=\r?\n)")
_INDENTED = re.compile(rb"(?m)^[\t ][^\n]*")


class Columns:
    """A stream of lines with a tab between columns, and nothing on the lines that CRF++ takes for blank."""

    def __init__(self, source: Path | BinaryIO, name: str) -> None:
        self.name = name
        self._blocks = _tidied(checked_lines(read_chunks(source), name))

    def read(self, size: int = -1) -> bytes:
        """Return the next block; its size is the source's choice."""
        return next(self._blocks, b"")


def column_file(source: Path | BinaryIO, name: str, encoding: str) -> ColumnFile:
    """Return a file with columns as CRF++ reads it, which needs blanks and line ends that are single bytes."""
    with suppress(LookupError):  # an unknown encoding is reported by ColumnFile
        if not "\t".encode(encoding).endswith(b"\t"):
            raise ParameterError(f"CRF++'s commands do not read {encoding}; convert {name} to UTF-8, or use crfkit")
    stream: BinaryIO = Columns(source, name)  # type: ignore[assignment]
    file = ColumnFile(stream, encoding, "columns")
    file.carriage_returns = False
    return file


def _tidied(blocks: Iterator[bytes]) -> Iterator[bytes]:
    for block in whole_lines(blocks):
        yield _tidy(block if block.endswith(b"\n") else block + b"\n")


def _tidy(text: bytes) -> bytes:
    if b" " in text or b"\t\t" in text or b"\n\t" in text or b"\t\n" in text or text[:1] == b"\t":
        text = _SEPARATORS.sub(b"\t", _LINE_ENDS.sub(b"", _INDENTED.sub(b"", text)))
    return text


def common_encoding(paths: list[str], encoding: str | None) -> tuple[str, str | None]:
    """Return (the encoding of files, the first one that is not UTF-8).

    Files that are all UTF-8 are read as such, and others as bytes, as CRF++ reads them.
    """
    if encoding is not None:
        return encoding, None
    for path in paths:
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for block in read_chunks(path):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return BYTES, path
        except (DataError, LimitError):  # reported when the file is read
            break
    return "utf-8", None
