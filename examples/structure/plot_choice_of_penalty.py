"""
How many edges?
===============

The weaker the penalty on edges, the more edges are kept: first the true ones, then
more and more that are due to chance. By default the learner follows a path of
penalties and takes the one with the best extended BIC.

Read on: :doc:`/guides/structure`.
"""

import matplotlib.pyplot as plt
import numpy as np

from crfkit import StructureLearner
from crfkit.synthetic import SURVEY_EDGES, survey_table

plt.style.use("tableau-colorblind10")

# %%
# A small survey with nine true edges among 45 pairs of questions.
names, rows = survey_table(150, seed=2)
table = np.array(rows)
truth = {frozenset((names.index(a), names.index(b))) for a, b in SURVEY_EDGES}
learner = StructureLearner().fit(table)
right = sum(frozenset(edge[:2]) in truth for edge in learner.edges_)
print(f"{len(learner.edges_)} edges are kept, {right} of them true")

# %%
# The whole path, without a choice: ``entry_order_`` has the penalty at which each
# edge enters.
whole = StructureLearner(edge_strength="path", n_strengths=40).fit(table)
entries = {True: [], False: []}
for i, j, strength in whole.entry_order_:
    entries[frozenset((i, j)) in truth].append(strength)
strengths = np.geomspace(max(entries[True]) * 1.3, min(entries[False]), 300)

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for kind, colour, name in (
    (True, "C0", "true edges"),
    (False, "C1", "edges due to chance"),
):
    counts = [(np.array(entries[kind]) >= s).sum() for s in strengths]
    ax.step(strengths, counts, color=colour, linewidth=2, label=name)
ax.axvline(
    learner.strength_, color="C3", linestyle="--", label="chosen by the extended BIC"
)
ax.axhline(len(truth), color="C2", linewidth=0.8, linestyle=":")
ax.set_xscale("log")
ax.invert_xaxis()
ax.set_xlabel("penalty λ on edges (strong to weak)")
ax.set_ylabel("edges that have entered")
ax.legend(loc="upper left")
plt.show()
