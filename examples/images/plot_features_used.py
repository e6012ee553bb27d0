"""
Which features does a segmenter use?
====================================

An L1 penalty sets most weights to zero. The features that are left, and their
weights, say what the segmenter looks at, for the labels of blocks and for how much
neighbours agree.

Read on: :doc:`/guides/segmentation`.
"""

import matplotlib.pyplot as plt
import numpy as np

from crfkit import L1, ImageSegmenter
from crfkit.plots.segmentation import plot_features

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)

# %%
# Pictures of striped squares on plain ground of the same mean colour: colours do not
# help, directions do.
images, masks = [], []
for _ in range(6):
    y, x = np.mgrid[:48, :64]
    top, left = rng.integers(4, 16), rng.integers(4, 28)
    mask = (abs(y - top - 14) < 14) & (abs(x - left - 14) < 14)
    stripes = 0.5 + 0.2 * np.sign(np.sin(2 * np.pi * y / 6))
    picture = np.where(mask, stripes, 0.5)[..., None] + rng.normal(0, 0.08, (48, 64, 3))
    images.append(np.clip(picture, 0, 1))
    masks.append(mask.astype(int))

# %%
# The segmenter may use 34 features of Gabor filters and colour contrasts, and six of
# colours.
segmenter = ImageSegmenter(
    4, ("c1",), colour=True, inference="trw", penalty=L1(5.0)
).fit(images[:5], masks[:5])
used = segmenter.selected_features_
print(f"{len(used['unary'])} features say what a block is")
print(f"{len(used['pairwise'])} features say how much neighbours agree")
print(f"{segmenter.errors(images[5:], masks[5:])[0]:.1%} of a new picture are wrong")

fig, axes = plt.subplots(
    1, 3, figsize=(11, 3.6), width_ratios=(1, 1, 1), layout="constrained"
)
axes[0].imshow(images[5])
axes[0].contour(
    segmenter.predict(images[5:])[0], levels=[0.5], colors="C1", linewidths=2
)
axes[0].set_title("a new picture, and what was found")
axes[0].set_axis_off()
plot_features(segmenter, n=8, axes=axes[1:])
plt.show()
