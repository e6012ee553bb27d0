"""
Which pixels belong together?
=============================

Handwritten digits as a table: a row for each digit, a column for each pixel, dark or
light. The learner is not told where the pixels are. Drawn in their places, the
strongest edges that it finds join neighbours.

Read on: :doc:`/guides/structure`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from crfkit import StructureLearner
from crfkit.plots import plot_graph

# %%
# Pixels that are almost always light or almost always dark are left out.
dark = (load_digits().data >= 8).astype(int)
used = np.flatnonzero((dark.mean(axis=0) > 0.02) & (dark.mean(axis=0) < 0.98))
learner = StructureLearner(edge_strength=200.0).fit(dark[:, used])
edges = [(int(used[i]), int(used[j]), weight) for i, j, weight in learner.edges_]
print(f"{len(used)} pixels, {len(edges)} edges")

# %%
# Edges are sorted by strength. Positive couplings join pixels that tend to be dark
# together.
places = {pixel: (pixel % 8, -(pixel // 8)) for pixel in range(64)}
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
left.imshow(dark.mean(axis=0).reshape(8, 8), cmap="gray_r")
left.set_title("how often each pixel is dark")
left.set_axis_off()
plot_graph(edges[:80], used.tolist(), layout=places, labels=False, ax=right)
right.set_title("the 80 strongest edges")
plt.show()
