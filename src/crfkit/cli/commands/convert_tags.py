"""`crfkit convert-tags`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.options import shared
from crfkit.cli.runtime.finishing import note
from crfkit.cli.runtime.help import INPUT, OUTPUT, flag, option
from crfkit.cli.runtime.output import open_input, open_output
from crfkit.errors import DataError
from crfkit.schemes.conversion import Conversion


def convert_tags(
    to: Annotated[str, option(OUTPUT, "--to", metavar="SCHEME", help="Scheme to write: {schemes}.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Column files. - is standard input (stdin), which is the default."),
    ] = None,
    source: Annotated[
        str,
        option(
            INPUT,
            "--from",
            metavar="SCHEME",
            help="Scheme of the input, or grobid: labels that break its rules are errors. auto accepts every scheme "
            "and reads labels that break the rules as conlleval does.",
        ),
    ] = "auto",
    column: Annotated[
        int,
        option(
            INPUT,
            "--column",
            metavar="N",
            help="Column of the labels: 1 is the first, -1 the last.",
        ),
    ] = -1,
    repair: Annotated[
        bool,
        flag(
            OUTPUT,
            "--repair",
            help="Repair labels that break the rules: phrases are read as conlleval reads them, and B_ORG as B-ORG. "
            "Reports how many there were, and where the first one is.",
        ),
    ] = False,
    output: shared.OutputFile = None,
) -> None:
    """Rewrite the labels of column files in another tagging scheme. Phrases and other columns stay the same.

    crfkit convert-tags train.txt --to iobes -o train.iobes.txt
    """
    from crfkit.files.tagged import check_column, rewrite_column
    from crfkit.schemes import scheme_name

    conversion = Conversion(scheme_name(to), None if source == "auto" else source, repair)
    check_column(column)
    last = b"\n"
    with open_output(output) as out:
        for path in files or [Path("-")]:
            if not last.endswith(b"\n"):
                out.write(b"\n")
            if last.strip(b" \t\r\n"):
                out.write(b"\n")  # keeps the sequences of two files apart
            conversion.name = "<stdin>" if path == Path("-") else str(path)
            for last in rewrite_column(open_input(path), column, conversion):
                out.write(last)
                if path == Path("-"):
                    out.flush()
        if not conversion.pairs.counts:
            raise DataError("the file has no sequences", str(files[0]) if files else "<stdin>")
    if broken := conversion.broken():
        note(broken)
