"""`crfkit tag`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from crfkit.cli.output import open_output
from crfkit.errors import DataError, ParameterError


def tag(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Column files; - is stdin, the default.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write here instead of stdout.")] = None,
    marginals: Annotated[bool, typer.Option("--marginals", help="Add the probability of the predicted label.")] = False,
    all_marginals: Annotated[
        bool, typer.Option("--all-marginals", help="Add the probabilities of all labels.")
    ] = False,
    threads: Annotated[int | None, typer.Option("--threads", "-p", metavar="N", help="Default: all cores.")] = None,
) -> None:
    """Tag column files: every line comes back with the predicted label as a further column."""
    from crfkit.estimators.chain_model import ChainModel

    if marginals and all_marginals:
        raise ParameterError("--marginals and --all-marginals exclude each other")
    trained = ChainModel.load(model, threads)
    if trained.vocabulary.template is None:
        raise ParameterError(f"{model} was not trained with a template; tag with ChainCRF.load(…).predict(…)")
    wanted = "all" if all_marginals else "best" if marginals else None
    with open_output(output) as out:
        for path in files or [Path("-")]:
            source = _stdin() if path == Path("-") else path
            for block in trained.tag_columns(source, wanted):
                out.write(block)
                out.flush()


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise DataError("standard input is closed; name a file")
    return sys.stdin.buffer
