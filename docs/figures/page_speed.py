"""Write the table of docs/explanation/fast_training.md from benchmarks/results/speed.json, where that has been made."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "explanation" / "fast_training.md"
BLOCK = re.compile(r"(<!-- speed\.json: `make figures` writes this -->\n)(.*?)(\n<!-- end -->)", re.DOTALL)


def middle(rows: list[Any], key: str | None = None) -> float:
    return statistics.median(row[key] if key else row for row in rows)


def table(found: Any) -> str:
    """Return the table of the page."""
    fit, evaluation, memory = found["fit"], found["evaluation"], found["memory"]
    sides = ("crfkit", "crfsuite")
    rows = [
        ("one value and gradient", *(f"{middle(evaluation[side]):.3f} s" for side in sides)),
        ("evaluations until convergence", *(f"{middle(fit[side], 'evaluations'):.0f}" for side in sides)),
        ("training, including encoding", *(f"{middle(fit[side], 'seconds'):.1f} s" for side in sides)),
        ("objective reached", *(f"{middle(fit[side], 'objective'):.2f}" for side in sides)),
        ("F1 on the test set", *(f"{middle(fit[side], 'f1'):.2%}" for side in sides)),
        ("peak memory", *(f"{memory[side] / 1e6:.0f} MB" for side in sides)),
    ]
    head = ["| | crfkit, 2 threads | python-crfsuite, 1 thread |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def main() -> None:
    results = REPOSITORY / "benchmarks" / "results" / "speed.json"
    if not results.is_file():
        print("the table of fast_training.md stays: benchmarks/speed.py has not been run")
        return
    found = json.loads(results.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    assert BLOCK.search(text), f"{PAGE} has no place for the table"
    PAGE.write_text(BLOCK.sub(lambda match: match[1] + table(found) + match[3], text), encoding="utf-8")


if __name__ == "__main__":
    main()
