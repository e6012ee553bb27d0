"""Figures of one trial: convergence of each solver (the paper's 3 to 11), segmentations (12), selected features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from protocol import FEATURES, PARTS, Trial

from crfkit.inference.engines import make_engine
from crfkit.plots import plot_errors
from crfkit.readers.images import read_image, resize

PANELS = ("logistic regression", "pl, fista", "mean-field, fista", "bp, fista", "trw, owlqn")


def draw(trial: Trial, traces: dict[str, dict[str, Any]], kept: dict[str, Any], folder: Path) -> None:
    for inference, results in traces.items():
        axes = plot_errors(results)
        axes[0].figure.suptitle(inference)
        _save(axes[0].figure, folder / f"convergence_{inference}.png")
    _save(_segmentations(trial, kept), folder / "segmentations.png")
    _save(_features(trial, kept["trw, owlqn"]), folder / "features.png")


def _segmentations(trial: Trial, kept: dict[str, Any], n: int = 5) -> Any:
    test = trial.sets[2]
    h, w = FEATURES.blocks(FEATURES.size or (0, 0))
    shape = (test.graph.n_graphs, h, w)
    labels = test.labels.reshape(shape)
    columns = [("truth", labels)]
    for name in PANELS:
        engine = {"pl": "bp", "logistic regression": "trw"}.get(name.split(",")[0], name.split(",")[0])
        nodes = make_engine(engine).run(trial.field.potentials(test, kept[name])).nodes
        columns.append((name, (nodes[:, 1] > 0.5).astype(int).reshape(shape)))
    figure, axes = plt.subplots(n, 1 + len(columns), figsize=(1.7 * (1 + len(columns)), 1.5 * n), layout="constrained")
    for k in range(n):
        file = trial.chosen[PARTS[0] + PARTS[1] + k][0]
        axes[k, 0].imshow(resize(read_image(file, file.name), FEATURES.size), cmap="gray", vmin=0, vmax=1)
        for ax, (name, found) in zip(axes[k, 1:], columns, strict=True):
            ax.imshow(found[k], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            if name != "truth":
                ax.set_xlabel(f"{100 * np.mean(found[k] != labels[k]):.1f} %", fontsize=8)
    for ax, name in zip(axes[0], ["image", *[name for name, _ in columns]], strict=True):
        ax.set_title(name, fontsize=8)
    for ax in axes.ravel():
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


def _features(trial: Trial, w: Any, n: int = 20) -> Any:
    names = np.array(["1", *FEATURES.names])
    figure, axes = plt.subplots(1, 2, figsize=(9, 5.5), layout="constrained")
    for ax, block, title in zip(axes, ("node", "edge"), ("nodes", "edges"), strict=True):
        values = w[trial.field.layout[block]]
        order = np.argsort(-np.abs(values))[:n][::-1]
        ax.barh(names[order], values[order], color=["C0" if v > 0 else "C3" for v in values[order]])
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_title(f"{title}: {np.count_nonzero(values)} of {len(values)} weights")
        ax.tick_params(labelsize=8)
    return figure


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110)
    plt.close(figure)
