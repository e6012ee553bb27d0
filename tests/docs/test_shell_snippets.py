"""Every shell block of the README and of the documentation runs, in order, in a folder with the files of `crfkit demo`.

A `sh` block is run by `bash -eu`. In a `console` block, `$ ` begins a command and the lines below are what it prints,
where `...` stands for anything. An HTML comment that begins with `<!-- setup` has commands that run but are not shown.
Blocks that cannot run here, such as those that install something, are `text` blocks.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BLOCKS = re.compile(r"^```(sh|console)\n(.*?)^```$|^<!-- (setup)\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TIME_LIMIT = 300.0


def blocks_of(page: Path) -> list[tuple[int, str, str]]:
    """Return line, kind and text of each block of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start()) + 1, match[1] or match[3], match[2] or match[4])
        for match in BLOCKS.finditer(text)
    ]


def commands_of(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block with what they print; a command goes on after a backslash."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found and not found[-1][1] and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line}", "")
        else:
            assert found, "a console block begins with a command: $ crfkit …"
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def run(script: str, folder: Path, where: str) -> str:
    """Run a script and return what it printed; standard error follows standard output."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode == 0, f"{where}: exit code {done.returncode}\n{script}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


# The other folders of docs are written when the site is built.
FOLDERS = ("tutorials", "howto", "guides", "migration", "explanation")
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "docs" / "index.md",
    *(page for folder in FOLDERS for page in sorted((REPOSITORY / "docs" / folder).glob("*.md"))),
]


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(REPOSITORY))) for p in PAGES if blocks_of(p)])
def test_page(page: Path, tmp_path: Path) -> None:
    run("crfkit demo --data-only --output .", tmp_path, "the files of the demo")
    checker = doctest.OutputChecker()
    for line, kind, text in blocks_of(page):
        where = f"{page.name}:{line}"
        if kind != "console":
            run(text, tmp_path, where)
            continue
        for command, expected in commands_of(text):
            printed = run(command, tmp_path, where)
            if expected:
                same = checker.check_output(expected, printed, OPTIONS)
                assert same, f"{where}: {command}\nexpected:\n{expected}\nprinted:\n{printed}"
