"""The version, in its one place and where it is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import crfkit
from crfkit import _core
from crfkit.extras import PACKAGES
from crfkit.versions import packages_by_extra, version_lines

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")


def test_the_version_is_in_one_place():
    assert re.fullmatch(r"\d+\.\d+\.\d+", crfkit.__version__)
    cited = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", cited, re.MULTILINE)[1] == crfkit.__version__
    assert re.search(r'^dynamic = \[.*"version".*\]$', PROJECT, re.MULTILINE)
    assert re.search(r'^metadata\.version\.input = "src/crfkit/__init__\.py"$', PROJECT, re.MULTILINE)
    assert not re.search(r"^version = ", PROJECT, re.MULTILINE)


def test_urls_of_the_readme_on_the_package_index_lead_to_the_home_of_the_project():
    home = re.search(r'^Homepage = "(.+)"$', PROJECT, re.MULTILINE)[1]
    targets = re.findall(r"replacement = '\\1(https://.+?)/(raw|blob)/main/'", PROJECT)
    assert targets == [(home, "raw"), (home, "blob")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![a chart](docs/images/a.png)", "![a chart](HOME/raw/main/docs/images/a.png)"),
        ("[![a](docs/a.png)](docs/b.md)", "[![a](HOME/raw/main/docs/a.png)](HOME/blob/main/docs/b.md)"),
        ('<img alt="" src="docs/a.svg">', '<img alt="" src="HOME/raw/main/docs/a.svg">'),
        ('<a href="docs/b.md#c">', '<a href="HOME/blob/main/docs/b.md#c">'),
        ("[b](docs/b.md), [c](#c), [d](https://d.org)", "[b](HOME/blob/main/docs/b.md), [c](#c), [d](https://d.org)"),
    ],
)
def test_relative_links_of_the_readme_become_absolute(text, expected):
    home = re.search(r'^Homepage = "(.+)"$', PROJECT, re.MULTILINE)[1]
    for pattern, replacement in re.findall(r"\{ pattern = '(.+)', replacement = '(.+)' \}", PROJECT):
        text = re.sub(pattern, replacement, text)
    assert text == expected.replace("HOME", home)


def test_show_versions_names_every_package_that_crfkit_can_use(capsys):
    crfkit.show_versions()
    shown = capsys.readouterr().out
    assert shown.startswith("\n".join(version_lines()))
    for name in ("numpy", "scipy", "scikit-learn"):
        assert re.search(rf"^  {name}: \d", shown, re.MULTILINE)
    assert set(packages_by_extra()) == {"dependencies", *(extra for _, extra in PACKAGES.values())}


def test_version_lines():
    name, kernels, threads, build, python = version_lines()
    assert name == f"crfkit {crfkit.__version__}"
    assert kernels.startswith(f"kernels: {_core.default_kernels()} (")
    assert re.fullmatch(r"threads: [1-9]\d*", threads)
    assert re.match(r"build: \w+, (GCC|Clang) \d+.*, for Python 3\.\d+( and later)?$", build)
    assert re.match(r"Python: 3\.\d+", python)
