"""Figures in docs/explanation/fast_training.md are those of the benchmark results that the page names."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = (ROOT / "docs" / "explanation" / "fast_training.md").read_text(encoding="utf-8")
SMOOTH = json.loads((RESULTS / "solvers.json").read_text(encoding="utf-8"))["smooth"]["CoNLL-2000"]


def cells(row: str) -> list[str]:
    """Return the cells of the table row that begins with this text, without the first."""
    found = re.search(rf"^\| {re.escape(row)} \|(.*)\|$", PAGE, re.MULTILINE)
    assert found, f"the page has no row '{row}'"
    return [cell.strip() for cell in found[1].split("|")]


@pytest.mark.skipif(not (RESULTS / "speed.json").is_file(), reason="no results: run benchmarks/speed.py")
def test_evaluations_and_training() -> None:
    """`make figures` writes the table from the results."""
    script = runpy.run_path(str(ROOT / "docs" / "figures" / "page_speed.py"))
    found = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))
    assert script["BLOCK"].search(PAGE)[2] == script["table"](found)
    for weights in (found["evaluation"]["weights"], found["all_pairs"]["weights"]):
        assert f"{weights:,}" in PAGE


@pytest.mark.parametrize(("row", "solver"), [("`auto`", "auto"), ("`lbfgs` alone", "lbfgs"), ("`sgd` alone", "sgd")])
def test_seconds_to_each_margin(row: str, solver: str) -> None:
    reached = SMOOTH["solvers"][solver]["to"]
    margins = ("1 %", "0.1 %", "0.01 %", "0.001 %")
    assert cells(row) == [f"{reached[m]['seconds']:.1f}" if reached.get(m) else "–" for m in margins]


def test_what_a_cluster_costs() -> None:
    """`make figures` writes the tables of scale.md from the results."""
    script = runpy.run_path(str(ROOT / "docs" / "figures" / "page_scale.py"))
    found = json.loads((RESULTS / "cluster.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8")
    assert script["MEASURED"].search(page)[2] == script["measured"](found)
    assert script["PREDICTED"].search(page)[2] == script["predicted"](found)
    assert found["kills"]["completed"] == found["kills"]["trainings"]
    assert found["kills"]["largest difference"] <= 1e-9
    for shards in ("1", "2", "4", "7"):
        assert found["equality"][shards]["value"] < 1e-12
        assert found["equality"][shards]["same attributes"]
