"""Figures in docs/explanation/fast_training.md are those of the benchmark results that the page names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = (ROOT / "docs" / "explanation" / "fast_training.md").read_text(encoding="utf-8")
CHAIN = json.loads((RESULTS / "chain.json").read_text(encoding="utf-8"))
SMOOTH = json.loads((RESULTS / "solvers.json").read_text(encoding="utf-8"))["smooth"]["CoNLL-2000"]


def cells(row: str) -> list[str]:
    """Return the cells of the table row that begins with this text, without the first."""
    found = re.search(rf"^\| {re.escape(row)} \|(.*)\|$", PAGE, re.MULTILINE)
    assert found, f"the page has no row '{row}'"
    return [cell.strip() for cell in found[1].split("|")]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_evaluations_and_training() -> None:
    seconds, training, memory = CHAIN["evaluation"]["seconds"], CHAIN["training"], CHAIN["command_line"]
    assert cells("one value and gradient") == [f"{mean(seconds[name]):.3f} s" for name in ("observed", "crfsuite")]
    assert cells("evaluations until convergence") == [str(training[n]["evaluations"]) for n in ("crfkit", "crfsuite")]
    ours, theirs = training["crfkit"]["fit_seconds"][0], training["crfsuite"]["append"] + training["crfsuite"]["train"]
    assert cells("training, including encoding") == [f"{ours:.1f} s", f"{theirs:.1f} s"]
    assert cells("objective reached") == [f"{training[name]['objective']:.2f}" for name in ("crfkit", "crfsuite")]
    assert cells("peak memory") == [f"{memory[name]['peak_bytes'] / 1e6:.0f} MB" for name in ("observed", "crfsuite")]
    for weights in (training["crfkit"]["weights"], CHAIN["tagging"]["model_weights"]):
        assert f"{weights:,}" in PAGE


@pytest.mark.parametrize(("row", "solver"), [("`auto`", "auto"), ("`lbfgs` alone", "lbfgs"), ("`sgd` alone", "sgd")])
def test_seconds_to_each_margin(row: str, solver: str) -> None:
    reached = SMOOTH["solvers"][solver]["to"]
    margins = ("1 %", "0.1 %", "0.01 %", "0.001 %")
    assert cells(row) == [f"{reached[m]['seconds']:.1f}" if reached.get(m) else "–" for m in margins]
