"""Every script of the gallery runs without a warning and draws something."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="examples draw: pip install 'crfkit[plots]'")

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/plot_*.py"))


@pytest.fixture
def pyplot(monkeypatch, tmp_path):
    """matplotlib.pyplot without a screen, in a folder of its own, with the settings that matplotlib starts with."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")
    plt.close("all")  # of tests that ran before
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["backend"] = "Agg"
        monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
        yield plt
    plt.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_example_draws(script, pyplot, tmp_path):
    runpy.run_path(str(script))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert len(figures) == 1, "an example makes one picture"
    for ax in figures[0].axes:
        assert ax.has_data(), "a panel is empty"
    figures[0].savefig("picture.png", dpi=40)
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"], "an example leaves no files behind"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_example_is_short_and_introduced(script):
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    title, line, _, *rest = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert line == "=" * len(title)
    assert len(" ".join(rest).split()) >= 15, "a paragraph says what is shown"
    assert "\n# %%\n" in text
    pages = re.findall(r":doc:`/(.*?)`", text)
    assert pages, "it says where to read on"
    assert [page for page in pages if not (EXAMPLES.parent / "docs" / f"{page}.md").is_file()] == []


def test_there_are_examples_of_every_kind():
    assert len(SCRIPTS) >= 14
    folders = {path.parent for path in SCRIPTS}
    assert {path.name for path in folders} == {"chains", "graphs", "images", "solvers", "structure"}
    assert all((folder / "GALLERY_HEADER.rst").is_file() for folder in [EXAMPLES, *folders])
