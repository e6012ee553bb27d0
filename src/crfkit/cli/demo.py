"""`crfkit demo`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.help import INPUT, OUTPUT, option
from crfkit.errors import DataError

TEMPLATE = """# words around the token, shapes, and pairs of them
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U10:%x[-1,1]/%x[0,1]
U11:%x[0,1]/%x[1,1]
# transitions between labels
B
"""


def demo(
    sentences: Annotated[
        int, option(INPUT, "--sentences", metavar="N", min=10, help="Number of training sentences to generate.")
    ] = 2000,
    seed: Annotated[int, option(INPUT, "--seed", metavar="N", help="Random seed of the generated data.")] = 0,
    keep: Annotated[
        Path | None, option(OUTPUT, "--keep", metavar="DIR", help="Keep the generated files in this folder.")
    ] = None,
) -> None:
    """Show what crfkit can do, on generated data.

    Trains a tagger of people, places, firms and dates and scores it; segments images; and finds out which pixels of
    handwritten digits depend on each other.
    """
    from crfkit.cli import demo_segment, demo_structure

    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot create the folder: {error.strerror}", folder) from error
        _run(folder, sentences, seed)
        demo_segment.show(folder, seed)
        demo_structure.show(folder)
    if keep:
        typer.echo(f"\nthe files are in {keep}")


def _run(folder: Path, sentences: int, seed: int) -> None:
    from crfkit.cli.inspect import report as describe
    from crfkit.cli.progress import progress_callback
    from crfkit.estimators.chain import ChainCRF
    from crfkit.metrics import Evaluation
    from crfkit.synthetic import entity_corpus, write_columns

    train, test, model = folder / "train.txt", folder / "test.txt", folder / "model.crf"
    (folder / "template").write_text(TEMPLATE, encoding="utf-8")
    write_columns(str(train), entity_corpus(sentences, seed))
    held_out = entity_corpus(500, seed + 1)
    write_columns(str(test), held_out)

    typer.echo(f"$ crfkit train {train.name} --template template --model {model.name}")
    begin = time.perf_counter()
    crf = ChainCRF(folder / "template")
    with progress_callback(crf.max_iterations, quiet=not sys.stderr.isatty()) as showing:
        crf.fit_file(train, callbacks=showing)
    crf.save(model)
    typer.echo(f"{len(crf.coef_)} weights, {crf.result_}")
    typer.echo(f"trained in {time.perf_counter() - begin:.2f} s")

    typer.echo(f"\n$ crfkit tag {model.name} {test.name} --marginals | head -n 12")
    block = next(crf.model_.tag_columns(test, "best")).decode()
    typer.echo("\n".join(block.splitlines()[:12]))

    typer.echo(f"\n$ crfkit eval {model.name} {test.name}")
    result = Evaluation()
    for gold, predicted in crf.model_.tag_labelled(test):
        for a, b in zip(gold, predicted, strict=True):
            result.add(a, b)
    typer.echo(str(result))

    typer.echo(f"\n$ crfkit inspect {model.name} --top 3")
    typer.echo(describe(crf.model_, 3))
