"""
Other readings of a sentence
============================

The best labelling is one of many. ``decode(n=…)`` returns the n best with their exact
probabilities, and ``predict_spans`` says how probable each name is, whatever the rest
of the sentence is.

Read on: :doc:`/howto/nbest`.
"""

import matplotlib.pyplot as plt

from crfkit import ChainCRF
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")
corpus = news_corpus(400, seed=0)
X = [[word for word, _, _ in sentence] for sentence in corpus]
y = [[label for _, _, label in sentence] for sentence in corpus]
crf = ChainCRF(features="ner").fit(X, y)

# %%
# A sentence with two ambiguous names.
words = "Victoria won against Jordan Weber on Friday .".split()
found = crf.decode([words], n=5)[0]
readings = [
    (found.labels, found.probability),
    *((other.labels, other.probability) for other in found.alternatives),
]

for span in crf.predict_spans([words])[0]:
    name = " ".join(words[span.start : span.end])
    print(f"{name:14} {span.type:5} {span.probability:.2f}")

# %%
# Each row is a labelling of the whole sentence; the bar on the right is its
# probability.
colours = {"PER": "C7", "LOC": "C8", "ORG": "C4", "DATE": "C9"}
fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.2), width_ratios=(4, 1), sharey=True, layout="constrained"
)
for row, (labels, p) in enumerate(readings):
    for t, label in enumerate(labels):
        kind = label[2:]
        left.barh(row, 1, left=t - 0.5, color=colours.get(kind, "white"))
        left.text(t, row, label if kind else "·", ha="center", va="center")
    right.barh(row, p, color="0.4")
    right.text(p + 0.01, row, f"{p:.2f}", va="center")
left.set_xticks(range(len(words)), words)
left.set_yticks(range(5), ["1.", "2.", "3.", "4.", "5."])
left.invert_yaxis()
left.set_title("the five best labellings")
right.set_title("probability")
right.set_xlim(0, readings[0][1] * 1.4)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
