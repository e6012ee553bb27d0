"""
What to label next
==================

Labelling is expensive. ``suggest`` picks the sentences of an unlabelled pool that the
model is least certain of, so that a good tagger needs fewer labels than with
sentences picked at random.

Read on: :doc:`/howto/what_to_label_next`.
"""

import random

import matplotlib.pyplot as plt

from crfkit import ChainCRF, evaluate
from crfkit.explain import suggest
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")


def corpus(n, seed):
    sentences = news_corpus(n, seed)
    X = [[word for word, _, _ in sentence] for sentence in sentences]
    return X, [[label for _, _, label in sentence] for sentence in sentences]


X, y = corpus(600, seed=0)
X_test, y_test = corpus(500, seed=1)

# %%
# Both runs begin with the same ten sentences and then label ten at a time.


def run(choose, rounds=8, batch=10):
    labelled, curve = list(range(batch)), []
    for _ in range(rounds):
        crf = ChainCRF(features="ner").fit(
            [X[n] for n in labelled], [y[n] for n in labelled]
        )
        f1 = evaluate(y_test, crf.predict(X_test)).overall.f1
        curve.append((sum(len(X[n]) for n in labelled), f1))
        pool = [n for n in range(len(X)) if n not in labelled]
        labelled += choose(crf, pool, batch)
    return curve


def at_random(seed):
    rng = random.Random(seed)
    return lambda crf, pool, n: rng.sample(pool, n)


def by_entropy(crf, pool, n):
    return [pool[found.sequence] for found in suggest(crf, [X[k] for k in pool], n)]


suggested = run(by_entropy)
random_runs = [run(at_random(seed)) for seed in range(3)]

# %%
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for k, curve in enumerate(random_runs):
    label = "picked at random (three times)" if k == 0 else None
    ax.plot(*zip(*curve, strict=True), color="C2", marker=".", label=label)
ax.plot(*zip(*suggested, strict=True), "C0o-", label="suggested by entropy")
ax.set_xlabel("labelled words")
ax.set_ylabel("F1 of names in other sentences")
ax.grid(alpha=0.3)
ax.legend(loc="lower right")
plt.show()
