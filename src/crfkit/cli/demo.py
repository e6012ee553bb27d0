"""`crfkit demo`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli import demo_data
from crfkit.cli.demo_data import TEMPLATE as TEMPLATE
from crfkit.cli.help import INPUT, OUTPUT, flag, option


def demo(
    sentences: Annotated[
        int, option(INPUT, "--sentences", metavar="N", min=10, help="Number of training sentences to generate.")
    ] = 1000,
    seed: Annotated[int, option(INPUT, "--seed", metavar="N", help="Random seed of the generated data.")] = 0,
    output: Annotated[
        Path, option(OUTPUT, "--output", "-o", metavar="DIR", help="Folder for the files. It may not have others.")
    ] = Path("crfkit-demo"),
    data_only: Annotated[
        bool, flag(OUTPUT, "--data-only", help="Write the generated data and stop, without training anything.")
    ] = False,
) -> None:
    """Show what crfkit can do, on generated data.

    Trains a tagger of people, places, firms and dates and scores it; segments images; and finds out which pixels of
    handwritten digits depend on each other.
    """
    from crfkit.cli import demo_segment, demo_structure

    demo_data.prepare(output)
    has_images = demo_data.write(output, sentences, seed)
    if data_only:
        typer.echo(f"the data are in {output}; README.txt there explains the files")
        return
    _run(output, sentences, seed)
    demo_segment.show(output, seed)
    demo_structure.show(output)
    if not has_images:
        typer.echo("\nimage files and `crfkit segment` need Pillow; install it with pip install 'crfkit[images]'")
    typer.echo(f"\nthe files are in {output}")


def _run(folder: Path, sentences: int, seed: int) -> None:
    from crfkit.cli.inspect import report as describe
    from crfkit.cli.progress import progress_callback
    from crfkit.estimators.chain import ChainCRF
    from crfkit.metrics import Evaluation

    train, test, model = folder / "train.txt", folder / "test.txt", folder / "model.crf"
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
