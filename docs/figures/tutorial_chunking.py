"""Draw docs/images/tutorials/chunking.png: F1 and number of weights against the strength of L1 and L2."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter
from tutorial_parts import save, variables


def main() -> None:
    page = variables("chunking")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for penalty, path in page["paths"].items():
        name = type(penalty).__name__
        strengths = [point.strength for point in path]
        axes[0].plot(strengths, [100 * point.score for point in path], "o-", label=name)
        axes[1].plot(strengths, [point.nonzeros for point in path], "o-", label=name)
    axes[0].set_ylabel("F1 on the development set")
    axes[1].set_ylabel("weights that are not zero")
    axes[1].set_yscale("log")
    for ax in axes:
        ax.set_xscale("log")
        ax.set_xlabel("strength of the penalty")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.grid(alpha=0.3)
        ax.legend()
    axes[1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    save(figure, "chunking")


if __name__ == "__main__":
    main()
