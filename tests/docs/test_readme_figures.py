"""Every number in the README is what the results, the registries or the tree say, and its pictures are there."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest

from crfkit.solvers import SOLVERS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = re.sub(r"```.*?```|<img[^>]*>|\]\([^)]*\)|`[^`]*`", "", README, flags=re.DOTALL)
PEERS = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text(encoding="utf-8"))["rows"]
WORDS = {"seven": 7, "Thirty": 30}


def shown(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"


def sentence() -> str:
    rows = [PEERS[name] for name in ("crfsuite", "wapiti", "crfpp")]
    times = [f"{shown(row['crfkit_seconds'])} s instead of {shown(row['peer_seconds'])} s" for row in rows]
    return (
        f"Training on CoNLL-2000 takes {times[0]} with CRFsuite, {times[1]} with Wapiti, and on 500 of its sentences "
        f"{times[2]} of CPU time with CRF++"
    )


def test_speed() -> None:
    assert sentence() in " ".join(PROSE.split())


def test_the_same_objective() -> None:
    for row in PEERS.values():
        assert row["crfkit_objective"] <= row["peer_objective"]
        assert row["times_faster"] == pytest.approx(row["peer_seconds"] / row["crfkit_seconds"])
        assert row["crfkit_seconds"] == pytest.approx(statistics.median(row["crfkit_runs"]))
    objectives = [row["peer_objective"] for row in PEERS.values()]
    assert len(set(objectives)) == len(objectives), "each tool has an objective of its own: a row is a copy of another"


def test_counts() -> None:
    n = sum(solver.__module__.startswith("crfkit.") for solver in SOLVERS.values())  # without the toy of the tests
    assert f"{'Thirty' if n == 30 else n} solvers" in PROSE
    tutorials = [page for page in (ROOT / "docs" / "tutorials").glob("*.md") if page.name != "index.md"]
    assert "seven, from raw text" in PROSE
    assert len(tutorials) == WORDS["seven"]


def test_no_other_number() -> None:
    """A number that is added to the README is added here, with the result that it comes from."""
    known = set(re.findall(r"\d+(?:\.\d+)?", sentence())) | {"2000", "500", "3.10", "3"}
    assert set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", PROSE)) <= known


def test_pictures_and_links() -> None:
    for target in re.findall(r'\]\(([^)#]+)[^)]*\)|src="([^"]+)"', README):
        path = target[0] or target[1]
        assert "://" in path or (ROOT / path).exists(), path
