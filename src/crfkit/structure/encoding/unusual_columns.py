"""Columns that are hardly meant as variables of a graph: identifiers, and answers that stand for "missing"."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from crfkit._values import Label, Samples, Tabular
from crfkit.errors import DataError
from crfkit.files.tables import Table
from crfkit.graph.encoding.states import Labels
from crfkit.graph.encoding.table_columns import column_names, have_names, read_columns
from crfkit.warn import warn_caller
from crfkit.wording import counted

FEWEST_ROWS = 20  # with fewer, different values in every row say little
MISSING_NUMBERS = frozenset({9, 77, 88, 97, 98, 99, 777, 888, 999, 7777, 8888, 9999})  # usual codes, also negative
MISSING_TEXTS = frozenset({".", "-", "--", "na", "n.a.", "n.a", "#n/a", "missing", "(missing)", "nil"})
MAX_SCALE_WITH_CODE_9 = 7  # 9 is a usual code for scales up to 7; on longer ones it is an answer


def without_identifiers(Y: Samples, kept: Collection[str] = ()) -> Tabular:
    """Return Y without the columns that have a different value in every row; warn which columns these were.

    Whole numbers and texts can be identifiers; other numbers are measurements. Columns in `kept` stay. An array, whose
    columns are known by their order, raises DataError instead.
    """
    names = column_names(Y, "y")
    columns = read_columns(Y, names)
    found = [i for i, (values, known) in enumerate(columns) if names[i] not in kept and _is_identifier(values[known])]
    if not found:
        return Y
    numbers = [i for i in found if columns[i][0].dtype.kind != "U"]
    shown = ", ".join(names[i] for i in found)
    said = (
        f"{'column' if len(found) == 1 else 'columns'} {shown}: each of {counted(len(columns[0][0]), 'row')} has a "
        "different value, as in an identifier; "
    )
    cut = "give {} to cut a number into groups instead"
    if not (hasattr(Y, "columns") and have_names(names, "y")):
        advice = f"remove it from the table, or {cut.format(f'bins={{{numbers[0]}: 5}}')}" if numbers else "remove it"
        raise DataError(said + advice)
    advice = "; " + cut.format(f"--bins {names[numbers[0]]}=5 (bins={{{names[numbers[0]]!r}: 5}})") if numbers else ""
    warn_caller(f"{said}left out{advice}", UserWarning)
    return take_columns(Y, [i for i in range(len(names)) if i not in found])


def take_columns(table: Tabular, ids: list[int]) -> Tabular:
    """Return some columns of a data frame or of a table of a file."""
    if isinstance(table, Table):
        return table.take(ids)
    return table.iloc[:, ids] if hasattr(table, "iloc") else table[:, ids]


def warn_of_codes(Y: Samples) -> None:
    """Warn of values that usually mean that an answer is missing and lie apart from the other values of a column."""
    names = column_names(Y, "y")
    found = []
    for name, (values, known) in zip(names, read_columns(Y, names), strict=True):
        labels, counts = np.unique(values[known], return_counts=True)
        for code in missing_codes(labels):
            rows = int(counts[labels == code][0])
            found.append((name, code, rows))
    if found:
        listed = "; ".join(f"{code} in column {name} ({counted(rows, 'row')})" for name, code, rows in found[:5])
        listed += "; …" if len(found) > 5 else ""
        codes = ",".join(dict.fromkeys(str(code) for _, code, _ in found))
        warn_caller(
            f"values that often mean a missing answer are taken as answers: {listed}. "
            f"If they mean that, replace them by None or NaN (--na {codes})",
            UserWarning,
        )


def missing_codes(labels: Labels) -> list[Label]:
    """Return the labels of a column that probably stand for a missing answer; `labels` are ascending.

    >>> missing_codes(np.array([1, 2, 3, 4, 5, 9])), missing_codes(np.arange(11)), missing_codes(np.array([-9, 0, 1]))
    ([9], [], [-9])
    """
    if labels.dtype.kind == "U":
        return [label for label in labels.tolist() if label.strip().lower() in MISSING_TEXTS]
    if labels.dtype.kind not in "iuf":
        return []
    codes = [k for k in labels.tolist() if abs(k) in MISSING_NUMBERS]
    answers = [k for k in labels.tolist() if abs(k) not in MISSING_NUMBERS]
    if len(answers) < 2:
        return []
    low, high = answers[0], answers[-1]
    return [int(k) for k in codes if _lies_apart(k, low, high)]


def _lies_apart(code: float, low: float, high: float) -> bool:
    """Return whether a code lies far from answers between low and high."""
    if code < 0:
        return low >= 0
    if code == 9:
        return 2 <= high <= MAX_SCALE_WITH_CODE_9
    return code > high + (high - low)


def _is_identifier(values: Labels) -> bool:
    n = len(values)
    if n < FEWEST_ROWS or values.dtype.kind not in "iufU":
        return False
    whole = values.dtype.kind != "f" or bool((np.isfinite(values) & (values == np.floor(values))).all())
    return whole and len(np.unique(values)) == n
