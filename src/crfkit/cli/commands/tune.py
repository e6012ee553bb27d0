"""`crfkit tune`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit.cli.options import shared
from crfkit.cli.runtime import signals
from crfkit.cli.runtime.finishing import note
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT, option
from crfkit.cli.runtime.output import open_output, say
from crfkit.errors import ParameterError
from crfkit.extras import load

if TYPE_CHECKING:
    from crfkit.chain.training.tuning import Trial, Tuning

    Watch = Callable[[Trial, int, int], None]


def tune(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="TRAIN...", help="Column files whose last column is the label, or files of CRFsuite."),
    ],
    model: shared.NewModel,
    template: Annotated[
        list[Path] | None,
        option(INPUT, "--template", "-t", metavar="FILE", help="Feature template; give several to choose from."),
    ] = None,
    features: Annotated[
        list[str] | None,
        option(INPUT, "--features", metavar="NAME", help="Preset of text features; give several to choose from."),
    ] = None,
    dev: Annotated[
        Path | None,
        option(INPUT, "--dev", metavar="FILE", help="Held-out file to choose by. Default: folds of TRAIN."),
    ] = None,
    folds: Annotated[int, option(INPUT, "--folds", metavar="N", help="Number of folds where there is no --dev.")] = 5,
    encoding: shared.Encoding = "utf-8",
    format: shared.Format = "auto",
    l2: Annotated[
        str | None,
        option(MODEL, "--l2", metavar="LOW:HIGH", help="Range of L2 penalties. Default: 0.03:10, without --l1."),
    ] = None,
    l1: Annotated[str | None, option(MODEL, "--l1", metavar="LOW:HIGH", help="Range of L1 penalties.")] = None,
    min_frequency: Annotated[
        str, option(MODEL, "--min-frequency", "-f", metavar="N,N,…", help="Frequency cuts to choose from.")
    ] = "1,2,3",
    order: Annotated[str, option(MODEL, "--order", metavar="N,N", help="Orders to choose from: 1, 2 or 1,2.")] = "1",
    constraints: Annotated[
        str | None,
        option(MODEL, "--constraints", metavar="SCHEME", help="Forbid transitions that break a tagging scheme."),
    ] = None,
    method: Annotated[
        str,
        option(
            OPTIMISATION,
            "--method",
            metavar="NAME",
            help="How to search. With halving, all candidates see part of the training set, and the best third goes "
            "on to three times as much; with random, all see the whole.",
        ),
    ] = "halving",
    trials: Annotated[int, option(OPTIMISATION, "--trials", "-n", metavar="N", help="Number of candidates.")] = 20,
    solver: shared.Solver = "auto",
    tolerance: shared.Tolerance = 1e-4,
    seed: shared.Seed = 0,
    threads: shared.Threads = None,
    table: Annotated[
        Path | None, option(OUTPUT, "--table", metavar="FILE", help="Write all trials to this file, as JSON.")
    ] = None,
    plot: Annotated[
        Path | None,
        option(OUTPUT, "--plot", metavar="FILE", help="Draw scores against strengths (.png, .svg or .pdf)."),
    ] = None,
    quiet: shared.Quiet = False,
) -> None:
    """Choose the penalty, the frequency cut, the order and the features of a tagger on held-out sentences.

    Candidates are drawn at random; those that differ in strength alone are trained along a path, each from the solution
    before. The best model is written. Its score was chosen to be high: measure it again on a test set of its own.
    If the best strength is at an end of its range, the search continues beyond it. Ctrl-C ends the search: the trials
    so far are printed and written to --table, and no model is written.
    """
    from crfkit.chain.training.train import ChainTraining
    from crfkit.chain.training.tuning import Space, Tuner, trial_table
    from crfkit.cli.commands.structure_report import check_plot
    from crfkit.cli.options.parsing import check_distinct, column_files, read_template
    from crfkit.files import modelfile
    from crfkit.wording import counted

    outputs = {"--model": model, "--table": table, "--plot": plot}
    for file in files:
        check_distinct({"TRAIN": file, "--dev": dev, **outputs})
    for path in (model, table, plot):
        if path is not None:
            modelfile.check_writable(path)
    if plot is not None:
        check_plot(plot)
    ranges = {name: _range(f"--{name}", text) for name, text in (("l2", l2), ("l1", l1)) if text is not None}
    inputs: dict[str, Mapping[str, Any]] = {
        path.name: {"template": read_template(path, encoding, "auto")} for path in template or ()
    }
    inputs |= {name: {"features": name} for name in features or ()}
    space = Space(
        inputs or {"attributes": {}},
        _numbers("--min-frequency", min_frequency),
        _numbers("--order", order),
        ranges or {"l2": (0.03, 10.0)},
    )
    training = ChainTraining(solver=solver, tolerance=tolerance, n_threads=threads, seed=seed, constraints=constraints)
    train_files = column_files(files, encoding, format, None)
    dev_file = column_files([dev], encoding, format, None)[0] if dev is not None else None
    tuner = Tuner(training, space, train_files, dev_file, folds, method, trials, seed)
    seen: list[Trial] = []
    try:
        with _watching(quiet) as watch:
            found = tuner.run(_collecting(seen, watch))
    except KeyboardInterrupt:
        if seen:
            say(trial_table(seen))
            _write_table(seen, table)
        signals.remark("no model was written")
        raise
    found.model.save(model)
    say(str(found))
    where = "the development set" if dev is not None else counted(folds, "fold")
    say(f"best on {where}: {found.best.candidate}, {found.measure} {100 * found.best.score:.2f} %")
    for remark in found.remarks:
        note(remark)
    _write_table(found.trials, table)
    _write_plot(found, plot)
    say(f"model written to {model}")


@contextmanager
def _watching(quiet: bool) -> Iterator[Watch | None]:
    """Show each trial: a bar with the remaining time on a terminal, lines elsewhere."""
    if quiet:
        yield None
    elif not sys.stderr.isatty():
        start = time.perf_counter()

        def line(trial: Trial, done: int, total: int) -> None:
            left = (time.perf_counter() - start) / done * (total - done)
            print(
                f"trial {done} of {total}  {100 * trial.score:6.2f} %  {trial.candidate}, {trial.share:.0%} of the "
                f"training set  {trial.seconds:.1f} s, at most about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )

        yield line
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                   TextColumn("{task.fields[text]}"))  # fmt: skip
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("trials", total=None, text="")
            best = [-1.0]

            def bar(trial: Trial, done: int, total: int) -> None:
                best[0] = max(best[0], trial.score)
                text = f"{100 * trial.score:.2f} % ({trial.candidate}); best so far {100 * best[0]:.2f} %"
                progress.update(task, completed=done, total=total, text=text)

            yield bar


def _collecting(trials: list[Trial], watch: Watch | None) -> Watch:
    """Return a function that keeps each trial and shows it."""

    def keep(trial: Trial, done: int, total: int) -> None:
        trials.append(trial)
        if watch is not None:
            watch(trial, done, total)

    return keep


def _write_table(trials: Sequence[Trial], table: Path | None) -> None:
    if table is not None:
        rows = [
            {**asdict(trial.candidate), "share": trial.share, "score": trial.score, "seconds": trial.seconds,
             "iterations": trial.iterations, "weights": trial.weights}
            for trial in trials
        ]  # fmt: skip
        with open_output(table) as out:
            out.write((json.dumps({"measure": trials[0].measure, "trials": rows}, indent=1) + "\n").encode("utf-8"))
        say(f"trials written to {table}")


def _write_plot(found: Tuning, plot: Path | None) -> None:
    if plot is not None:
        load("matplotlib", "--plot needs").use("Agg")
        from crfkit.plots.tuning import plot_tuning

        with open_output(plot) as out:
            plot_tuning(found).figure.savefig(out, format=plot.suffix.lower()[1:], dpi=150)
        say(f"plot written to {plot}")


def _range(name: str, text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    try:
        return float(low), float(high if colon else low)
    except ValueError:
        raise ParameterError(f"{name} is a range such as 0.1:10, not {text!r}") from None


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"{name} is a list of whole numbers such as 1,2, not {text!r}") from None
