"""`crfkit tag`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from crfkit.errors import DataError, ParameterError


def tag(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Column files. Default: stdin.")
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

    if threads is not None and threads < 1:
        raise ParameterError(f"--threads must be >= 1, not {threads}")
    trained = ChainModel.load(model, threads)
    if trained.vocabulary.template is None:
        raise ParameterError(f"{model} was not trained with a template; tag with ChainCRF.load(…).predict(…)")
    wanted = "all" if all_marginals else "best" if marginals else None
    with _output(output) as out:
        sources: list[Path | BinaryIO] = [*files] if files else [sys.stdin.buffer]
        for source in sources:
            for block in trained.tag_columns(source, wanted):
                out.write(block)
                out.flush()


@contextmanager
def _output(path: Path | None) -> Iterator[BinaryIO]:
    """stdout, or a file that replaces what was there only when it is complete."""
    if path is None:
        yield sys.stdout.buffer
        return
    temporary = None
    try:
        try:
            handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        except OSError as error:
            raise DataError(f"cannot write the output: {error.strerror}", path) from error
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.replace(temporary, path)
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
