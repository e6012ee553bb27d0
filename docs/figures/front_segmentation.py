"""Draw docs/images/front/segmentation.png: block by block, and with a field that joins neighbours."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from front_parts import save
from sklearn.linear_model import LogisticRegression

from crfkit import L1, ImageSegmenter
from crfkit.synthetic import disc_images

BLOCK = 4


def means(picture: Any) -> Any:
    """Return the means of blocks as rows."""
    H, W = picture.shape[:2]
    return picture.reshape(H // BLOCK, BLOCK, W // BLOCK, BLOCK, -1).mean(axis=(1, 3)).reshape(H * W // BLOCK**2, -1)


def main() -> None:
    images, masks = disc_images(12, 0)
    new, truth = disc_images(3, 5)
    segmenter = ImageSegmenter(BLOCK, (), colour=True, inference="trw", sweeps=500, penalty=L1(2.0)).fit(images, masks)
    rows = np.concatenate([means(image) for image in images])
    labels = np.concatenate([means(mask)[:, 0] > 0.5 for mask in masks])
    alone = LogisticRegression().fit(rows, labels)
    figure, axes = plt.subplots(3, 4, figsize=(7.2, 4.5), layout="constrained")
    titles = ("image", "block by block", "crfkit", "truth")
    for row, image, mask in zip(axes, new, truth, strict=True):
        H, W = mask.shape
        guess = np.kron(alone.predict(means(image)).reshape(H // BLOCK, W // BLOCK), np.ones((BLOCK, BLOCK)))
        found = segmenter.predict([image])[0]
        for ax, picture in zip(row, (image, guess, found, mask), strict=True):
            ax.imshow(picture, cmap="gray_r", vmin=0, vmax=1 if picture.ndim == 2 else None)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(True)
        for ax, labelled in ((row[1], guess), (row[2], found)):
            ax.set_xlabel(f"{np.mean(labelled != mask):.0%} of pixels wrong", fontsize=9)
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=11)
    save(figure, "segmentation", 110)


if __name__ == "__main__":
    main()
