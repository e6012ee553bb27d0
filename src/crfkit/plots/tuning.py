"""Plot of a search for options: the score of each trial against the strength of its penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crfkit._values import Axes
from crfkit.extras import load

if TYPE_CHECKING:
    from crfkit.chain.training.tuning import Tuning


def plot_tuning(tuning: Tuning, ax: Axes = None) -> Axes:
    """Plot the trials that saw the whole training set, or most of it; return the axes.

    Trials of one kind (features, cut, order, penalty) are joined by a line, and those that saw less of the training set
    are hollow.
    """
    plt = load("matplotlib.pyplot", "plots need")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    groups = sorted({trial.candidate.group for trial in tuning.trials})
    colours = plt.get_cmap("tab10" if len(groups) <= 10 else "tab20")
    for k, group in enumerate(groups):
        own = sorted((t for t in tuning.trials if t.candidate.group == group), key=lambda t: t.candidate.strength)
        whole = [t for t in own if t.share == 1.0]
        part = [t for t in own if t.share < 1.0]
        name, cut, order, penalty = group
        label = f"{name}, cut {cut}, order {order}, {penalty.upper()}"
        ax.plot([], [], "o-", color=colours(k % colours.N), label=label)
        for trials, style in ((whole, {}), (part, {"mfc": "none", "alpha": 0.5, "lw": 0.8})):
            for share in sorted({trial.share for trial in trials}):
                here = [trial for trial in trials if trial.share == share]
                strengths, scores = [t.candidate.strength for t in here], [100 * t.score for t in here]
                ax.plot(strengths, scores, "o-", color=colours(k % colours.N), **style)
    if any(trial.share < 1 for trial in tuning.trials):
        ax.plot([], [], "o", color="grey", mfc="none", alpha=0.5, label="on part of the training set")
    best = tuning.best.candidate.strength, 100 * tuning.best.score
    ax.plot(*best, "o", ms=14, mfc="none", color="black")
    ax.set_title(f"best: {tuning.best.candidate}, {tuning.measure} {best[1]:.2f} %", fontsize="medium", loc="left")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(lambda x, _: _between(x, *ax.get_xlim()))
    ax.set_xlabel("strength of the penalty")
    ax.set_ylabel(f"{tuning.measure} on held-out sentences (%)")
    ax.grid(alpha=0.3)
    ax.figure.legend(
        *ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small", frameon=False
    )
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _between(x: float, low: float, high: float) -> str:
    """Return the text of a tick between powers of ten: of 2 and 5, and only where powers of ten are few.

    >>> [_between(x, 0.5, 8.0) for x in (0.6, 2.0, 3.0, 5.0)], _between(2.0, 0.01, 10.0)
    (['', '2', '', '5'], '')
    """
    return f"{x:g}" if high < 30 * low and f"{x:e}"[0] in "25" else ""
