"""
Reading handwritten digits in sequence
======================================

A digit that is hard to read is easier among others. Here numbers count upwards, with occasional jumps. A
classifier reads one picture at a time; a chain with the same pixels also learns which digit follows which.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from crfkit import L2, ChainCRF

plt.style.use("tableau-colorblind10")

# %%
# Make sequences of eight pictures from scikit-learn's digits: the next digit is one more, in nine of ten
# cases. Noise makes the pictures hard to read. Training and test sequences use different pictures.
digits = load_digits()
rng = np.random.default_rng(0)


def sequences(n, pictures, length=8):
    X, y = [], []
    for _ in range(n):
        labels = [int(rng.integers(10))]
        for _ in range(length - 1):
            labels.append((labels[-1] + 1) % 10 if rng.random() < 0.9 else int(rng.integers(10)))
        chosen = [rng.choice(pictures[digits.target[pictures] == label]) for label in labels]
        X.append(digits.data[chosen] / 16 + rng.normal(0, 0.3, (length, 64)))
        y.append(labels)
    return X, y


X, y = sequences(150, np.arange(900))
X_test, y_test = sequences(150, np.arange(900, 1797))

# %%
# Both models are linear in the pixels.
alone = LogisticRegression(C=0.05, max_iter=1000).fit(np.concatenate(X), np.concatenate(y))
chain = ChainCRF(penalty=L2(20.0)).fit(X, y)
guesses = [alone.predict(x) for x in X_test]
readings = [list(labels) for labels in chain.predict(X_test)]
truth = np.array(y_test)
wrong = {"one at a time": np.array(guesses) != truth, "in sequence": np.array(readings) != truth}

# %%
# The sequences in which the chain corrects most, and what both models read. Wrong digits are in brackets.
gains = (wrong["one at a time"].sum(axis=1) - wrong["in sequence"].sum(axis=1)).argsort()[::-1]
fig, axes = plt.subplots(3, 8, figsize=(8, 4.6))
fig.subplots_adjust(left=0.16, right=0.99, top=0.86, bottom=0.1, hspace=0.75)
for row, n in zip(axes, gains, strict=False):
    for t, ax in enumerate(row):
        ax.imshow(X_test[n][t].reshape(8, 8), cmap="gray_r")
        ax.set_axis_off()
        for k, (name, read) in enumerate((("one at a time", guesses[n][t]), ("in sequence", readings[n][t]))):
            bad = wrong[name][n, t]
            place = {"y": -0.18 - 0.25 * k, "transform": ax.transAxes, "va": "center", "fontsize": 11}
            ax.text(0.5, s=f"({read})" if bad else str(read), ha="center", color="C1" if bad else "black", **place)
            if t == 0:
                ax.text(-0.3, s=name, ha="right", **place)
fig.suptitle("digits wrong: " + ", ".join(f"{values.mean():.0%} {name}" for name, values in wrong.items()))
plt.show()
