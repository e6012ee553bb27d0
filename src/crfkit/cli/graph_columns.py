"""Which columns of a table are features and which are labels, as `crfkit graph` names them."""

from __future__ import annotations

from pathlib import Path

from crfkit.data.sequences import Ids
from crfkit.errors import DataError, ParameterError
from crfkit.estimators.graph_tables import TableEncoder
from crfkit.readers.columns import read_chunks
from crfkit.readers.tables import Table, read_table


def choose_columns(
    table: Table, features: str | None, labels: str | None, label_file: Path | None, header: bool | None
) -> tuple[Table | None, Table]:
    """(features or None, labels) as the options name them."""
    if label_file is None and labels is None:
        raise ParameterError("which columns are labels? give --labels COLS, or a table of labels as --label-file")
    if label_file is None:
        chosen = table.select(labels or "")
        Y = table.take(chosen)
    else:
        source = read_table(label_file, header, "y")
        chosen = []
        Y = source if labels is None else source.take(source.select(labels))
        if len(Y) != len(table):
            raise DataError(f"{len(Y)} rows of labels for {len(table)} rows of data", label_file)
    for name, column in zip(Y.columns, Y.values, strict=True):
        missing = [row for row, value in enumerate(column.tolist()) if value is None or value != value]
        if missing:
            raise DataError(f"column {name!r} has no label", Y.path, int(Y.lines[missing[0]]))
    if features == "none":
        return None, Y
    ids = table.select(features) if features is not None else [i for i in range(len(table.columns)) if i not in chosen]
    if both := sorted(set(ids) & set(chosen)):
        raise ParameterError(f"the column {table.columns[both[0]]!r} is both a feature and a label")
    if not ids:
        raise ParameterError("all columns are labels; for a field without inputs give --features none")
    X = table.take(ids)
    X.check_numbers()
    return X, Y


def read_edges(path: Path, Y: Table) -> list[tuple[int, int]]:
    """Two label columns (names, or numbers from 1) per line, separated by a comma, a tab or spaces."""
    pairs = []
    seen: dict[tuple[int, int], int] = {}
    text = b"".join(read_chunks(path)).decode("utf-8-sig", errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        mark = next((mark for mark in ",\t" if mark in line), None)
        cells = [cell.strip() for cell in line.split(mark)]
        if not line.strip():
            continue
        if len(cells) != 2:
            raise DataError(f"{len(cells)} cell(s); an edge is two label columns", path, number)
        ends = []
        for cell in cells:
            try:
                (place,) = Y.select(cell)
            except ValueError:
                shown = ", ".join(Y.columns[:6]) + (", …" if len(Y.columns) > 6 else "")
                raise DataError(f"{cell!r} is no label column; there are {shown}", path, number) from None
            ends.append(place)
        low, high = sorted(ends)
        if low == high:
            raise DataError(f"{cells[0]!r} is joined to itself", path, number)
        if (low, high) in seen:
            raise DataError(f"the edge of line {seen[low, high]} once more", path, number)
        seen[low, high] = number
        pairs.append((ends[0], ends[1]))
    return pairs


def take_names(table: Table, names: list[str], what: str) -> Table:
    missing = [name for name in names if name not in table.places]
    if missing:
        raise DataError(f"there is no column {missing[0]!r}, {what} of the model", table.path)
    return table.take([table.places[name] for name in names])


def label_columns(
    table: Table, encoder: TableEncoder, label_file: Path | None, header: bool | None, needed: bool
) -> Table | None:
    """The label columns, from DATA or from a file of their own; None if they are not there."""
    if label_file is not None:
        source = read_table(label_file, header, "y")
        if len(source) != len(table):
            raise DataError(f"{len(source)} rows of labels for {len(table)} rows of data", label_file)
        return take_names(source, encoder.variables, "a variable")
    if not needed and not all(name in table.places for name in encoder.variables):
        return None
    return take_names(table, encoder.variables, "a variable")


def read_states(gold: Table, encoder: TableEncoder) -> Ids:
    """[rows, variables] states, −1 for empty cells; raises and names the line of a label the model does not know."""
    for name, column, classes in zip(gold.columns, gold.values, encoder.classes, strict=True):
        known = set(classes.tolist())
        for row, label in enumerate(column.tolist()):
            if label is not None and label == label and label not in known:
                shown = ", ".join(map(str, classes.tolist()[:8]))
                message = f"column {name!r} has the label {label!r}; its labels are {shown}"
                raise DataError(message, gold.path, int(gold.lines[row]))
    return encoder.states(gold)
