"""Progress of training: a live line on a terminal, plain lines otherwise, JSON lines in a log file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TextIO

from crfkit.errors import DataError
from crfkit.solvers.parts.loop import Callback, Iteration


def describe(iteration: Iteration) -> str:
    row = iteration.row
    return (
        f"iteration {row.iteration:4d}  objective {row.value:14.4f}  ‖gradient‖ {row.optimality:10.4g}  "
        f"{row.seconds:7.2f} s{_more(row.extra)}"
    )


def _more(extra: Mapping[str, float]) -> str:
    """Return what callbacks have added to a row."""
    shown = {name: f"{x:,.0f}" if float(x).is_integer() else f"{x:.4f}" for name, x in extra.items()}
    return "".join(f"  {name.replace('_', ' ')} {text}" for name, text in shown.items())


def plain_lines(iteration: Iteration) -> None:
    print(describe(iteration), file=sys.stderr, flush=True)


@contextmanager
def live_line(max_iterations: int | None) -> Iterator[Callback]:
    """Show a progress bar, which ends early if training converges."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("training"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training", total=None, text="")

        def show(iteration: Iteration) -> None:
            limit = f" of at most {max_iterations}" if max_iterations else ""
            row = iteration.row
            pace = rate(row.iteration, row.seconds, max_iterations)
            progress.update(
                task, text=f"iteration {row.iteration}{limit}{pace}  objective {row.value:.4f}{_more(row.extra)}"
            )

        yield show


def rate(iterations: int, seconds: float, limit: int | None = None) -> str:
    """Return how long an iteration takes and, if their number is limited, the longest that all can still take.

    >>> rate(10, 5.0), rate(10, 5.0, 100), rate(0, 0.0)
    (' (0.50 s each)', ' (0.50 s each, at most 0:45 left)', '')
    """
    if iterations < 1:
        return ""
    each = seconds / iterations
    if not limit:
        return f" ({each:.2f} s each)"
    minutes, rest = divmod(round(each * max(0, limit - iterations)), 60)
    return f" ({each:.2f} s each, at most {minutes}:{rest:02} left)"


@contextmanager
def progress_callback(max_iterations: int | None, quiet: bool) -> Iterator[list[Callback]]:
    if quiet:
        yield []
    elif sys.stderr.isatty():
        with live_line(max_iterations) as callback:
            yield [callback]
    else:
        yield [plain_lines]


@contextmanager
def strength_callback(quiet: bool) -> Iterator[list[Callback]]:
    """Show the progress along a path of strengths: a live line, or a plain line when a strength begins."""
    if quiet or sys.stderr.isatty():
        with progress_callback(None, quiet) as callbacks:
            yield callbacks
        return

    def show(iteration: Iteration) -> None:
        row = iteration.row
        if row.iteration == 0:
            print(f"penalty λ {row.extra['strength']:12.6g}  objective {row.value:14.4f}", file=sys.stderr, flush=True)

    yield [show]


def half_line(done: int, of: int) -> None:
    """Show how many random halves of stability selection are done, where a cluster solves them."""
    print(f"random half {done} of {of}", file=sys.stderr, flush=True)


@contextmanager
def json_log(path: Path | None) -> Iterator[list[Callback]]:
    """Write each iteration as a line of JSON. An older log is kept until the first iteration."""
    if path is None:
        yield []
        return
    if path.is_dir() or not path.parent.is_dir():
        raise DataError("cannot write the log; expected a file in an existing folder", path)
    with ExitStack() as stack:
        streams: list[TextIO] = []

        def write(iteration: Iteration) -> None:
            try:
                if not streams:
                    streams.append(stack.enter_context(open(path, "w", encoding="utf-8")))
                streams[0].write(json.dumps(iteration.row.as_dict()) + "\n")
                streams[0].flush()
            except OSError as error:
                with suppress(OSError):
                    stack.close()
                raise DataError(f"cannot write the log: {error.strerror}", path) from error

        yield [write]
