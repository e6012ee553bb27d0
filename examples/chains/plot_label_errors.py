"""
Finding wrong labels
====================

Training data contain mistakes. ``find_label_errors`` judges every label by a model
that was trained on other sentences, and ranks the labels that it does not believe.
Checking the top of that list finds most mistakes.

Read on: :doc:`/howto/find_wrong_labels`.
"""

import random

import matplotlib.pyplot as plt
import numpy as np

from crfkit import ChainCRF
from crfkit.explain import find_label_errors
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")
corpus = news_corpus(400, seed=0)
X = [[word for word, _, _ in sentence] for sentence in corpus]
truth = [[label for _, _, label in sentence] for sentence in corpus]

# %%
# Spoil the types of some names: a tired annotator calls a firm a place, with all its
# words.
rng = random.Random(0)


def spoil(row):
    row = list(row)
    for t, label in enumerate(row):
        if label.startswith("B-") and rng.random() < 0.08:
            kind = rng.choice(["PER", "LOC", "ORG"])
            row[t] = f"B-{kind}"
            for s in range(t + 1, len(row)):
                if not row[s].startswith("I-"):
                    break
                row[s] = f"I-{kind}"
    return row


given = [spoil(row) for row in truth]
wrong = {
    (n, t)
    for n, row in enumerate(truth)
    for t, label in enumerate(row)
    if given[n][t] != label
}

# %%
# Rank all labels, the most suspect first, and count how many of the first ones are
# wrong.
found = find_label_errors(ChainCRF(features="ner"), X, given, cv=3)
ranking = found.ranked(4 * len(wrong))
hits = np.cumsum([(suspect.sequence, suspect.position) in wrong for suspect in ranking])
for suspect in ranking[:3]:
    print(f"{suspect.token!r}: {suspect.given} should probably be {suspect.suggested}")

n, n_labels = len(wrong), sum(map(len, given))
checked = np.arange(1, len(ranking) + 1)
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(checked, hits, label="the most suspect labels first", linewidth=2)
ax.plot(checked, np.minimum(checked, n), "C3--", label="the best possible order")
ax.plot(checked, checked * n / n_labels, "C2", label="any order")
ax.set_xlabel(f"labels checked, of {n_labels:,}")
ax.set_ylabel("wrong labels found")
ax.set_title(f"{hits[n - 1]} of {n} wrong labels are among the first {n} suspects")
ax.legend(loc="center right")
plt.show()
