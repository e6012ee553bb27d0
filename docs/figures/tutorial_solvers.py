"""Draw docs/images/tutorials/solvers.png: the gap to the optimum of five solvers, against evaluations and seconds."""

from __future__ import annotations

import matplotlib.pyplot as plt
from tutorial_parts import save

from crfkit import ChainCRF
from crfkit.plots import plot_trace
from crfkit.synthetic import entity_corpus


def main() -> None:
    sentences = entity_corpus(400, seed=0)
    X = [[token[0] for token in sentence] for sentence in sentences]
    y = [[token[-1] for token in sentence] for sentence in sentences]
    results = {}
    for name in ("gradient-descent", "cg", "lbfgs", "tron", "auto"):
        results[name] = ChainCRF(features="ner", solver=name, tolerance=1e-6, n_threads=1).fit(X, y).result_
    optimum = ChainCRF(features="ner", solver="tron", tolerance=1e-12, n_threads=1).fit(X, y).result_.value
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for ax, against in zip(axes, ("evaluations", "seconds"), strict=True):
        plot_trace(results, optimum, against, ax)
        ax.set_ylim(1e-6, 100)
    axes[0].set_xlim(0, 150)
    axes[1].set_xlim(0, 0.4)
    axes[1].set_ylabel("")
    axes[1].get_legend().remove()
    save(figure, "solvers")


if __name__ == "__main__":
    main()
