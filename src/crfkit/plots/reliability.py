"""Reliability diagrams: how often predictions of each probability were right."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crfkit._values import Axes
from crfkit.chain.model.reliability import Reliability
from crfkit.extras import load


def plot_reliability(results: Reliability | Mapping[str, Reliability], axes: Axes = None) -> Axes:
    """Draw accuracy against probability, with a line per result, above how many predictions there are. Return the axes.

    A perfectly calibrated model lies on the diagonal; below it the model is overconfident.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np
    >>> from crfkit.chain.model.reliability import measure
    >>> found = measure("spans", np.array([0.9, 0.6]), np.array([True, False]))
    >>> plot_reliability({"before": found})[0].get_ylabel()
    'share that is right'
    """
    plt = load("matplotlib.pyplot", "plots need")
    named = results if isinstance(results, Mapping) else {results.kind: results}
    if axes is None:
        _, axes = plt.subplots(2, 1, figsize=(4.6, 5.2), sharex=True, height_ratios=(3, 1), layout="constrained")
    top, bottom = axes
    top.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
    for name, found in named.items():
        there = found.counts > 0
        top.plot(
            found.confidence[there], found.accuracy[there], marker="o", label=f"{name} (error {100 * found.ece:.1f} %)"
        )
        bottom.stairs(found.counts, found.edges)
    top.set_ylabel("share that is right")
    top.set_xlim(0, 1)
    top.set_ylim(0, 1)
    top.legend()
    bottom.set_xlabel("probability")
    bottom.set_ylabel(next(iter(named.values())).kind)
    if max(int(np.max(found.counts)) for found in named.values()) > 0:
        bottom.set_ylim(bottom=0)
    for ax in (top, bottom):
        ax.grid(alpha=0.3)
    return axes
