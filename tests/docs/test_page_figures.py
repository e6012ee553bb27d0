"""Figures in guides and answers are those of the benchmark results that the pages name, in the right order."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def page(name: str) -> str:
    """Return the text of a page as one line."""
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def test_what_training_from_disk_costs() -> None:
    rows = json.loads((RESULTS / "out_of_core.json").read_text(encoding="utf-8"))
    largest = max(row["megabytes of text"] for row in rows)
    disk, memory = (
        next(row for row in rows if row["from"] == place and row["megabytes of text"] == largest)
        for place in ("disk", "memory")
    )
    guide = page("guides/column_files.md")
    assert f"is {disk['peak megabytes']} MB instead of {memory['peak megabytes']}" in guide
    assert f"takes {disk['seconds']:.0f} s instead of {memory['seconds']:.0f}" in guide
    assert f"F1 is {disk['f1']:.2f} instead of {memory['f1']:.2f}" in guide
    short = page("howto/big_files.md")
    assert f"fell from {memory['peak megabytes']} to {disk['peak megabytes']} MB" in short
    assert f"training file of {largest:.0f} MB" in short


def test_what_tagging_with_models_of_crfsuite_takes() -> None:
    taggers = json.loads((RESULTS / "packages.json").read_text(encoding="utf-8"))["taggers"]
    calls = [100 * row["call_ratio"] for row in taggers]
    faster = [row["bulk_speedup"] for row in taggers]
    share = f"{min(calls):.0f} % to {max(calls):.0f} % of"
    assert share in page("migration/index.md")
    assert share in page("migration/python_crfsuite.md")
    assert f"{min(faster):.1f} to {max(faster):.1f} times faster" in page("migration/index.md")
