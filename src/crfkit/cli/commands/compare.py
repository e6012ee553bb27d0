"""`crfkit compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit._values import Entries
from crfkit.cli.options import shared
from crfkit.cli.runtime.help import MODEL, OUTPUT, option
from crfkit.cli.runtime.output import open_input, say

if TYPE_CHECKING:
    from crfkit.explain.comparison import Comparison

Rows = list[list[str]]


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="Model file.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another model file.")],
    test: Annotated[
        Path,
        typer.Argument(metavar="TEST", help="Labelled file that neither model was trained on. - is standard input."),
    ],
    encoding: shared.Encoding = "utf-8",
    format: shared.Format = "auto",
    samples: Annotated[
        int, option(MODEL, "--samples", metavar="N", min=1, help="Number of resampled test sets.")
    ] = 10_000,
    confidence: shared.Confidence = 0.95,
    seed: shared.Seed = 0,
    show: Annotated[
        int,
        option(OUTPUT, "--show", "-n", metavar="N", min=0, help="Number of differently labelled sentences to show."),
    ] = 3,
    as_json: shared.Json = False,
    threads: shared.Threads = None,
) -> None:
    """Test whether one model is better than another on a labelled file, and show where they differ.

    Sentences are resampled with replacement, the same ones for both models (paired bootstrap). This gives confidence
    intervals of F1 of phrases, of accuracy and of their differences, and p-values; a second p-value comes from swapping
    the labels of the two models at random (approximate randomisation).

    crfkit compare old.crf new.crf test.txt
    """
    from crfkit.convert import load
    from crfkit.explain.comparison import compare as compare_labels
    from crfkit.explain.comparison import in_one_scheme
    from crfkit.explain.inputs import read_labelled
    from crfkit.files.columns import ColumnFile

    models = [load(path, threads, encoding) for path in (first, second)]
    source = open_input(test)
    if not isinstance(source, Path):  # both models read it
        import io

        source = io.BytesIO(source.read())
        source.name = "<stdin>"
    given = []
    for model in models:
        if not isinstance(source, Path):
            source.seek(0)
        given.append(read_labelled(model, ColumnFile(source, encoding, format)))
    labels = [
        [[str(label) for label in row] for row in model.predict(data.X)]
        for model, data in zip(models, given, strict=True)
    ]
    gold, tokens = given[0].y, given[0].tokens
    found = compare_labels(gold, labels[0], labels[1], samples=samples, confidence=confidence, seed=seed)
    labels = list(in_one_scheme(gold, labels[0], labels[1])[:2])
    if as_json:
        differing = [_sentence(n, tokens, gold, labels) for n in found.differing]
        typer.echo(json.dumps({**found.as_dict(), "differing": differing}, indent=2, ensure_ascii=False))
    else:
        say("\n".join([str(found), *_shown(found, tokens, gold, labels, show)]))


def _sentence(n: int, tokens: Rows, gold: Rows, labels: list[Rows]) -> Entries:
    return {"sentence": n, "tokens": tokens[n], "gold": gold[n], "a": labels[0][n], "b": labels[1][n]}


def _shown(found: Comparison, tokens: Rows, gold: Rows, labels: list[Rows], most: int) -> list[str]:
    """Return the first sentences that are labelled differently: the positions that differ, and their neighbours."""
    lines: list[str] = []
    for n in found.differing[:most]:
        rows = list(zip(tokens[n], gold[n], labels[0][n], labels[1][n], strict=True))
        differ = [t for t, (_, _, a, b) in enumerate(rows) if a != b]
        near = sorted({s for t in differ for s in (t - 1, t, t + 1) if 0 <= s < len(rows)})
        shown = [("token", "gold", "A", "B"), *(rows[t] for t in near)]
        widths = [max(len(row[k]) for row in shown) for k in range(4)]
        lines += ["", f"sentence {n}"]
        for t, row in zip([-1, *near], shown, strict=True):
            mark = "*" if t in differ else " "
            lines.append(f"{mark} " + "  ".join(f"{x:{w}}" for x, w in zip(row, widths, strict=True)).rstrip())
    left = len(found.differing) - most
    if most and left > 0:
        lines += ["", f"and {left} other sentences; --show {len(found.differing)} shows all"]
    return lines
