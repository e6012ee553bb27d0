"""
Why this label?
===============

The score of a labelling is a sum of weights. The difference between the best
labelling and the best one with another label at a word is therefore a sum as well,
and every term of it is a reason.

Read on: :doc:`/howto/explain_a_label`.
"""

import matplotlib.pyplot as plt

from crfkit import ChainCRF
from crfkit.plots import plot_explanation
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")
corpus = news_corpus(400, seed=0)
X = [[word for word, _, _ in sentence] for sentence in corpus]
y = [[label for _, _, label in sentence] for sentence in corpus]
crf = ChainCRF(features="ner").fit(X, y)

# %%
# Jordan is a person, and then it is a place. What decided?
words = "Jordan Weber told reporters in Jordan that sales had doubled .".split()
why = crf.explain(words)
print(why[5].to_text(top=3))

# %%
# The bars of a panel and the reasons that are too small to be shown add up to the
# logarithm of the ratio of the two probabilities.
fig, axes = plt.subplots(2, 1, figsize=(7.5, 6), layout="constrained", sharex=True)
for ax, t in zip(axes, (0, 5), strict=True):
    plot_explanation(why[t], top=6, ax=ax)
axes[0].set_xlabel("")
plt.show()
