"""
Cleaning a noisy picture
========================

Each pixel of this picture was measured with noise. A grid learns from one picture
with a known answer how far to trust a pixel and how strongly neighbours agree, and
then cleans another one.

Read on: :doc:`/guides/graphs`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from crfkit import GridCRF

# %%
# The truth is a wall of handwritten digits, black or white, each pixel enlarged to
# three by three. Every pixel of the measurement is flipped with a probability of one
# fifth.
digits = load_digits().images
rng = np.random.default_rng(0)


def wall(first):
    rows = [np.hstack(digits[first + 4 * k : first + 4 * k + 4]) for k in range(2)]
    return np.kron(np.vstack(rows) >= 8, np.ones((3, 3))).astype(int)


def measure(truth):
    return np.where(rng.random(truth.shape) < 0.2, 1 - truth, truth)


train, test = wall(0), wall(20)
noisy_train, noisy_test = measure(train), measure(test)

# %%
# Images have the shape (height, width, features). Tree-reweighted message passing
# approximates the probabilities of labels; prediction takes the most probable label
# of each pixel.
crf = GridCRF(inference="trw", decode="marginal", edge_features=None)
crf.fit([noisy_train[..., None].astype(float)], [train])
cleaned = crf.predict([noisy_test[..., None].astype(float)])[0]

fig, axes = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained")
for ax, picture, title in zip(
    axes, (test, noisy_test, cleaned), ("truth", "measured", "cleaned"), strict=True
):
    ax.imshow(picture, cmap="gray_r", interpolation="nearest")
    ax.set_title(
        title if title == "truth" else f"{title}: {np.mean(picture != test):.1%} wrong"
    )
    ax.set_axis_off()
plt.show()
