"""Every number in the README is what the results, the registries or the tree say, and its pictures are there."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from crfkit.solvers import SOLVERS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# what a person wrote; figures in places are those of test_figures.py
PROSE = re.sub(r"<!--=.*?<!--/-->|```.*?```|<img[^>]*>|\]\([^)]*\)|`[^`]*`", "", README, flags=re.DOTALL)
RESULTS = ROOT / "benchmarks" / "results"
WORDS = {"seven": 7, "Thirty": 30}


def load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def test_the_same_objective_as_crfsuite() -> None:
    fit = load("speed")["fit"]
    for ours in (fit["crfkit"], fit["crfkit_one_thread"]):
        for one, theirs in zip(ours, fit["crfsuite"], strict=True):
            assert one["objective"] <= theirs["objective"]
    for ours, ratio in (("crfkit", "times_faster"), ("crfkit_one_thread", "times_faster_one_thread")):
        rounds = zip(fit[ours], fit["crfsuite"], strict=True)
        assert fit[ratio] == pytest.approx(statistics.median(b["seconds"] / a["seconds"] for a, b in rounds))


def test_the_same_objective_as_wapiti_and_crfpp() -> None:
    row = load("peers")["wapiti"]
    assert row["crfkit_objective"] <= row["peer_objective"]
    assert row["times_faster"] == pytest.approx(row["peer_seconds"] / row["crfkit_seconds"])
    assert row["crfkit_seconds"] == pytest.approx(statistics.median(row["crfkit_runs"]))
    same = load("crfpp_commands")["crfkit-learn chunking"]
    assert same["objective"] == pytest.approx(same["objective of CRF++"], rel=1e-6)
    assert same["lines"] == same["lines of CRF++"]  # as many evaluations


def test_counts() -> None:
    n = sum(solver.__module__.startswith("crfkit.") for solver in SOLVERS.values())  # without the toy of the tests
    assert f"{'Thirty' if n == 30 else n} solvers" in PROSE
    tutorials = [page for page in (ROOT / "docs" / "tutorials").glob("*.md") if page.name != "index.md"]
    assert "seven, from raw text" in PROSE
    assert len(tutorials) == WORDS["seven"]


def test_no_other_number() -> None:
    """A number that is added to the README is rendered, or is added here because it is no measurement."""
    assert set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", PROSE)) <= {"2000", "500", "3.10", "3"}


def test_pictures_and_links() -> None:
    for target in re.findall(r'\]\(([^)#]+)[^)]*\)|src="([^"]+)"', README):
        path = target[0] or target[1]
        assert "://" in path or (ROOT / path).exists(), path
