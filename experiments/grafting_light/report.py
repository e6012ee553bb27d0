"""Figures of six criteria against the select unit, and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

NAMES = {
    "all-features": "all features, L2",
    "full-opt-l1": "Full-Opt-L1",
    "grafting-light": "Grafting-Light",
    "grafting": "Grafting",
    "grafting-origin": "Grafting from the origin",
    "gauss-seidel": "Gauss-Seidel",
}
STYLES = {
    "full-opt-l1": ("k", "--", None),
    "grafting-light": ("tab:blue", "-", "o"),
    "grafting": ("tab:orange", "-", "s"),
    "grafting-origin": ("tab:red", "-", "x"),
    "gauss-seidel": ("tab:green", "-", "^"),
}


def figure(records: list[dict[str, Any]], quality: tuple[str, str], path: Path, title: str) -> None:
    """The paper's six plots; `quality` is (key, name) of the third."""
    criteria = [
        ("cpu_seconds", "training time (CPU seconds)", True),
        ("nll", "negative log-likelihood, training", False),
        (*quality, False),
        ("nonzero_inputs", "inputs with a weight other than zero", False),
        ("selected_inputs", "selected inputs", False),
        ("evaluations", "gradient computations", True),
    ]
    chart, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    for axis, (key, name, log) in zip(axes.flat, criteria, strict=True):
        for method, (colour, line, marker) in STYLES.items():
            rows = [record for record in records if record["method"] == method]
            if not rows or (key == "selected_inputs" and method == "full-opt-l1"):
                continue
            if method == "full-opt-l1":
                axis.axhline(rows[0][key], color=colour, linestyle=line, label=NAMES[method])
            else:
                x, y = [row["M"] for row in rows], [row[key] for row in rows]
                axis.plot(x, y, color=colour, linestyle=line, marker=marker, markersize=4, label=NAMES[method])
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("select unit M")
        if log:
            axis.set_yscale("log")
        else:
            _widened(axis)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    chart.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
    chart.suptitle(title)
    chart.savefig(path, dpi=110)
    plt.close(chart)


def _widened(axis: Any, share: float = 0.02) -> None:
    """At least so large a share of the values, so that rounding does not look like a difference."""
    low, high = axis.get_ylim()
    room = max(0.0, share * abs(low + high) / 2 - (high - low)) / 2
    axis.set_ylim(low - room, high + room)
    axis.ticklabel_format(axis="y", useOffset=False)


def table(records: list[dict[str, Any]], quality: tuple[str, str]) -> str:
    keys = {
        "M": "M",
        "cpu_seconds": "CPU s",
        "seconds": "wall s",
        "objective": "objective",
        "nll": "NLL",
        quality[0]: quality[1],
        "nonzero_weights": "non-zero weights",
        "nonzero_inputs": "non-zero inputs",
        "selected_inputs": "selected inputs",
        "evaluations": "gradients",
        "passes": "passes",
        "peak_mb": "peak MB",
    }
    lines = ["| method | " + " | ".join(keys.values()) + " |", "|---" * (len(keys) + 1) + "|"]
    for record in records:
        cells = [f"{record[key]:.6g}" if isinstance(record[key], float) else str(record[key]) for key in keys]
        if record["method"] in ("full-opt-l1", "all-features"):
            cells[0] = "all"
        lines.append(f"| {NAMES[record['method']]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
