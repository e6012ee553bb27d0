"""Segmentations as panels, and the features that a segmenter uses as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._values import Axes, Tabular
from crfkit.errors import DataError, ParameterError
from crfkit.extras import load
from crfkit.files.images import VOID, as_list, read_image

if TYPE_CHECKING:
    from crfkit.images.estimator.segmenter import ImageSegmenter


def plot_segmentation(
    segmenter: ImageSegmenter, images: Tabular, masks: Tabular = None, titles: Sequence[str] | None = None
) -> Axes:
    """Draw a row of panels per image: image, truth (if masks are given), prediction, probability. Return the figure.

    With two classes, shows the probability of the second one; with more, the probability of the predicted label.
    """
    plt = _pyplot()
    pictures = [read_image(image, f"image {k}") for k, image in enumerate(as_list(images, "images"))]
    truths = None
    if masks is not None:
        given = as_list(masks, "masks")
        truths = [segmenter.mask_rules().read(mask, f"mask {k}")[0] for k, mask in enumerate(given)]
    if not pictures or (truths is not None and len(truths) != len(pictures)):
        raise DataError(
            f"cannot draw {len(pictures)} images with {0 if truths is None else len(truths)} "
            f"masks; expected at least one image, and a mask for each"
        )
    if titles is not None and len(titles) != len(pictures):
        raise ParameterError(f"there are {len(titles)} titles for {len(pictures)} images; give one for each")
    found = segmenter.segment(pictures)
    classes = segmenter.classes_
    heads = ["image", *(["truth"] if truths is not None else []), "prediction", "probability"]
    heights = [max(0.3, p.shape[0] / p.shape[1]) for p in pictures]
    figure, axes = plt.subplots(
        len(pictures),
        len(heads),
        figsize=(2.4 * len(heads) + 0.6, 2.3 * sum(heights) + 0.25 * len(pictures) + 0.3),
        gridspec_kw={"height_ratios": heights},
        squeeze=False,
        layout="constrained",
    )
    of_labels = {"cmap": "gray" if len(classes) == 2 else "viridis", "vmin": 0, "vmax": len(classes) - 1}
    shown: Any = None
    for row, (ax_row, picture, segmentation) in enumerate(zip(axes, pictures, found, strict=True)):
        panels = iter(ax_row)
        next(panels).imshow(picture, cmap="gray", vmin=0, vmax=1)
        if truths is not None:
            labels = np.ma.masked_array(np.searchsorted(classes, truths[row]), truths[row] == VOID)
            next(panels).imshow(labels, **of_labels, interpolation="nearest")
        next(panels).imshow(np.searchsorted(classes, segmentation.mask), **of_labels, interpolation="nearest")
        p: Any = segmentation.probabilities
        p = p[..., 1] if len(classes) == 2 else p.max(axis=-1)
        shown = next(panels).imshow(p, cmap="magma", vmin=0, vmax=1, interpolation="nearest")
        if truths is not None:
            known = truths[row] != VOID
            error = float(np.mean((segmentation.mask != truths[row])[known])) if known.any() else np.nan
            ax_row[-2].set_xlabel(f"{100 * error:.1f} % of pixels wrong")
        if titles is not None:
            ax_row[0].set_ylabel(titles[row])
    for ax, head in zip(axes[0], heads, strict=True):
        ax.set_title(head)
    for ax in axes.ravel():
        ax.set_xticks([])
        ax.set_yticks([])
    figure.colorbar(shown, ax=axes[:, -1].tolist(), shrink=0.8)
    return figure


def plot_features(segmenter: ImageSegmenter, n: int = 20, axes: Sequence[Axes] | None = None) -> Axes:
    """Draw bars of the n strongest weights of nodes and of edges, with the names of features. Return both axes.

    Features are standardised, so weights compare. Where a feature has several weights (more than two classes),
    the bar is the largest of them in size.
    """
    if n < 1:
        raise ParameterError(f"n must be >= 1, not {n!r}")
    plt = _pyplot()
    model = segmenter.model_
    names = model.features.names
    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(9, 0.8 + 0.24 * min(n, len(names))), layout="constrained")
    for ax, title, weights in zip(axes, ("nodes", "edges"), model.weights(), strict=True):
        values = weights[:, 1:]
        values = values[np.abs(values).argmax(axis=0), np.arange(values.shape[1])]
        order = np.argsort(-np.abs(values))[:n]
        order = order[values[order] != 0][::-1]
        ax.barh(np.arange(len(order)), values[order], color=["C0" if v > 0 else "C3" for v in values[order]])
        ax.set_yticks(np.arange(len(order)), [names[k] for k in order], fontsize=8)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_title(f"{title}: {np.count_nonzero(values)} of {len(names)} features")
        ax.set_xlabel("weight")
    return axes


def _pyplot() -> Axes:
    return load("matplotlib.pyplot", "plots need")
