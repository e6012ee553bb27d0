"""`crfkit structure learn | show`: which columns of a table depend on each other."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.cli.graph import COLUMNS, Data, Header, Na, Threads, missing_cells
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.estimators.structure import StructureLearner

app = typer.Typer(help="Which columns of a table depend on each other.", no_args_is_help=True)

INPUT, MODEL, OPTIMISATION, OUTPUT = "Input", "Model", "Optimisation", "Output"
RULES = "Penalty λ of edges: a number, or the rule that chooses it: ebic, cv, stability or path."
APPROXIMATIONS = (
    "For the likelihood: auto or junction; bp, trw and mean-field are approximations that find worse graphs."
)
Top = Annotated[
    int,
    typer.Option("--top", "-n", metavar="N", min=0, help="How many edges, strongest first.", rich_help_panel=OUTPUT),
]
ShowPath = Annotated[bool, typer.Option("--path", help="Also show the path of penalties λ.", rich_help_panel=OUTPUT)]
Parameters = Annotated[
    bool,
    typer.Option(
        "--parameters", help="Also show the table of every edge shown, by labels and inputs.", rich_help_panel=OUTPUT
    ),
]
GraphFile = Annotated[
    Path | None,
    typer.Option(
        "--graph", metavar="FILE", help="Write the graph: .graphml (needs networkx) or .csv.", rich_help_panel=OUTPUT
    ),
]
PlotFile = Annotated[
    Path | None,
    typer.Option(
        "--plot", metavar="FILE", help="Draw the graph: .png, .svg, .pdf (needs matplotlib).", rich_help_panel=OUTPUT
    ),
]


@app.command(epilog=COLUMNS)
def learn(
    data: Data,
    model: Annotated[Path, typer.Option("--model", "-m", help="Where to write the model (.crf).")],
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            metavar="COLS",
            help="Columns that are inputs; the graph is of all others.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    header: Header = None,
    na: Na = None,
    missing: Annotated[
        str,
        typer.Option(
            "--missing", help="Rows with missing labels: drop (and say how many) or error.", rich_help_panel=INPUT
        ),
    ] = "drop",
    bins: Annotated[
        int | None,
        typer.Option(
            "--bins",
            metavar="N",
            help="Cut columns of more than N different numbers into N groups of about equal size.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            "--candidates",
            metavar="FILE",
            help="Two columns per line that may be joined; by default all pairs.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    strength: Annotated[
        str, typer.Option("--strength", "-s", metavar="λ|RULE", help=RULES, rich_help_panel=MODEL)
    ] = "ebic",
    loss: Annotated[
        str, typer.Option("--loss", help="pl (pseudo-likelihood) or likelihood.", rich_help_panel=MODEL)
    ] = "pl",
    refit: Annotated[
        str,
        typer.Option(
            "--refit",
            help="Weights of the chosen edges: auto (exact likelihood, else sampled), likelihood or pl.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    inference: Annotated[
        str, typer.Option("--inference", metavar="NAME", help=APPROXIMATIONS, rich_help_panel=MODEL)
    ] = "auto",
    node_strength: Annotated[
        float, typer.Option("--node-strength", metavar="S", help="L2 on node weights.", rich_help_panel=MODEL)
    ] = 1.0,
    gamma: Annotated[
        float,
        typer.Option(
            "--gamma", metavar="G", help="Of the extended BIC: larger for fewer edges.", rich_help_panel=MODEL
        ),
    ] = 0.35,
    group_norm: Annotated[
        str,
        typer.Option(
            "--group-norm", metavar="NORM", help="Of the weights of an edge: inf, 2 or 1.", rich_help_panel=MODEL
        ),
    ] = "inf",
    form: Annotated[
        str,
        typer.Option(
            "--form",
            help="Of edges: ising (two labels), full (tables), ordinal (ratings: one weight), or auto.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold",
            metavar="SHARE",
            help="Of random halves that select an edge, for stability.",
            rich_help_panel=MODEL,
        ),
    ] = 0.75,
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize/--no-standardize",
            help="Scale the penalty of an edge by its columns' standard deviations.",
            rich_help_panel=MODEL,
        ),
    ] = True,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="auto, newton, grafting-light, grafting, agpm or full: the same optimum.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = "auto",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Of folds and random halves.", rich_help_panel=OPTIMISATION)
    ] = 0,
    threads: Threads = None,
    graph: GraphFile = None,
    plot: PlotFile = None,
    top: Top = 10,
    path: ShowPath = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Learn the graph of the columns of a table: an edge where two depend on each other given all others.

    Ctrl-C stops early and still writes the best model of the strengths so far.
    """
    from crfkit import modelfile
    from crfkit.cli.graph_columns import read_edges
    from crfkit.cli.options import check_distinct
    from crfkit.cli.progress import strength_callback
    from crfkit.estimators.structure import StructureLearner
    from crfkit.readers.tables import read_table

    check_distinct({"DATA": data, "--candidates": candidates, "--model": model, "--graph": graph, "--plot": plot})
    _check_outputs(graph, plot)
    modelfile.check_writable(model)
    table = read_table(data, header, na=missing_cells(na))
    ids = table.select(features) if features is not None else []
    Y = table.take([i for i in range(len(table.columns)) if i not in ids])
    if not Y.columns:
        raise ParameterError("all columns are features: nothing is left to join")
    X: Any = None
    if ids:
        X = table.take(ids)
        X.check_numbers()
    learner = StructureLearner(
        method,
        loss,
        inference,
        group_norm,
        node_strength,
        _strength(strength),
        form=form,
        ebic_gamma=gamma,
        threshold=threshold,
        standardize=standardize,
        candidates=None if candidates is None else read_edges(candidates, Y),
        refit=refit,
        n_threads=threads,
        random_state=seed,
        missing=missing,
        bins=bins,
    )
    begin, interrupted = time.perf_counter(), False
    with warnings.catch_warnings(record=True) as said, strength_callback(quiet) as showing:
        warnings.simplefilter("always")
        try:
            learner.fit(Y, inputs=X, callbacks=showing)
        except DataError as error:
            raise DataError(str(error), data) from None
        except KeyboardInterrupt:
            interrupted = True
    if interrupted and not hasattr(learner, "model_"):
        typer.echo("interrupted before the first strength was done; no model was written", err=True)
        raise typer.Exit(130)
    for line in dict.fromkeys(str(w.message) for w in said):
        typer.echo(f"crfkit: warning: {line}", err=True)
    learner.save(model)
    typer.echo(report(learner, top, path))
    typer.echo(f"learnt in {time.perf_counter() - begin:.2f} s, model written to {model}")
    _write(learner, graph, plot)
    if interrupted:
        typer.echo("interrupted: the edges are those of the strengths so far", err=True)
        raise typer.Exit(130)


@app.command()
def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model of `crfkit structure learn`.")],
    graph: GraphFile = None,
    plot: PlotFile = None,
    top: Top = 20,
    path: ShowPath = False,
    parameters: Parameters = False,
) -> None:
    """Show the graph of a model: the strongest edges, how they were chosen; write or draw it."""
    from crfkit.cli.options import check_distinct
    from crfkit.estimators.structure import StructureLearner

    check_distinct({"MODEL": model, "--graph": graph, "--plot": plot})
    _check_outputs(graph, plot)
    learner = StructureLearner.load(model)
    typer.echo(report(learner, top, path, parameters))
    _write(learner, graph, plot)


def report(learner: StructureLearner, top: int, path: bool = False, parameters: bool = False) -> str:
    """Edges first, then how they were chosen; the path on request."""
    from crfkit.cli.inspect_graph import describe_structure

    encoder: Any = learner.model_.encoder
    lines = [f"{len(encoder.variables)} variables, {len(learner.edges_)} edges, {len(encoder.features or [])} features"]
    weights = learner.edge_weights_ if parameters else {}
    for record in learner.edge_records_[:top]:
        pair = record["first"], record["second"]
        lines.append(f"  {record['weight']:10.4f}  {pair[0]} – {pair[1]}{_remarks(record)}")
        lines += [
            f"              {value:10.4f}  {a}, {b}" + ("" if feature == "intercept" else f"  × {feature}")
            for (ends, feature, (a, b)), value in weights.items()
            if ends == pair
        ]
    if len(learner.edges_) > top:
        lines.append(f"  … and {len(learner.edges_) - top} more")
    return "\n".join([*lines, *describe_structure(learner.model_.training["structure"], path)])


def _remarks(record: dict[str, Any]) -> str:
    """What goes together most where the weight has no sign, the inputs that drive the edge, how stable it is."""
    text = ""
    if record["kind"] == "table" and not record.get("inputs"):
        text += f"  (no sign; most together: {record['strongest'][0]}, {record['strongest'][1]})"
    if inputs := record.get("inputs"):
        text += "  driven by " + ", ".join(f"{name} {size:.2f}" for name, size in list(inputs.items())[:3])
    if "stability" in record:
        text += f"  in {100 * record['stability']:.0f} % of halves"
    return text


def _strength(given: str) -> float | str:
    try:
        return float(given)
    except ValueError:
        return given


def _check_outputs(graph: Path | None, plot: Path | None) -> None:
    if graph is not None and graph.suffix.lower() not in (".graphml", ".csv"):
        raise ParameterError(f"--graph {graph}: the name must end in .graphml or .csv")
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot {plot}: the name must end in .png, .svg or .pdf")
    from importlib.util import find_spec

    if graph is not None and graph.suffix.lower() == ".graphml" and find_spec("networkx") is None:
        raise ParameterError("--graph FILE.graphml needs networkx: pip install 'crfkit[graphs]'; or give FILE.csv")
    if plot is not None and find_spec("matplotlib") is None:
        raise ParameterError("--plot needs matplotlib: pip install 'crfkit[plots]'")


def _write(learner: StructureLearner, graph: Path | None, plot: Path | None) -> None:
    from crfkit.cli.output import open_output

    if graph is not None:
        with open_output(graph) as out:
            out.write(_graph_bytes(learner, graph.suffix.lower()))
        typer.echo(f"graph written to {graph}")
    if plot is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        from crfkit.plots.graph import plot_graph

        encoder: Any = learner.model_.encoder
        nodes = encoder.variables if encoder.named else range(len(encoder.variables))
        ax = plot_graph(learner.edges_, nodes)
        with open_output(plot) as out:
            ax.figure.savefig(out, format=plot.suffix.lower()[1:], dpi=150)
        typer.echo(f"drawn to {plot}")


def _graph_bytes(learner: StructureLearner, suffix: str) -> bytes:
    import csv
    import io

    if suffix == ".graphml":
        import networkx  # type: ignore[import-untyped]

        buffer = io.BytesIO()
        networkx.write_graphml(learner.graph_, buffer)
        return buffer.getvalue()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["first", "second", "weight"])
    writer.writerows(learner.edges_)
    return text.getvalue().encode("utf-8")
