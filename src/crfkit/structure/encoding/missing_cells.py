"""Tables with missing cells: rows that are complete, and inputs that are filled in with their means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit._types import Array, Flags, Ints, Samples, Tabular
from crfkit.errors import DataError
from crfkit.files.tables import Table
from crfkit.graph.encoding.table_columns import column_names, read_columns
from crfkit.warn import warn_caller
from crfkit.wording import counted

MISSING_OPTIONS = ("impute", "drop", "error")
NAMED_COLUMNS = 5  # columns that a message names


def complete_rows(Y: Samples, X: Samples, missing: str) -> tuple[Tabular, Tabular]:
    """Return the rows of Y, and of X, without missing cells; warn of dropped rows, or raise if `missing` is "error"."""
    names = column_names(Y, "y")
    columns = read_columns(Y, names)
    if not names or not len(columns[0][0]):
        return Y, X
    gaps = np.stack([~known for _, known in columns], axis=1)
    no_input = _rows_without_input(X, len(gaps))
    if not gaps.any() and not no_input.any():
        return Y, X
    if missing == "error":
        _raise_first(gaps, no_input, names)
    kept = np.flatnonzero(~gaps.any(axis=1) & ~no_input)
    where = _where(gaps, names)
    if not len(kept):
        raise DataError(f"no row of Y has all labels; {where}: drop the columns with most, or fill them in")
    what = "missing labels" if not no_input.any() else "missing cells"
    warn_caller(f"{len(gaps) - len(kept)} of {len(gaps)} rows have {what} and were dropped; {where}", UserWarning)
    return take_rows(Y, kept), _take_inputs(X, kept)


def labelled_rows(Y: Samples, X: Samples) -> tuple[Tabular, Tabular]:
    """Return the rows of Y with at least one label, and those of X with means instead of gaps; warn of gaps."""
    names = column_names(Y, "y")
    columns = read_columns(Y, names)
    if not names or not len(columns[0][0]):
        return Y, X
    gaps = np.stack([~known for _, known in columns], axis=1)
    no_input = _rows_without_input(X, len(gaps))
    if no_input.any():
        warn_caller(
            f"inputs are missing in {counted(int(no_input.sum()), 'row')}; they are replaced by the means of the "
            f"inputs",
            UserWarning,
        )
        X = tuple(map(_at_means, X)) if isinstance(X, tuple) else _at_means(X)
    if not gaps.any():
        return Y, X
    empty = gaps.all(axis=1)
    if empty.all():
        raise DataError("Y has no labels")
    incomplete = counted(int(gaps.any(axis=1).sum()), "row")
    warn_caller(
        f"{gaps.sum():,} of {gaps.size:,} labels are missing, in {incomplete}; they are drawn from the learned graph "
        f"(missing='drop' drops the rows instead); {_where(gaps, names)}"
        + (f"; dropped {counted(int(empty.sum()), 'row')} without any label" if empty.any() else ""),
        UserWarning,
    )
    if not empty.any():
        return Y, X
    kept = np.flatnonzero(~empty)
    return take_rows(Y, kept), _take_inputs(X, kept)


def take_rows(table: Tabular, rows: Ints) -> Tabular:
    """Return some rows of an array, a data frame, a table of a file or a list."""
    if isinstance(table, Table):
        return replace(table.rows(rows), values=[whole(column[rows]) for column in table.values])
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    return table[rows] if hasattr(table, "shape") else [table[i] for i in rows.tolist()]


def _take_inputs(X: Samples, rows: Ints) -> Tabular:
    if isinstance(X, tuple):
        return tuple(None if part is None else take_rows(part, rows) for part in X)
    return None if X is None else take_rows(X, rows)


def _raise_first(gaps: Flags, no_input: Flags, names: list[str]) -> None:
    """Raise DataError about the first missing cell."""
    if not gaps.any():
        raise DataError(
            f"X has no value in row {int(no_input.argmax())}: fill it in, drop the row or the column, or give "
            "missing='drop'"
        )
    row, i = np.argwhere(gaps)[0].tolist()
    raise DataError(
        f"Y has no label at row {row}, column {names[i]}: fill it in, drop the row or the column, or give "
        "missing='drop'"
    )


def _where(gaps: Flags, names: list[str]) -> str:
    counts = gaps.sum(axis=0)
    most = [
        f"{names[i]} ({counts[i]})" for i in np.argsort(-counts, kind="stable")[:NAMED_COLUMNS].tolist() if counts[i]
    ]
    more = ", …" if np.count_nonzero(counts) > NAMED_COLUMNS else ""
    return f"missing labels are in the columns {', '.join(most)}{more}"


def _rows_without_input(X: Samples, n: int) -> Flags:
    """Return [n] which rows lack a value in one of the inputs; raise DataError unless X has n rows."""
    found = np.zeros(n, dtype=bool)
    for part in X if isinstance(X, tuple) else (X,):
        if part is None:
            continue
        if (rows := part.shape[0] if hasattr(part, "shape") else len(part)) != n:
            raise DataError(f"X has {rows} rows, Y has {n}; expected as many rows")
        numbers = _numbers(part)
        if numbers is not None:
            found |= np.isnan(numbers).reshape(n, -1).any(axis=1)
    return found


def _at_means(part: Samples) -> Tabular:
    """Return inputs with missing cells replaced by the means of their columns."""
    numbers = None if part is None else _numbers(part)
    if numbers is None or not np.isnan(numbers).any():
        return part
    known = ~np.isnan(numbers)
    means = np.where(known, numbers, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, numbers, means)
    if not hasattr(part, "columns"):
        return filled
    return Table([str(name) for name in part.columns], list(filled.T), n_rows=len(filled))


def _numbers(part: Samples) -> Tabular:
    """Return inputs as an array of doubles, NaN where one is missing; None if they are sparse or hold text."""
    if hasattr(part, "tocsr"):
        return None
    try:
        values = part.to_numpy() if hasattr(part, "to_numpy") else part
        return np.asarray(np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan), dtype=np.float64)
    except (TypeError, ValueError):
        return None


def whole(column: Array) -> Array:
    """Return a column of integers if it holds whole numbers that were floats only because some were missing."""
    whole = column.dtype.kind == "f" and np.isfinite(column).all() and (column == np.floor(column)).all()
    return column.astype(np.int64) if whole else column
