"""`crfkit report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.options import shared
from crfkit.cli.options.parsing import STDIN, check_distinct
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT, option
from crfkit.cli.runtime.output import open_input, open_output


def report(
    model: shared.ModelFile,
    test: Annotated[
        Path,
        typer.Argument(metavar="TEST", help="Labelled file that the model was not trained on. - is standard input."),
    ],
    output: Annotated[Path, option(OUTPUT, "--output", "-o", metavar="FILE.html", help="File to write the page to.")],
    title: Annotated[
        str | None, option(OUTPUT, "--title", metavar="TEXT", help="Title of the page. Default: the model's name.")
    ] = None,
    encoding: Annotated[
        str, option(INPUT, "--encoding", metavar="NAME", help="Encoding of the test file, e.g. latin-1 or utf-16.")
    ] = "utf-8",
    format: shared.Format = "auto",
    samples: Annotated[
        int, option(MODEL, "--samples", metavar="N", min=1, help="Number of resampled test sets, for the intervals.")
    ] = 2000,
    confidence: shared.Confidence = 0.95,
    errors: Annotated[
        int,
        option(
            OUTPUT,
            "--errors",
            "-n",
            metavar="N",
            min=0,
            help="Maximum number of sentences with errors on the page, the least probable ones.",
        ),
    ] = 1000,
    seed: shared.Seed = 0,
    quiet: shared.Quiet = False,
    threads: shared.Threads = None,
) -> None:
    """Write an HTML page about a model on a labelled file: scores, calibration, weights, errors and suspect labels.

    The page is one file that opens in any browser without a network. It has scores with confidence intervals, scores by
    type, a calibration plot, the weights of transitions, the strongest weights, the errors one by one with
    probabilities, alternatives and the reason for each label, and labels of the file that are probably wrong.

    crfkit report model.crf test.txt --output report.html
    """
    from crfkit.convert import load
    from crfkit.explain.inputs import read_labelled
    from crfkit.explain.report.data import make_report
    from crfkit.files.columns import ColumnFile

    check_distinct({"MODEL": model, "TEST": test, "--output": output})
    trained = load(model, threads, encoding)
    data = read_labelled(trained, ColumnFile(open_input(test), encoding, format))
    found = make_report(
        trained,
        data.X,
        data.y,
        data.tokens,
        title=title or f"{model.stem}: report",
        names=(model.name, "standard input" if test == STDIN else test.name),
        samples=samples,
        confidence=confidence,
        max_errors=errors,
        seed=seed,
    )
    page = found.to_html().encode("utf-8", "replace")
    with open_output(output) as stream:
        stream.write(page)
    if not quiet:
        told = ", ".join(f"{score.name} {score.value:.2%}" for score in found.scores)
        print(f"{told}\nwrote {output} ({len(page) / 1e6:.1f} MB)", file=sys.stderr)
