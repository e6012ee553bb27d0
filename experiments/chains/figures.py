"""The figures of the page, from results.json alone: gaps of all methods, and CRF++'s objective beside ours.

python experiments/chains/figures.py [--output DIR]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
COLORS = {
    "steepest descent": "#7f8c8d",
    "Newton": "#8e44ad",
    "DFP": "#d68910",
    "BFGS": "#1e8449",
    "L-BFGS": "#2471a3",
    "IIS": "#c0392b",
}
STYLES = {"strong Wolfe": "-", "largest totals": "-", "Moré–Thuente": "--", "exact totals": "--"}


def draw_methods(part: dict[str, Any], path: Path) -> None:
    best = part["optimum"]["value"]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for name, run in part["runs"].items():
        method, _, search = name.partition(", ")
        trace = run["trace"]
        gaps = [max(value / best - 1, 1e-12) for value in trace["value"]]
        for axis, key in zip(axes, ("evaluations", "seconds"), strict=True):
            axis.plot(trace[key], gaps, STYLES.get(search, ":"), color=COLORS[method], label=name, linewidth=1.4)
    for axis, label in zip(axes, ("evaluations of value and gradient", "CPU seconds"), strict=True):
        axis.set(xscale="log", yscale="log", ylim=(1e-9, 20), xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("relative gap")
    axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def draw_crfpp(part: dict[str, Any], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(6, 3.6))
    for name, color in (("chunking", "#2471a3"), ("cond", "#c0392b")):
        axis.plot(part[name]["CRF++"], "-", color=color, label=f"CRF++, {name}", linewidth=1.2)
        axis.plot(part[name]["crfkit"], "o", color=color, label=f"crfkit-learn, {name}", markersize=3, fillstyle="none")
    axis.set(yscale="log", xlabel="evaluation", ylabel="objective")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=HERE)
    folder = parser.parse_args().output
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    if "methods" in results:
        draw_methods(results["methods"], folder / "methods.png")
    if "crfpp" in results:
        draw_crfpp(results["crfpp"], folder / "crfpp.png")


if __name__ == "__main__":
    main()
