"""The steps of the comparison; `run_all.py` runs them."""

from __future__ import annotations

from pathlib import Path

from steps import Step


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps; the quick plan has fewer sentences and shorter limits."""
    places = ("--data", str(data), "--output", str(output))
    less = ("--sentences", "60", "--limit", "3") if quick else ()
    longest = ("--longest", "6") if quick else ()
    return [
        Step("theory", ("run.py", *places, "--parts", "theory", *longest), 0.1),
        Step("crfpp", ("run.py", *places, "--parts", "crfpp"), 0.2, ("conll2000",)),
        Step("methods", ("run.py", *places, "--parts", "methods", *less), 0.6 if quick else 4.0, ("conll2000",)),
        Step("figures", ("figures.py", "--output", str(output)), 0.1),
    ]
