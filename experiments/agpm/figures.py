"""The figures of the page, from results.json alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from facts import METHODS, RIVALS, comparison, value_of

COLOURS = {"M-[14]": "#7f9ec4", "M-[23]": "#c9a66b", "AGPM": "#b8413a"}


def draw(results: dict[str, Any], output: Path) -> None:
    """Write times.png, ratios.png and convergence.png, as far as there are results for them."""
    bars(results, output)
    ratios(results, output)
    if results.get("traces"):
        convergence(results["traces"], output)


def bars(results: dict[str, Any], output: Path) -> None:
    """Figures 1 and 2 of the paper: means of CPU seconds and test errors; lines from the least to the largest draw."""
    shown = [(key, results[key]["pl"]) for key in ("Figure 1", "Figure 2") if results.get(key, {}).get("pl")]
    if not shown:
        return
    figure, axes = plt.subplots(len(shown), 2, figsize=(11, 3.3 * len(shown)), squeeze=False)
    for (left, right), (key, units) in zip(axes, shown, strict=True):
        part = comparison(units)
        names = part["names"]
        for k, method in enumerate(METHODS):
            place = np.arange(len(names)) + 0.27 * (k - 1)
            for axis, measure in ((left, "cpu_mean"), (right, "error")):
                heights = [part["by_name"][name]["methods"][method][measure] for name in names]
                axis.bar(place, heights, 0.25, label=method, color=COLOURS[method])
                for x, name in zip(place, names, strict=True):
                    rows = [draw[method] for draw in units[name].values()]
                    values = [row["error"] if measure == "error" else value_of(row, "cpu") for row in rows]
                    axis.plot([x, x], [min(values), max(values)], color="#333333", lw=0.8)
        samples = {"Figure 1": 500, "Figure 2": 1000}[key]
        for axis, what in ((left, "CPU seconds"), (right, "test error")):
            axis.set_xticks(range(len(names)), names, rotation=45 if len(names) > 6 else 0)
            axis.set_ylabel(what)
            axis.set_xlabel("nodes/features")
            draws = "–".join(map(str, sorted({part["draws"][0], part["draws"][-1]})))
            axis.set_title(f"{key}: {samples:,} samples, draws of a setting: {draws}", fontsize=9)
        left.legend(fontsize=8)
    save(figure, output / "times.png")


def ratios(results: dict[str, Any], output: Path) -> None:
    """Paired ratios of Table 1 with their intervals, in evaluations and CPU seconds."""
    units = results.get("Table 1", {}).get("pl")
    if not units:
        return
    part = comparison(units)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    for axis, measure in zip(axes, ("evaluations", "cpu"), strict=True):
        for k, rival in enumerate(RIVALS):
            rows = [row["ratios"][rival][measure] for row in part["settings"]] + [part["ratios"][rival][measure]]
            place = -np.arange(len(rows)) - 0.3 * k
            axis.plot([row["ratio"] for row in rows], place, "o", ms=4, color=COLOURS[rival], label=f"AGPM / {rival}")
            for y, row in zip(place, rows, strict=True):
                if row["low"] is not None:
                    axis.plot([row["low"], row["high"]], [y, y], lw=1.4, color=COLOURS[rival])
        axis.axvline(1.0, color="#333333", lw=0.8)
        axis.set_xscale("log")
        ticks = [0.2, 0.3, 0.5, 1, 2, 3]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set_yticks(-np.arange(len(part["names"]) + 1) - 0.15, [*part["names"], "all"])
        axis.set_xlabel({"evaluations": "ratio of evaluations", "cpu": "ratio of CPU seconds"}[measure])
    axes[0].set_ylabel("nodes/features")
    axes[1].legend(fontsize=8, loc="lower right")
    figure.suptitle("Table 1, pseudo-likelihood: below 1 AGPM needs less; 95% intervals over draws", fontsize=9)
    save(figure, output / "ratios.png")


def convergence(traces: dict[str, Any], output: Path) -> None:
    """The objective against evaluations."""
    figure, axes = plt.subplots(1, len(traces), figsize=(5.5 * len(traces), 3.6), squeeze=False)
    for axis, (n_train, rows) in zip(axes[0], traces.items(), strict=True):
        for method in METHODS:
            axis.semilogy(rows[method]["evaluations"], rows[method]["gap"], label=method, lw=1, color=COLOURS[method])
        axis.set_xlabel("evaluations")
        axis.set_ylabel("objective / least − 1")
        axis.set_title(f"10 nodes, 10 features, {int(n_train):,} samples", fontsize=9)
        axis.set_ylim(1e-9, None)
        axis.legend(fontsize=8)
    save(figure, output / "convergence.png")


def save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
