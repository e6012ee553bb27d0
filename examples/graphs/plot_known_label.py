"""
What changes when one label is known
====================================

A field knows how labels depend on each other. Somebody who sees an umbrella knows
more about the rain, and therefore about the picnic. ``predict_marginals(observed=…)``
does this reasoning.

Read on: :doc:`/tutorials/several_labels`.
"""

import matplotlib.pyplot as plt
import numpy as np

from crfkit import GraphCRF
from crfkit.synthetic import diary_table

plt.style.use("tableau-colorblind10")
names, rows = diary_table(600, seed=0)
table = np.array(rows)
X, Y = table[:, :5].astype(float), table[:, 5:]
crf = GraphCRF().fit(X, Y)

# %%
# A warm weekend day on which the barometer cannot decide. Three people look out of
# the window: one sees nothing, one sees people without umbrellas, one sees umbrellas.
day = [[20.0, 10.0, 66.0, 1012.0, 1.0]]
seen = {"nothing": None, "no umbrella": "no", "umbrellas": "yes"}
beliefs = {
    name: crf.predict_marginals(day, observed=[[None, answer, None, None]])
    for name, answer in seen.items()
}

# %%
events = {
    "rain": (0, "yes"),
    "by bike": (2, "bike"),
    "by bus": (2, "bus"),
    "by car": (2, "car"),
    "picnic": (3, "yes"),
}
fig, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
places = np.arange(len(events))
for k, (name, marginals) in enumerate(beliefs.items()):
    values = [
        marginals[column][0, list(crf.classes_[column]).index(label)]
        for column, label in events.values()
    ]
    colour, x = ("C2", "C1", "C0")[k], places + 0.27 * (k - 1)
    bars = ax.bar(x, values, 0.25, color=colour, label=f"{name} seen")
    ax.bar_label(bars, [f"{100 * value:.0f}" for value in values], fontsize=9)
ax.set_xticks(places, list(events))
ax.set_ylabel("probability")
ax.set_ylim(0, 1.08)
ax.legend(ncols=3, loc="upper center")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
