"""Draw docs/images/front/network.png: which answers of a generated survey depend on each other given all others."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from front_parts import save

from crfkit import StructureLearner
from crfkit.plots import plot_graph
from crfkit.synthetic import survey_table


def main() -> None:
    names, rows = survey_table(1000, seed=0)
    learner = StructureLearner().fit(np.array(rows))
    edges = [(names[i], names[j], weight) for i, j, weight in learner.edges_]
    figure, ax = plt.subplots(figsize=(5.2, 4.0), layout="constrained")
    plot_graph(edges, nodes=names, ax=ax)
    ax.set_title("")
    save(figure, "network", 110)


if __name__ == "__main__":
    main()
