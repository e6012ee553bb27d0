"""The steps of the comparison; `run_all.py` runs them."""

from __future__ import annotations

from pathlib import Path

from steps import Step

TASKS = {"chunking": ("conll2000",), "Spanish NER": ("conll2000", "conll2002_spanish")}
STRENGTHS = ("0.1", "1", "10")


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps: a task and a strength each, then, in the full plan, the whole corpora, and the figure."""
    places = ("--data", str(data), "--output", str(output))
    less = ("--sequences", "300", "--limit", "4") if quick else ("--repeats", "3")
    found = [
        Step(
            f"{task}, L2({s})",
            ("run.py", *places, "--tasks", task, "--strengths", s, *less),
            0.2 if quick else 4.0,
            read,
        )
        for task, read in TASKS.items()
        for s in STRENGTHS
    ]
    if not quick:
        whole = ("--sequences", "0", "--limit", "150")
        found += [
            Step(f"{task}, L2({s}), all", ("run.py", *places, "--tasks", task, "--strengths", s, *whole), 8.0, read)
            for task, read in TASKS.items()
            for s in STRENGTHS
        ]
    return [*found, Step("figure", ("figures.py", "--output", str(output)), 0.1)]
