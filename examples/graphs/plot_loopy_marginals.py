"""
How wrong are approximate marginals?
====================================

On a grid that is small enough, junction trees give exact probabilities. Belief
propagation, tree-reweighted message passing and mean field are approximations for
larger graphs. Each dot is a node of the grid.

Read on: :doc:`/guides/graphs`.
"""

import matplotlib.pyplot as plt
import numpy as np

from crfkit import Graph
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.engines import make_engine

plt.style.use("tableau-colorblind10")

# %%
# A grid of 10×10 binary nodes. Each node prefers one label, and neighbours prefer to
# be equal.
rng = np.random.default_rng(0)
unary = rng.normal(0, 0.7, size=(100, 2))
field = Potentials.from_tables(Graph.grid((10, 10)), unary, 0.55 * np.eye(2))
exact = make_engine("junction").run(field)

fig, axes = plt.subplots(1, 3, figsize=(9, 4), sharey=True, layout="constrained")
for ax, name in zip(axes, ("bp", "trw", "mean-field"), strict=True):
    found = make_engine(name).run(field)
    p, q = exact.nodes[:, 1], found.nodes[:, 1]
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    ax.scatter(p, q, s=14)
    told = f"{name}: mean error {np.abs(p - q).mean():.3f}\nlog Z {found.log_z[0]:.2f}"
    ax.set_title(told, fontsize=10)
    ax.set_xlabel("exact probability")
    ax.set_aspect("equal")
axes[0].set_ylabel("approximate probability")
fig.suptitle(f"10×10 grid, exact log Z {exact.log_z[0]:.2f}")

# %%
# Belief propagation is the most accurate here. Tree-reweighted message passing bounds
# log Z from above, mean field from below, and mean field is overconfident: its dots
# are too near to 0 and 1.
plt.show()
