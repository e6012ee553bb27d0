"""The commands of `crfkit`; each is a module of this package."""

from __future__ import annotations

from typing import Any

import typer

from crfkit.cli.commands import (
    calibrate,
    compare,
    convert,
    convert_tags,
    evaluate,
    explain,
    graph,
    inspect,
    label_errors,
    refine,
    report,
    segment,
    structure,
    suggest,
    tag,
    train,
    tune,
    update,
)
from crfkit.cli.demo import command as demo
from crfkit.cli.runtime.help import Command
from crfkit.cli.runtime.output import say
from crfkit.cli.runtime.running import prepare_memory, run

app = typer.Typer(
    name="crfkit",
    help="Conditional random fields for sequences (train, tag, eval), tables (graph, structure) and images (segment, "
    "refine).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("train", cls=Command, epilog=train.SOLVERS)(train.train)
app.command("tune", cls=Command)(tune.tune)
app.command("update", cls=Command)(update.update)
app.command("tag", cls=Command)(tag.tag)
app.command("eval", cls=Command)(evaluate.evaluate)
app.command("calibrate", cls=Command)(calibrate.calibrate)
app.command("compare", cls=Command)(compare.compare)
app.command("report", cls=Command)(report.report)
app.command("explain", cls=Command)(explain.explain)
app.command("label-errors", cls=Command)(label_errors.label_errors)
app.command("suggest", cls=Command)(suggest.suggest)
app.command("convert", cls=Command)(convert.convert)
app.command("convert-tags", cls=Command)(convert_tags.convert_tags)
app.command("inspect", cls=Command)(inspect.inspect)
app.command("demo", cls=Command)(demo.demo)
app.add_typer(graph.app, name="graph")
app.add_typer(segment.app, name="segment")
app.add_typer(refine.app, name="refine")
app.add_typer(structure.app, name="structure")


VERSION_HELP = "Show the version, the SIMD kernels, the number of threads and the build, and exit."


def _show_version(value: bool) -> None:
    if value:
        from crfkit.versions import version_lines

        say("\n".join(version_lines()))
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help=VERSION_HELP, metavar=""
    ),
) -> None:
    pass


# The base class of usage errors: click's own, or the copy of click inside newer versions of typer.
_ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def main() -> None:
    """Run the command line. Errors are one line on stderr and exit code 2; Ctrl-C is exit code 130."""

    def command() -> Any:
        prepare_memory()
        return app(standalone_mode=False, prog_name="crfkit")

    run(command, _ClickException)
