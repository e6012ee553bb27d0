"""The steps of this experiment, for run_all.py."""

from __future__ import annotations

from pathlib import Path

from steps import Step

FOLDER = "weizmann_horse"
MINUTES = {"L2": 1.0, "L2, uncentred": 1.0, "L1, noise": 1.5, "L1, noise, uncentred": 1.5, "logistic regression": 0.1}
PSEUDO = {"pl": 0.8, "pl, L2(1)": 0.2, "pl, edges L2(100)": 0.2, "pl, edges L2(10000)": 0.2, "pl, edges L2(1e+06)": 0.2}


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps; quick: one fold of nine images, without the pseudo-likelihoods."""
    folders = (str(data / FOLDER / "gray"), str(data / FOLDER / "figure_ground"))
    command = ("run.py", *folders, "--output", str(output))
    if quick:
        variants = ("--variants", *MINUTES)
        return [Step("fold 0", (*command, "--folds", "0", "--count", "9", *variants), 0.5, (FOLDER,))]
    return [
        Step(f"fold {k}, {name}", (*command, "--folds", str(k), "--variants", name), minutes, (FOLDER,))
        for k in range(3)
        for name, minutes in {**MINUTES, **PSEUDO}.items()
    ]
