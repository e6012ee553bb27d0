"""
Probabilities of labels along a sentence
========================================

A chain does not only choose labels. It gives the exact probability of every label at
every word, which shows where it is certain and what else it considered.

Read on: :doc:`/howto/confidence`.
"""

import matplotlib.pyplot as plt

from crfkit import ChainCRF
from crfkit.plots import plot_label_probabilities
from crfkit.synthetic import news_corpus

# %%
# The corpus has generated news sentences with people, places, firms and dates. The
# preset ``ner`` makes the features of plain words.
corpus = news_corpus(400, seed=0)
X = [[word for word, _, _ in sentence] for sentence in corpus]
y = [[label for _, _, label in sentence] for sentence in corpus]
crf = ChainCRF(features="ner").fit(X, y)

# %%
# Bergen is a place, a firm and a surname; Jordan is a place and a first name. This
# sentence does not say which they are.
words = "Bergen lost against Jordan on May 14 .".split()
plot_label_probabilities(crf, words)
plt.show()
