"""
Learning from partly labelled sentences
=======================================

Annotators may skip words. Where a label is ``None``, the model sums over all labels
that the word could have, so that the labels around it still count.

Read on: :doc:`/howto/partial_labels`.
"""

import random

import matplotlib.pyplot as plt

from crfkit import ChainCRF, evaluate
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")


def corpus(n, seed):
    sentences = news_corpus(n, seed)
    X = [[word for word, _, _ in sentence] for sentence in sentences]
    return X, [[label for _, _, label in sentence] for sentence in sentences]


X, y = corpus(250, seed=0)
X_test, y_test = corpus(400, seed=1)


def f1(X, y):
    predicted = ChainCRF(features="ner").fit(X, y).predict(X_test)
    return evaluate(y_test, predicted).overall.f1


# %%
# Three ways to deal with hidden labels: learn from them as they are, keep only the
# sentences without gaps, or take every gap for ``O``, which teaches the model not to
# find names.
shares = [0.0, 0.1, 0.2, 0.4, 0.6, 0.8]
scores = {
    "None where it is hidden": [],
    "complete sentences only": [],
    "O where it is hidden": [],
}
for share in shares:
    rng = random.Random(1)
    hidden = [[None if rng.random() < share else label for label in row] for row in y]
    complete = [n for n, row in enumerate(hidden) if None not in row]
    as_o = [[label or "O" for label in row] for row in hidden]
    scores["None where it is hidden"].append(f1(X, hidden))
    scores["complete sentences only"].append(
        f1([X[n] for n in complete], [y[n] for n in complete])
        if len(complete) >= 5
        else float("nan")
    )
    scores["O where it is hidden"].append(f1(X, as_o))

# %%
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), marker in zip(scores.items(), "os^", strict=True):
    ax.plot(shares, values, marker=marker, label=name)
ax.set_xlabel("share of hidden labels")
ax.set_ylabel("F1 of names in other sentences")
ax.set_ylim(0, 1)
ax.legend(loc="lower left")
ax.grid(alpha=0.3)
plt.show()
