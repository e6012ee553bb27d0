"""`crfkit tune`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit._values import Record
from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_option, takes
from crfkit.cli.options.plot import check_plot, write_plot
from crfkit.cli.runtime import signals
from crfkit.cli.runtime.finishing import note
from crfkit.cli.runtime.help import INPUT, MODEL, OPTIMISATION, OUTPUT
from crfkit.cli.runtime.output import open_output, say
from crfkit.errors import ParameterError
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.chain.training.tuning import Trial, Tuner, Tuning

    Watch = Callable[[Trial, int, int], None]


@dataclass(frozen=True)
class TuneOptions:
    """The options of `crfkit tune`."""

    files: Annotated[
        list[Path],
        typer.Argument(metavar="TRAIN...", help="Column files whose last column is the label, or CRFsuite files."),
    ]
    model: shared.NewModel
    template: list[Path] | None = own_option(
        INPUT, "--template", "-t", metavar="FILE", help="Feature template; give several to choose from."
    )
    features: list[str] | None = own_option(
        INPUT, "--features", metavar="NAME", help="Preset of text features; give several to choose from."
    )
    dev: Path | None = own_option(
        INPUT, "--dev", metavar="FILE", help="Held-out file to choose by. Default: folds of TRAIN."
    )
    folds: int = own_option(INPUT, "--folds", default=5, metavar="N", help="Number of folds where there is no --dev.")
    encoding: shared.Encoding = "utf-8"
    format: shared.Format = "auto"
    l2: str | None = own_option(
        MODEL, "--l2", metavar="LOW:HIGH", help="Range of L2 penalties. Default: 0.03:10, without --l1."
    )
    l1: str | None = own_option(MODEL, "--l1", metavar="LOW:HIGH", help="Range of L1 penalties.")
    min_frequency: str = own_option(
        MODEL, "--min-frequency", "-f", default="1,2,3", metavar="N,N,…", help="Frequency cuts to choose from."
    )
    order: str = own_option(MODEL, "--order", default="1", metavar="N,N", help="Orders to choose from: 1, 2 or 1,2.")
    constraints: str | None = own_option(
        MODEL, "--constraints", metavar="SCHEME", help="Forbid transitions that break a tagging scheme."
    )
    method: str = own_option(
        OPTIMISATION,
        "--method",
        default="halving",
        metavar="NAME",
        help="How to search. With halving, all candidates are trained on part of the training set, and the best third "
        "on three times as much; with random, all are trained on the whole.",
    )
    trials: int = own_option(OPTIMISATION, "--trials", "-n", default=20, metavar="N", help="Number of candidates.")
    solver: shared.Solver = "auto"
    tolerance: shared.Tolerance = 1e-4
    seed: shared.Seed = 0
    threads: shared.Threads = None
    table: Path | None = own_option(OUTPUT, "--table", metavar="FILE", help="Write all trials to this file, as JSON.")
    plot: Path | None = own_option(
        OUTPUT, "--plot", metavar="FILE", help="Draw scores against strengths (.png, .svg or .pdf)."
    )
    quiet: shared.Quiet = False


@takes(TuneOptions)
def tune(given: TuneOptions) -> None:
    """Choose the penalty, the frequency cut, the order and the features of a tagger on held-out sentences.

    Candidates are drawn at random; those that differ only in strength are trained one after the other, each from the
    previous solution. The best model is written. Its score is too optimistic, because it was selected: measure it again
    on a separate test set. If the best strength is at an end of its range, the search continues beyond it. Ctrl-C ends
    the search: the trials so far are printed and written to --table, and no model is written.
    """
    from crfkit.cli.options.parsing import check_distinct, check_writable

    for file in given.files:
        paths = {
            "TRAIN": file,
            "--dev": given.dev,
            "--model": given.model,
            "--table": given.table,
            "--plot": given.plot,
        }
        check_distinct(paths)
    check_writable(given.model, given.table, given.plot)
    check_plot(given.plot)
    tuner = _tuner(given)
    found = _search(given, tuner)
    found.model.save(given.model)
    say(str(found))
    where = "the development set" if given.dev is not None else counted(given.folds, "fold")
    say(f"best on {where}: {found.best.candidate}, {found.measure} {100 * found.best.score:.2f} %")
    for remark in found.remarks:
        note(remark)
    _write_table(found.trials, given.table)
    if given.plot is not None:
        from crfkit.plots.tuning import plot_tuning

        write_plot(given.plot, lambda: plot_tuning(found))
        say(f"plot written to {given.plot}")
    say(f"model written to {given.model}")


def _tuner(given: TuneOptions) -> Tuner:
    """Return the search of the options."""
    from crfkit.chain.training.train import ChainTraining
    from crfkit.chain.training.tuning import Space, Tuner
    from crfkit.cli.options.parsing import column_files, read_template

    strengths = (("l2", given.l2), ("l1", given.l1))
    ranges = {name: _range(f"--{name}", text) for name, text in strengths if text is not None}
    inputs: dict[str, Record] = {
        path.name: {"template": read_template(path, given.encoding)} for path in given.template or ()
    }
    inputs |= {name: {"features": name} for name in given.features or ()}
    space = Space(
        inputs or {"attributes": {}},
        _numbers("--min-frequency", given.min_frequency),
        _numbers("--order", given.order),
        ranges or {"l2": (0.03, 10.0)},
    )
    training = ChainTraining(
        solver=given.solver,
        tolerance=given.tolerance,
        n_threads=given.threads,
        seed=given.seed,
        constraints=given.constraints,
    )
    files = column_files(given.files, given.encoding, given.format)
    dev = None if given.dev is None else column_files([given.dev], given.encoding, given.format)[0]
    return Tuner(
        training, space, files, dev, folds=given.folds, method=given.method, trials=given.trials, seed=given.seed
    )


def _search(given: TuneOptions, tuner: Tuner) -> Tuning:
    """Return what the search found; after Ctrl-C, show the trials so far."""
    from crfkit.chain.training.tuning import trial_table

    seen: list[Trial] = []
    try:
        with _watching(given.quiet) as watch:
            return tuner.run(_collecting(seen, watch))
    except KeyboardInterrupt:
        if seen:
            say(trial_table(seen))
            _write_table(seen, given.table)
        signals.remark("no model was written")
        raise


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
