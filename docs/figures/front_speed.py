"""Draw docs/images/front/speed.png: training time next to other tools, from benchmarks/results/peers.json."""

from __future__ import annotations

import matplotlib.pyplot as plt
from front_parts import OURS, THEIRS, results, save

TASKS = {
    "crfsuite": "CoNLL-2000, 456,468 weights",
    "wapiti": "CoNLL-2000, 7.4 million weights",
    "crfpp": "500 of its sentences, CPU time",
}


def main() -> None:
    rows = results("peers")["rows"]
    figure, axes = plt.subplots(1, len(TASKS), figsize=(9.6, 1.8), layout="constrained")
    figure.get_layout_engine().set(wspace=0.08)
    for ax, (key, task) in zip(axes, TASKS.items(), strict=True):
        row = rows[key]
        seconds = [row["peer_seconds"], row["crfkit_seconds"]]
        bars = ax.barh([row["peer"], "crfkit"], seconds, color=[THEIRS, OURS], height=0.62)
        ax.bar_label(bars, [f" {s:.0f} s" if s >= 10 else f" {s:.1f} s" for s in seconds], fontweight="bold")
        ax.set_title(
            f"{row['times_faster']:.0f} × faster than {row['peer']}",
            loc="left",
            fontweight="bold",
            color=OURS,
            fontsize=11,
        )
        ax.text(0, -0.12, task, transform=ax.transAxes, fontsize=9, va="top")
        ax.invert_yaxis()
        ax.set_xlim(0, 1.25 * max(seconds))
        ax.set_xticks([])
        ax.spines[["bottom", "left"]].set_visible(False)
        ax.tick_params(left=False)
    save(figure, "speed")


if __name__ == "__main__":
    main()
