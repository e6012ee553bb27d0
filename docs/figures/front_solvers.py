"""Draw docs/images/front/solvers.png: solvers on one objective, from benchmarks/results/solvers.json."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from front_parts import INK, OURS, results, save

SHOWN = {"auto": OURS, "lbfgs": "#d1701c", "tron": "#6f5aa8", "cg": "#4c9a5b", "sgd": "#b4475a"}


def main() -> None:
    measured = results("solvers")["smooth"]["CoNLL-2000"]
    figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    for name, colour in SHOWN.items():
        trace = measured["solvers"][name]["trace"]
        gap = np.minimum.accumulate(np.array(trace["value"]) / measured["best"] - 1)
        shown = gap > 1e-6
        width = 2.4 if name == "auto" else 1.5
        ax.plot(np.array(trace["seconds"])[shown], 100 * gap[shown], color=colour, linewidth=width)
        at = np.flatnonzero(shown)[-1]
        place = (trace["seconds"][at], 100 * gap[at])
        ax.annotate(name, place, xytext=(4, 0), textcoords="offset points", color=colour)
    ax.set(xscale="linear", yscale="log", xlim=(0, 22), ylim=(6e-4, 200))
    ax.set_xlabel("seconds, CoNLL-2000, 456,468 weights", color=INK)
    ax.set_ylabel("% above the optimum")
    save(figure, "solvers", 110)


if __name__ == "__main__":
    main()
