"""`crfkit structure learn | show | score`: which columns of a table depend on each other."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Annotated

import typer

from crfkit._values import Samples
from crfkit.cli.commands.structure_score import score
from crfkit.cli.options import shared
from crfkit.cli.options.table import COLUMNS, Data, Header, MissingValues, missing_cells
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT, Command, flag, option
from crfkit.cli.runtime.output import say
from crfkit.errors import DataError, ParameterError

app = typer.Typer(
    help="Structure learning: find out which columns of a table depend on each other.", no_args_is_help=True
)

Top = Annotated[
    int, option(OUTPUT, "--top", "-n", metavar="N", min=0, help="Number of edges to show, strongest first.")
]
ShowPath = Annotated[bool, flag(OUTPUT, "--path", help="Also show all penalties λ that were tried, and their edges.")]
Parameters = Annotated[
    bool,
    flag(OUTPUT, "--parameters", help="Also show the weights of each edge by pair of labels and by input."),
]
GraphFile = Annotated[
    Path | None,
    option(
        OUTPUT, "--graph", metavar="FILE", help="Write the graph to a .graphml file (needs networkx) or a .csv file."
    ),
]
PlotFile = Annotated[
    Path | None,
    option(OUTPUT, "--plot", metavar="FILE", help="Draw the graph to a .png, .svg or .pdf file (needs matplotlib)."),
]


@app.command(cls=Command, epilog=COLUMNS)
def learn(
    data: Data,
    model: shared.NewModel,
    features: Annotated[
        str | None,
        option(INPUT, "--features", metavar="COLS", help="Input columns. The graph joins all other columns."),
    ] = None,
    header: Header = None,
    na: MissingValues = None,
    missing: Annotated[
        str,
        option(
            INPUT,
            "--missing",
            metavar="NAME",
            help="What to do with missing cells: impute (draw labels from the learned graph, replace inputs by their "
            "means), drop (omit the rows) or error.",
        ),
    ] = "impute",
    bins: Annotated[
        str | None,
        option(
            INPUT,
            "--bins",
            metavar="N|COL=N,…",
            help="Cut numbers into N groups of about equal size, in the named columns or in all columns with more "
            "than N different numbers (except scales of at most 11 steps).",
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        option(
            INPUT,
            "--candidates",
            metavar="FILE",
            help="Pairs of columns that may be joined, one pair per line. Default: all pairs.",
        ),
    ] = None,
    strength: Annotated[
        str,
        option(
            MODEL,
            "--strength",
            "-s",
            metavar="λ|RULE",
            help="Penalty λ of edges: a number, or a rule that chooses it: {structure rules}.",
        ),
    ] = "ebic",
    loss: Annotated[
        str, option(MODEL, "--loss", metavar="NAME", help="Loss that chooses the edges: {structure losses}.")
    ] = "pseudo-likelihood",
    refit: Annotated[
        str,
        option(
            MODEL,
            "--refit",
            metavar="NAME",
            help="Loss that fits the weights of the chosen edges: {structure refits}. auto is the likelihood, exact "
            "if possible, otherwise sampled.",
        ),
    ] = "auto",
    inference: Annotated[
        str,
        option(
            MODEL,
            "--inference",
            metavar="NAME",
            help="Inference engine for --loss likelihood: {engines}. auto is exact, and chooses edges by "
            "pseudo-likelihood if that is too expensive; bp, trw and mean-field find worse graphs.",
        ),
    ] = "auto",
    node_strength: Annotated[
        float, option(MODEL, "--node-strength", metavar="S", help="Strength of the L2 penalty of node weights.")
    ] = 1.0,
    gamma: Annotated[
        float,
        option(
            MODEL, "--gamma", metavar="G", help="Parameter γ of the extended BIC. Larger values select fewer edges."
        ),
    ] = 0.35,
    group_norm: Annotated[
        str,
        option(
            MODEL,
            "--group-norm",
            metavar="NORM",
            help="Norm of the weights of an edge in the penalty: {structure norms}.",
        ),
    ] = "inf",
    form: Annotated[
        str,
        option(
            MODEL,
            "--form",
            metavar="NAME",
            help="Form of edges: {structure forms}. ising is for columns with two labels, full has a table of weights "
            "per edge, reference the same without the last pair of labels, ordinal one weight per edge (for ratings).",
        ),
    ] = "auto",
    threshold: Annotated[
        float,
        option(
            MODEL,
            "--threshold",
            metavar="SHARE",
            help="With --strength stability, share of the random halves of the data that must select an edge.",
        ),
    ] = 0.75,
    standardize: Annotated[
        bool,
        flag(
            MODEL,
            "--standardize/--no-standardize",
            help="Whether to scale the penalty of an edge by the standard deviations of its columns.",
        ),
    ] = True,
    method: Annotated[
        str,
        option(
            OPTIMISATION,
            "--method",
            metavar="NAME",
            help="Search method: {structure methods}. All find the same optimum; they differ in speed.",
        ),
    ] = "auto",
    seed: Annotated[
        int,
        option(OPTIMISATION, "--seed", metavar="N", help="Random seed of the folds and random halves of the data."),
    ] = 0,
    threads: shared.Threads = None,
    cluster: Annotated[
        str | None,
        option(
            OPTIMISATION,
            "--cluster",
            metavar="ADDRESS",
            help="Dask cluster for the folds of --strength cv and the random halves of --strength stability: address "
            "or file of a scheduler, or local:N for N processes on this machine.",
        ),
    ] = None,
    graph: GraphFile = None,
    plot: PlotFile = None,
    top: Top = 10,
    path: ShowPath = False,
    quiet: shared.Quiet = False,
) -> None:
    """Learn the graph of the columns of a table. An edge joins two columns that depend on each other given all others.

    Ctrl-C stops early and still writes the best model of the strengths so far.
    """
    from crfkit.cli.commands.graph_columns import read_edges
    from crfkit.cli.commands.structure_report import check_outputs, report, write_graph
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.cli.options.table import read_bins
    from crfkit.cli.runtime.finishing import exit_without_model
    from crfkit.cli.runtime.progress import half_line, strength_callback
    from crfkit.files import modelfile
    from crfkit.files.tables import read_table
    from crfkit.structure.estimator.structure_learner import StructureLearner

    check_distinct({"DATA": data, "--candidates": candidates, "--model": model, "--graph": graph, "--plot": plot})
    check_outputs(graph, plot)
    modelfile.check_writable(model)
    table = read_table(data, header, na=missing_cells(na))
    ids = table.select(features) if features is not None else []
    Y = table.take([i for i in range(len(table.columns)) if i not in ids])
    if not Y.columns:
        raise ParameterError(
            "all columns are features, so no column is left to learn the graph of; name fewer in --features"
        )
    X: Samples = None
    if ids:
        X = table.take(ids)
        X.check_numbers(gaps=missing != "error")
    learner = StructureLearner(
        method=method,
        loss=loss,
        inference=inference,
        group_norm=group_norm,
        node_strength=node_strength,
        edge_strength=_strength(strength),
        form=form,
        ebic_gamma=gamma,
        threshold=threshold,
        standardize=standardize,
        candidates=None if candidates is None else read_edges(candidates, Y),
        refit=refit,
        n_threads=threads,
        random_state=seed,
        missing=missing,
        bins=None if bins is None else read_bins(bins, table),
        cluster=cluster,
    )
    on_half = half_line if cluster is not None and not quiet else None
    begin, interrupted = time.perf_counter(), False
    with warnings.catch_warnings(record=True) as said, strength_callback(quiet) as showing:
        warnings.simplefilter("always")
        try:
            learner.fit(Y, inputs=X, callbacks=showing, on_half=on_half)
        except DataError as error:
            raise DataError(str(error), data) from None
        except KeyboardInterrupt:
            interrupted = True
    if interrupted and not hasattr(learner, "model_"):
        exit_without_model("strength")
    for line in dict.fromkeys(str(w.message) for w in said):
        say(f"crfkit: warning: {line}", err=True)
    learner.save(model)
    say(report(learner, top, path))
    say(f"learned in {time.perf_counter() - begin:.2f} s; model written to {model}")
    write_graph(learner, graph, plot)
    if interrupted:
        say("interrupted; the edges were chosen among the strengths that were complete", err=True)
        raise typer.Exit(130)


@app.command(cls=Command)
def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file of `crfkit structure learn`.")],
    graph: GraphFile = None,
    plot: PlotFile = None,
    top: Top = 20,
    path: ShowPath = False,
    parameters: Parameters = False,
) -> None:
    """Show the strongest edges of a model and how they were chosen; write or draw its graph."""
    from crfkit.cli.commands.structure_report import check_outputs, report, write_graph
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.structure.estimator.structure_learner import StructureLearner

    check_distinct({"MODEL": model, "--graph": graph, "--plot": plot})
    check_outputs(graph, plot)
    learner = StructureLearner.load(model)
    say(report(learner, top, path, parameters))
    write_graph(learner, graph, plot)


app.command(cls=Command)(score)


def _strength(given: str) -> float | str:
    """Return the number that --strength gives, or the name of its rule."""
    try:
        return float(given)
    except ValueError:
        return given
