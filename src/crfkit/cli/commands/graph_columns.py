"""Find the feature and label columns of a table from the options of `crfkit graph`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from crfkit._types import Ids
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import read_chunks
from crfkit.files.lines import checked_lines
from crfkit.files.tables import Table, read_table
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.wording import counted


def choose_columns(
    table: Table,
    features: str | None,
    labels: str | None,
    label_file: Path | None,
    header: bool | None,
    na: list[str] | None = None,
) -> tuple[Table | None, Table]:
    """Return the tables (features or None, labels) that the options name."""
    if label_file is None and labels is None:
        raise ParameterError(
            "the label columns are missing; give --labels COLS, or --label-file with a table of labels"
        )
    if label_file is None:
        chosen = table.select(labels or "")
        Y = table.take(chosen)
    else:
        source = read_table(label_file, header, "y", na)
        chosen = []
        Y = source if labels is None else source.take(source.select(labels))
        check_rows(source, table)
    for name, column in zip(Y.columns, Y.values, strict=True):
        missing = [row for row, value in enumerate(column.tolist()) if value is None or value != value]
        if missing:
            raise DataError(
                f"column {name!r} has no label; fill in the cell or remove the row", Y.path, int(Y.lines[missing[0]])
            )
    if features == "none":
        return None, Y
    ids = table.select(features) if features is not None else [i for i in range(len(table.columns)) if i not in chosen]
    if both := sorted(set(ids) & set(chosen)):
        raise ParameterError(
            f"the column {table.columns[both[0]]!r} is both a feature and a label; leave it out of one of them"
        )
    if not ids:
        raise ParameterError(
            "all columns are labels, so no feature is left; for a field without inputs, give --features none"
        )
    X = table.take(ids)
    X.check_numbers()
    return X, Y


def read_edges(path: Path, Y: Table) -> list[tuple[int, int]]:
    """Read pairs of label columns: two names, or numbers from 1, per line, with a comma, a tab or spaces between."""
    pairs = []
    seen: dict[tuple[int, int], int] = {}
    text = b"".join(checked_lines(read_chunks(path), str(path), returns=True)).decode("utf-8-sig", errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        mark = next((mark for mark in ",\t" if mark in line), None)
        cells = [cell.strip() for cell in line.split(mark)]
        if not line.strip():
            continue
        if len(cells) != 2:
            raise DataError(f"expected two label columns, got {counted(len(cells), 'cell')}", path, number)
        ends = []
        for cell in cells:
            try:
                (place,) = Y.select(cell)
            except ValueError:
                raise DataError(
                    f"{cell!r} is not a label column; expected one of {_shown(Y.columns)}", path, number
                ) from None
            ends.append(place)
        low, high = sorted(ends)
        if low == high:
            raise DataError(f"{cells[0]!r} is joined to itself; an edge needs two different columns", path, number)
        if (low, high) in seen:
            raise DataError(f"this edge is a duplicate of line {seen[low, high]}; remove one of them", path, number)
        seen[low, high] = number
        pairs.append((ends[0], ends[1]))
    return pairs


def take_columns(table: Table, names: list[str], what: str) -> Table:
    """Return the columns with these names; `what` says in an error what a missing column is of the model."""
    missing = [name for name in names if name not in table.places]
    if missing:
        raise DataError(
            f"the table has no column {missing[0]!r}, which is {what} of the model; its columns are "
            f"{_shown(table.columns)}",
            table.path,
        )
    return table.take([table.places[name] for name in names])


def label_columns(
    table: Table,
    encoder: TableEncoder,
    label_file: Path | None,
    header: bool | None,
    needed: bool,
    na: list[str] | None = None,
) -> tuple[Table | None, Table]:
    """Return (the label columns or None if there are none, the table that has them), from DATA or from --label-file.

    If they are `needed` (for --observed), a table may have some of them; the others are missing values.
    """
    source = table
    if label_file is not None:
        source = read_table(label_file, header, "y", na)
        check_rows(source, table)
    elif not needed and not all(name in table.places for name in encoder.variables):
        return None, table
    if needed and any(name in source.places for name in encoder.variables):
        return with_missing(source, encoder.variables), source
    return take_columns(source, encoder.variables, "a variable"), source


def with_missing(source: Table, names: list[str]) -> Table:
    """Return the columns with these names; those that the table lacks are missing values."""
    empty = np.full(len(source), None, dtype=object)
    values = [source.values[source.places[name]] if name in source.places else empty for name in names]
    return replace(source, columns=list(names), values=values)


def observed_columns(spec: str, source: Table, encoder: TableEncoder) -> list[int]:
    """Return the ids of the variables that --observed names, by name or by column of the table with the labels."""
    chosen = []
    places = {name: i for i, name in enumerate(encoder.variables)}
    for place in source.select(spec):
        name = source.columns[place]
        if name not in places:
            raise DataError(
                f"--observed: {name!r} is not a label of the model; its labels are {_shown(encoder.variables)}",
                source.path,
            )
        chosen.append(places[name])
    return chosen


def check_rows(labels: Table, table: Table) -> None:
    """Raise DataError unless the labels and the data have the same number of rows."""
    if len(labels) == len(table):
        return
    message = f"the labels have {len(labels)} rows, but the data have {len(table)}"
    headers = [str(t.path) for t in (labels, table) if t.header]
    if abs(len(labels) - len(table)) == 1 and len(headers) == 1:
        message += f"; the first line of {headers[0]} was taken for column names; if it is data, give --no-header"
    raise DataError(message, labels.path)


def read_states(gold: Table, encoder: TableEncoder) -> Ids:
    """Return states [rows, variables], −1 for empty cells; raise DataError for a label that the model does not know."""
    for name, column, classes in zip(gold.columns, gold.values, encoder.classes, strict=True):
        known = set(classes.tolist())
        for row, label in enumerate(column.tolist()):
            if label is not None and label == label and label not in known:
                shown = ", ".join(map(str, classes.tolist()[:8]))
                message = (
                    f"column {name!r} has the unknown label {label!r}; the model knows {shown}. Empty the cell to "
                    "predict it"
                )
                raise DataError(message, gold.path, int(gold.lines[row]))
    return encoder.states(gold)


def _shown(names: list[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
