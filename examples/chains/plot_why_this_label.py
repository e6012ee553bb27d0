"""
Why this label?
===============

The score of a labelling is a sum of weights. The difference between the best labelling and the best one with
another label at a word is therefore a sum as well, and every term of it is a reason.
"""

import matplotlib.pyplot as plt

from crfkit import ChainCRF
from crfkit.models.explanation_text import name_of
from crfkit.synthetic_news import news_corpus

plt.style.use("tableau-colorblind10")
corpus = news_corpus(400, seed=0)
X = [[word for word, shape, label in sentence] for sentence in corpus]
y = [[label for word, shape, label in sentence] for sentence in corpus]
crf = ChainCRF(features="ner").fit(X, y)

# %%
# Jordan is a person, and then it is a place. What decided?
words = "Jordan Weber told reporters in Jordan that sales had doubled .".split()
why = crf.explain(words)
print(why[5].to_text(top=3))

# %%
# The bars of a panel and the reasons that are too small to be shown add up to the logarithm of the ratio of
# the two probabilities.
fig, axes = plt.subplots(2, 1, figsize=(7.5, 6), layout="constrained", sharex=True)
for ax, t in zip(axes, (0, 5), strict=True):
    one, n = why[t], 6
    names = [name_of(c, t) for c in one.contributions[:n]]
    amounts = [c.amount for c in one.contributions[:n]]
    names.append(f"{len(one.contributions) - n} others")
    amounts.append(one.difference - sum(amounts))
    ax.barh(names, amounts, color=["C0" if amount > 0 else "C1" for amount in amounts])
    ax.axvline(0, color="black", linewidth=0.8)
    ax.invert_yaxis()
    ax.set_title(f"word {t}, {words[t]!r}: {one.label} rather than {one.runner_up}, by {one.difference:.1f}")
    ax.spines[["top", "right"]].set_visible(False)
axes[1].set_xlabel("contribution to the difference of the scores")
plt.show()
