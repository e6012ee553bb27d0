"""`crfkit graph predict`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_flag, own_option, takes
from crfkit.cli.options.table import Data, Header, LabelFile, MissingValues, missing_cells
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT
from crfkit.cli.runtime.output import say
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit._types import Ids


@dataclass(frozen=True)
class PredictOptions:
    """The options of `crfkit graph predict`."""

    model: shared.ModelFile
    data: Data
    label_file: LabelFile = None
    header: Header = None
    na: MissingValues = None
    output: shared.OutputFile = None
    marginals: bool = own_flag(OUTPUT, "--marginals", help="Add a column with the probability of every label.")
    decode: str | None = own_option(
        MODEL, "--decode", metavar="NAME", help="Decoder: {decoders}. Default: the one that the model records."
    )
    inference: str | None = own_option(
        MODEL,
        "--inference",
        metavar="NAME",
        help="Inference engine: {engines}. Default: the one that the model records.",
    )
    sweeps: shared.Sweeps = None
    observed: str | None = own_option(
        INPUT,
        "--observed",
        metavar="COLS",
        help="Label columns of the table whose values are known. Empty cells of these columns are predicted. "
        "Other label columns may be left out of the table.",
    )
    threads: shared.Threads = None


@takes(PredictOptions)
def predict(given: PredictOptions) -> None:
    """Predict the label columns of a table and write them as CSV.

    If the table has label columns, their errors are counted on stderr. Cells of --observed do not count.

    A model of `crfkit structure learn` without inputs predicts from the table itself: it fills in missing cells, or, if
    none is missing, predicts each cell from the other cells of its row.
    """
    from dataclasses import replace

    import numpy as np

    from crfkit.cli.commands.graph_columns import label_columns, observed_columns, read_states, take_columns
    from crfkit.cli.commands.graph_given import given_labels, is_structure
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.cli.runtime.output import csv_bytes, open_output
    from crfkit.files.tables import read_table
    from crfkit.graph.encoding.tables import TableEncoder
    from crfkit.graph.inference.engines import ENGINES
    from crfkit.graph.model import DECODERS, GraphModel
    from crfkit.graph.training.problem import check_sweeps
    from crfkit.names import check_name
    from crfkit.structure.scores import conditionals

    for name, value, choices in (
        ("--decode", given.decode, DECODERS),
        ("--inference", given.inference, ("auto", *ENGINES)),
    ):
        if value is not None:
            check_name(name, value, choices)
    trained = GraphModel.load(given.model, given.threads)
    encoder = trained.encoder
    if not isinstance(encoder, TableEncoder):
        raise ParameterError(
            f"{given.model} was not trained on a table, so that it cannot predict one; use GraphCRF.load or "
            "GridCRF.load in Python"
        )
    check_distinct(
        {"MODEL": given.model, "DATA": given.data, "--label-file": given.label_file, "--output": given.output}
    )
    engine = given.inference or trained.inference
    check_sweeps(given.sweeps, engine)
    trained = replace(trained, decode=given.decode or trained.decode, inference=engine, sweeps=given.sweeps)
    table = read_table(given.data, given.header, na=missing_cells(given.na))
    X = take_columns(table, encoder.features, "a feature") if encoder.features is not None else None
    if X is not None:
        X.check_numbers()
    alone = is_structure(trained) and given.observed is None
    if alone:
        from crfkit.files.tables import Table

        if given.label_file is not None:
            table = read_table(given.label_file, given.header, "y", missing_cells(given.na))
        gold: Table | None = given_labels(trained, table)
        source = table
    else:
        gold, source = label_columns(
            table, encoder, given.label_file, given.header, given.observed is not None, missing_cells(given.na)
        )
    states = None if gold is None else read_states(gold, encoder)
    known = states if alone and states is not None and (states < 0).any() else None
    if given.observed is not None and states is not None:
        known = np.full_like(states, -1)
        chosen = observed_columns(given.observed, source, encoder)
        known[:, chosen] = states[:, chosen]
    encoded = encoder.encode(X, table)
    given_states = None if known is None else known.ravel()
    with open_output(given.output) as out:
        others = conditionals(trained, states) if alone and known is None and states is not None else None
        inferred = None
        if others is None:
            found = trained.best(encoded, given_states)
            best, inferred = found.labels, found.marginals
        else:
            best = np.stack([p.argmax(axis=1) for p in others], axis=1).astype(np.int32).ravel()
        columns = [column.tolist() for column in encoder.labels(best, encoded, X).T]
        names = list(encoder.variables)
        if given.marginals:
            if others is None:
                inferred = inferred or trained.infer(encoded, given_states)
                others = encoder.by_node(inferred.nodes, encoded, X)
            for name, classes, p in zip(encoder.variables, encoder.classes, others, strict=True):
                names += [f"p({name}={label})" for label in classes.tolist()]
                columns += [[f"{value:.6f}" for value in column] for column in p.T.tolist()]
        out.write(csv_bytes(names, zip(*columns, strict=True)))
        out.flush()
    if alone:
        filled = "missing cells were filled in from the other cells of their row"
        say("every cell was predicted from the other cells of its row" if known is None else filled, err=True)
    if inferred is not None and inferred.matters:
        say(inferred.explain("--sweeps", damping=False), err=True)
    if states is not None and states.size:
        gold_states = states if known is None else np.where(known >= 0, -1, states)
        if (gold_states >= 0).any() or all(name in source.places for name in encoder.variables):
            say(_errors(best.reshape(states.shape), gold_states), err=True)


def _errors(predicted: Ids, gold: Ids) -> str:
    """Return the Hamming loss (share of wrong labels) and the subset accuracy (share of rows without a mistake).

    Cells of −1 do not count. If no row has a label for some column, the accuracy is over the other columns.
    """
    known = gold >= 0
    if not known.any():
        return f"{len(gold)} rows, no label to compare with"
    wrong = (predicted != gold) & known
    labelled = known.any(axis=0)  # the columns that have labels
    complete = known[:, labelled].all(axis=1)
    text = f"{len(gold)} rows, Hamming loss {wrong.sum() / known.sum():.4f}"
    if not complete.any():
        return text
    return f"{text}, subset accuracy {(~wrong[complete].any(axis=1)).mean():.4f}"
