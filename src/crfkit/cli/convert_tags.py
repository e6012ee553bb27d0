"""`crfkit convert-tags`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crfkit.cli.output import open_input, open_output
from crfkit.errors import DataError


def convert_tags(
    to: Annotated[str, typer.Option("--to", metavar="SCHEME", help="iob1, iob2, ioe1, ioe2 (or ioe), iobes or bilou.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Column files; - is stdin, the default.")
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SCHEME",
            help="Scheme of the file: labels that break its rules are errors. auto reads every scheme, and labels that "
            "break its rules as conlleval reads them.",
        ),
    ] = "auto",
    column: Annotated[
        int, typer.Option("--column", metavar="N", help="Column of the labels, from 1, or from -1 at the end.")
    ] = -1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here instead of stdout.")] = None,
) -> None:
    """Rewrite the labels of column files in another tagging scheme; phrases and other columns stay the same.

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
                out.write(b"\n")  # the sequences of two files stay apart
            for last in rewrite_column(open_input(path), column, rewrite):
                out.write(last)
                if path == Path("-"):
                    out.flush()
        if not seen.counts:
            raise DataError("there are no sequences", str(files[0]) if files else "<stdin>")
    if origin is None and seen.tags and seen.scheme is None:
        typer.echo(
            "the labels break the rules of every tagging scheme; phrases were read as conlleval reads them. "
            "With --from SCHEME the first label that breaks it is an error that names its line.",
            err=True,
        )
