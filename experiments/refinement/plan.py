"""The steps of this experiment, for run_all.py."""

from __future__ import annotations

from pathlib import Path

from steps import Step

FOLDER = "weizmann_horse"


def steps(quick: bool, data: Path, output: Path) -> list[Step]:
    """Return the steps; a quick run has none, because the classifier alone takes minutes."""
    if quick:
        return []
    folders = (str(data / FOLDER / "gray"), str(data / FOLDER / "figure_ground"))
    command = ("run.py", *folders, "--output", str(output), "--cache", str(output / "blocks.npz"))
    choose = Step("settings on folds", (*command, "--choose"), 15, (FOLDER,))
    return [choose, Step("test images", command, 4, (FOLDER,))]
