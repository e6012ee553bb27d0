"""`crfkit convert-tags`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli import shared_options as shared
from crfkit.cli.help import INPUT, OUTPUT, option
from crfkit.cli.output import open_input, open_output, say
from crfkit.errors import DataError


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
            help="Scheme of the input: labels that break its rules are errors. auto accepts every scheme, and reads "
            "labels that break the rules as conlleval does.",
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
    output: shared.OutputFile = None,
) -> None:
    """Rewrite the labels of column files in another tagging scheme. Phrases and other columns stay the same.

    crfkit convert-tags train.txt --to iobes -o train.iobes.txt
    """
    from crfkit.readers.tagged import check_column, rewrite_column
    from crfkit.schemes import LabelFaultError, LabelPairs, convert_sequence, scheme_name

    target = scheme_name(to)
    origin = None if source == "auto" else scheme_name(source)
    check_column(column)
    seen = LabelPairs()

    def rewrite(labels: list[str]) -> list[str]:
        seen.add(labels)
        try:
            return convert_sequence(labels, target, origin)
        except LabelFaultError as error:
            if origin is None or seen.scheme in (None, origin):
                raise
            raise LabelFaultError(f"{error}; {seen.advice(origin)}", error.position) from None

    last = b"\n"
    with open_output(output) as out:
        for path in files or [Path("-")]:
            if not last.endswith(b"\n"):
                out.write(b"\n")
            if last.strip(b" \t\r\n"):
                out.write(b"\n")  # keeps the sequences of two files apart
            for last in rewrite_column(open_input(path), column, rewrite):
                out.write(last)
                if path == Path("-"):
                    out.flush()
        if not seen.counts:
            raise DataError("the file has no sequences", str(files[0]) if files else "<stdin>")
    if origin is None and seen.tags and seen.scheme is None:
        say(
            "the labels break the rules of every tagging scheme; phrases were read as conlleval reads them. Give "
            "--from SCHEME to see the line of the first label that breaks that scheme.",
            err=True,
        )
