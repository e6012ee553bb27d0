"""Column files (CoNLL, CRF++): a token per line, columns separated by tabs or spaces, blank lines between sequences.

UTF-8 with or without BOM unless another encoding is named, any line end; there are no comments. CoNLL-U files, which
have comments and ranges, are recognised (see :mod:`crfkit.files.conllu`). Files that end in .gz are unpacked.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from crfkit._checks import check_encoding
from crfkit.errors import DataError
from crfkit.files import limits
from crfkit.files.conllu import Conllu, column_number, is_conllu
from crfkit.files.lines import checked_lines, each_line, whole_lines, with_newlines
from crfkit.names import unknown_name
from crfkit.text.plain_text import PLAIN_FORMATS, plain_chunks
from crfkit.wording import counted

CHUNK = 1 << 20
FORMATS = ("auto", "columns", "conllu", "crfsuite", *PLAIN_FORMATS)


def read_chunks(
    source: str | Path | BinaryIO | ColumnFile, chunk: int = CHUNK, what: str = "the file"
) -> Iterator[bytes]:
    """Yield the bytes of a file or an open binary stream block by block; those of a ColumnFile in UTF-8.

    Messages call the file `what`.
    """
    if isinstance(source, ColumnFile):
        yield from source.chunks(labelled=False, chunk=chunk)
        return
    if hasattr(source, "read"):
        read = getattr(source, "read1", source.read)
        try:
            while block := read(chunk):
                yield block
        except OSError as error:
            name = getattr(source, "name", "the stream")
            raise DataError(f"cannot read {what}: {error.strerror or error}", name) from error
        return
    path = Path(source)
    failures: tuple[type[Exception], ...] = (OSError, EOFError)
    open_file: Any = open
    if path.suffix == ".gz":
        import gzip
        import zlib

        failures, open_file = (*failures, zlib.error), gzip.open
    try:
        with open_file(path, "rb") as stream:
            while block := stream.read(chunk):
                yield block
    except failures as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot read {what}: {reason}", path) from error


def read_small(path: str | Path, what: str) -> bytes:
    """Return a whole file, such as a template, which may be as long as a line of other files."""
    blocks, size, most = [], 0, limits.current().line
    for block in read_chunks(path, what=what):
        blocks.append(block)
        size += len(block)
        if size > most:
            limits.check("line", size, f"{path}: {what} has {size:,} bytes or more", path)
    return b"".join(blocks)


@dataclass
class ColumnFile:
    """A column file and how to read it. It can be used instead of a path wherever a column file is read.

    Parameters
    ----------
    source : a path or an open binary stream
    encoding : any encoding that Python knows, such as "latin-1" or "utf-16"
    format : "columns", "conllu" or "auto", which is CoNLL-U if the file's name ends in .conllu or its first token line
        has ten columns. In CoNLL-U, comments, multiword ranges (1-2) and empty nodes (8.1) are not tokens. "crfsuite"
        files have attributes instead of columns (see :mod:`crfkit.files.crfsuite_data`). "text", "words" and
        "characters" are plain text without labels. "text" is divided into sentences and these into words and signs
        (see :mod:`crfkit.text`). The other two have a sentence per line, which is split at blanks or into characters
    label_column : column of the label in CoNLL-U files: a number from 0 or a name ("upos", "xpos", "feats", …); None is
        "upos"
    """

    source: str | Path | BinaryIO
    encoding: str = "utf-8"
    format: str = "auto"
    label_column: str | int | None = None
    conllu: Conllu | None = field(default=None, init=False)  # set when the file is found to be CoNLL-U
    # whether a carriage return alone ends a line; Wapiti takes it for a blank, and CRF++ for a letter
    carriage_returns: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.format not in FORMATS:
            raise unknown_name("format", self.format, FORMATS)
        if self.label_column is not None:
            column_number(self.label_column)

    @classmethod
    def of(cls, source: ColumnSource) -> ColumnFile:
        """Return the source itself, or a path or stream with the usual options."""
        return source if isinstance(source, ColumnFile) else cls(source)

    @property
    def name(self) -> str:
        """Return the name of the file, for messages."""
        return str(getattr(self.source, "name", "the stream") if hasattr(self.source, "read") else self.source)

    def chunks(self, labelled: bool, keep_lines: bool = False, chunk: int = CHUNK) -> Iterator[bytes]:
        """Yield the file as columns in UTF-8. In CoNLL-U files the label is moved to the last column if `labelled`.

        With `keep_lines`, the lines of CoNLL-U files wait in `conllu` for their labels.
        """
        self.conllu = None
        if self.format == "crfsuite":
            raise DataError(
                "a CRFsuite file has attributes, not columns; read it with read_crfsuite, or use it without a template",
                self.name,
            )
        blocks = self.text_blocks(chunk)
        if self.format in PLAIN_FORMATS:
            if labelled:
                raise DataError(
                    f"a file of format {self.format} is plain text and has no labels; give a column file, whose last "
                    "column is the label",
                    self.name,
                )
            yield from plain_chunks(blocks, self.format, self.name)
            return
        found = self.format == "conllu"
        if self.format == "auto":
            found, blocks = (
                (True, blocks) if self.name.removesuffix(".gz").endswith(".conllu") else _starts_as_conllu(blocks)
            )
        if not found:
            yield from blocks
            return
        column = column_number("upos" if self.label_column is None else self.label_column)
        self.conllu = Conllu(column, labelled, keep_lines, self.name)
        for block in whole_lines(blocks):
            yield self.conllu.feed(block)
        yield self.conllu.finish()

    def text_blocks(self, chunk: int = CHUNK) -> Iterator[bytes]:
        """Yield the text of the file in UTF-8, with line feeds at the ends of lines."""
        blocks = transcoded(read_chunks(self.source, chunk), self.encoding, self.name)
        return (with_newlines if self.carriage_returns else checked_lines)(blocks, self.name)

    def line(self, number: int) -> int:
        """Return the line number in the file of a line of `chunks`."""
        return self.conllu.line(number) if self.conllu is not None else number


def _starts_as_conllu(blocks: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Return whether the first lines are CoNLL-U, and all blocks."""
    seen: list[bytes] = []
    rest: list[bytes] = []  # pieces of the line under way
    comments, size = False, 0
    for block in blocks:
        seen.append(block)
        size += len(block)
        if b"\n" not in block:
            rest.append(block)
            continue
        text = b"".join([*rest, block])
        end = text.rfind(b"\n") + 1
        rest = [text[end:]]
        verdict = is_conllu(text[:end], comments=comments)
        if verdict is not None or size > _MOST_COMMENTS:
            return verdict is True, chain(seen, blocks)
        comments = comments or bool(text[:end].strip())
    return is_conllu(b"".join(rest), end=True, comments=comments) is True, iter(seen)


_MOST_COMMENTS = 1 << 24  # bytes before the first token

ColumnSource = str | Path | BinaryIO | ColumnFile


def column_files(
    sources: ColumnSource | Sequence[ColumnSource],
    encoding: str = "utf-8",
    format: str = "auto",
    label_column: str | int | None = None,
) -> list[ColumnFile]:
    """Return one or several sources as column files. The options apply to sources that are not yet column files."""
    several: list[Any] = list(sources) if isinstance(sources, (list, tuple)) else [sources]
    return [
        source if isinstance(source, ColumnFile) else ColumnFile(source, encoding, format, label_column)
        for source in several
    ]


def read_columns(
    path: ColumnSource,
    label: bool = True,
    encoding: str = "utf-8",
    format: str = "auto",
    label_column: str | int | None = None,
) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """Return the contents of a column file as lists: (tokens as tuples of columns, labels of the last column).

    With label=False every column is a feature column and the second list is empty. The other options are as in
    :class:`ColumnFile`. Training from a file does not need this: :meth:`ChainCRF.fit_file` streams.
    """
    X: list[list[tuple[str, ...]]] = []
    y: list[list[str]] = []
    file = path if isinstance(path, ColumnFile) else ColumnFile(path, encoding, format, label_column)
    for rows in _sequences(file, label):
        X.append([row[:-1] if label else row for row in rows])
        if label:
            y.append([row[-1] for row in rows])
    return X, y


def _sequences(file: ColumnFile, labelled: bool) -> Iterator[list[tuple[str, ...]]]:
    rows: list[tuple[str, ...]] = []
    for _, cells in rows_of(file, labelled):
        if cells:
            rows.append(cells)
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


def rows_of(file: ColumnFile, labelled: bool = True) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield (line number, cells) of every line; a blank line has no cells."""
    width = 0
    for number, raw in enumerate(each_line(file.chunks(labelled)), start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            place = f"byte {error.start + 1} of the line (0x{raw[error.start]:02X})"
            raise DataError(f"not UTF-8 at {place}; {NAME_THE_ENCODING}", file.name, file.line(number)) from None
        cells = tuple(cell for cell in line.removesuffix("\r").replace("\t", " ").split(" ") if cell)
        if not cells:
            yield file.line(number), ()
            continue
        width = width or len(cells)
        if len(cells) != width:
            raise DataError(
                f"{counted(len(cells), 'column')}, but the lines before have {width}", file.name, file.line(number)
            )
        if len(cells) < (2 if labelled else 1):
            raise DataError(
                "1 column; expected one or more feature columns and then the label", file.name, file.line(number)
            )
        yield file.line(number), cells


NAME_THE_ENCODING = "name the encoding of the file, as in --encoding latin-1 or, in Python, encoding='latin-1'"


def transcoded(blocks: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    """Yield the same text in UTF-8. Text in UTF-8 is passed on unchecked, because the parser checks it."""
    if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig"):
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    bytes_before, line, last = 0, 1, ""
    ended = False
    while not ended:
        block = next(blocks, b"")
        ended = not block
        pending = len(decoder.getstate()[0])  # bytes of the last block that wait for the rest of a character
        try:
            text = decoder.decode(block, final=ended)
        except UnicodeDecodeError as error:
            with suppress(UnicodeError):  # of encodings that cannot ignore errors
                line += _line_ends(error.object[: error.start].decode(encoding, "ignore"), last)
            place = f"byte {bytes_before - pending + error.start + 1} of the file (0x{error.object[error.start]:02X})"
            raise DataError(f"not {encoding} at {place}: {error.reason}; name another encoding", name, line) from None
        except UnicodeError as error:  # such as UTF-16 without its first two bytes
            raise DataError(f"not {encoding}: {error}; name another encoding", name) from None
        bytes_before += len(block)
        line += _line_ends(text, last)
        last = text[-1:] or last
        if text:
            yield text.encode("utf-8", "surrogatepass")


def _line_ends(text: str, before: str) -> int:
    """Return the number of line ends of a text; `before` is the character before it."""
    split = before == "\r" and text.startswith("\n")
    return text.count("\n") + text.count("\r") - text.count("\r\n") - split
