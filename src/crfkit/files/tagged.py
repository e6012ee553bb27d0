"""Read the true and the predicted labels of tagged column files, and rewrite a column of labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import ColumnFile, ColumnSource, read_chunks
from crfkit.files.lines import checked_lines, lines_with_ends

Source = ColumnSource

_CELL = re.compile(rb"[^ \t]+")
_BOM = b"\xef\xbb\xbf"


def source_name(source: Source) -> str:
    return str(source) if isinstance(source, (str, Path)) else str(getattr(source, "name", source))


def read_tagged(source: Source, columns: Sequence[int] = (-2, -1)) -> Iterator[list[list[str]]]:
    """Yield, sequence by sequence, the labels of each of these columns.

    Columns are counted from 1, or from −1 at the end of the line: (−2, −1) are the gold and the predicted label where
    a tagger has added a column to a labelled file.
    """
    for column in columns:
        check_column(column)
    for lines in _sequences(source):
        rows = [[_text(_cell(raw, column, source, n), source, n) for n, raw in lines] for column in columns]
        yield rows


def rewrite_column(
    source: Source, column: int, rewrite: Callable[[list[str], list[int]], list[str]]
) -> Iterator[bytes]:
    """Yield the file sequence by sequence, with the labels of a column replaced by what `rewrite` returns for them and
    the numbers of their lines.

    Other columns, separators, blank lines and line ends stay unchanged. A DataError of `rewrite` that has a
    `position` gets the file and the line of that position.
    """
    check_column(column)
    lines: list[tuple[int, bytes]] = []

    def rewritten() -> bytes:
        labels = [_text(_cell(raw, column, source, n), source, n) for n, raw in lines]
        try:
            new = rewrite(labels, [n for n, _ in lines])
        except DataError as error:
            place = getattr(error, "position", None)
            raise DataError(str(error), source_name(source), lines[place][0] if place is not None else 0) from None
        return b"".join(
            raw[:begin] + label.encode() + raw[end:]
            for (n, raw), label in zip(lines, new, strict=True)
            for begin, end in [_cell(raw, column, source, n).span()]
        )

    for number, raw in _lines(_blocks(source)):
        if _blank(raw):
            yield (rewritten() if lines else b"") + raw
            lines = []
        else:
            lines.append((number, raw))
    if lines:
        yield rewritten()


def check_column(column: int) -> None:
    if column == 0:
        raise ParameterError("there is no column 0; 1 is the first column, -1 the last")


def find_line(sources: Sequence[ColumnSource], position: int) -> tuple[str, int, str] | None:
    """Return (file, line, label) of a token of column files, counted from 0; None if it cannot be read again."""
    for source in sources:
        file = ColumnFile.of(source)
        if not isinstance(file.source, (str, Path)):
            return None
        for number, raw in _lines(file.chunks(labelled=True)):
            if not _blank(raw):
                if position == 0:
                    label = _CELL.findall(raw.rstrip(b"\r\n"))[-1].decode(errors="replace")
                    return file.name, file.line(number), label
                position -= 1
    return None


def _sequences(source: Source) -> Iterator[list[tuple[int, bytes]]]:
    lines: list[tuple[int, bytes]] = []
    for number, raw in _lines(_blocks(source)):
        if not _blank(raw):
            lines.append((number, raw))
        elif lines:
            yield lines
            lines = []
    if lines:
        yield lines


def _blocks(source: Source) -> Iterator[bytes]:
    return checked_lines(read_chunks(source), source_name(source), returns=True)


def _lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line with its end)."""
    return enumerate(lines_with_ends(blocks), start=1)


def _blank(raw: bytes) -> bool:
    return not raw.removeprefix(_BOM).strip(b" \t\r\n")


def _cell(raw: bytes, column: int, source: Source, number: int) -> re.Match[bytes]:
    end = len(raw.rstrip(b"\r\n"))
    cells = list(_CELL.finditer(raw, len(_BOM) if number == 1 and raw.startswith(_BOM) else 0, end))
    if not -len(cells) <= column <= len(cells):
        what = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
        raise DataError(f"the line has {what}, so there is no column {column}", source_name(source), number)
    return cells[column - 1 if column > 0 else column]


def _text(cell: re.Match[bytes], source: Source, number: int) -> str:
    try:
        return cell[0].decode()
    except UnicodeDecodeError as error:
        place = cell.start() + error.start + 1
        raise DataError(
            f"not UTF-8 at byte {place} of the line; name its encoding, as in --encoding latin-1",
            source_name(source),
            number,
        ) from None
