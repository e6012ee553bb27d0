"""`crfkit graph train`, and the group `crfkit graph`: fields on the label columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from crfkit.cli.commands.graph_predict import predict
from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_flag, own_option, takes
from crfkit.cli.options.table import COLUMNS, Data, Header, LabelFile, MissingValues, missing_cells
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, Command
from crfkit.cli.runtime.output import say
from crfkit.errors import DataError

if TYPE_CHECKING:
    from crfkit._types import Ids
    from crfkit.files.tables import Table
    from crfkit.graph.encoding.tables import TableEncoder
    from crfkit.graph.training.train import GraphFit, GraphTraining

app = typer.Typer(help="Fields on the columns of a table, for multi-label and multi-output data.", no_args_is_help=True)


@dataclass(frozen=True)
class GraphOptions:
    """The options of `crfkit graph train`."""

    data: Data
    model: shared.NewModel
    labels: str | None = own_option(
        INPUT, "--labels", metavar="COLS", help="Label columns. Default: all columns of --label-file."
    )
    features: str | None = own_option(
        INPUT, "--features", metavar="COLS|none", help="Feature columns. Default: all columns that are not labels."
    )
    label_file: LabelFile = None
    header: Header = None
    na: MissingValues = None
    edges: str = own_option(
        MODEL,
        "--edges",
        default="complete",
        metavar="EDGES",
        help="Which labels are joined by edges: complete (all pairs), none, or a file with two label columns per line.",
    )
    edge_features: bool = own_flag(
        MODEL, "--edge-features/--no-edge-features", help="Whether the weights of edges also depend on the features."
    )
    standardize: bool = own_flag(
        MODEL,
        "--standardize/--no-standardize",
        default=True,
        help="Whether to scale features to mean 0 and variance 1 for training. The model takes unscaled features.",
    )
    loss: shared.GraphLoss = "auto"
    inference: shared.Inference = "auto"
    sweeps: shared.Sweeps = None
    l2: shared.L2Strength = None
    l1: shared.L1Strength = None
    edge_l2: float | None = own_option(
        MODEL,
        "--edge-l2",
        metavar="S",
        help="L2 penalty of edge weights. Default: --l2; with --edge-features 10 times that. Without --l1, --l2 "
        "and --edge-l2, strengths are chosen on held-out rows if there are features.",
    )
    solver: shared.Solver = "auto"
    seed: shared.Seed = 0
    threads: shared.Threads = None
    cluster: shared.ClusterAddress = None
    shards: shared.Shards = None
    device: str | None = own_option(
        OPTIMISATION,
        "--device",
        metavar="NAME",
        help="Train on a GPU, with --loss pseudo-likelihood: cuda, or cuda:1 for the second one; torch:cpu runs the "
        "same code on the CPU. The model is the same. Needs pip install 'crfkit[torch]'.",
    )
    max_iterations: shared.MaxIterations = None
    tolerance: shared.Tolerance = 1e-5
    log: shared.Log = None
    quiet: shared.Quiet = False


@app.command(cls=Command, epilog=COLUMNS)
@takes(GraphOptions)
def train(given: GraphOptions) -> None:
    """Train a field on the label columns of a table.

    Ctrl-C stops early and still writes the model.
    """
    from crfkit.cli.options.cluster import make_cluster, placed
    from crfkit.cli.runtime.progress import json_log, progress_callback
    from crfkit.cli.runtime.signals import result_is_kept

    training = _checked_training(given)
    encoder, X, states = _read(given)
    with json_log(given.log) as logging, progress_callback(given.max_iterations, given.quiet) as showing:
        seen = [*logging, *showing, result_is_kept]
        with placed(training, make_cluster(given.cluster, given.shards), given.device) as there:
            done = there.run(encoder, X, states, None, seen)
    _write_and_tell(given, done, encoder)


def _checked_training(given: GraphOptions) -> GraphTraining:
    """Return the training of the options."""
    from crfkit.cli.options.parsing import make_penalty
    from crfkit.cli.runtime.naming import on_command_line
    from crfkit.graph.training.train import GraphTraining
    from crfkit.penalties import L2
    from crfkit.training.options import SolverOptions

    training = GraphTraining(
        inference=given.inference,
        loss=given.loss,
        sweeps=given.sweeps,
        standardize=given.standardize,
        edge_penalty=None if given.edge_l2 is None else L2(given.edge_l2),
        options=SolverOptions(
            penalty=make_penalty(given.l1, given.l2),
            solver=given.solver,
            tolerance=given.tolerance,
            max_iterations=given.max_iterations,
            n_threads=given.threads,
            seed=given.seed,
        ),
        announce=lambda note: say(note, err=True),
        naming=on_command_line,
    )
    training.check()
    return training


def _read(given: GraphOptions) -> tuple[TableEncoder, Table | None, Ids]:
    """Return the encoder of the tables, the features and the states of the labels; check that the model can be written.

    A column that is constant is named on stderr.
    """
    from crfkit.cli.commands.graph_columns import choose_columns, read_edges
    from crfkit.cli.options.parsing import check_distinct, check_writable
    from crfkit.files.tables import read_table
    from crfkit.graph.encoding.tables import TableEncoder

    edge_file = None if given.edges in ("complete", "none") else Path(given.edges)
    inputs = {"DATA": given.data, "--label-file": given.label_file, "--edges": edge_file}
    check_distinct({**inputs, "--model": given.model, "--log": given.log})
    check_writable(given.model)
    na = missing_cells(given.na)
    table = read_table(given.data, given.header, na=na)
    X, Y = choose_columns(table, given.features, given.labels, given.label_file, given.header, na)
    if edge_file is not None and not edge_file.exists():
        raise DataError("there is no such file; --edges must be a file of edges, complete or none", edge_file)
    graph: str | list[tuple[int, int]] = given.edges if edge_file is None else read_edges(edge_file, Y)
    try:
        encoder, states = TableEncoder.learn(
            X, Y, graph=graph, edge_inputs=given.edge_features, constant=lambda note: say(note, err=True)
        )
    except DataError as error:
        raise DataError(str(error), Y.path) from None
    return encoder, X, states


def _write_and_tell(given: GraphOptions, done: GraphFit, encoder: TableEncoder) -> None:
    """Write the model, and print its sizes and how training ended."""
    from crfkit.cli.runtime.finishing import exit_without_model, outcome, say_written
    from crfkit.cli.runtime.naming import on_command_line
    from crfkit.result import Status

    trained, result = done.model, done.result
    interrupted = result.status is Status.INTERRUPTED
    if interrupted and result.iterations == 0:
        exit_without_model()
    trained.save(given.model)
    say(
        f"{len(encoder.variables)} variables, {encoder.structure.n_edges} edges, {len(encoder.features or [])} "
        f"features, {len(trained.w)} weights"
    )
    if penalty := trained.training["auto"].get("penalty"):
        say(f"penalty: {penalty}")
    say(outcome(result))
    for line in done.concerns(on_command_line) or [result.status.text(on_command_line)]:
        say(line)
    say_written(given.model, interrupted)


app.command(cls=Command, epilog=COLUMNS)(predict)
