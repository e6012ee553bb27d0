"""Average images, tables and plots of the letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from report import NAMES, STYLES

COLUMNS = {
    "letter": "letter",
    "images": "images",
    "strength": "λ",
    "status": "status",
    "seconds": "wall s",
    "cpu_seconds": "CPU s",
    "edges": "edges",
    "selected": "selected",
    "evaluations": "gradients",
    "unsettled": "BP not settled",
    "objective": "objective",
    "optimality": "‖sub-gradient‖",
    "nll": "NLL per image",
    "held_out": "held-out NPL per image",
}


def average_images(images: dict[tuple[str, str], Any], path: Path) -> None:
    """A row for each way to get them, a column for each letter; black is 0."""
    rows = list(dict.fromkeys(row for row, _ in images))
    letters = list(dict.fromkeys(letter for _, letter in images))
    size = (1.1 * len(letters) + 2.6, 1.1 * len(rows))
    chart, axes = plt.subplots(len(rows), len(letters), figsize=size, squeeze=False)
    for r, row in enumerate(rows):
        for c, letter in enumerate(letters):
            axis = axes[r, c]
            if (row, letter) not in images:
                axis.axis("off")
                continue
            axis.imshow(images[row, letter].reshape(20, 20), cmap="gray", vmin=0, vmax=1)
            axis.set_xticks([])
            axis.set_yticks([])
        axes[r, 0].set_ylabel(row, rotation=0, ha="right", va="center", fontsize=9)
    chart.subplots_adjust(left=2.5 / size[0], right=0.99, top=0.99, bottom=0.01, wspace=0.05, hspace=0.05)
    chart.savefig(path, dpi=80)
    plt.close(chart)


def figure_5(records: list[dict[str, Any]], path: Path, letter: str) -> None:
    """Four criteria against the select unit."""
    criteria = [
        ("cpu_seconds", "training time (CPU seconds)", True),
        ("nll", "negative log-likelihood per image", False),
        ("edges", "edges that are not zero", False),
        ("evaluations", "gradient computations", True),
    ]
    chart, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
    for axis, (key, name, log) in zip(axes, criteria, strict=True):
        for method in ("grafting-light", "grafting", "full-opt-l1"):
            colour, line, marker = STYLES[method]
            rows = sorted((r for r in records if r["method"] == method), key=lambda r: r["M"])
            if method == "full-opt-l1":
                for row in rows:
                    axis.axhline(row[key], color=colour, linestyle=line, label=NAMES[method])
            else:
                x, y = [row["M"] for row in rows], [row[key] for row in rows]
                axis.plot(x, y, color=colour, linestyle=line, marker=marker, markersize=4, label=NAMES[method])
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("select unit M")
        if log:
            axis.set_yscale("log")
    handles, labels = axes[0].get_legend_handles_labels()
    chart.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    chart.suptitle(f"Figure 5: letter {letter}")
    chart.savefig(path, dpi=90)
    plt.close(chart)


def tables(everything: dict[str, Any]) -> str:
    runs = everything["runs"]
    lines = [
        "# Figures 4 and 5: letters",
        "",
        f"{runs[0]['variables']} variables, {runs[0]['candidates']:,} candidate edges; {everything['seconds']:.0f} s.",
        "",
        "## Methods, at the λ that the other half chose",
        "",
        *table(runs),
        "",
        *(_part("Select units", everything["figure_5"])),
        *(_part("Beyond the end of the path", everything["beyond"])),
        "## Paths of λ, by Grafting-Light",
        "",
        "| letter, loss | λ | of the critical | edges | held-out NPL per image | ‖sub-gradient‖ | optimal | wall s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in everything["paths"].items():
        for row in rows:
            cells = [row["strength"], row["share"], row["edges"], row["held_out"], row["optimality"]]
            ends = ["yes" if row["optimal"] else f"no ({row['status']})", row["seconds"]]
            lines.append(f"| {name} | " + " | ".join(map(_cell, [*cells, *ends])) + " |")
    return "\n".join(lines) + "\n"


def _part(title: str, records: list[dict[str, Any]]) -> list[str]:
    return [f"## {title}", "", *table(records), ""] if records else []


def table(records: list[dict[str, Any]]) -> list[str]:
    lines = ["| loss | method | M | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 3) + "|"]
    for record in records:
        unit = record["M"] or "all"
        cells = [record["loss"], NAMES[record["method"]], unit, *(record[key] for key in COLUMNS)]
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return lines


def _cell(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
