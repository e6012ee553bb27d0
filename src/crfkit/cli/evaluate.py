"""`crfkit eval`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.metrics import Evaluation


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Column file; the last column is the true label.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", "-p", metavar="N", help="Default: all cores.")] = None,
) -> None:
    """Score a model on a labelled file: accuracy, and phrases as conlleval counts them."""
    from crfkit.estimators.chain_model import ChainModel
    from crfkit.metrics import Evaluation

    trained = ChainModel.load(model, threads)
    if trained.vocabulary.template is None:
        raise ParameterError(f"{model} was not trained with a template; score with ChainCRF.load(…).score(…)")
    result = Evaluation()
    for gold, predicted in trained.tag_labelled(file):
        for a, b in zip(gold, predicted, strict=True):
            result.add(a, b)
    if result.tokens == 0:
        raise DataError("the file has no sequences", file)
    typer.echo(json.dumps(result.as_dict(), indent=2, ensure_ascii=False) if as_json else report(result))


def report(result: Evaluation) -> str:
    """The scores as a table."""
    width = max([len("overall"), *(len(kind) for kind in result.by_type)])
    lines = [
        f"{result.tokens} tokens, accuracy {result.accuracy:.2%}; "
        f"{result.sequences} sequences, {result.sequence_accuracy:.2%} without error",
        f"{'':{width}}  precision   recall       F1    gold  found  correct",
    ]
    for kind, counts in [("overall", result.overall), *sorted(result.by_type.items())]:
        lines.append(
            f"{kind:{width}}  {counts.precision:9.2%}  {counts.recall:7.2%}  {counts.f1:7.2%}  "
            f"{counts.gold:6d} {counts.predicted:6d}  {counts.correct:7d}"
        )
    return "\n".join(lines)
