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
    """Tag column files or files of attributes, or standard input if there are none.

    The model may be of crfkit, CRFsuite, CRF++ or Wapiti; `encoding` is also that of the texts in the last three.
    """
    from crfkit.cli.options import STDIN, column_files
    from crfkit.cli.output import open_output
    from crfkit.convert import load
    from crfkit.errors import ParameterError

    if marginals and all_marginals:
        raise ParameterError("--marginals and --all-marginals cannot be combined; give one of them")
    sources = column_files(files or [STDIN], encoding, format)
    trained = load(model, threads, encoding)
    if trained.vocabulary.kind == "matrix":
        raise ParameterError(
            f"{model} was trained on matrices, so that it cannot tag files; use ChainCRF.load(…).predict(…) in Python"
        )
    wanted = "all" if all_marginals else "best" if marginals else None
    with open_output(output) as out:
        for source in sources:
            for block in trained.tag_columns(source, wanted, labels_only):
                out.write(block)
                out.flush()
