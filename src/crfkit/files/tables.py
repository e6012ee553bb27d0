"""Tables of numbers and text: CSV (comma, semicolon or tab) and ARFF, also packed as .gz.

UTF-8 with or without BOM, any line end. Cells that stand for missing values are as in :data:`MISSING`, unless `na`
names others.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Ints
from crfkit.errors import DataError, ParameterError
from crfkit.files import limits
from crfkit.files.arff import read_arff
from crfkit.files.columns import read_chunks
from crfkit.files.lines import checked_lines

Column = Array
MISSING = frozenset({"", "?", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "NULL", "null"})


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns: whole numbers as integers, other numbers as doubles (missing: NaN), text as objects (None).

    It has what the estimators use of a data frame: ``columns`` are the names, ``to_numpy()`` is the matrix.
    """

    columns: list[str]
    values: list[Column]  # the cells of each column [rows]
    path: str | Path | None = None
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # line of each row
    n_rows: int = 0
    header: bool = False  # whether the names are the first line of a CSV file

    def __len__(self) -> int:
        return self.n_rows

    def to_numpy(self) -> Array:
        """Return an array [rows, columns], of numbers if all columns are numbers, otherwise of objects."""
        text = any(column.dtype.kind == "O" for column in self.values)
        parts = [column.astype(object) if text else column for column in self.values]
        return np.stack(parts, axis=1) if parts else np.zeros((self.n_rows, 0))

    def take(self, ids: list[int]) -> Table:
        """Return a table with some of the columns."""
        columns, values = [self.columns[i] for i in ids], [self.values[i] for i in ids]
        return Table(columns, values, self.path, self.lines, self.n_rows, self.header)

    def rows(self, ids: Ints) -> Table:
        """Return a table with some of the rows."""
        lines = self.lines[ids] if len(self.lines) else self.lines
        values = [column[ids] for column in self.values]
        n = len(values[0]) if values else len(np.arange(self.n_rows)[ids])
        return Table(self.columns, values, self.path, lines, n, self.header)

    @cached_property
    def places(self) -> dict[str, int]:
        """Return {name: number of the column, from 0}."""
        return {name: i for i, name in enumerate(self.columns)}

    def select(self, spec: str) -> list[int]:
        """Return the columns that a text lists: names and numbers from 1; ``2-5`` is a range, ``-6:`` the last six.

        >>> Table(["a", "b", "c", "d"], []).select("a,3-4")
        [0, 2, 3]
        """
        chosen: list[int] = []
        for item in (part.strip() for part in spec.split(",")):
            chosen += self._range(item)
        if len(set(chosen)) != len(chosen):
            twice = next(i for i, n in Counter(chosen).items() if n > 1)
            raise ParameterError(f"{spec!r} names the column {self.columns[twice]!r} twice; name it once")
        return chosen

    def _range(self, item: str) -> list[int]:
        if item in self.places:
            return [self.places[item]]
        n = len(self.columns)
        whole = re.fullmatch(r"(\d+)(?:-(\d+))?", item)
        last = re.fullmatch(r"-(\d+):", item)
        if whole:
            first, end = int(whole[1]), int(whole[2] or whole[1])
        elif last:
            first, end = n - int(last[1]) + 1, n
        else:
            shown = ", ".join(self.columns[:6]) + (", …" if n > 6 else "")
            raise DataError(f"there is no column {item!r}; the columns are {shown}", self.path)
        if not 1 <= first <= end <= n:
            raise DataError(f"{item!r} is not a range of columns; the table has {n} columns", self.path)
        return list(range(first - 1, end))

    def check_numbers(self, gaps: bool = False) -> None:
        """Raise DataError with the line of the first cell that is not a number; cells may be missing if `gaps`."""
        for name, column in zip(self.columns, self.values, strict=True):
            if column.dtype.kind != "O" and np.isfinite(column).all():
                continue
            for row, value in enumerate(column.tolist()):
                if value is None or value != value:
                    if gaps:
                        continue
                    raise DataError(f"column {name!r} has no value; expected a number", self.path, int(self.lines[row]))
                if isinstance(value, str) and _number(value) is None:
                    raise DataError(f"column {name!r} is {value!r}; expected a number", self.path, int(self.lines[row]))
                if not isinstance(value, str) and not np.isfinite(value):
                    raise DataError(
                        f"column {name!r} is {value}; expected a finite number", self.path, int(self.lines[row])
                    )


def read_table(
    path: str | Path, header: bool | None = None, prefix: str = "x", na: Collection[str] | None = None
) -> Table:
    """Read a table: ARFF if its name ends in .arff or its first word is @relation, otherwise CSV.

    `header`: whether the first line of a CSV file has the names of columns. If None, it does if none of its cells
    is a number, or if a cell that is not a number is above numbers only. Columns without names are called x1, x2, …
    Cells in `na` are missing values (None for those in MISSING); empty cells always are.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("size;colour\\n1.5;red\\n2;blue\\n")
    ...     table = read_table(Path(folder, "t.csv"))
    >>> table.columns, [column.tolist() for column in table.values]
    (['size', 'colour'], [[1.5, 2.0], ['red', 'blue']])
    """
    text = _text(path)
    name = str(path).lower().removesuffix(".gz")
    if name.endswith(".arff") or _starts_as_arff(text):
        names, cells, lines = read_arff(text, path)
        limits.check("columns", len(names), f"{path}: the table has {len(names):,} columns")
        named = False
    else:
        names, cells, lines, named = _read_csv(text, path, header, prefix)
    if len(set(names)) != len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        hint = "; if the first line is data, give --no-header (header=False)" if named else ""
        raise DataError(f"two columns have the name {twice!r}{hint}", path)
    gaps = MISSING if na is None else frozenset({"", *na})
    columns = [make_column(list(column), gaps) for column in zip(*cells, strict=True)]
    columns = columns or [make_column([]) for _ in names]
    return Table(names, columns, path, np.array(lines, dtype=np.int64), len(lines), named)


def make_column(cells: list[str], missing: frozenset[str] = MISSING) -> Column:
    """Return integers, doubles or objects, whichever the cells are; NaN or None where a cell is in `missing`."""
    gaps = not missing.isdisjoint(cells)
    text = np.array(["nan" if cell in missing else cell for cell in cells] if gaps else cells, dtype=str)
    for kind in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            return text.astype(kind)
    return np.array([None if cell in missing else cell for cell in cells], dtype=object)


def _text(path: str | Path) -> str:
    blocks, size, file_size = [], 0, _size(path)
    for block in checked_lines(read_chunks(path), str(path), returns=True):
        blocks.append(block)
        size += len(block)
        limits.check_memory(size, f"{path}: the table", file_size)
    raw = b"".join(blocks)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError("the file is not UTF-8; convert it", path, raw.count(b"\n", 0, error.start) + 1) from None


def _size(path: str | Path) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _starts_as_arff(text: str) -> bool:
    """Return whether the first word other than comments (%) is @relation."""
    for found in _LINE.finditer(text):
        line = found[0].strip()
        if line and not line.startswith("%"):
            return _RELATION.match(line) is not None
    return False


_LINE = re.compile(r"[^\r\n]+")
_RELATION = re.compile(r"@relation\b", re.IGNORECASE)


def _read_csv(
    text: str, path: str | Path, header: bool | None, prefix: str
) -> tuple[list[str], list[list[str]], list[int], bool]:
    """Return (names, cells by row, line of each row, whether the first line has the names)."""
    first = next((line for line in text.splitlines() if line.strip()), None)
    if first is None:
        raise DataError("the file is empty", path)
    delimiter = max(",;\t", key=lambda mark: _count(first, mark))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    most = limits.current().columns
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if len(cells) > most:
                limits.check("columns", len(cells), f"{path}:{reader.line_num}: the line has {len(cells):,} cells")
            if not any(cells) and len(cells) <= 1:
                continue
            if rows and len(cells) != len(rows[0]):
                raise DataError(
                    f"the line has {len(cells)} cells, but the lines before it have {len(rows[0])}",
                    path,
                    reader.line_num,
                )
            rows.append(cells)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise DataError(f"the file is not CSV: {error}", path, reader.line_num) from None
    if _is_header(rows) if header is None else header:
        for i, name in enumerate(rows[0]):
            if not name:
                raise DataError(
                    f"column {i + 1} has no name; name it, or remove it (pandas writes such an index unless "
                    "index=False)",
                    path,
                    lines[0],
                )
        return rows[0], rows[1:], lines[1:], True
    return [f"{prefix}{i + 1}" for i in range(len(rows[0]))], rows, lines, False


def _count(line: str, mark: str) -> int:
    """Return how often a mark occurs outside quotes."""
    return re.sub(r'"[^"]*"', "", line).count(mark)


def _is_header(rows: list[list[str]]) -> bool:
    first = rows[0]
    text = [j for j, cell in enumerate(first) if cell not in ("", "?") and _number(cell) is None]
    if len(text) == len(first):
        return True
    return any(_numeric([row[j] for row in rows[1:]]) for j in text)


def _numeric(cells: list[str]) -> bool:
    """Return whether all cells are numbers or missing values, with at least one number."""
    known = [cell for cell in cells if cell not in MISSING]
    return bool(known) and all(_number(cell) is not None for cell in known)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
