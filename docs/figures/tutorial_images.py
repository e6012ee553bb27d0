"""Draw docs/images/tutorials/grid.png and discs.png: noisy pictures, their masks and probabilities."""

from __future__ import annotations

import matplotlib.pyplot as plt
from tutorial_parts import save, variables

from crfkit.plots.segmentation import plot_segmentation


def main() -> None:
    page = variables("images")
    panels = {
        "picture": page["pictures"][4][..., 0],
        "truth": page["truths"][4],
        "threshold": page["threshold"][0],
        "GridCRF": page["found"][0],
        "probability": page["probabilities"][0][..., 1],
    }
    figure, axes = plt.subplots(1, 5, figsize=(9, 1.6), layout="constrained")
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        ax.imshow(values, cmap="gray" if title != "probability" else "viridis")
        ax.set_title(title, fontsize=10)
        ax.axis("off")
    save(figure, "grid", dpi=100)
    save(plot_segmentation(page["segmenter"], page["new_images"][:2], page["new_masks"][:2]), "discs", dpi=80)


if __name__ == "__main__":
    main()
