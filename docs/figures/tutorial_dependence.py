"""Draw docs/images/tutorials/survey.png: the learned graph, and how often each edge is found in halves of 100 rows."""

from __future__ import annotations

import matplotlib.pyplot as plt
from tutorial_parts import save, variables

from crfkit.plots import plot_graph


def main() -> None:
    page = variables("dependence")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    plot_graph(page["learner"].edge_records_, ax=left)
    left.set_title("graph of 1,000 people", fontsize=11)
    left.margins(0.15)
    legend = left.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    left.legend(legend.legend_handles, names, loc="lower right", fontsize=8, frameon=False)
    ranked = page["ranked"][:14][::-1]
    colours = ["C0" if share >= 0.75 else "0.7" for _, share in ranked]
    right.barh([" – ".join(pair) for pair, _ in ranked], [share for _, share in ranked], color=colours)
    right.axvline(0.75, color="C3", linewidth=1)
    right.set_title("100 people: found in this share of the halves", fontsize=11)
    right.tick_params(labelsize=8)
    right.spines[["top", "right"]].set_visible(False)
    save(figure, "survey")


if __name__ == "__main__":
    main()
