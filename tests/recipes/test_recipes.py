"""A new member is one file and one registry line: with those, every suite tests it and every list shows it.

tests/conftest.py enters the toys in the registries, so the suites test them together with the members of crfkit.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# What a newcomer writes for each: the file (here, the toy's) and the module that has the registry.
RECIPES = {
    "penalty": ("toy_penalty.py", "src/crfkit/penalties/__init__.py", "PENALTIES"),
    "solver": ("toy_solver.py", "src/crfkit/solvers/__init__.py", "SOLVERS"),
    "loss": ("toy_loss.py", "src/crfkit/losses.py", "LOSSES"),
    "engine": ("toy_engine.py", "src/crfkit/graph/inference/engines.py", "ENGINES"),
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


@pytest.mark.parametrize("kind", RECIPES)
def test_a_toy_is_one_file_and_one_registry_line(kind):
    file, registry, name = RECIPES[kind]
    assert (TESTS / "recipes" / file).is_file()
    assert re.search(rf"^{name}\b.* = ", (TESTS.parent / registry).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_suite_picks_the_toys_up(request):
    """In a run of all tests, as each suite is collected."""
    collected, of_toys = Counter(), Counter()
    for item in request.session.items:
        suite = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        collected[suite] += 1
        of_toys[suite] += "toy" in item.name
    if request.config.getoption("keyword") or not all(collected[suite] for suite in SUITES):
        pytest.skip("not all suites are collected")
    assert {suite for suite, least in SUITES.items() if of_toys[suite] < least} == set()
