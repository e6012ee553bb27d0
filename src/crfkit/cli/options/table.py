"""Options of the commands that read tables: `crfkit graph` and `crfkit structure`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit.cli.runtime.help import INPUT, flag, option
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.files.tables import Table

COLUMNS = (
    "COLS is a list of columns, separated by commas. A column is a name or a number from 1. 1-294 is a range; -6: are "
    "the last six columns."
)

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Table in CSV or ARFF format, also .gz.")]
LabelFile = Annotated[
    Path | None,
    option(INPUT, "--label-file", metavar="FILE", help="Table with the labels, if they are not columns of DATA."),
]
Header = Annotated[
    bool | None,
    flag(
        INPUT,
        "--header/--no-header",
        help="Whether the first line of CSV files has the names of the columns. Default: detected from that line.",
    ),
]
MissingValues = Annotated[
    str | None,
    option(
        INPUT,
        "--na",
        metavar="A,B",
        help="Cells that mean a missing value. Default: NA, N/A, n/a, <NA>, NaN, nan, NULL, null and ?. Empty cells "
        "are always missing values.",
    ),
]


def missing_cells(given: str | None) -> list[str] | None:
    """Return the cells that --na names, or None for the default."""
    return None if given is None else [cell.strip() for cell in given.split(",")]


def read_bins(given: str, table: Table) -> int | dict[str, int]:
    """Return the value of --bins: a number of groups, or {column: number of groups}."""
    if given.strip().isdecimal():
        return int(given)
    found: dict[str, int] = {}
    for item in given.split(","):
        column, equals, number = item.rpartition("=")
        if not equals or not number.strip().isdecimal():
            raise ParameterError(
                f"--bins must be a number of groups, or COL=N for some columns (age=5,income=4), not {given!r}"
            )
        for i in table.select(column.strip()):
            found[table.columns[i]] = int(number)
    return found
