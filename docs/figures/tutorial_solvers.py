"""Draw docs/images/tutorials/solvers.png: the gap to the optimum of five solvers, against evaluations and seconds."""

from __future__ import annotations

import matplotlib.pyplot as plt
from tutorial_parts import save, variables

from crfkit import ChainCRF
from crfkit.plots import plot_trace


def main() -> None:
    page = variables("solvers")
    optimum = ChainCRF(features="ner", solver="tron", tolerance=1e-12).fit(page["X"], page["y"]).result_.value
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, against, end in zip(axes, ("evaluations", "seconds"), (150, 0.4), strict=True):
        plot_trace(page["results"], optimum, against, ax)
        ax.set(xlim=(0, end), ylim=(1e-6, 100))
    axes[1].set_ylabel("")
    axes[1].get_legend().remove()
    save(figure, "solvers")


if __name__ == "__main__":
    main()
