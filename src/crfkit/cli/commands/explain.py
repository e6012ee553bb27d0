"""`crfkit explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit._values import Entries
from crfkit.cli.options import shared
from crfkit.cli.options.text import hinting
from crfkit.cli.runtime.help import INPUT, OUTPUT, option
from crfkit.cli.runtime.output import open_input, say

if TYPE_CHECKING:
    from crfkit.chain.model.explanation import Explanation


def explain(
    model: shared.ModelFile,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Column file, orCRFsuite data file. If it has labels, wrong predictions are explained in "
            "comparison with them. - is standard input.",
        ),
    ],
    sentence: Annotated[
        list[int] | None,
        option(
            INPUT,
            "--sentence",
            "-s",
            metavar="N",
            min=0,
            help="Explain only this sentence; the first is 0. May be repeated.",
        ),
    ] = None,
    encoding: shared.Encoding = "utf-8",
    format: shared.Format = "auto",
    top: Annotated[
        int, option(OUTPUT, "--top", "-n", metavar="N", min=0, help="Number of contributions to show per label.")
    ] = 5,
    as_json: shared.Json = False,
    threads: shared.Threads = None,
) -> None:
    """Explain the labels of sentences: what each attribute and transition contributed, compared with the runner-up.

    The contributions of a position sum to log(p/q): p is the probability of the best labelling, q the probability of
    the best labelling with another label there.

    crfkit explain model.crf test.txt --sentence 0
    """
    from crfkit.convert import load
    from crfkit.errors import ParameterError
    from crfkit.explain.inputs import read_unlabelled
    from crfkit.files.columns import ColumnFile

    trained = load(model, threads, encoding)
    with hinting(trained, format):
        data = read_unlabelled(trained, ColumnFile(open_input(file), encoding, format))
    for n in sentence or []:
        if n >= len(data.X):
            raise ParameterError(f"there is no sentence {n}; the file has {len(data.X)}, counted from 0")
    own = {str(label): label for label in trained.class_list}
    rows = []
    for n in sentence or range(len(data.X)):
        gold = [own[label] for label in data.y[n]] if data.y and own.keys() >= set(data.y[n]) else None
        found = trained.explain(data.X[n], gold, data.tokens[n])
        if as_json:
            rows.append({"sentence": n, **_json_of(found, top)})
        else:
            say(f"sentence {n}: {found.to_text(top)}\n")
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))


def _json_of(found: Explanation, top: int) -> Entries:
    positions = [
        {
            "token": one.token,
            "label": str(one.label),
            "probability": one.probability,
            "runner_up": None if one.runner_up is None else str(one.runner_up),
            "runner_up_probability": one.runner_up_probability,
            "difference": None if one.alternative is None else one.difference,
            "contributions": [c._asdict() for c in one.contributions[:top]],
        }
        for one in found
    ]
    return {"labels": [str(x) for x in found.labels], "probability": found.probability, "positions": positions}
