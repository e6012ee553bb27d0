"""The paper's figure 1 and, of the first trial, its figures 6 to 8 (convergence) and 12 (segmentations of horses)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from facts import curve_of
from protocol import FEATURES, Pair, read_pair

from crfkit.files.images import read_image, resize
from crfkit.penalties import HuberL1

SOLVERS = {"ista": "ISTA", "fista": "FISTA", "ogm": "OGM"}
INFERENCES = {"bp": "belief propagation", "mean-field": "mean field", "pl": "pseudo-likelihood"}
SHOWN = "mean-field"  # the paper's figure 12 has mean field for horses
ROWS = 4


def draw(results: dict[str, Any], pairs: list[Pair], cache: Path, folder: Path) -> None:
    """Draw what the results have; the images of the segmentations are read from their folder."""
    first = results.get("paper", {}).get("0", {})
    _save(_huber(), folder / "huber.png")
    inferences = [name for name in INFERENCES if all("curve" in first.get(f"{name}, {s}", {}) for s in SOLVERS)]
    if inferences:
        _save(_convergence(first, inferences), folder / "convergence.png")
    if SHOWN in inferences:
        _save(
            _segmentations(first, {image.name: (image, mask) for image, mask in pairs}, cache),
            folder / "segmentations.png",
        )


def _huber() -> Any:
    figure, ax = plt.subplots(figsize=(4, 2.6), layout="constrained")
    x = np.linspace(-2, 2, 401)
    for mu in (0.0, 0.5, 1.0):
        value = np.abs(x) if mu == 0 else [HuberL1(1.0, mu).value(np.array([each])) for each in x]
        ax.plot(x, value, label=f"μ = {mu:g}")
    ax.legend(fontsize=8)
    ax.set_xlabel("weight", fontsize=8)
    ax.set_title("λ = 1: the smoothed penalty", fontsize=9)
    return figure


def _convergence(cells: dict[str, Any], inferences: list[str]) -> Any:
    figure, axes = plt.subplots(
        len(inferences), 3, figsize=(10, 2.6 * len(inferences)), layout="constrained", squeeze=False
    )
    for row, inference in zip(axes, inferences, strict=True):
        for solver, name in SOLVERS.items():
            cell = cells[f"{inference}, {solver}"]
            chosen, curve = cell["chosen"], curve_of(cell)
            each = chosen["cpu_seconds"] / chosen["evaluations"]
            seconds = [each * moment["evaluations"] for moment in curve]
            setting = f"λ = {chosen['lambda']:g}" + (f", μ = {chosen['mu']:g}" if "mu" in chosen else "")
            row[0].plot(seconds, [moment["objective"] for moment in curve], label=f"{name}, {setting}")
            row[1].plot(seconds, [100 * moment["train"] for moment in curve])
            row[2].plot(seconds, [100 * moment["test"] for moment in curve])
        row[0].set_yscale("log")
        row[0].legend(fontsize=7)
        for ax, what in zip(row, ("objective", "training error, %", "test error, %"), strict=True):
            ax.set_title(f"{INFERENCES[inference]}: {what}", fontsize=9)
            ax.set_xscale("log")
            ax.set_xlabel("CPU seconds", fontsize=8)
            ax.tick_params(which="both", labelsize=7)
    return figure


def _segmentations(cells: dict[str, Any], files: dict[str, Pair], cache: Path) -> Any:
    found = {name: cells[f"{SHOWN}, {solver}"]["segmentations"] for solver, name in SOLVERS.items()}
    shape = FEATURES.blocks(FEATURES.size or (0, 0))
    rows = [k for k, each in enumerate(found["ISTA"]) if each["image"] in files][:ROWS]
    figure, axes = plt.subplots(len(rows), 5, figsize=(8.5, 1.5 * len(rows)), layout="constrained", squeeze=False)
    for ax, k in zip(axes, rows, strict=True):
        image, _ = pair = files[found["ISTA"][k]["image"]]
        ax[0].imshow(resize(read_image(image, image.name), FEATURES.size), cmap="gray", vmin=0, vmax=1)
        ax[1].imshow(read_pair(pair, FEATURES, cache)[1], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        for column, name in enumerate(found, 2):
            each = found[name][k]
            bits = np.unpackbits(np.frombuffer(bytes.fromhex(each["blocks"]), np.uint8))[: shape[0] * shape[1]]
            ax[column].imshow(bits.reshape(shape), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            ax[column].set_xlabel(f"{100 * (1 - each['error']):.1f} % right", fontsize=8)
    for ax, name in zip(axes[0], ["image", "truth", *found], strict=True):
        ax.set_title(name, fontsize=9)
    for ax in axes.ravel():
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110)
    plt.close(figure)
