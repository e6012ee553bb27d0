"""Methods of a trained segmenter: segment images, and compare with masks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Array, Floats, Ints, Samples
from crfkit.errors import DataError
from crfkit.files.images import as_list, read_image
from crfkit.files.masks import MaskRules
from crfkit.graph.encoding.grids import naming_images
from crfkit.images.model.segmenter import Segmentation, SegmenterModel
from crfkit.images.pairs import Pairs, wrong_pixels
from crfkit.pool import in_threads
from crfkit.training.estimator import Estimator
from crfkit.training.tags import StructuredInputs


class SegmenterPrediction(StructuredInputs, Estimator):
    """Predictions of :class:`crfkit.ImageSegmenter`."""

    multiclass: bool
    ignore: ArrayLike | None
    mask_colours: object
    cache: str | Path | None

    def segment(self, images: Samples, probabilities: bool = True) -> list[Segmentation]:
        """Return the mask and, if requested, the probability map of each image, from one inference."""
        fitted: SegmenterModel = self._fitted()
        model = replace(fitted, field=replace(fitted.field, n_threads=1))
        given = as_list(images, "images")

        def one(k: int) -> Segmentation:
            name = str(given[k]) if isinstance(given[k], (str, Path)) else f"image {k}"
            with naming_images([name]):
                return model.segment(read_image(given[k], name), probabilities, self.cache)

        return list(in_threads(one, range(len(given)), self.n_threads))

    def predict(self, images: object) -> list[Array]:
        """Return a mask [H, W] for each image, with the values of the masks of `fit`."""
        return [found.mask for found in self.segment(images, probabilities=False)]

    def predict_marginals(self, images: object) -> list[Floats]:
        """Return the probabilities [H, W, classes] of each image, in the order of classes_."""
        return [found.probabilities for found in self.segment(images) if found.probabilities is not None]

    def errors(self, images: object, masks: object) -> Floats:
        """Return [images] the share of wrong pixels among the known ones of each; NaN where none is known."""
        counts = self._compare(images, masks)
        return np.where(counts[:, 1] > 0, counts[:, 0] / np.maximum(1, counts[:, 1]), np.nan)

    def score(self, images: Samples, masks: Samples) -> float:
        """Return the pixel accuracy: the share of right pixels among the known ones of all images."""
        wrong, known = self._compare(images, masks).sum(axis=0).tolist()
        if not known:
            raise DataError("no pixel of the masks has a known class")
        return float(1 - wrong / known)

    @property
    def selected_features_(self) -> dict[str, tuple[str, ...]]:
        """Return the names of features whose weights are not zero, of nodes ("unary") and edges ("pairwise")."""
        model: SegmenterModel = self._fitted()
        return model.selected()

    def mask_rules(self) -> MaskRules:
        return MaskRules(self.multiclass, self.ignore, self.mask_colours)

    def _compare(self, images: object, masks: object) -> Ints:
        """Return [images, 2]: wrong pixels, known pixels."""
        given = Pairs.read(images, masks, self.mask_rules(), self._fitted().classes)
        given.warn()
        pairs = zip(self.predict(given.images), given.masks, strict=True)
        return np.array([wrong_pixels(found, mask) for found, mask in pairs])
