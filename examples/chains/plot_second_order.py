"""
When the last label is not enough
=================================

In a chain of order 1 a label depends on the one before it. With ``order=2`` it
depends on the two before. The difference matters where labels follow a rhythm.

Read on: :doc:`/guides/decoding`.
"""

import matplotlib.pyplot as plt
import numpy as np

from crfkit import ChainCRF

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)

# %%
# A dance: two steps to the left, two to the right, and so on, with rare stumbles. The
# sensor that watches the dancer is noisy. After one step to the left, both directions
# are equally frequent; after two, only the right is.


def dances(n, noise, length=40):
    X, y = [], []
    for _ in range(n):
        steps, phase = [], int(rng.integers(4))
        for _ in range(length):
            phase = (phase + 1) % 4 if rng.random() < 0.97 else int(rng.integers(4))
            steps.append("left" if phase < 2 else "right")
        sensor = np.array(
            [1.0 if step == "right" else -1.0 for step in steps]
        ) + rng.normal(0, noise, length)
        X.append(sensor[:, None])
        y.append(steps)
    return X, y


# %%
# Compare both orders at several levels of noise. One step back says nothing here, so
# that a chain of order 1 is no better than the sensor alone.
levels = [0.5, 1.0, 1.5, 2.0, 2.5]
accuracy = {
    "threshold on the sensor": [],
    "chain of order 1": [],
    "chain of order 2": [],
}
for noise in levels:
    X, y = dances(60, noise)
    X_test, y_test = dances(60, noise)
    by_sign = [["right" if value > 0 else "left" for value in x[:, 0]] for x in X_test]
    first = ChainCRF(order=1).fit(X, y).predict(X_test)
    second = ChainCRF(order=2).fit(X, y).predict(X_test)
    for name, labels in zip(accuracy, (by_sign, first, second), strict=True):
        accuracy[name].append(np.mean(np.concatenate(labels) == np.concatenate(y_test)))

fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for (name, values), style in zip(
    accuracy.items(), ("C3s:", "C1^--", "C0o-"), strict=True
):
    ax.plot(levels, values, style, label=name)
ax.set_xlabel("standard deviation of the noise")
ax.set_ylabel("share of steps that are right")
ax.set_ylim(0.5, 1.01)
ax.grid(alpha=0.3)
ax.legend(loc="lower left")
plt.show()
