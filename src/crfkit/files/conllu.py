"""CoNLL-U: ten columns separated by tabs, comments (# …), multiword ranges (1-2) and empty nodes (8.1).

Comments, ranges and empty nodes are not tokens. A blank inside a cell, which CoNLL-U allows, becomes a no-break space,
and the label's own column becomes "_", so that no template can read the label.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque

from crfkit.errors import DataError, ParameterError
from crfkit.wording import counted

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_FIRST_ID = re.compile(rb"1|1-\d+|0\.1")
_NO_TOKEN = re.compile(rb"\d+-\d+|\d+\.\d+")
_TOKEN = re.compile(rb"\d+")
_HEAD = re.compile(rb"_|\d+")


def column_number(column: str | int) -> int:
    """Return the number of a column from its name or number.

    >>> column_number("upos"), column_number("3"), column_number(7)
    (3, 3, 7)
    """
    if isinstance(column, str) and column.lower() in COLUMNS:
        return COLUMNS.index(column.lower())
    try:
        number = int(column)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < len(COLUMNS):
        raise ParameterError(f"unknown label column {column!r}; expected 0 to 9 or one of {', '.join(COLUMNS)}")
    return number


def is_conllu(start: bytes, end: bool = False, comments: bool = False) -> bool | None:
    """Return whether a file with this beginning is CoNLL-U; None if more of it is needed (never at the file's `end`).

    A file is taken for CoNLL-U only if its first line that does not start with # has ten cells between tabs, of which
    the first is the number of a first token and HEAD and FEATS are what they must be. In such a file no token line can
    start with #, so that no token is taken for a comment. `comments`: whether comments came before this.
    """
    lines = start.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line in lines if end else lines[:-1]:
        cells = line.removesuffix(b"\r").split(b"\t")
        if line.startswith(b"#"):
            comments = True
        elif line.strip():
            return (
                len(cells) == len(COLUMNS)
                and _FIRST_ID.fullmatch(cells[0]) is not None
                and _HEAD.fullmatch(cells[6]) is not None
                and (cells[5] == b"_" or b"=" in cells[5])
            )
        elif comments:
            return False  # comments stand right before the tokens of their sentence
    return False if end else None


class Conllu:
    """Turns the lines of a CoNLL-U file into plain columns block by block, and puts labels back into the lines."""

    def __init__(self, label_column: int, labelled: bool, keep_lines: bool, name: str) -> None:
        self.label_column = label_column
        self._labelled, self._keep, self._name = labelled, keep_lines, name
        self._rest = b""
        self._line = 0  # lines of the file so far
        self._dropped: list[int] = []  # the number that a dropped line would have had among those kept
        self._kept = 0
        self._waiting: deque[tuple[bytes, bool]] = deque()  # (line, whether it is a token), for `with_labels`

    def feed(self, block: bytes) -> bytes:
        """Return the next bytes of the file as plain columns."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        return b"".join(self._plain(line) for line in lines)

    def finish(self) -> bytes:
        """Return the last line as plain columns, if it has no line end."""
        rest, self._rest = self._rest, b""
        return self._plain(rest) if rest else b""

    def line(self, number: int) -> int:
        """Return the line number in the file of a line of the plain columns."""
        place = bisect_left(self._dropped, number + 1)
        return number + place

    def _plain(self, raw: bytes) -> bytes:
        self._line += 1
        line = raw.removeprefix(b"\xef\xbb\xbf") if self._line == 1 else raw
        line = line.removesuffix(b"\r")
        cells = line.split(b"\t")
        if not line.strip():
            self._note(line, False)
            self._kept += 1
            return b"\n"
        if line.startswith(b"#") or _NO_TOKEN.fullmatch(cells[0]):
            self._note(line, False)
            self._dropped.append(self._kept + 1)
            return b""
        if len(cells) != len(COLUMNS) or not _TOKEN.fullmatch(cells[0]):
            first = cells[0].decode("utf-8", "replace")
            raise DataError(
                f"not a line of CoNLL-U: {counted(len(cells), 'cell')} between tabs, the first {first!r}; expected "
                "10, the first a number; for other column files give --format columns (format='columns')",
                self._name,
                self._line,
            )
        self._note(line, True)
        self._kept += 1
        cells = [cell.replace(b" ", b"\xc2\xa0") or b"_" for cell in cells]
        label, cells[self.label_column] = cells[self.label_column], b"_"
        return b"\t".join([*cells, label] if self._labelled else cells) + b"\n"

    def _note(self, line: bytes, token: bool) -> None:
        if self._keep:
            self._waiting.append((line, token))

    def with_labels(self, labels: list[str]) -> bytes:
        """Return the lines up to the sentence of the last label, with the labels in the label column.

        What follows the label after a tab (probabilities) is appended to the line.
        """
        out: list[bytes] = []
        given = iter(labels)
        left = len(labels)
        while self._waiting:
            line, token = self._waiting[0]
            if token and not left:
                break
            self._waiting.popleft()
            if token:
                label, *more = next(given).encode("utf-8", "surrogatepass").split(b"\t")
                cells = line.split(b"\t")
                cells[self.label_column] = label
                line = b"\t".join([*cells, *more])
                left -= 1
            out.append(line + b"\n")
            if not left and not token and not line.strip():
                break
        return b"".join(out)

    def remainder(self) -> bytes:
        """Return the lines after the last sentence."""
        out = b"".join(line + b"\n" for line, _ in self._waiting)
        self._waiting.clear()
        return out
