"""The report of `crfkit structure` about a graph, and the files that it writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crfkit._values import Entries
from crfkit.cli.commands.inspect_graph import describe_structure
from crfkit.cli.runtime.output import csv_bytes, open_output, say
from crfkit.errors import ParameterError
from crfkit.extras import check_installed, load

if TYPE_CHECKING:
    from crfkit.structure.estimator.structure_learner import StructureLearner


def report(learner: StructureLearner, top: int, path: bool = False, parameters: bool = False) -> str:
    """Return the strongest edges and how the edges were chosen; with the path of penalties if `path`."""
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


def _remarks(record: Entries) -> str:
    """Return remarks on an edge: its strongest labels if its weight has no sign, its inputs, and how stable it is."""
    text = ""
    if record["kind"] == "table" and not record.get("inputs"):
        text += f"  (no sign; strongest for {record['strongest'][0]}, {record['strongest'][1]})"
    if inputs := record.get("inputs"):
        text += "  driven by " + ", ".join(f"{name} {size:.2f}" for name, size in list(inputs.items())[:3])
    if "stability" in record:
        text += f"  selected in {100 * record['stability']:.0f} % of random halves"
    return text


def check_outputs(graph: Path | None, plot: Path | None) -> None:
    """Raise ParameterError if a file has another ending, or needs a package that is not installed."""
    if graph is not None and graph.suffix.lower() not in (".graphml", ".csv"):
        raise ParameterError(f"--graph must be a file that ends in .graphml or .csv, not {graph}")
    if plot is not None:
        check_plot(plot)
    if graph is not None and graph.suffix.lower() == ".graphml":
        check_installed("networkx", "--graph FILE.graphml needs", "or give FILE.csv")


def check_plot(plot: Path) -> None:
    """Raise ParameterError if a plot cannot be written to this file."""
    if plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot must be a file that ends in .png, .svg or .pdf, not {plot}")
    check_installed("matplotlib", "--plot needs")


def write_graph(learner: StructureLearner, graph: Path | None, plot: Path | None) -> None:
    """Write the graph as GraphML or CSV, and draw it, to the files that are given."""
    if graph is not None:
        with open_output(graph) as out:
            out.write(_graph_bytes(learner, graph.suffix.lower()))
        say(f"graph written to {graph}")
    if plot is not None:
        load("matplotlib", "--plot needs").use("Agg")
        from crfkit.plots.graph import plot_graph

        encoder: Any = learner.model_.encoder
        nodes = encoder.variables if encoder.named else range(len(encoder.variables))
        ax = plot_graph(learner.edge_records_, nodes)
        with open_output(plot) as out:
            ax.figure.savefig(out, format=plot.suffix.lower()[1:], dpi=150)
        say(f"drawing written to {plot}")


def _graph_bytes(learner: StructureLearner, suffix: str) -> bytes:
    if suffix == ".graphml":
        import io

        buffer = io.BytesIO()
        load("networkx", "--graph FILE.graphml needs").write_graphml(learner.graph_, buffer)
        return buffer.getvalue()
    return csv_bytes(["first", "second", "weight"], learner.edges_)
