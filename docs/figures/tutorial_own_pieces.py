"""Draw docs/images/tutorials/own_solver.png: the gap to the optimum of the solver that the page writes."""

from __future__ import annotations

import matplotlib.pyplot as plt
from tutorial_parts import save, variables

from crfkit import ChainCRF
from crfkit.plots import plot_trace


def main() -> None:
    page = variables("own_pieces")
    optimum = ChainCRF(features="ner", solver="tron", tolerance=1e-12).fit(page["X"], page["y"]).result_.value
    figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
    plot_trace(page["results"], optimum, "evaluations", ax)
    ax.set(xlim=(0, 250), ylim=(1e-6, 100))
    save(figure, "own_solver")


if __name__ == "__main__":
    main()
