"""
Solvers compared on one objective
=================================

All solvers minimise the same function, the negative log-likelihood of a chain plus an
L2 penalty. They differ in how many evaluations of it they need, and in how long that
takes.

Read on: :doc:`/tutorials/solvers`.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from crfkit import L2, ChainCRF
from crfkit.plots import plot_trace
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")
corpus = news_corpus(150, seed=0)
X = [[word for word, _, _ in sentence] for sentence in corpus]
y = [[label for _, _, label in sentence] for sentence in corpus]

# %%
# ``result_`` has a trace of every iteration. The optimum comes from a run with a
# strict tolerance. Slow solvers are stopped after 150 iterations, about which they
# would warn.
warnings.filterwarnings("ignore", category=ConvergenceWarning)
crf = ChainCRF(features="ner", penalty=L2(1.0), solver="tron", tolerance=1e-10)
optimum = crf.fit(X, y).result_.value
results = {}
for solver in ("gradient-descent", "cg", "fista", "lbfgs", "tron"):
    crf.set_params(solver=solver, tolerance=1e-9, max_iterations=150)
    results[solver] = crf.fit(X, y).result_

# %%
# Trust-region Newton (tron) needs the fewest evaluations, but also products with the
# Hessian, which only the clock counts.
fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, against in zip(axes, ("evaluations", "seconds"), strict=True):
    plot_trace(results, optimum=optimum, against=against, ax=ax)
    ax.set_xlim(left=0)
axes[0].set_ylim(1e-9, 30)
axes[0].set_xlim(0, 150)
axes[1].set_ylabel("")
axes[1].get_legend().remove()
plt.show()
