"""The figure of the page, from results.json alone: gap against CPU seconds, for each task and strength.

python experiments/tron/figures.py [--output DIR]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from facts import MAIN, SOLVERS

HERE = Path(__file__).resolve().parent
STYLES = {
    "tron": ("#c0392b", "-"),
    "tron, preconditioned": ("#e59866", ":"),
    "tron, warm start": ("#c0392b", "--"),
    "newton": ("#8e44ad", "-"),
    "lbfgs": ("#2471a3", "-"),
    "auto": ("#2471a3", "--"),
}


def draw(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    part = results[MAIN if MAIN in results else next(iter(results))]
    tasks = {task: entry for task, entry in part["tasks"].items() if entry["strengths"]}
    columns = max(len(entry["strengths"]) for entry in tasks.values())
    figure, axes = plt.subplots(len(tasks), columns, figsize=(3.6 * columns, 3.0 * len(tasks)), squeeze=False)
    for row, (task, entry) in zip(axes, tasks.items(), strict=True):
        for axis, strength in zip(row, sorted(entry["strengths"], key=float), strict=False):
            at = entry["strengths"][strength]
            for name in SOLVERS:
                if name not in at["solvers"]:
                    continue
                trace = at["solvers"][name]["trace"]
                gaps = [max(value / at["best"] - 1, 1e-12) for value in trace["value"]]
                color, style = STYLES[name]
                axis.plot(trace["seconds"], gaps, style, color=color, label=name, linewidth=1.5)
            axis.set(xscale="log", yscale="log", ylim=(1e-9, 20), title=f"{task}, L2({strength})")
            axis.grid(alpha=0.3)
        row[0].set_ylabel("relative gap")
    for axis in axes[-1]:
        axis.set_xlabel("CPU seconds")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(folder / "convergence.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=HERE)
    draw(parser.parse_args().output)


if __name__ == "__main__":
    main()
