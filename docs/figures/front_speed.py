"""Draw docs/images/front/speed.png: training time next to other tools, from benchmarks/results.

CRFsuite and Wapiti were timed in one run with ours. CRF++ was not; its panel is apart, and paler.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from front_parts import INK, OURS, THEIRS, results, save
from page_forms import middle, seconds, times

PALE = "#8fbcc5"


def panel(ax: Any, title: str, task: str, bars: list[tuple[str, float]], apart: bool = False) -> None:
    """Draw the time of the peer, which is the first bar, and of ours."""
    ours = PALE if apart else OURS
    names, taken = [name for name, _ in bars], [s for _, s in bars]
    drawn = ax.barh(names, taken, color=[THEIRS] + [ours] * (len(bars) - 1), height=0.62)
    ax.bar_label(drawn, [f" {seconds(s)}" for s in taken], fontweight="bold")
    ax.set_title(title, loc="left", fontweight="normal" if apart else "bold", color=INK if apart else OURS, fontsize=11)
    ax.text(0, -0.12, task, transform=ax.transAxes, fontsize=9, va="top")
    ax.invert_yaxis()
    ax.set_xlim(0, 1.3 * max(taken))
    ax.set_xticks([])
    ax.spines[["bottom", "left"]].set_visible(False)
    ax.tick_params(left=False)


def main() -> None:
    fit, wapiti = results("speed")["fit"], results("peers")["wapiti"]
    crfpp = results("crfpp_commands")["crfkit-learn chunking"]
    figure, axes = plt.subplots(1, 4, figsize=(11.4, 2.2), width_ratios=[1, 1, 0.1, 0.9], layout="constrained")
    figure.get_layout_engine().set(wspace=0.06)
    panel(
        axes[0],
        f"{times(fit['times_faster'])} as fast as CRFsuite",
        "CoNLL-2000, 456,468 weights",
        [
            ("CRFsuite, 1 thread", middle(fit["crfsuite"], "seconds")),
            ("crfkit, 1 thread", middle(fit["crfkit_one_thread"], "seconds")),
            (f"crfkit, {fit['threads']} threads", middle(fit["crfkit"], "seconds")),
        ],
    )
    panel(
        axes[1],
        f"{times(wapiti['times_faster'])} as fast as Wapiti",
        "CoNLL-2000, 7.4 million weights",
        [("Wapiti, 2 threads", wapiti["peer_seconds"]), ("crfkit, 2 threads", wapiti["crfkit_seconds"])],
    )
    axes[2].axvline(0.5, color=THEIRS, linewidth=1)
    axes[2].axis("off")
    panel(
        axes[3],
        "Another machine: CRF++",
        "500 sentences, CPU time\nof its log",
        [("CRF++", crfpp["seconds of CRF++"]), ("crfkit", crfpp["seconds"])],
        apart=True,
    )
    save(figure, "speed")


if __name__ == "__main__":
    main()
