"""The work of `crfkit tag`, without typer so that it starts quickly (see `quick`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def tag_files(
    model: Path,
    files: Sequence[Path],
    output: Path | None = None,
    marginals: bool = False,
    all_marginals: bool = False,
    labels_only: bool = False,
    encoding: str = "utf-8",
    format: str = "auto",
    threads: int | None = None,
) -> None:
    """Tag column files, or standard input if there are none; write to a file or to standard output."""
    from crfkit.cli.options import STDIN, column_files
    from crfkit.cli.output import open_output
    from crfkit.errors import ParameterError
    from crfkit.models.chain import ChainModel

    if marginals and all_marginals:
        raise ParameterError("--marginals and --all-marginals cannot be combined; give one of them")
    sources = column_files(files or [STDIN], encoding, format)
    trained = ChainModel.load(model, threads)
    if trained.vocabulary.template is None:
        raise ParameterError(
            f"{model} was not trained with a template, so that it cannot tag files; use ChainCRF.load(…).predict(…) in "
            "Python"
        )
    wanted = "all" if all_marginals else "best" if marginals else None
    with open_output(output) as out:
        for source in sources:
            for block in trained.tag_columns(source, wanted, labels_only):
                out.write(block)
                out.flush()
