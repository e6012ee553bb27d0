"""`crfkit tag`. An option that is added here is also added to `quick`; a test compares them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli import shared_options as shared
from crfkit.cli.help import INPUT, OUTPUT, flag, option
from crfkit.cli.tagging import tag_files


def tag(
    model: shared.ModelFile,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Column files, or data files of CRFsuite. - is standard input (stdin), the default.",
        ),
    ] = None,
    encoding: Annotated[
        str,
        option(
            INPUT,
            "--encoding",
            metavar="NAME",
            help="Encoding of the input files and of the texts in a model of CRF++, CRFsuite or Wapiti, e.g. latin-1 "
            "or euc-jp. The output is always UTF-8.",
        ),
    ] = "utf-8",
    format: shared.Format = "auto",
    output: shared.OutputFile = None,
    labels_only: Annotated[
        bool,
        flag(
            OUTPUT,
            "--labels-only",
            help="Write only the labels, one per line, with a blank line after each sequence.",
        ),
    ] = False,
    marginals: Annotated[bool, flag(OUTPUT, "--marginals", help="Add the probability of the predicted label.")] = False,
    all_marginals: Annotated[
        bool, flag(OUTPUT, "--all-marginals", help="Add the probabilities of all labels.")
    ] = False,
    threads: shared.Threads = None,
) -> None:
    """Tag column files: write every line with the predicted label added as the last column.

    In CoNLL-U files the label replaces the column that the model was trained on; comments and ranges are kept. Data
    files of CRFsuite, which models of attributes read, are tagged as `crfsuite tag` does: with the labels alone. Models
    of CRFsuite, CRF++ and Wapiti are read as well as those of crfkit.
    """
    tag_files(model, files or [], output, marginals, all_marginals, labels_only, encoding, format, threads)
