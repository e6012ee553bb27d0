"""
From no weights to many: the path of L1
=======================================

An L1 penalty sets weights to zero, and the stronger it is, the more. Following it
from strong to weak shows how many weights a tagger needs. A few hundred are almost as
good as the thousands that an L2 penalty keeps.

Read on: :doc:`/howto/sparse_models`.
"""

import matplotlib.pyplot as plt

from crfkit import L1, L2, ChainCRF, evaluate
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")


def corpus(n, seed):
    sentences = news_corpus(n, seed)
    X = [[word for word, _, _ in sentence] for sentence in sentences]
    return X, [[label for _, _, label in sentence] for sentence in sentences]


X, y = corpus(150, seed=0)
X_dev, y_dev = corpus(300, seed=1)

# %%
# Each point of the path starts from the one before. The first penalty is the smallest
# at which all weights are zero.
path = ChainCRF(features="ner", penalty=L1()).path(
    X, y, n=12, ratio=1e-4, X_dev=X_dev, y_dev=y_dev
)
strengths = [point.strength for point in path]
best = max(path, key=lambda point: point.score)
l2 = ChainCRF(features="ner", penalty=L2(1.0)).fit(X, y)
f1 = evaluate(y_dev, l2.predict(X_dev)).overall.f1
print(f"best: λ = {best.strength:.2f}, F1 {best.score:.3f}, {best.nonzeros:,} weights")

# %%
fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.5, 5), sharex=True, layout="constrained"
)
top.plot(strengths, [point.score for point in path], "o-")
label = f"best: {best.nonzeros:,} weights"
top.plot(best.strength, best.score, "C1o", markersize=10, label=label)
top.axhline(f1, color="C3", linestyle="--", label=f"L2: {len(l2.coef_):,} weights")
top.set_ylabel("F1 of names in other sentences")
top.legend(loc="center right")
bottom.plot(strengths, [point.nonzeros for point in path], "C3s-")
bottom.set_yscale("symlog")
bottom.set_ylabel("weights that are not zero")
bottom.set_xlabel("strength λ of the L1 penalty")
bottom.set_xscale("log")
bottom.invert_xaxis()
for ax in (top, bottom):
    ax.grid(alpha=0.3)
plt.show()
