"""The last lines of commands that train, and their exit codes after Ctrl-C or SIGTERM."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from crfkit.cli.runtime import signals
from crfkit.cli.runtime.naming import on_command_line
from crfkit.cli.runtime.output import say
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.result import Result


def exit_without_model(what: str = "iteration") -> NoReturn:
    """Say that training was interrupted too early to write a model, and exit."""
    signals.remark(f"the first {what} was not complete, so no model was written")
    raise typer.Exit(130)


def outcome(result: Result) -> str:
    """Return the objective, the number of iterations and the seconds of a training as one line."""
    value = "" if math.isnan(result.value) else f" = {result.value:.6f}"  # contrastive divergence has no value
    return f"{result.objective}{value} after {counted(result.iterations, 'iteration')}, {result.seconds:.2f} s"


def status_text(result: Result) -> str:
    """Return why training ended and what to do about it, in options of the command line."""
    return result.describe(on_command_line)


def say_written(model: Path, interrupted: bool) -> None:
    """Say where the model is; exit if training was interrupted."""
    say(f"model written to {model}")
    if interrupted:
        signals.remark("the model so far was written")
        raise typer.Exit(130)


def note(text: str) -> None:
    """Print a remark that is neither an error nor a warning on stderr."""
    say(f"crfkit: note: {text}", err=True)
