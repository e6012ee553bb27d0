"""
Finding a thing that can hardly be seen
=======================================

A disc has a faint tint, hidden under strong noise. A classifier of single blocks sees
almost nothing. A segmenter with the same features, which also learns that neighbours
belong together, finds the disc and says how certain it is.

Read on: :doc:`/tutorials/images`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from crfkit import L1, ImageSegmenter
from crfkit.synthetic import disc_images

images, masks = disc_images(8, seed=0)
new, truth = disc_images(3, seed=5)

# %%
# The segmenter divides images into blocks of 4×4 pixels and computes their mean
# colours itself.
segmenter = ImageSegmenter(
    4, (), colour=True, inference="trw", sweeps=500, penalty=L1(2.0)
).fit(images, masks)
found = segmenter.segment(new)

# %%
# For comparison, a logistic regression on the mean colour of each block.


def blocks(picture):
    """Return the means of blocks of 4×4 pixels as rows."""
    H, W = picture.shape[:2]
    return (
        picture.reshape(H // 4, 4, W // 4, 4, -1)
        .mean(axis=(1, 3))
        .reshape(H * W // 16, -1)
    )


rows = np.concatenate([blocks(image) for image in images])
labels = np.concatenate([blocks(mask)[:, 0] > 0.5 for mask in masks])
alone = LogisticRegression().fit(rows, labels)
guesses = [
    np.kron(alone.predict(blocks(image)).reshape(16, 20), np.ones((4, 4)))
    for image in new
]

# %%
fig, axes = plt.subplots(3, 4, figsize=(9, 5.8), layout="constrained")
for row, image, mask, guess, answer in zip(
    axes, new, truth, guesses, found, strict=True
):
    row[0].imshow(image)
    row[1].imshow(guess, cmap="gray_r", vmin=0, vmax=1)
    row[2].imshow(answer.probabilities[..., 1], cmap="gray_r", vmin=0, vmax=1)
    row[3].imshow(mask, cmap="gray_r", vmin=0, vmax=1)
    row[1].set_title(f"{np.mean(guess != mask):.0%} wrong", fontsize=10, y=-0.2)
    row[2].set_title(f"{np.mean(answer.mask != mask):.0%} wrong", fontsize=10, y=-0.2)
for ax, title in zip(
    axes[0], ("picture", "block by block", "segmenter: p(disc)", "truth"), strict=True
):
    ax.text(0.5, 1.05, title, transform=ax.transAxes, ha="center")
for ax in axes.ravel():
    ax.set(xticks=[], yticks=[])
plt.show()
