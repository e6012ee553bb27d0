"""
Reading handwritten digits in sequence
======================================

A digit that is hard to read alone is easier to read among others. Here the digits
count upwards, with occasional jumps. A classifier reads one picture at a time; a
chain with the same pixels also learns which digit follows which.

Read on: :doc:`/guides/scikit_learn`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from crfkit import L2, ChainCRF

plt.style.use("tableau-colorblind10")

# %%
# Make sequences of eight pictures from scikit-learn's digits: the next digit is one
# more, in nine of ten cases. Noise makes the pictures hard to read. Training and test
# sequences use different pictures.
digits = load_digits()
rng = np.random.default_rng(0)


def sequence(pictures, length=8):
    labels = [int(rng.integers(10))]
    while len(labels) < length:
        up = rng.random() < 0.9
        labels.append((labels[-1] + 1) % 10 if up else int(rng.integers(10)))
    chosen = [rng.choice(pictures[digits.target[pictures] == k]) for k in labels]
    return digits.data[chosen] / 16 + rng.normal(0, 0.3, (length, 64)), labels


old, new = np.arange(900), np.arange(900, 1797)
X, y = zip(*(sequence(old) for _ in range(150)), strict=True)
X_test, y_test = zip(*(sequence(new) for _ in range(150)), strict=True)

# %%
# Both models are linear in the pixels.
alone = LogisticRegression(C=0.05, max_iter=1000)
alone.fit(np.concatenate(X), np.concatenate(y))
chain = ChainCRF(penalty=L2(20.0)).fit(X, y)
guesses = [alone.predict(x) for x in X_test]
readings = [list(labels) for labels in chain.predict(X_test)]
truth = np.array(y_test)
read = {"one at a time": np.array(guesses), "in sequence": np.array(readings)}

# %%
# The sequences in which the chain corrects most, and what both models read. Wrong
# digits are in brackets.
wrong = {name: digit != truth for name, digit in read.items()}
gains = (wrong["one at a time"].sum(1) - wrong["in sequence"].sum(1)).argsort()[::-1]
fig, axes = plt.subplots(3, 8, figsize=(8, 4.6))
fig.subplots_adjust(left=0.16, right=0.99, top=0.86, bottom=0.1, hspace=0.75)
for row, n in zip(axes, gains, strict=False):
    for t, ax in enumerate(row):
        ax.imshow(X_test[n][t].reshape(8, 8), cmap="gray_r")
        ax.set_axis_off()
        for y_text, (name, digit) in zip((-0.18, -0.43), read.items(), strict=True):
            bad = wrong[name][n, t]
            text, color = (f"({digit[n, t]})", "C1") if bad else (digit[n, t], "black")
            style = {"transform": ax.transAxes, "va": "center", "fontsize": 11}
            ax.text(0.5, y_text, text, ha="center", color=color, **style)
            if t == 0:
                ax.text(-0.3, y_text, name, ha="right", **style)
told = (f"{bad.mean():.0%} {name}" for name, bad in wrong.items())
fig.suptitle("digits wrong: " + ", ".join(told))
plt.show()
