"""`crfkit graph train`, and the group `crfkit graph`: fields on the label columns of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from crfkit.cli.commands.graph_predict import predict
from crfkit.cli.options import shared
from crfkit.cli.options.table import COLUMNS, Data, Header, LabelFile, MissingValues, missing_cells
from crfkit.cli.runtime.help import INPUT, MODEL, Command, flag, option
from crfkit.cli.runtime.output import say
from crfkit.errors import DataError

app = typer.Typer(help="Fields on the columns of a table, for multi-label and multi-output data.", no_args_is_help=True)


@app.command(cls=Command, epilog=COLUMNS)
def train(
    data: Data,
    model: shared.NewModel,
    labels: Annotated[
        str | None,
        option(INPUT, "--labels", metavar="COLS", help="Label columns. Default: all columns of --label-file."),
    ] = None,
    features: Annotated[
        str | None,
        option(
            INPUT, "--features", metavar="COLS|none", help="Feature columns. Default: all columns that are not labels."
        ),
    ] = None,
    label_file: LabelFile = None,
    header: Header = None,
    na: MissingValues = None,
    edges: Annotated[
        str,
        option(
            MODEL,
            "--edges",
            metavar="EDGES",
            help="Which labels are joined by edges: complete (all pairs), none, or a file with two label columns per "
            "line.",
        ),
    ] = "complete",
    edge_features: Annotated[
        bool,
        flag(
            MODEL,
            "--edge-features/--no-edge-features",
            help="Whether the weights of edges also depend on the features.",
        ),
    ] = False,
    standardize: Annotated[
        bool,
        flag(
            MODEL,
            "--standardize/--no-standardize",
            help="Whether to scale features to mean 0 and variance 1 for training. The model takes unscaled features.",
        ),
    ] = True,
    loss: shared.GraphLoss = "auto",
    inference: shared.Inference = "auto",
    sweeps: shared.Sweeps = None,
    l2: shared.L2Strength = None,
    l1: shared.L1Strength = None,
    edge_l2: Annotated[
        float | None,
        option(
            MODEL,
            "--edge-l2",
            metavar="S",
            help="L2 penalty of edge weights. Default: --l2; with --edge-features 10 times that. Without --l1, --l2 "
            "and --edge-l2, strengths are chosen on held-out rows if there are features.",
        ),
    ] = None,
    solver: shared.Solver = "auto",
    seed: shared.Seed = 0,
    threads: shared.Threads = None,
    cluster: shared.ClusterAddress = None,
    shards: shared.Shards = None,
    max_iterations: shared.MaxIterations = None,
    tolerance: shared.Tolerance = 1e-5,
    log: shared.Log = None,
    quiet: shared.Quiet = False,
) -> None:
    """Train a field on the label columns of a table.

    Ctrl-C stops early and still writes the model.
    """
    from crfkit.cli.commands.graph_columns import choose_columns, read_edges
    from crfkit.cli.commands.graph_messages import in_options
    from crfkit.cli.options.cluster import make_cluster, placed
    from crfkit.cli.options.parsing import check_distinct, make_penalty
    from crfkit.cli.runtime.finishing import exit_without_model, outcome, say_written
    from crfkit.cli.runtime.progress import json_log, progress_callback
    from crfkit.cli.runtime.signals import result_is_kept
    from crfkit.files import modelfile
    from crfkit.files.tables import read_table
    from crfkit.graph.encoding.tables import TableEncoder
    from crfkit.graph.training.train import GraphTraining
    from crfkit.penalties import L2
    from crfkit.result import Status
    from crfkit.training.options import SolverOptions

    options = SolverOptions(make_penalty(l1, l2), solver, tolerance, max_iterations, threads, seed)
    training = GraphTraining(
        inference=inference,
        loss=loss,
        sweeps=sweeps,
        standardize=standardize,
        edge_penalty=None if edge_l2 is None else L2(edge_l2),
        options=options,
        announce=lambda note: say(in_options(note), err=True),
    )
    training.check()
    edge_file = None if edges in ("complete", "none") else Path(edges)
    check_distinct({"DATA": data, "--label-file": label_file, "--edges": edge_file, "--model": model, "--log": log})
    modelfile.check_writable(model)
    table = read_table(data, header, na=missing_cells(na))
    X, Y = choose_columns(table, features, labels, label_file, header, missing_cells(na))
    if edge_file is not None and not edge_file.exists():
        raise DataError("there is no such file; --edges must be a file of edges, complete or none", edge_file)
    graph: Any = edges if edge_file is None else read_edges(edge_file, Y)
    try:
        encoder, states = TableEncoder.learn(
            X, Y, graph=graph, edge_inputs=edge_features, constant=lambda note: say(note, err=True)
        )
    except DataError as error:
        raise DataError(str(error), Y.path) from None
    with json_log(log) as logging, progress_callback(max_iterations, quiet) as showing:
        seen = [*logging, *showing, result_is_kept]
        with placed(training, make_cluster(cluster, shards)) as there:
            done = there.run(encoder, X, states, None, seen)
    trained, result = done.model, done.result
    interrupted = result.status is Status.INTERRUPTED
    if interrupted and result.iterations == 0:
        exit_without_model()
    trained.save(model)
    say(
        f"{len(encoder.variables)} variables, {encoder.structure.n_edges} edges, {len(encoder.features or [])} "
        f"features, {len(trained.w)} weights"
    )
    if penalty := trained.training["auto"].get("penalty"):
        say(f"penalty: {penalty}")
    say(outcome(result))
    for line in done.concerns("--sweeps") or [str(result.status)]:
        say(in_options(line))
    say_written(model, interrupted)


app.command(cls=Command, epilog=COLUMNS)(predict)
