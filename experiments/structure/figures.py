"""Draw the figures from results.json: F1 on planted fields by rows, and methods on conditional fields.

python experiments/structure/figures.py [--output DIR]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from conditional_facts import CONDITIONAL
from facts import FAMILIES, facts

HERE = Path(__file__).resolve().parent
LINES = {  # of a method: label, colour, style
    "default": ("StructureLearner", "C0", "-"),
    "same refitted and": ("nodewise, refits, AND", "C1", "-"),
    "same refitted or": ("nodewise, refits, OR", "C1", "--"),
    "same penalised and": ("nodewise, penalised fits, AND", "C2", "-"),
    "same penalised or": ("nodewise, penalised fits, OR", "C2", "--"),
    "mutual information": ("mutual information", "0.6", ":"),
}
TITLES = {"f1": "F1 by the rule", "f1_equal": "F1 at the true number of edges"}


def draw_planted(cells: list[dict[str, Any]], path: Path) -> None:
    """A panel for each family: F1 by the rule above, at equal numbers of edges below."""
    figure, axes = plt.subplots(2, len(FAMILIES), figsize=(14, 5.2), sharex=True, sharey=True, layout="constrained")
    for row, (key, title) in zip(axes, TITLES.items(), strict=True):
        for ax, family in zip(row, FAMILIES, strict=True):
            mine = [cell for cell in cells if cell["family"] == family]
            for method, (label, colour, style) in LINES.items():
                values = [cell["methods"][method][key] for cell in mine]
                ax.plot(
                    [cell["rows"] for cell in mine],
                    values,
                    style,
                    color=colour,
                    marker=".",
                    label=label,
                    zorder=3 if method == "default" else 2,
                )
            ax.set_xscale("log")
            ax.set_xticks([150, 300, 1000, 3000], ["150", "300", "1,000", "3,000"])
            ax.minorticks_off()
            ax.set_ylim(0.6, 1.01)
            ax.set_title(family if key == "f1" else "", fontsize=10)
        row[0].set_ylabel(title)
    for ax in axes[1]:
        ax.set_xlabel("rows")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=9)
    _save(figure, path)


def draw_conditional(methods: dict[str, Any], path: Path) -> None:
    """A bar for the mean of each method, a dot for each field."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), sharey=True, layout="constrained")
    titles = TITLES | {"ap": "average precision"}
    for ax, (key, title) in zip(axes, titles.items(), strict=True):
        names = [name for name in reversed(CONDITIONAL) if name in methods]
        for k, name in enumerate(names):
            values = methods[name].get(key, [])
            if not values:  # a ranking without a rule
                continue
            ours = name == "default" or name.startswith("L")
            ax.barh(k, sum(values) / len(values), color="C0" if ours else "0.7", alpha=0.6)
            ax.plot(values, [k] * len(values), "o", color="black", markersize=3)
        ax.set_yticks(range(len(names)), [CONDITIONAL[name] for name in names], fontsize=8)
        ax.set_xlim(0, 1.02)
        ax.set_xlabel(title)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE)
    folder = parser.parse_args().output
    found = facts(folder)
    if found["planted"]["cells"]:
        draw_planted(found["planted"]["cells"], folder / "planted.png")
    if found["conditional"]["methods"]:
        draw_conditional(found["conditional"]["values"], folder / "conditional.png")


if __name__ == "__main__":
    main()
