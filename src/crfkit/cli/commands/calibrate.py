"""`crfkit calibrate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit.cli.options import shared
from crfkit.cli.runtime.help import INPUT, MODEL, OUTPUT, flag, option
from crfkit.cli.runtime.output import say

if TYPE_CHECKING:
    from crfkit.chain.model.reliability import Reliability


def calibrate(
    model: shared.ModelFile,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Labelled files that were not used in training: column files whose last column is the true label, or "
            "data files of CRFsuite. - is standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, option(OUTPUT, "--output", "-o", metavar="FILE", help="File to write the calibrated model to.")
    ],
    precision: Annotated[
        float | None,
        option(
            MODEL,
            "--precision",
            metavar="P",
            help="Also find the threshold of each type of phrase at which this share of the phrases is right, e.g. "
            "0.95. Used by crfkit tag --spans --min-confidence calibrated.",
        ),
    ] = None,
    coverage: Annotated[
        list[float] | None,
        option(
            MODEL,
            "--coverage",
            metavar="P",
            help="Also prepare sets of labellings that hold the true one with this probability, e.g. 0.9. May be given "
            "several times. Used by predict_sets in Python.",
        ),
    ] = None,
    objective: Annotated[
        str,
        option(
            MODEL,
            "--objective",
            metavar="NAME",
            help="Loss that the temperature minimises: spans, tokens, sequences, or none to keep the probabilities. "
            "auto is spans if labels mark phrases, else tokens.",
        ),
    ] = "auto",
    min_spans: Annotated[
        int,
        option(MODEL, "--min-spans", metavar="N", help="Fewest phrases of a type above its threshold."),
    ] = 10,
    plot: Annotated[
        Path | None,
        option(
            OUTPUT, "--plot", metavar="FILE", help="Draw the reliability before and after to a .png, .svg or .pdf file."
        ),
    ] = None,
    as_json: Annotated[bool, flag(OUTPUT, "--json", help="Print JSON.")] = False,
    encoding: Annotated[
        str, option(INPUT, "--encoding", metavar="NAME", help="Encoding of the input files, e.g. latin-1 or utf-16.")
    ] = "utf-8",
    format: shared.Format = "auto",
    threads: shared.Threads = None,
) -> None:
    """Make the probabilities of a model fit labelled data: temperature, thresholds of types, sets of labellings.

    The best labels stay the same. The new model is a plain model: its weights are divided by the temperature, and the
    thresholds are stored beside them. The table shows how well probabilities fit these files before and after; use
    files of their own to judge a calibrated model.

    crfkit calibrate model.crf dev.txt --precision 0.95 --output calibrated.crf

    crfkit tag calibrated.crf text.txt --spans --min-confidence calibrated
    """
    from crfkit.chain.model.calibration import OBJECTIVES, calibrate_blocks
    from crfkit.chain.model.reliability import reliability_of
    from crfkit.chain.model.tagging import labelled_blocks
    from crfkit.cli.options.parsing import check_distinct, column_files
    from crfkit.convert import load
    from crfkit.errors import DataError, ParameterError
    from crfkit.files.modelfile import check_writable
    from crfkit.names import check_name
    from crfkit.schemes import are_phrases

    check_name("objective", objective, OBJECTIVES)
    if plot is not None:
        _check_plot(plot)
    check_distinct({"MODEL": model, "--output": output})
    check_writable(output)
    sources = column_files(files, encoding, format)
    trained = load(model, threads, encoding)
    if trained.vocabulary.kind == "matrix":
        raise ParameterError(
            f"{model} was trained on matrices, so that it cannot read files; use ChainCRF.load(…).calibrate(…)"
        )
    blocks = [block for source in sources for block in labelled_blocks(trained, source)]
    known, seen = set(trained.class_list), {label for _, rows in blocks for row in rows for label in row}
    if seen and not seen & known:
        raise DataError(
            f"the {'last' if trained.vocabulary.takes_columns else 'first'} column has none of the model's labels; it "
            "must be the true label",
            files[0] if len(files) == 1 else None,
        )
    kind = "spans" if are_phrases(trained.class_list) else "tokens"
    calibrated = calibrate_blocks(trained, blocks, precision, coverage or (), objective, min_spans)  # type: ignore[arg-type]
    found = calibrated.calibration
    before, after = (reliability_of(x, blocks, kind) for x in (trained, calibrated))  # type: ignore[arg-type]
    calibrated.save(output)
    if plot is not None:
        _draw(plot, {"before": before, "after": after})
    assert found is not None
    if as_json:
        entry = {**found.as_dict(), "ece_before": before.ece, "ece_after": after.ece, "kind": kind}
        typer.echo(json.dumps(entry, indent=2, ensure_ascii=False))
        return
    say(found)
    say(f"expected calibration error of {kind} on these files: {before.ece:.4f} before, {after.ece:.4f} after")
    say(f"wrote {output}")


def _check_plot(path: Path) -> None:
    from crfkit.errors import ParameterError
    from crfkit.extras import check_installed

    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"--plot must be a file that ends in .png, .svg or .pdf, not {path}")
    check_installed("matplotlib", "--plot needs")


def _draw(path: Path, results: dict[str, Reliability]) -> None:
    from crfkit.cli.runtime.output import open_output
    from crfkit.extras import load

    load("matplotlib", "--plot needs").use("Agg")
    from crfkit.plots import plot_reliability

    top, _ = plot_reliability(results)
    with open_output(path) as out:
        top.figure.savefig(out, format=path.suffix.lower()[1:], dpi=150)
