"""
Probabilities that can be trusted
=================================

Of the names to which a model gives a probability of 0.8, four in five should be
right. Models are often too cautious or too bold. ``calibrate`` mends this with one
number, a temperature, without changing any label.

Read on: :doc:`/guides/decoding`.
"""

import matplotlib.pyplot as plt

from crfkit import L2, ChainCRF
from crfkit.plots import plot_reliability
from crfkit.synthetic import news_corpus

plt.style.use("tableau-colorblind10")


def corpus(n, seed):
    sentences = news_corpus(n, seed)
    X = [[word for word, _, _ in sentence] for sentence in sentences]
    return X, [[label for _, _, label in sentence] for sentence in sentences]


# %%
# A strong penalty and few sentences make a cautious model: it is right more often
# than it says.
crf = ChainCRF(features="ner", penalty=L2(10.0)).fit(*corpus(150, seed=0))
test = corpus(1000, seed=1)
before = crf.reliability(*test)

# %%
# The temperature is fitted on other sentences than those of the test. The lower panel
# shows how many names there are of each probability; where there are few, the upper
# one is left to chance.
crf.calibrate(*corpus(300, seed=2))
after = crf.reliability(*test)
print(crf.calibration_)

plot_reliability({"before": before, "after": after})
plt.show()
