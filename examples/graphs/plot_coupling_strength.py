"""
When approximations break down
==============================

The stronger the couplings between neighbours, the harder inference becomes. Belief
propagation is almost exact for weak couplings and loses its lead for strong ones.
Tree-reweighted message passing and mean field bound log Z from above and from below;
the bounds get loose, but hold.

Read on: :doc:`/guides/graphs`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from crfkit import Graph
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.engines import make_engine

plt.style.use("tableau-colorblind10")

# %%
# Ten random fields on a grid of 8×8 nodes. Every coupling is drawn from U(−s, s).
grid = Graph.grid((8, 8))
strengths = np.linspace(0.25, 4, 10)
engines = {"bp": "C0o-", "trw": "C1^--", "mean-field": "C3s:"}
errors = {name: np.zeros((len(strengths), 10)) for name in engines}
gaps = {name: np.zeros((len(strengths), 10)) for name in engines}
for seed in range(10):
    rng = np.random.default_rng(seed)
    unary = rng.uniform(-0.5, 0.5, size=(64, 2))
    couplings = rng.uniform(-1, 1, size=grid.n_edges)
    for k, s in enumerate(strengths):
        tables = s * couplings[:, None, None] * np.array([[0.5, -0.5], [-0.5, 0.5]])
        field = Potentials.from_tables(grid, unary, tables)
        exact = make_engine("junction").run(field)
        for name in engines:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = make_engine(name).run(field)
            errors[name][k, seed] = np.abs(found.nodes - exact.nodes).mean()
            gaps[name][k, seed] = found.log_z[0] - exact.log_z[0]

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, style in engines.items():
    left.plot(strengths, errors[name].mean(axis=1), style, label=name)
    right.plot(strengths, gaps[name].mean(axis=1), style, label=name)
right.axhline(0, color="0.6", linewidth=0.8)
left.set_title("mean error of the probabilities of nodes", fontsize=10)
right.set_title("log Z: difference to the exact value", fontsize=10)
for ax in (left, right):
    ax.set_xlabel("largest coupling s")
    ax.grid(alpha=0.3)
left.legend()
plt.show()
