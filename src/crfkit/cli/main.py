"""Collects the commands of `crfkit`: each is a module of this package."""

from __future__ import annotations

from typing import Any

import typer

from crfkit.cli import convert_tags, demo, evaluate, graph, inspect, refine, segment, structure, tag, train
from crfkit.cli.running import run

app = typer.Typer(
    name="crfkit",
    help="Conditional random fields: taggers of sequences (train, tag, eval), fields on the columns of tables (graph), "
    "their structure (structure), segmentation of images (segment) and refinement of probability maps (refine).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("train")(train.train)
app.command("tag")(tag.tag)
app.command("eval")(evaluate.evaluate)
app.command("convert-tags")(convert_tags.convert_tags)
app.command("inspect")(inspect.inspect)
app.command("demo")(demo.demo)
app.add_typer(graph.app, name="graph")
app.add_typer(segment.app, name="segment")
app.add_typer(refine.app, name="refine")
app.add_typer(structure.app, name="structure")


def _show_version(value: bool) -> None:
    if value:
        from crfkit import __version__

        typer.echo(f"crfkit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    pass


# The base of usage errors: click's, or that of the copy inside newer versions of typer.
_ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def main() -> None:
    """Runs the command line; errors become one line on stderr and exit code 2, Ctrl-C exit code 130."""
    run(lambda: app(standalone_mode=False), _ClickException)
