"""`crfkit calibrate`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from crfkit.cli.options import shared
from crfkit.cli.options.declared import own_option, takes
from crfkit.cli.options.plot import check_plot, write_plot
from crfkit.cli.runtime.help import MODEL, OUTPUT, option
from crfkit.cli.runtime.output import say


@dataclass(frozen=True)
class CalibrateOptions:
    """The options of `crfkit calibrate`."""

    model: shared.ModelFile
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Labelled files that were not used in training: column files whose last column is the true label, or "
            "CRFsuite data files. - is standard input.",
            show_default=False,
        ),
    ]
    output: Annotated[
        Path, option(OUTPUT, "--output", "-o", metavar="FILE", help="File to write the calibrated model to.")
    ]
    precision: float | None = own_option(
        MODEL,
        "--precision",
        metavar="P",
        help="Also find the threshold of each type of phrase at which this share of the phrases is right, e.g. "
        "0.95. Used by crfkit tag --spans --min-confidence calibrated.",
    )
    coverage: list[float] | None = own_option(
        MODEL,
        "--coverage",
        metavar="P",
        help="Also prepare sets of labellings that hold the true one with this probability, e.g. 0.9. May be given "
        "several times. Used by predict_sets in Python.",
    )
    objective: str = own_option(
        MODEL,
        "--objective",
        default="auto",
        metavar="NAME",
        help="Loss that the temperature minimises: spans, tokens, sequences, or none to keep the probabilities. "
        "auto is spans if labels mark phrases, else tokens.",
    )
    min_spans: int = own_option(
        MODEL, "--min-spans", default=10, metavar="N", help="Minimum number of phrases of a type above its threshold."
    )
    plot: Path | None = own_option(
        OUTPUT, "--plot", metavar="FILE", help="Draw the reliability before and after to a .png, .svg or .pdf file."
    )
    as_json: shared.Json = False
    encoding: shared.Encoding = "utf-8"
    format: shared.Format = "auto"
    threads: shared.Threads = None


@takes(CalibrateOptions)
def calibrate(given: CalibrateOptions) -> None:
    """Make the probabilities of a model fit labelled data: temperature, thresholds of types, sets of labellings.

    The best labels stay the same. The new model is an ordinary one: its weights are divided by the temperature, and the
    thresholds are stored beside them. The table shows how well probabilities fit these files before and after. Measure
    the calibrated model on other files.

    crfkit calibrate model.crf dev.txt --precision 0.95 --output calibrated.crf

    crfkit tag calibrated.crf text.txt --spans --min-confidence calibrated
    """
    from crfkit.chain.model.calibration import OBJECTIVES, calibrate_blocks
    from crfkit.chain.model.reliability import reliability_of
    from crfkit.chain.model.tagging import labelled_blocks
    from crfkit.cli.options.parsing import check_distinct, column_files
    from crfkit.convert import load
    from crfkit.errors import DataError, ParameterError
    from crfkit.files.atomic import check_writable
    from crfkit.names import check_name
    from crfkit.schemes import are_phrases

    check_name("objective", given.objective, OBJECTIVES)
    check_plot(given.plot)
    check_distinct({"MODEL": given.model, "--output": given.output})
    check_writable(given.output)
    sources = column_files(given.files, given.encoding, given.format)
    trained = load(given.model, given.threads, given.encoding)
    if trained.vocabulary.kind == "matrix":
        raise ParameterError(
            f"{given.model} was trained on matrices, so it cannot read files; use ChainCRF.load(…).calibrate(…)"
        )
    blocks = [block for source in sources for block in labelled_blocks(trained, source)]
    known, seen = set(trained.class_list), {label for _, rows in blocks for row in rows for label in row}
    if seen and not seen & known:
        raise DataError(
            f"the {'last' if trained.vocabulary.takes_columns else 'first'} column has none of the model's labels; it "
            "must be the true label",
            given.files[0] if len(given.files) == 1 else None,
        )
    kind = "spans" if are_phrases(trained.class_list) else "tokens"
    wanted: Any = (given.precision, given.coverage or (), given.objective, given.min_spans)
    calibrated = calibrate_blocks(trained, blocks, *wanted)
    found = calibrated.calibration
    before, after = (reliability_of(x, blocks, kind) for x in (trained, calibrated))  # type: ignore[arg-type]
    calibrated.save(given.output)
    if given.plot is not None:
        from crfkit.plots import plot_reliability

        write_plot(given.plot, lambda: plot_reliability({"before": before, "after": after})[0])
    assert found is not None
    if given.as_json:
        entry = {**found.as_dict(), "ece_before": before.ece, "ece_after": after.ece, "kind": kind}
        typer.echo(json.dumps(entry, indent=2, ensure_ascii=False))
        return
    say(found)
    say(f"expected calibration error of {kind} on these files: {before.ece:.4f} before, {after.ece:.4f} after")
    say(f"wrote {given.output}")
