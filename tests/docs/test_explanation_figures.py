"""What the page on clusters says in words is what benchmarks/results/cluster.json says."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def test_sets_of_weights() -> None:
    page = (ROOT / "docs" / "explanation" / "fast_training.md").read_text(encoding="utf-8")
    found = json.loads((RESULTS / "speed.json").read_text(encoding="utf-8"))
    observed, every = found["evaluation"]["weights"], found["all_pairs"]["weights"]
    assert f"{every / observed:.0f} times fewer of them than all pairs ({observed:,} of {every:,})" in page


def test_a_cluster_computes_the_same() -> None:
    found = json.loads((RESULTS / "cluster.json").read_text(encoding="utf-8"))
    assert found["kills"]["completed"] == found["kills"]["trainings"]
    assert found["kills"]["largest difference"] <= 1e-9
    for shards in ("1", "2", "4", "7"):
        assert found["equality"][shards]["value"] < 1e-12
        assert found["equality"][shards]["same attributes"]
