"""`crfkit graph train | predict`: fields on the label columns of a table."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit._types import Ids

COLUMNS = "Columns: names or numbers from 1, separated by commas; 1-294 is a range, -6: the last six."

LOSSES = "likelihood, pseudo-likelihood, composite, contrastive-divergence or persistent-contrastive-divergence."

app = typer.Typer(help="Fields on the columns of a table: multi-label and multi-output data.", no_args_is_help=True)

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Table: CSV or ARFF, also .gz.")]
LabelFile = Annotated[
    Path | None,
    typer.Option(
        "--label-file", rich_help_panel="Input", metavar="FILE", help="Table with the labels, where not in DATA."
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        rich_help_panel="Input",
        help="Whether CSV files begin with names. Default: if that looks so.",
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", "-p", rich_help_panel="Optimisation", metavar="N", help="Default: all cores.")
]
Na = Annotated[
    str | None,
    typer.Option(
        "--na",
        rich_help_panel="Input",
        metavar="A,B",
        help="Cells that stand for missing values. Default: NA, N/A, n/a, <NA>, NaN, nan, NULL, null and ?. "
        "Empty cells always do.",
    ),
]


@app.command(epilog=COLUMNS)
def train(
    data: Data,
    model: Annotated[
        Path, typer.Option("--model", "-m", rich_help_panel="Output", help="Where to write the model (.crf).")
    ],
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", rich_help_panel="Input", metavar="COLS", help="Label columns; by default all of --label-file."
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            rich_help_panel="Input",
            metavar="COLS|none",
            help="Feature columns; by default all but the labels.",
        ),
    ] = None,
    label_file: LabelFile = None,
    header: Header = None,
    na: Na = None,
    edges: Annotated[
        str,
        typer.Option(
            "--edges",
            rich_help_panel="Model",
            metavar="FILE|complete|none",
            help="File: two label columns per line, joined by an edge.",
        ),
    ] = "complete",
    edge_features: Annotated[
        bool,
        typer.Option(
            "--edge-features/--no-edge-features",
            rich_help_panel="Model",
            help="Whether edges have weights on the features, too.",
        ),
    ] = False,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize/--no-standardize",
            rich_help_panel="Model",
            help="Whether to train on features with mean 0 and variance 1; the model reads them as they are.",
        ),
    ] = True,
    loss: Annotated[str, typer.Option("--loss", rich_help_panel="Model", help=LOSSES)] = "likelihood",
    inference: Annotated[
        str,
        typer.Option(
            "--inference",
            rich_help_panel="Model",
            metavar="NAME",
            help="auto, enumerate, tree, junction, bp, trw, mean-field or gibbs.",
        ),
    ] = "auto",
    sweeps: Annotated[
        int | None,
        typer.Option(
            "--sweeps",
            rich_help_panel="Model",
            metavar="N",
            help="Maximum number of sweeps of bp, trw and mean-field for each evaluation in training. Default 1000.",
        ),
    ] = None,
    l2: Annotated[
        float | None, typer.Option("--l2", rich_help_panel="Model", metavar="S", help="Penalty S/2·‖w‖². Default 1.")
    ] = None,
    l1: Annotated[
        float | None,
        typer.Option("--l1", rich_help_panel="Model", metavar="S", help="Penalty S·‖w‖₁: most weights become zero."),
    ] = None,
    edge_l2: Annotated[
        float | None,
        typer.Option(
            "--edge-l2",
            rich_help_panel="Model",
            metavar="S",
            help="L2 penalty of edge weights. Default: 10 times that of --l2.",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option("--solver", "-a", rich_help_panel="Optimisation", metavar="NAME", help="As for `crfkit train`."),
    ] = "auto",
    seed: Annotated[
        int, typer.Option("--seed", rich_help_panel="Optimisation", metavar="N", help="Of what draws random numbers.")
    ] = 0,
    threads: Threads = None,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            "--max-iterations", "-i", rich_help_panel="Optimisation", metavar="N", help="Stop after N iterations."
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            "-e",
            rich_help_panel="Optimisation",
            metavar="E",
            help="Stop when ten iterations decrease the objective by less.",
        ),
    ] = 1e-5,
    log: Annotated[
        Path | None,
        typer.Option("--log", rich_help_panel="Output", metavar="FILE.jsonl", help="Write each iteration here."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", rich_help_panel="Output", help="No progress.")] = False,
) -> None:
    """Train a field on the label columns of a table. Ctrl-C stops early and still writes the model."""
    from crfkit import modelfile
    from crfkit.cli.graph_columns import choose_columns, read_edges
    from crfkit.cli.options import check_distinct, make_penalty
    from crfkit.cli.progress import json_log, progress_callback
    from crfkit.encoders.tables import TableEncoder
    from crfkit.penalties import L2
    from crfkit.readers.tables import read_table
    from crfkit.result import Status
    from crfkit.training.graph import GraphTraining, concerns
    from crfkit.training.options import SolverOptions

    options = SolverOptions(make_penalty(l1, l2), solver, tolerance, max_iterations, threads, seed)
    training = GraphTraining(
        inference=inference,
        loss=loss,
        sweeps=sweeps,
        standardize=standardize,
        edge_penalty=None if edge_l2 is None else L2(edge_l2),
        options=options,
        announce=lambda note: typer.echo(in_options(note), err=True),
    )
    training.check()
    edge_file = None if edges in ("complete", "none") else Path(edges)
    check_distinct({"DATA": data, "--label-file": label_file, "--edges": edge_file, "--model": model, "--log": log})
    modelfile.check_writable(model)
    table = read_table(data, header, na=missing_cells(na))
    X, Y = choose_columns(table, features, labels, label_file, header, missing_cells(na))
    if edge_file is not None and not edge_file.exists():
        raise DataError("cannot read the file: No such file; --edges is a file of edges, complete or none", edge_file)
    graph: Any = edges if edge_file is None else read_edges(edge_file, Y)
    try:
        encoder, states = TableEncoder.learn(
            X, Y, graph=graph, edge_inputs=edge_features, constant=lambda note: typer.echo(note, err=True)
        )
    except DataError as error:
        raise DataError(str(error), Y.path) from None
    with json_log(log) as logging, progress_callback(max_iterations, quiet) as showing:
        trained, result, last = training.run(encoder, X, states, None, [*logging, *showing])
    interrupted = result.status is Status.INTERRUPTED
    if interrupted and result.iterations == 0:
        typer.echo("interrupted before the first iteration; no model was written", err=True)
        raise typer.Exit(130)
    trained.save(model)
    typer.echo(
        f"{len(encoder.variables)} variables, {encoder.structure.n_edges} edges, "
        f"{len(encoder.features or [])} features, {len(trained.w)} weights"
    )
    value = "" if math.isnan(result.value) else f" = {result.value:.6f}"  # contrastive divergence has none
    typer.echo(f"{result.objective}{value} after {result.iterations} iterations, {result.seconds:.2f} s")
    unsettled = last.explain("--sweeps") if last is not None and last.matters else None
    for line in concerns(result, None if last is None else last.status, unsettled) or [str(result.status)]:
        typer.echo(in_options(line))
    typer.echo(f"model written to {model}")
    if interrupted:
        raise typer.Exit(130)


@app.command(epilog=COLUMNS)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    data: Data,
    label_file: LabelFile = None,
    header: Header = None,
    na: Na = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", rich_help_panel="Output", help="Write here instead of stdout.")
    ] = None,
    marginals: Annotated[
        bool, typer.Option("--marginals", rich_help_panel="Output", help="Add the probability of every label.")
    ] = False,
    decode: Annotated[
        str | None,
        typer.Option(
            "--decode",
            rich_help_panel="Model",
            metavar="NAME",
            help="auto, tree, junction, max-product, icm, graph-cut, qpbo, alpha-expansion, enumerate or marginal.",
        ),
    ] = None,
    inference: Annotated[
        str | None,
        typer.Option(
            "--inference", rich_help_panel="Model", metavar="NAME", help="Instead of the one that the model records."
        ),
    ] = None,
    sweeps: Annotated[
        int | None,
        typer.Option(
            "--sweeps",
            rich_help_panel="Model",
            metavar="N",
            help="Maximum number of sweeps of bp, trw and mean-field. Default 1000.",
        ),
    ] = None,
    observed: Annotated[
        str | None,
        typer.Option(
            "--observed",
            rich_help_panel="Input",
            metavar="COLS",
            help="Label columns, as in the table, that are known; empty cells are not.",
        ),
    ] = None,
    threads: Threads = None,
) -> None:
    """Predict the label columns of a table, as CSV. Where they are in the table, the errors are counted on stderr,
    without the cells of --observed.

    A model of `crfkit structure learn` without inputs uses the table itself: it fills in the cells that are missing; in
    a table without gaps it predicts each cell from the others of its row."""
    from dataclasses import replace

    import numpy as np

    from crfkit.cli.graph_columns import label_columns, observed_columns, read_states, take_names
    from crfkit.cli.graph_given import from_the_others, given_labels, is_structure
    from crfkit.cli.options import check_distinct
    from crfkit.cli.output import open_output
    from crfkit.encoders.tables import TableEncoder
    from crfkit.inference.engines import ENGINES
    from crfkit.models.graph import DECODERS, GraphModel
    from crfkit.readers.tables import read_table
    from crfkit.training.graph import check_sweeps

    for option, given, choices in (("--decode", decode, DECODERS), ("--inference", inference, ("auto", *ENGINES))):
        if given is not None and given not in choices:
            raise ParameterError(f"unknown {option} {given!r}; one of {', '.join(choices)}")
    trained = GraphModel.load(model, threads)
    encoder = trained.encoder
    if not isinstance(encoder, TableEncoder):
        raise ParameterError(f"{model} was not trained on a table; predict with GraphCRF.load or GridCRF.load")
    check_distinct({"MODEL": model, "DATA": data, "--label-file": label_file, "--output": output})
    engine = inference or trained.inference
    check_sweeps(sweeps, engine)
    trained = replace(trained, decode=decode or trained.decode, inference=engine, sweeps=sweeps)
    table = read_table(data, header, na=missing_cells(na))
    X = take_names(table, encoder.features, "the feature") if encoder.features is not None else None
    if X is not None:
        X.check_numbers()
    alone = is_structure(trained) and observed is None
    if alone:
        from crfkit.readers.tables import Table

        if label_file is not None:
            table = read_table(label_file, header, "y", missing_cells(na))
        gold: Table | None = given_labels(trained, table)
        source = table
    else:
        gold, source = label_columns(table, encoder, label_file, header, observed is not None, missing_cells(na))
    states = None if gold is None else read_states(gold, encoder)
    known = states if alone and states is not None and (states < 0).any() else None
    if observed is not None and states is not None:
        known = np.full_like(states, -1)
        chosen = observed_columns(observed, source, encoder)
        known[:, chosen] = states[:, chosen]
    encoded = encoder.encode(X, table)
    given_states = None if known is None else known.ravel()
    with open_output(output) as out:
        others = from_the_others(trained, states) if alone and known is None and states is not None else None
        inferred = None
        if others is None:
            found = trained.best(encoded, given_states)
            best, inferred = found.labels, found.marginals
        else:
            best = np.stack([p.argmax(axis=1) for p in others], axis=1).astype(np.int32).ravel()
        columns = [column.tolist() for column in encoder.labels(best, encoded, X).T]
        names = list(encoder.variables)
        if marginals:
            if others is None:
                inferred = inferred or trained.infer(encoded, given_states)
                others = encoder.by_node(inferred.nodes, encoded, X)
            for name, classes, p in zip(encoder.variables, encoder.classes, others, strict=True):
                names += [f"p({name}={label})" for label in classes.tolist()]
                columns += [[f"{value:.6f}" for value in column] for column in p.T.tolist()]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))
        out.write(text.getvalue().encode("utf-8"))
        out.flush()
    if alone:
        what = "every cell is predicted from the others of its row"
        typer.echo(what if known is None else "missing cells are filled in from the others of their row", err=True)
    if inferred is not None and inferred.matters:
        typer.echo(in_options(inferred.explain("--sweeps")), err=True)
    if states is not None and states.size:
        gold_states = states if known is None else np.where(known >= 0, -1, states)
        typer.echo(errors(best.reshape(states.shape), gold_states), err=True)


def missing_cells(given: str | None) -> list[str] | None:
    """The cells that --na names."""
    return None if given is None else [cell.strip() for cell in given.split(",")]


def in_options(text: str) -> str:
    """A message of the library with the options as the command line names them.

    >>> in_options("loss='pseudo-likelihood' is faster; raise max_iterations, or use fewer edges (graph=…)")
    '--loss pseudo-likelihood is faster; raise --max-iterations, or use fewer edges (--edges FILE)'
    """
    text = re.sub(r"[,;][^,;]* add damping \(make_engine\([^)]*\)\)", "", text)  # there is no such option
    text = re.sub(r"\b(loss|inference)='([^']+)'", r"--\1 \2", text)
    for name, option in (("max_iterations", "--max-iterations"), ("graph=…", "--edges FILE")):
        text = text.replace(name, option)
    return re.sub(r"\bthe tolerance\b", "--tolerance", text)


def errors(predicted: Ids, gold: Ids) -> str:
    """Hamming loss (share of labels that are wrong) and subset accuracy (share of rows without a mistake).

    Cells of −1 do not count. Rows that have some are rows for the accuracy if all rows lack the same columns.
    """
    known = gold >= 0
    if not known.any():
        return f"{len(gold)} rows, no label to compare with"
    wrong = (predicted != gold) & known
    asked = known.any(axis=0)  # columns of which there are labels
    rows = known[:, asked].all(axis=1)
    text = f"{len(gold)} rows, Hamming loss {wrong.sum() / known.sum():.4f}"
    return f"{text}, subset accuracy {(~wrong[rows].any(axis=1)).mean():.4f}" if rows.any() else text
