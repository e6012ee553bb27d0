"""Draw docs/images/tutorials/solvers.png: the gap to the optimum of five solvers, against evaluations and seconds."""

from __future__ import annotations

import matplotlib.pyplot as plt
from tutorial_parts import save, variables

from crfkit import ChainCRF
from crfkit.plots import plot_trace
from crfkit.result import Result


def fastest(tagger: ChainCRF, X: list[list[str]], y: list[list[str]], runs: int = 7) -> Result:
    """Return the result of the fastest of several runs, which are the same but for what else the machine does."""
    return min((tagger.fit(X, y).result_ for _ in range(runs)), key=lambda result: result.seconds)


def main() -> None:
    page = variables("solvers")
    results = {name: fastest(tagger, page["X"], page["y"]) for name, tagger in page["taggers"].items()}
    optimum = ChainCRF(features="ner", solver="tron", tolerance=1e-12).fit(page["X"], page["y"]).result_.value
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    slow = max(result.seconds for name, result in results.items() if name != "gradient-descent")
    for ax, against, end in zip(axes, ("evaluations", "seconds"), (150, 1.1 * slow), strict=True):
        plot_trace(results, optimum, against, ax)
        ax.set(xlim=(0, end), ylim=(1e-6, 100))
    axes[1].set_ylabel("")
    axes[1].get_legend().remove()
    save(figure, "solvers")


if __name__ == "__main__":
    main()
