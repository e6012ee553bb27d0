"""`crfkit graph predict`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_flag, own_option, takes
from crfkit.cli.options.table import Data, Header, LabelFile, MissingValues, missing_cells
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT
from crfkit.cli.runtime.output import say
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit._types import Floats, Ids
    from crfkit.files.tables import Table
    from crfkit.graph.data import GraphData
    from crfkit.graph.inference.marginals import Marginals
    from crfkit.graph.model import GraphModel


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
        "Other label columns may be missing from the table.",
    )
    threads: shared.Threads = None


@takes(PredictOptions)
def predict(given: PredictOptions) -> None:
    """Predict the label columns of a table and write them as CSV.

    If the table has label columns, their errors are counted on stderr. Cells of --observed do not count.

    A model of `crfkit structure learn` without inputs predicts from the table itself: it fills in missing cells, or, if
    none is missing, predicts each cell from the other cells of its row.
    """
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.cli.runtime.output import csv_bytes, open_output

    trained = _load(given)
    check_distinct(
        {"MODEL": given.model, "DATA": given.data, "--label-file": given.label_file, "--output": given.output}
    )
    trained = _with_options(given, trained)
    rows = _read(given, trained)
    with open_output(given.output) as out:
        found = _find(trained, rows, given.marginals)
        names, columns = _columns(rows, found, given.marginals)
        out.write(csv_bytes(names, zip(*columns, strict=True)))
        out.flush()
    _tell(rows, found)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows to predict."""

    encoder: Any
    features: Table | None
    encoded: GraphData
    states: Ids | None  # [rows, labels] of the labels in the table, −1 where there is none
    known: Ids | None  # those that are observed; None if none is
    alone: bool  # whether labels are predicted from other labels of their row
    labelled: bool  # whether the table has all label columns

    @property
    def observed(self) -> Ids | None:
        return None if self.known is None else self.known.ravel()


@dataclass(frozen=True, eq=False)
class _Found:
    """Return the model's prediction for these rows."""

    best: Ids
    marginals: Marginals | None  # of the inference, if there was one
    probabilities: Sequence[Floats] | None  # [rows, labels] of each column, if they are wanted


def _load(given: PredictOptions) -> GraphModel:
    """Return the model; raise ParameterError if it is not of tables."""
    from crfkit.graph.encoding.tables import TableEncoder
    from crfkit.graph.inference.engines import ENGINES
    from crfkit.graph.model import DECODERS, GraphModel
    from crfkit.names import check_name

    if given.decode is not None:
        check_name("--decode", given.decode, DECODERS)
    if given.inference is not None:
        check_name("--inference", given.inference, ("auto", *ENGINES))
    trained = GraphModel.load(given.model, given.threads)
    if not isinstance(trained.encoder, TableEncoder):
        raise ParameterError(
            f"{given.model} was not trained on a table, so it cannot predict one; use GraphCRF.load or "
            "GridCRF.load in Python"
        )
    return trained


def _with_options(given: PredictOptions, trained: GraphModel) -> GraphModel:
    """Return the model with the engine and the decoder of the options."""
    from crfkit.graph.training.problem import check_sweeps

    engine = given.inference or trained.inference
    check_sweeps(given.sweeps, engine)
    return replace(trained, decode=given.decode or trained.decode, inference=engine, sweeps=given.sweeps)


def _read(given: PredictOptions, trained: GraphModel) -> _Rows:
    """Return the rows of the table, and what is known of their labels."""
    import numpy as np

    from crfkit.cli.commands.graph_columns import label_columns, observed_columns, read_states, take_columns
    from crfkit.cli.commands.graph_given import given_labels, is_structure
    from crfkit.files.tables import read_table

    encoder: Any = trained.encoder
    na = missing_cells(given.na)
    table = read_table(given.data, given.header, na=na)
    X = take_columns(table, encoder.features, "a feature") if encoder.features is not None else None
    if X is not None:
        X.check_numbers()
    alone = is_structure(trained) and given.observed is None
    gold: Table | None
    if alone:
        if given.label_file is not None:
            table = read_table(given.label_file, given.header, "y", na)
        gold, source = given_labels(trained, table), table
    else:
        gold, source = label_columns(table, encoder, given.label_file, given.header, given.observed is not None, na)
    states = None if gold is None else read_states(gold, encoder)
    known = states if alone and states is not None and (states < 0).any() else None
    if given.observed is not None and states is not None:
        known = np.full_like(states, -1)
        chosen = observed_columns(given.observed, source, encoder)
        known[:, chosen] = states[:, chosen]
    labelled = all(name in source.places for name in encoder.variables)
    return _Rows(encoder, X, encoder.encode(X, table), states, known, alone, labelled)


def _find(trained: GraphModel, rows: _Rows, marginals: bool) -> _Found:
    """Return the best labels: of each row or, in a table without missing cells, of each cell given the others."""
    import numpy as np

    from crfkit.structure.scores import conditionals

    if rows.alone and rows.known is None and rows.states is not None:
        others = conditionals(trained, rows.states)
        best = np.stack([p.argmax(axis=1) for p in others], axis=1).astype(np.int32).ravel()
        return _Found(best, None, others)
    found = trained.best(rows.encoded, rows.observed)
    if not marginals:
        return _Found(found.labels, found.marginals, None)
    inferred = found.marginals or trained.infer(rows.encoded, rows.observed)
    return _Found(found.labels, inferred, rows.encoder.by_node(inferred.nodes, rows.encoded, rows.features))


def _columns(rows: _Rows, found: _Found, marginals: bool) -> tuple[list[str], list[list[object]]]:
    """Return the names and the values of the columns to write."""
    encoder = rows.encoder
    columns = [column.tolist() for column in encoder.labels(found.best, rows.encoded, rows.features).T]
    names = list(encoder.variables)
    if marginals:
        assert found.probabilities is not None
        for name, classes, p in zip(encoder.variables, encoder.classes, found.probabilities, strict=True):
            names += [f"p({name}={label})" for label in classes.tolist()]
            columns += [[f"{value:.6f}" for value in column] for column in p.T.tolist()]
    return names, columns


def _tell(rows: _Rows, found: _Found) -> None:
    """Print what was predicted from what, and how many labels are wrong."""
    import numpy as np

    if rows.alone:
        filled = "missing cells were filled in from the other cells of their row"
        say("every cell was predicted from the other cells of its row" if rows.known is None else filled, err=True)
    if found.marginals is not None and found.marginals.matters:
        say(found.marginals.explain("--sweeps", damping=False), err=True)
    if rows.states is not None and rows.states.size:
        gold = rows.states if rows.known is None else np.where(rows.known >= 0, -1, rows.states)
        if (gold >= 0).any() or rows.labelled:
            say(_errors(found.best.reshape(gold.shape), gold), err=True)


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
