"""
Correlated is not connected
===========================

Answers to a survey. Many pairs of questions are correlated, most of them only because
both depend on a third one. The learner keeps an edge where two answers depend on each
other *given all others*.

Read on: :doc:`/tutorials/dependence`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from crfkit import StructureLearner
from crfkit.plots import plot_graph
from crfkit.synthetic import SURVEY_COLUMNS, SURVEY_EDGES, survey_table

# %%
# The generated survey has nine true couplings: villages have gardens, gardens have
# dogs, dogs have to be walked …
names, rows = survey_table(1000, seed=0)
survey = pd.DataFrame(rows, columns=names)
learner = StructureLearner().fit(survey)
found = {frozenset(edge[:2]) for edge in learner.edges_}
truth = {frozenset(edge) for edge in SURVEY_EDGES}
print(f"{len(found & truth)} of {len(truth)} true edges, {len(found - truth)} others")

# %%
# On the left, correlations of the answers' ranks. On the right, the graph that was
# learned.
ranks = survey.apply(
    lambda column: column.map(SURVEY_COLUMNS[column.name].index)
).to_numpy(float)
correlation = np.corrcoef(ranks.T)
np.fill_diagonal(correlation, 0)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
image = left.imshow(correlation, cmap="PuOr", vmin=-0.6, vmax=0.6)
left.set_xticks(range(10), names, rotation=45, ha="right")
left.set_yticks(range(10), names)
left.set_title(
    f"{np.sum(np.abs(np.triu(correlation)) > 0.1)} pairs with a correlation above 0.1"
)
fig.colorbar(image, ax=left, shrink=0.8)
plot_graph(learner.edge_records_, nodes=names, ax=right)
right.set_title(f"{len(found)} edges, {len(found & truth)} of them true")
plt.show()
