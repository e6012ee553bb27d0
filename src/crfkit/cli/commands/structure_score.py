"""`crfkit structure score`: how probable the rows of a table are under a learned graph."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit._values import Entries, Samples, Tabular
from crfkit.cli.options import shared
from crfkit.cli.options.table import Data, Header, MissingValues, missing_cells
from crfkit.cli.runtime.help import OUTPUT, option
from crfkit.cli.runtime.output import csv_bytes, open_output, say
from crfkit.errors import DataError

if TYPE_CHECKING:
    from crfkit.files.tables import Table
    from crfkit.structure.estimator.structure_learner import StructureLearner


def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file of `crfkit structure learn`.")],
    data: Data,
    header: Header = None,
    na: MissingValues = None,
    rows: Annotated[
        Path | None,
        option(OUTPUT, "--rows", metavar="FILE", help="Write the line and log-likelihood of each row to a CSV file."),
    ] = None,
    threads: shared.Threads = None,
) -> None:
    """Print the mean log-likelihood of the rows of a table and, for comparison, of a model without edges.

    Rows with missing labels are omitted.
    """
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.files.tables import read_table
    from crfkit.graph.inference.marginals import InferenceStatus
    from crfkit.structure.estimator.structure_learner import StructureLearner

    check_distinct({"MODEL": model, "DATA": data, "--rows": rows})
    learner = StructureLearner.load(model, threads)
    table = read_table(data, header, na=missing_cells(na))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            Y, inputs, lines = _complete(learner, table)
            values = learner.log_likelihood(Y, inputs=inputs)
        except DataError as error:
            raise DataError(str(error), data) from None
    for line in dict.fromkeys(str(w.message) for w in said):
        say(f"crfkit: warning: {line}", err=True)
    deviation = learner.score_error_
    how = "exact" if learner.inference_status_ is InferenceStatus.EXACT else "not exact"
    how = how if deviation is None else f"estimated, standard error {deviation:.2g}"
    say(f"{len(values)} rows, log-likelihood per row: {values.mean():.4f} ({how})")
    say(f"without edges, from the shares of labels in this table: {_without_edges(learner, Y):.4f}")
    if rows is not None:
        with open_output(rows) as out:
            out.write(csv_bytes(["line", "log_likelihood"], zip(lines, values.tolist(), strict=True)))


def _complete(learner: StructureLearner, table: Table) -> tuple[Tabular, Tabular, list[int]]:
    """Return (the model's variables, its inputs, the lines) of the rows without missing labels."""
    from crfkit.structure.encoding.missing_cells import complete_rows

    encoder: Any = learner.model_.encoder
    wanted = [*encoder.variables, *(encoder.features or [])]
    if missing := [name for name in wanted if name not in table.places]:
        raise DataError(f"the table has no column {missing[0]!r}, which the model was trained on")
    Y = table.take([table.places[name] for name in encoder.variables])
    X = table.take([table.places[name] for name in encoder.features]) if encoder.features else None
    Y, X = complete_rows(Y, X, "drop")
    if X is not None:
        X.check_numbers()
    return Y, X, Y.lines.tolist()


def _without_edges(learner: StructureLearner, Y: Samples) -> float:
    """Return the mean log-likelihood of independent columns with the shares of labels that Y has."""
    import numpy as np

    from crfkit.structure.encoding.bins import apply_cuts

    encoder: Any = learner.model_.encoder
    cuts: Entries = learner.model_.training["structure"].get("bins") or {}
    total = 0.0
    for column in encoder.states(apply_cuts(Y, cuts)).T:
        shares = np.bincount(column) / len(column)
        total += sum(share * math.log(share) for share in shares.tolist() if share > 0)
    return total
