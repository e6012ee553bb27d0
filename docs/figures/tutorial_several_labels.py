"""Draw docs/images/tutorials/several_labels.png: what an umbrella says about the other labels of a day."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from tutorial_parts import save, variables

BEFORE, AFTER = "#9db4c8", "#c8553d"


def main() -> None:
    page = variables("several_labels")
    joint, truth = page["joint"], page["Y_test"]
    others = ["rain", "travel", "picnic"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    shown = [("rain", "yes"), ("travel", "bike"), ("travel", "bus"), ("travel", "car"), ("picnic", "yes")]
    for shift, colour, name, observed in (
        (-0.2, BEFORE, "nothing is known", None),
        (0.2, AFTER, "an umbrella was seen", page["seen"]),
    ):
        marginals = joint.predict_marginals(page["day"], observed=observed)
        p = [_probability(joint, truth.columns, marginals, *label) for label in shown]
        left.bar(np.arange(len(shown)) + shift, p, 0.4, color=colour, label=name)
    left.set_xticks(range(len(shown)), [f"{name}\n{label}" for name, label in shown])
    left.set(ylabel="probability", title="one day", ylim=(0, 1.05))
    left.legend(frameon=False)
    for shift, colour, name, found in (
        (-0.2, BEFORE, "nothing is known", page["marginal"]),
        (0.2, AFTER, "umbrellas are known", page["better"]),
    ):
        right_share = [np.mean(found[:, truth.columns.get_loc(label)] == truth[label]) for label in others]
        right.bar(np.arange(len(others)) + shift, right_share, 0.4, color=colour, label=name)
    right.set_xticks(range(len(others)), others)
    right.set(ylabel="share that is right", title="2,000 test days", ylim=(0, 1.25))
    right.legend(frameon=False)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, "several_labels")


def _probability(model, columns, marginals, name, label):
    k = columns.get_loc(name)
    return marginals[k][0, model.classes_[k].tolist().index(label)]


if __name__ == "__main__":
    main()
