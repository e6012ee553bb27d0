"""The command line: `crfkit train | tag | eval | inspect | demo`."""

from __future__ import annotations

import sys

import typer

from crfkit.cli import demo, evaluate, inspect, tag, train
from crfkit.errors import CrfkitError

app = typer.Typer(
    name="crfkit",
    help="Conditional random fields: train a sequence tagger from a column file and a template, tag, evaluate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("train")(train.train)
app.command("tag")(tag.tag)
app.command("eval")(evaluate.evaluate)
app.command("inspect")(inspect.inspect)
app.command("demo")(demo.demo)


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


def main() -> None:
    """Runs the command line; errors become one line on stderr and exit code 2, Ctrl-C exit code 130."""
    try:
        app()
    except CrfkitError as error:
        print(f"crfkit: error: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("crfkit: error: out of memory; use fewer attributes (--min-frequency)", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("crfkit: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone, as in `crfkit tag … | head`
        sys.stderr.close()
        sys.exit(141)
