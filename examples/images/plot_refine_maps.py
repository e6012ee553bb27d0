"""
Refining the probabilities of a classifier
==========================================

A random forest or a network labels every pixel on its own, so that its map has specks
and ragged borders. ``Refiner`` learns how far to trust the map and how strongly
pixels of similar colour should agree.

Read on: :doc:`/guides/refinement`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from crfkit import Refiner

rng = np.random.default_rng(0)

# %%
# Three kinds of ground with similar colours: water, meadow and sand.
colours = np.array([[0.35, 0.5, 0.6], [0.45, 0.55, 0.35], [0.6, 0.55, 0.45]])


def landscape(H=48, W=64):
    y, x = np.mgrid[:H, :W]
    phase = rng.uniform(0, 6, 2)
    shore, dunes = 16 + 6 * np.sin(x / 9 + phase[0]), 32 + 5 * np.sin(x / 7 + phase[1])
    mask = (y > shore).astype(int) + (y > dunes)
    return np.clip(colours[mask] + rng.normal(0, 0.09, (H, W, 3)), 0, 1), mask


pictures, masks = zip(*(landscape() for _ in range(9)), strict=True)

# %%
# The forest is trained on four pictures, and the refiner on the forest's
# probabilities for four others: on its own training pictures, a forest is
# overconfident.
forest = RandomForestClassifier(40, min_samples_leaf=5, random_state=0)
forest.fit(
    np.concatenate([p.reshape(-1, 3) for p in pictures[:4]]),
    np.concatenate([m.ravel() for m in masks[:4]]),
)
maps = [forest.predict_proba(p.reshape(-1, 3)).reshape(*p.shape) for p in pictures]
refiner = Refiner(block_size=2).fit(maps[4:8], pictures[4:8], masks[4:8])
before, after, truth = (
    maps[8].argmax(axis=-1),
    refiner.predict(maps[8:], pictures[8:])[0],
    masks[8],
)

fig, axes = plt.subplots(1, 4, figsize=(11, 2.6), layout="constrained")
axes[0].imshow(pictures[8])
axes[0].set_title("picture")
named = {"forest": before, "refined": after, "truth": truth}
for ax, (name, mask) in zip(axes[1:], named.items(), strict=True):
    ax.imshow(mask, cmap="cividis", vmin=0, vmax=2)
    ax.set_title(
        name if name == "truth" else f"{name}: {np.mean(mask != truth):.1%} wrong"
    )
for ax in axes:
    ax.set_axis_off()
plt.show()
