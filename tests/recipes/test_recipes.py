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
# Where the tests of the toys are, and how many there are at least.
SUITES = {
    "laws/test_every_penalty.py": 15,
    "laws/test_every_loss.py": 5,
    "laws/test_every_engine.py": 15,
    "laws/test_solvers.py": 20,
    "laws/test_array_libraries.py": 5,
    "products/test_every_pair.py": 10,
    "products/test_same_optimum.py": 6,
    "unit/test_member_lists.py": 4,
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


def test_every_suite_picks_the_toys_up():
    suites = [str(TESTS / suite) for suite in SUITES]
    ended = with_toys("-m", "pytest", "-p", "no:xdist", "-vv", "-k", "toy", *suites, "-rN", "--tb=short")
    assert ended.returncode == 0, ended.stdout[-3000:]
    for suite, least in SUITES.items():
        passed = re.findall(rf"^tests/{re.escape(suite)}::.*PASSED", ended.stdout, re.MULTILINE)
        assert len(passed) >= least, ended.stdout
