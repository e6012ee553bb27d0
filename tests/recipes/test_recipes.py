"""A new member is one file and one registry line: with those, every suite tests it and every list shows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# What a newcomer writes for each: the file (here, the toy's) and the module that has the registry.
RECIPES = {
    "penalty": ("toy_penalty.py", "src/crfkit/penalties/__init__.py", "PENALTIES"),
    "solver": ("toy_solver.py", "src/crfkit/solvers/__init__.py", "SOLVERS"),
    "loss": ("toy_loss.py", "src/crfkit/losses/__init__.py", "LOSSES"),
    "engine": ("toy_engine.py", "src/crfkit/inference/engines.py", "ENGINES"),
}
# Where the tests of a toy are, and how many there are at least.
LISTS = "unit/test_member_lists.py"
SUITES = {
    "penalty": {"laws/test_every_penalty.py": 15, "products/test_every_pair.py": 5, LISTS: 1},
    "loss": {"laws/test_every_loss.py": 5, "products/test_every_pair.py": 5, LISTS: 1},
    "engine": {"laws/test_every_engine.py": 15, LISTS: 1},
    "solver": {
        "laws/test_solvers.py": 20,
        "laws/test_array_libraries.py": 5,
        "products/test_same_optimum.py": 10,
        LISTS: 1,
    },
}


def with_toys(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CRFKIT_RECIPES": "1"}
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("kind", RECIPES)
def test_a_toy_is_one_file_and_one_registry_line(kind):
    file, registry, name = RECIPES[kind]
    assert (TESTS / "recipes" / file).is_file()
    assert re.search(rf"^{name}\b.* = ", (TESTS.parent / registry).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("kind", SUITES)
def test_every_suite_picks_the_toy_up(kind):
    for suite, least in SUITES[kind].items():
        ended = with_toys("-m", "pytest", "-p", "no:xdist", "-q", "-k", "toy", str(TESTS / suite), "-rN", "--tb=short")
        assert ended.returncode == 0, ended.stdout[-3000:]
        passed = sum(line.count(".") for line in ended.stdout.splitlines() if re.fullmatch(r"[.s]+ +\[ *\d+%\]", line))
        assert passed >= least, ended.stdout
