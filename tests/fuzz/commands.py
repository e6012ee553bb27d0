"""The command line in this process, as a use of files."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from typer.testing import CliRunner

COLUMNS = b"the D O\nna\xc3\xafve A B-x\ncat N I-x\n\nsleep V B-y\n"


def run(*arguments: object, stdin: bytes = b"") -> None:
    """Run `crfkit …`; errors of crfkit are raised, and so is all else that is not an ordinary exit."""
    from crfkit.cli.main import app

    result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def inspect(path: Path, rng: random.Random) -> None:
    run("inspect", path, *rng.choice(((), ("--json",), ("--top", "3"))))


def tag(path: Path, rng: random.Random) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent) as data:
        data.write(COLUMNS)
        data.flush()
        run("tag", "-m", path, data.name, *rng.choice(((), ("--marginals",), ("--nbest", "2"))))
