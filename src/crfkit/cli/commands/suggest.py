"""`crfkit suggest`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.options import shared
from crfkit.cli.options.text import hinting
from crfkit.cli.runtime.help import MODEL, OUTPUT, option
from crfkit.cli.runtime.output import open_input, open_output


def suggest(
    model: shared.ModelFile,
    pool: Annotated[
        Path, typer.Argument(metavar="POOL", help="File of unlabelled sentences, as for `crfkit tag`. - is stdin.")
    ],
    n: Annotated[int, option(MODEL, "--number", "-n", metavar="N", min=1, help="Number of sentences to choose.")] = 100,
    strategy: Annotated[
        str,
        option(
            MODEL,
            "--strategy",
            metavar="NAME",
            help="What makes a sentence worth labelling: entropy (uncertain labels), margin (two labellings that are "
            "almost equally probable) or expected-change (labels that would change the weights most).",
        ),
    ] = "entropy",
    diversity: Annotated[
        float,
        option(
            MODEL,
            "--diversity",
            metavar="D",
            help="Penalty (0 to 1) for resembling a sentence that was chosen before.",
        ),
    ] = 0.5,
    min_length: Annotated[
        int, option(MODEL, "--min-length", metavar="N", min=1, help="Omit sentences of fewer tokens.")
    ] = 1,
    encoding: shared.Encoding = "utf-8",
    format: shared.Format = "auto",
    output: shared.OutputFile = None,
    as_json: Annotated[
        bool, option(OUTPUT, "--json", metavar="", help="Write the sentences' numbers, values and words as JSON.")
    ] = False,
    threads: shared.Threads = None,
) -> None:
    """Choose the unlabelled sentences that are most worth labelling, and write them, best first.

    Label them, add them to the training set, train again, and choose the next ones.

    crfkit suggest model.crf pool.txt --number 100 --output next.txt
    """
    from crfkit.convert import load
    from crfkit.errors import ParameterError
    from crfkit.explain.inputs import read_unlabelled
    from crfkit.explain.suggestions import suggest as choose
    from crfkit.files.columns import ColumnFile

    trained = load(model, threads, encoding)
    if trained.vocabulary.kind == "items" and not as_json:
        raise ParameterError("sentences of attributes cannot be written as columns; give --json for their numbers")
    with hinting(trained, format):
        data = read_unlabelled(trained, ColumnFile(open_input(pool), encoding, format))
    found = choose(trained, data.X, n, strategy, diversity, min_length)
    if as_json:
        rows = [{"sentence": s.sequence, "value": s.value, "tokens": data.tokens[s.sequence]} for s in found]
        text = json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    else:
        text = "".join("".join("\t".join(row) + "\n" for row in data.X[s.sequence]) + "\n" for s in found)
    with open_output(output) as stream:
        stream.write(text.encode("utf-8", "surrogatepass"))
