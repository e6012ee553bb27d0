"""`crfkit demo`: a non-interactive tour on generated data."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crfkit._values import Entries
from crfkit.cli.demo import data as demo_data
from crfkit.cli.runtime.help import INPUT, OUTPUT, flag, option
from crfkit.cli.runtime.output import say

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

FOLDER = Path("crfkit-demo")


def demo(
    sentences: Annotated[
        int, option(INPUT, "--sentences", metavar="N", min=10, help="Number of training sentences to generate.")
    ] = 1000,
    seed: Annotated[int, option(INPUT, "--seed", metavar="N", min=0, help="Random seed of the generated data.")] = 0,
    output: Annotated[
        Path,
        option(
            OUTPUT,
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the files. It must be new, empty, or from an earlier demo.",
        ),
    ] = FOLDER,
    data_only: Annotated[
        bool, flag(OUTPUT, "--data-only", help="Write the generated data and stop, without training anything.")
    ] = False,
    as_json: Annotated[
        bool, flag(OUTPUT, "--json", help="Print the figures of the tour as one JSON document instead.")
    ] = False,
) -> None:
    """Show what crfkit can do: a non-interactive tour on generated data.

    Finds names in text, scores them and says why; finds discs in noisy pictures; and finds out which pixels of
    handwritten digits depend on each other. At the end there are a report page and three commands to try next.

    The files stay in the folder crfkit-demo. README.txt there explains them.
    """
    from crfkit.cli.demo.screen import Screen

    demo_data.prepare(output)
    if data_only:
        demo_data.write(output, sentences, seed)
        say(f"The data are in {output}; README.txt there explains the files.")
        return
    try:
        figures = _tour(output, sentences, seed, Screen(silent=as_json))
    except KeyboardInterrupt:
        say(f"\nThe demo was stopped. What it had finished is in {output}; `crfkit demo` starts again.", err=True)
        raise
    if as_json:
        typer.echo(json.dumps(figures, indent=2, ensure_ascii=False))


def _tour(folder: Path, sentences: int, seed: int, screen: Any) -> Entries:
    from crfkit.cli.demo import segment as demo_segment
    from crfkit.cli.demo import structure as demo_structure
    from crfkit.cli.demo import tagger as demo_tagger

    begin = time.perf_counter()
    screen.title("A tour of crfkit in five steps")
    screen.say(f"You need not type anything. The data are generated, and all files go to {folder}.")
    has_images = demo_data.write(folder, sentences, seed)
    tagger = demo_tagger.train(folder, sentences, screen)
    figures: Entries = {"folder": str(folder), "images": has_images}
    figures["tagger"] = demo_tagger.tag(tagger, folder, screen)
    figures["scores"] = demo_tagger.score(tagger, folder, screen)
    figures["why"] = demo_tagger.explain(tagger, screen)
    figures["segmentation"] = demo_segment.run(folder, seed, screen)
    figures["structure"] = demo_structure.run(folder, screen)
    with screen.working("writing the report"):
        report = _report(tagger.crf.model_, folder)
    seconds = time.perf_counter() - begin
    commands = next_commands(folder)
    screen.title(f"That was all, in {seconds:.0f} s.")
    screen.say(
        f"The report of the tagger is a page for the browser, with its scores, its errors and the reasons for each: "
        f"{report}"
    )
    if not has_images:
        screen.say("Image files and `crfkit segment` need Pillow: pip install 'crfkit[images]'")
    screen.title("Three things to try next")
    for what, command in commands:
        screen.gap()
        screen.say(f"{what}:")
        screen.command(command)
    return {**figures, "report": str(report), "next": [command for _, command in commands], "seconds": seconds}


def _report(model: ChainModel, folder: Path) -> Path:
    """Write report.html, as `crfkit report` does."""
    from crfkit.cli.runtime.output import open_output
    from crfkit.explain.inputs import read_labelled
    from crfkit.explain.report.data import make_report

    data = read_labelled(model, folder / "test.txt")
    title, names = "The tagger of crfkit demo", ("model.crf", "test.txt")
    page = make_report(model, data.X, data.y, data.tokens, title=title, names=names).to_html()
    path = folder / "report.html"
    with open_output(path) as stream:
        stream.write(page.encode("utf-8", "replace"))
    return path


def next_commands(folder: Path) -> list[tuple[str, str]]:
    """Return what to try next: (what it does, the command)."""
    crfkit = program()

    def file(name: str) -> str:
        return shlex.quote((folder / name).as_posix())

    return [
        (
            "Tag a sentence of your own",
            f'echo "Zoe flew to Rome." | {crfkit} tag {file("model.crf")} --text --spans',
        ),
        (
            "Train a tagger; put a file of your own in place of train.txt",
            f"{crfkit} train {file('train.txt')} --features ner -m {file('mine.crf')}",
        ),
        (
            "Find out which answers of a survey depend on each other",
            f"{crfkit} structure learn {file('survey.csv')} --model {file('survey.crf')}",
        ),
    ]


def program() -> str:
    """Return how to call crfkit from here: by its name if the shell finds it, otherwise as it was called."""
    if shutil.which("crfkit"):
        return "crfkit"
    called = Path(sys.argv[0])
    if called.stem == "crfkit" and called.is_file():
        return shlex.quote(sys.argv[0])
    return f"{shlex.quote(sys.executable)} -m crfkit"
