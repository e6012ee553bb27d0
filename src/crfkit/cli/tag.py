"""`crfkit tag`. An option that is added here is added to `quick`, too; a test compares them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.options import INPUT, OPTIMISATION, OUTPUT
from crfkit.cli.tagging import tag_files


def tag(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Column files; - is stdin, the default."),
    ] = None,
    encoding: Annotated[
        str,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="Encoding of the files: latin-1, utf-16, … The output is UTF-8.",
            rich_help_panel=INPUT,
        ),
    ] = "utf-8",
    format: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help="columns, conllu or auto: see train.", rich_help_panel=INPUT),
    ] = "auto",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write here instead of stdout.", rich_help_panel=OUTPUT),
    ] = None,
    labels_only: Annotated[
        bool,
        typer.Option(
            "--labels-only",
            help="Write the labels alone, one per line, a blank line after each sequence.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    marginals: Annotated[
        bool,
        typer.Option("--marginals", help="Add the probability of the predicted label.", rich_help_panel=OUTPUT),
    ] = False,
    all_marginals: Annotated[
        bool,
        typer.Option("--all-marginals", help="Add the probabilities of all labels.", rich_help_panel=OUTPUT),
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            "-p",
            metavar="N",
            help="Number of threads. Default: all cores.",
            rich_help_panel=OPTIMISATION,
        ),
    ] = None,
) -> None:
    """Tag column files: every line comes back with the predicted label as a further column.

    In CoNLL-U files the label is written into the column that the model was trained on; comments and ranges stay.
    """
    tag_files(model, files or [], output, marginals, all_marginals, labels_only, encoding, format, threads)
