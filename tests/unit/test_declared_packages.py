"""Everything that is imported is declared: as a dependency, or in an extra that is imported only when it is needed."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from crfkit.extras import PACKAGES

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = sorted((REPOSITORY / "src" / "crfkit").rglob("*.py"))
PROJECT = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
PACKAGE_OF = {"sklearn": "scikit-learn", **{module: package for module, (package, _) in PACKAGES.items()}}
# Names that crfkit imports in place of the packages that have them: crfkit.compat stands in for these.
# Triton comes with the builds of PyTorch that use it.
OTHERS = {"pycrfsuite", "sklearn_crfsuite", "CRFPP", "triton"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def listed(key: str) -> set[str]:
    """The packages of a list in pyproject.toml. (Python 3.10 has no parser for TOML.)"""
    found = re.search(rf"^{key} = \[(.*?)\]\n", PROJECT, re.MULTILINE | re.DOTALL)
    assert found, key
    return {normal(re.match(r"[\w.-]+", name)[0]) for name in re.findall(r'"([^"]+)"', found[1])}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, ast.AST]]:
    lines = re.findall(r"^ *(?:from|import) +(.+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    words = {re.split(r"\W", part.strip())[0] for line in lines for part in line.partition(" import ")[0].split(",")}
    if words <= sys.stdlib_module_names | {"crfkit", "numpy"}:
        return  # most files; parsing them takes long
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).partition(".")[0], node


@cache
def third_party(path: Path) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for name, node in imports(path):
        if name not in sys.stdlib_module_names and name not in OTHERS | {"crfkit"}:
            found.setdefault(name, []).append(node)
    return found


def test_every_import_is_declared():
    extras = {normal(package) for package, _ in PACKAGES.values()}
    declared = listed("dependencies") | extras
    used = {name for path in SOURCES for name in third_party(path)}
    assert {name for name in used if normal(PACKAGE_OF.get(name, name)) not in declared} == set()
    assert listed("dependencies") <= {normal(PACKAGE_OF.get(name, name)) for name in used}  # and nothing else is


@pytest.mark.parametrize("module", PACKAGES)
def test_the_extra_that_an_error_names_brings_the_package(module):
    package, extra = PACKAGES[module]
    assert normal(package) in listed(extra)


def test_packages_of_extras_are_loaded_by_the_one_function_that_says_what_to_install():
    """Or in a try statement, where something else is done without them. `crfkit.torch` loads PyTorch for its files."""
    for path in SOURCES:
        place = path.relative_to(REPOSITORY / "src" / "crfkit").parts
        if place[0] == "torch" and place != ("torch", "__init__.py"):
            continue
        lines = {node.lineno for name, nodes in third_party(path).items() if name in PACKAGES for node in nodes}
        guarded = {
            statement.lineno
            for attempt in (ast.walk(tree(path)) if lines else ())
            if isinstance(attempt, ast.Try) and any("ImportError" in ast.dump(h) for h in attempt.handlers)
            for statement in attempt.body
        }
        assert lines <= guarded, path


@pytest.mark.parametrize(
    "code",
    [
        "import crfkit.cli.main, crfkit.chain.model.model, crfkit.explain, crfkit.plots",
        "import sklearn.base; before = {*sys.modules}; import crfkit.chain.estimator.chain_crf",  # it may load pandas
    ],
)
def test_no_extra_is_loaded_with_crfkit(code):
    names = [*PACKAGES, "rich.progress"]
    code = f"import json, sys; before = set(); {code}"
    code += f"; print(json.dumps([name for name in {names!r} if name in sys.modules and name not in before]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == []
