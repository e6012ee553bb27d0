"""Figures: average precision and F1 of every method on conditional fields, F1 of every rule on planted ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draw(results: dict[str, Any], folder: Path) -> None:
    if trials := results.get("conditional"):
        figure, axes = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
        for ax, key, title in zip(
            axes, ("ap", "f1"), ("average precision", "F1 at the method's own rule"), strict=True
        ):
            names = sorted({name for rows in trials.values() for name, row in rows.items() if key in row}, reverse=True)
            _dots(ax, names, [[rows[n][key] for rows in trials.values() if key in rows.get(n, {})] for n in names])
            ax.set_xlabel(title)
        figure.suptitle("15 nodes, 1,000 samples, half of all pairs are edges", fontsize=10)
        _save(figure, folder / "conditional.png")
    if trials := results.get("planted"):
        figure, ax = plt.subplots(figsize=(6, 2.2), layout="constrained")
        rules = ["stability", "cv", "ebic"]
        _dots(ax, rules, [[rows[rule]["f1"] for rows in trials.values()] for rule in rules])
        ax.set_xlabel("F1")
        ax.set_title("20 binary variables, 24 edges, 3,000 samples", fontsize=10)
        _save(figure, folder / "planted.png")


def _dots(ax: Any, names: list[str], values: list[list[float]]) -> None:
    """A dot for every field, a bar at the mean."""
    for k, row in enumerate(values):
        ours = names[k].startswith("group") or len(names) == 3
        ax.barh(k, sum(row) / len(row), color="C0" if ours else "0.7", alpha=0.6)
        ax.plot(row, [k] * len(row), "o", color="black", markersize=3)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlim(0, 1.02)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110)
    plt.close(figure)
