"""
Probabilities of labels along a sentence
========================================

A chain does not only choose labels. It gives the exact probability of every label at every word, which shows
where it is certain and what else it considered.
"""

import matplotlib.pyplot as plt
import numpy as np

from crfkit import ChainCRF
from crfkit.synthetic_news import news_corpus

# %%
# The corpus has generated news sentences with people, places, firms and dates. The preset ``ner`` makes the
# features of plain words.
corpus = news_corpus(400, seed=0)
X = [[word for word, shape, label in sentence] for sentence in corpus]
y = [[label for word, shape, label in sentence] for sentence in corpus]
crf = ChainCRF(features="ner").fit(X, y)

# %%
# Bergen is a place, a firm and a surname; Jordan is a place and a first name. This sentence does not say
# which they are.
words = "Bergen lost against Jordan on May 14 .".split()
probabilities = crf.predict_marginals([words])[0]  # [words, labels]

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
image = ax.imshow(probabilities.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_xticks(range(len(words)), words)
ax.set_yticks(range(len(crf.classes_)), crf.classes_)
for (t, k), p in np.ndenumerate(probabilities):
    if p >= 0.05:
        ax.text(t, k, f"{p:.2f}", ha="center", va="center", color="white" if p > 0.5 else "black")
ax.set_title("p(label | sentence)")
fig.colorbar(image, label="probability")
plt.show()
