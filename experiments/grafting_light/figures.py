"""Figures 2 to 5, drawn from the results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import store

mpl.use("Agg")
import matplotlib.pyplot as plt

NAMES = {
    "all-features": "all features, L2",
    "full-opt-l1": "Full-Opt-L1",
    "sgd-l1": "SGD-L1",
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
SIX = [
    ("cpu_seconds", "training time (CPU seconds)", True),
    ("nll", "negative log-likelihood, training", False),
    ("quality", "", False),
    ("nonzero_inputs", "inputs with a weight other than zero", False),
    ("selected_inputs", "selected inputs", False),
    ("evaluations", "gradient computations", True),
]
CENTRED = ("nll", "quality", "nonzero_inputs")
FOUR = [
    ("cpu_seconds", "training time (CPU seconds)", True),
    ("nll", "negative log-likelihood per image", False),
    ("edges", "edges that are not zero", False),
    ("evaluations", "gradient computations", True),
]
LETTERS = "acmsig"


def draw(folder: Path) -> None:
    """Draw the figures whose results are in a folder."""
    results = store.read(folder / "results.json")
    letters = store.read(folder / "results_letters.json")
    images = store.read(folder / "letters_images.json")
    if results.get("synthetic"):
        six_plots(results["synthetic"], ("error", "error rate, test"), folder / "synthetic.png", "Figure 2: λ = 64")
    if results.get("np"):
        six_plots(results["np"], ("f1", "F1, test [%]"), folder / "np.png", "Figure 3: noun phrases of CoNLL-2000")
    if images:
        average_images(images, folder / "letters.png")
        beyond_images(images, folder / "letters_beyond.png")
    units = [run for run in letters.get("runs", []) if run["study"] == "units"]
    if units:
        letter = units[0]["letter"]
        batch = [
            r for r in letters["runs"] if r["method"] == "full-opt-l1" and (r["study"], r["letter"]) == ("bp", letter)
        ]
        figure_5([*units, *batch], folder / "letters_units.png", letter)


def by_unit(records: list[dict[str, Any]], method: str, key: str) -> tuple[list[int], Any, Any, Any]:
    """Return select units, and the mean, least and largest of a criterion over the seeds."""
    rows = [record for record in records if record["method"] == method]
    units = sorted({row["M"] for row in rows})
    values = [[row[key] for row in rows if row["M"] == unit] for unit in units]
    return units, [float(np.mean(v)) for v in values], [min(v) for v in values], [max(v) for v in values]


def centred(records: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return the records relative to Full-Opt-L1 on the same draw, plus its mean: draws then differ in nothing else."""
    full = {record["seed"]: record[key] for record in records if record["method"] == "full-opt-l1"}
    if not full:
        return records
    mean = float(np.mean(list(full.values())))
    return [r | {key: r[key] - full[r["seed"]] + mean} for r in records if r["seed"] in full]


def six_plots(records: list[dict[str, Any]], quality: tuple[str, str], path: Path, title: str) -> None:
    """Draw the paper's six plots: means over the draws, with the range; an open mark is a run that was stopped."""
    chart, axes = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for axis, (criterion, label, log) in zip(axes.flat, SIX, strict=True):
        key, name = quality if criterion == "quality" else (criterion, label)
        shown = centred(records, key) if criterion in CENTRED else records
        for method, (colour, line, marker) in STYLES.items():
            units, mean, low, high = by_unit(shown, method, key)
            if not units or (key == "selected_inputs" and method == "full-opt-l1"):
                continue
            if method == "full-opt-l1":
                axis.axhline(mean[0], color=colour, linestyle=line, label=NAMES[method])
                continue
            axis.plot(units, mean, color=colour, linestyle=line, marker=marker, markersize=4, label=NAMES[method])
            axis.fill_between(units, low, high, color=colour, alpha=0.15, linewidth=0)
            stopped = [r for r in shown if r["method"] == method and r["status"] != "CONVERGED"]
            axis.plot(
                [r["M"] for r in stopped], [r[key] for r in stopped], "o", color=colour, mfc="white", markersize=8
            )
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("select unit M")
        axis.set_yscale("log") if log else _widened(axis)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    chart.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9)
    chart.suptitle(title + " (open circles: stopped at a limit of CPU time)")
    chart.savefig(path, dpi=110)
    plt.close(chart)


def figure_5(records: list[dict[str, Any]], path: Path, letter: str) -> None:
    """Draw four criteria against the select unit."""
    chart, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
    for axis, (key, name, log) in zip(axes, FOUR, strict=True):
        for method in ("grafting-light", "grafting", "full-opt-l1"):
            colour, line, marker = STYLES[method]
            units, mean, _, _ = by_unit(records, method, key)
            if method == "full-opt-l1" and units:
                axis.axhline(mean[0], color=colour, linestyle=line, label=NAMES[method])
            else:
                axis.plot(units, mean, color=colour, linestyle=line, marker=marker, markersize=4, label=NAMES[method])
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("select unit M")
        axis.set_yscale("log") if log else _widened(axis)
    handles, labels = axes[0].get_legend_handles_labels()
    chart.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    chart.suptitle(f"Figure 5: letter {letter}")
    chart.savefig(path, dpi=90)
    plt.close(chart)


def _widened(axis: Any, share: float = 0.02) -> None:
    """Show at least so large a share of the values, so that rounding does not look like a difference."""
    low, high = axis.get_ylim()
    room = max(0.0, share * abs(low + high) / 2 - (high - low)) / 2
    axis.set_ylim(low - room, high + room)
    axis.ticklabel_format(axis="y", useOffset=False)


# --- average images


def average_images(images: dict[str, dict[str, str]], path: Path) -> None:
    """Draw Figure 4: the training images, those of each method, and of the pseudo-likelihood."""
    rows = {"training images": {"training images": None}}
    for method in ("grafting-light", "grafting", "full-opt-l1"):
        for how in ("BP", "samples"):
            rows[f"{NAMES[method]}, {how}"] = _matching(images, f"bp {method} {how}")
    rows["pseudo-likelihood, samples"] = _matching(images, "pl grafting-light samples")
    shown = {name: _joined(images, keys) for name, keys in rows.items() if keys}
    _grid({name: found for name, found in shown.items() if found}, path)


def _matching(images: dict[str, Any], end: str) -> dict[str, None]:
    """Return the rows of Figure 4 that end so: the strength in their names differs from letter to letter."""
    study = end.split()[0]
    return dict.fromkeys(row for row in images if row.startswith(f"{study} ") and row.endswith(f" {end}"))


def _joined(images: dict[str, dict[str, str]], rows: dict[str, None]) -> dict[str, str]:
    return {letter: image for row in rows for letter, image in images[row].items()}


def beyond_images(images: dict[str, dict[str, str]], path: Path) -> None:
    """Draw the images at weaker strengths than those of Figure 4: a row for each letter and strength."""
    kept = {
        tuple(row.split()[i] for i in (1, 3, 4)): found for row, found in images.items() if row.startswith("beyond ")
    }
    rows = sorted({(letter, share) for (share, _, _), found in kept.items() for letter in found})
    ways = [(m, how) for m in ("grafting-light", "grafting", "full-opt-l1") for how in ("BP", "samples")]
    if not rows:
        return
    chart, axes = plt.subplots(len(rows), 7, figsize=(9.2, 1.5 * len(rows) + 0.3), squeeze=False, layout="constrained")
    for r, (letter, share) in enumerate(rows):
        shown = [images["training images"].get(letter)] + [kept.get((share, *way), {}).get(letter) for way in ways]
        for axis, image in zip(axes[r], shown, strict=True):
            axis.set_xticks([])
            axis.set_yticks([])
            if image:
                axis.imshow(_pixels(image), cmap="gray", vmin=0, vmax=255)
        axes[r, 0].set_ylabel(f"λ = {share}·critical", fontsize=8)
    for axis, name in zip(axes[0], ["training images", *(f"{NAMES[m]},\n{how}" for m, how in ways)], strict=True):
        axis.set_title(name, fontsize=8)
    chart.savefig(path, dpi=90)
    plt.close(chart)


def _pixels(image: str) -> Any:
    return np.frombuffer(bytes.fromhex(image), np.uint8).reshape(20, 20)


def _grid(rows: dict[str, dict[str, str]], path: Path, margin: float = 2.5) -> None:
    """Draw a row for each way to get images, a column for each letter; black is 0."""
    letters = [letter for letter in LETTERS if any(letter in found for found in rows.values())]
    size = (1.1 * len(letters) + margin + 0.1, 1.1 * len(rows))
    chart, axes = plt.subplots(len(rows), len(letters), figsize=size, squeeze=False)
    for r, (name, found) in enumerate(rows.items()):
        for c, letter in enumerate(letters):
            axis = axes[r, c]
            axis.set_xticks([])
            axis.set_yticks([])
            if letter in found:
                axis.imshow(_pixels(found[letter]), cmap="gray", vmin=0, vmax=255)
            else:
                axis.set_frame_on(False)
        axes[r, 0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=9)
    chart.subplots_adjust(left=margin / size[0], right=0.99, top=0.99, bottom=0.01, wspace=0.05, hspace=0.05)
    chart.savefig(path, dpi=80)
    plt.close(chart)
