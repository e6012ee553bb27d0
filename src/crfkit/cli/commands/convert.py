"""`crfkit convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.runtime.help import INPUT, OUTPUT, option
from crfkit.cli.runtime.output import say


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            help="Model of crfkit, CRFsuite, CRF++ (text or binary) or Wapiti, or a pickled sklearn_crfsuite.CRF, "
            "which is not unpickled. Detected from the contents.",
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    to: Annotated[
        str | None,
        option(
            OUTPUT,
            "--to",
            metavar="KIND",
            help="Format of the new file: {model kinds}. Default: crfsuite if OUT ends in .crfsuite, crf++ if it ends "
            "in .txt, wapiti if it ends in .wapiti, else crfkit.",
        ),
    ] = None,
    weights: Annotated[
        str,
        option(
            OUTPUT,
            "--weights",
            metavar="FORM",
            help="How a crfkit model stores its weights: double, or 8bit for one byte each (smaller, but rounded).",
        ),
    ] = "double",
    encoding: Annotated[
        str,
        option(
            INPUT,
            "--encoding",
            metavar="NAME",
            help="Encoding of the texts in a model of another tool, e.g. euc-jp.",
        ),
    ] = "utf-8",
) -> None:
    """Convert a model file of one tool into the format of another.

    The new model takes the inputs of the old one: attributes, or columns with its template. If a format cannot hold
    something (order 2, constraints, bigram templates in CRFsuite), the command fails; nothing is dropped.

    crfkit convert ner.crfsuite ner.crf
    """
    from crfkit._checks import check_encoding
    from crfkit.cli.options.parsing import check_distinct
    from crfkit.convert import load, save
    from crfkit.convert.saving import kind_of_name
    from crfkit.files.modelfile import check_writable
    from crfkit.wording import counted

    kind = kind_of_name(target) if to is None else to
    check_encoding(encoding)
    check_distinct({"IN": source, "OUT": target})
    check_writable(target)
    model = load(source, encoding=encoding)
    save(model, target, kind, weights)
    v = model.vocabulary
    say(
        f"{counted(len(model.classes), 'label')}, {counted(len(v.attributes) + len(v.pair_attributes), 'attribute')}, "
        f"{counted(len(model.w), 'weight')}"
    )
    say(f"wrote {target} (for {kind})")
