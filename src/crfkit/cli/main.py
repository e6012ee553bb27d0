"""The command line: `crfkit train | tag | eval | inspect | demo | graph | segment | refine | structure`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, NoReturn

import typer

from crfkit.cli import demo, evaluate, graph, inspect, refine, segment, structure, tag, train
from crfkit.errors import CrfkitError

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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console that cannot show a character shows a question mark
    try:
        code = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except _ClickException as error:
        message = error.format_message()
        if type(error).__name__ == "NoArgsIsHelpError":
            print(message)
            sys.exit(2)
        _fail(f"{message} (crfkit --help, crfkit COMMAND --help)")
    except CrfkitError as error:
        _fail(str(error))
    except MemoryError:
        _fail("out of memory; use fewer attributes (train: --min-frequency) or fewer rows, edges and features (graph)")
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # the reader of our output has gone, as in `crfkit tag … | head`
        _discard_output()
        code = 1
    except OSError as error:
        _discard_output()
        _fail(f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or error}")
    if code == 130:
        print("crfkit: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> NoReturn:
    print(f"crfkit: error: {message}", file=sys.stderr)
    sys.exit(2)


def _discard_output() -> None:
    """Keeps the flush at exit from failing once more."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
