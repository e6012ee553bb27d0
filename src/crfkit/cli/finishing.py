"""What commands that train print at their end, and their exit codes after Ctrl-C."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.result import Result


def exit_without_model(what: str = "iteration", code: int = 130) -> NoReturn:
    """Say that training was interrupted too early to write a model, and exit."""
    typer.echo(f"interrupted before the first {what} was complete; no model was written", err=True)
    raise typer.Exit(code)


def outcome(result: Result) -> str:
    """Return the objective, the number of iterations and the seconds of a training as one line."""
    value = "" if math.isnan(result.value) else f" = {result.value:.6f}"  # contrastive divergence has no value
    return f"{result.objective}{value} after {counted(result.iterations, 'iteration')}, {result.seconds:.2f} s"


def say_written(model: Path, interrupted: bool, code: int = 130) -> None:
    """Say where the model is; exit with `code` if training was interrupted."""
    typer.echo(f"model written to {model}")
    if interrupted:
        raise typer.Exit(code)


def note(text: str) -> None:
    """Print a remark that is neither an error nor a warning on stderr."""
    typer.echo(f"crfkit: note: {text}", err=True)
