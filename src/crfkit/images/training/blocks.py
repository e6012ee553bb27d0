"""The blocks that a segmenter learns from, and models in terms of their features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.files.masks import MaskRules
from crfkit.graph.model import GraphModel
from crfkit.images.block_grids import BlockEncoder, average_difference, block_states
from crfkit.images.features import Image, ImageFeatures
from crfkit.images.model.segmenter import SegmenterModel, learn_scales
from crfkit.images.pairs import Pairs
from crfkit.images.training.weights import check_start, from_equal_features, training_weights


@dataclass(frozen=True, eq=False, kw_only=True)
class Blocks:
    """Standardised features and states of the blocks of all images, with their encoder."""

    features: ImageFeatures
    mean: Floats  # [F] of the features
    scale: Floats  # [F] their standard deviations
    edge_mean: Floats  # [F] of the differences |h_i − h_j|; zeros if they are not centred
    X: list[Any]  # [h, w, F] standardised features of each image, in single precision
    states: list[Ids]  # [h·w] of each image, −1 where unknown
    encoder: BlockEncoder

    @classmethod
    def learn(
        cls, given: Pairs, rules: MaskRules, features: ImageFeatures, values: list[Image], *, centred: bool, sums: bool
    ) -> Blocks:
        """Return the blocks of images with these raw features. The images in `values` are freed on the way.

        `sums` says whether the loss sums over unknown labels; otherwise blocks without a label are omitted.
        """
        classes = given.classes(rules.multiclass)
        mean, scale = learn_scales(values)
        X: list[Any] = []
        while values:  # one image at a time, so that features are never kept twice
            X.append(((values.pop(0) - mean) / scale).astype(np.float32))
        states = block_states(given, classes, features)
        edge_mean = average_difference(X) if centred else np.zeros(X[0].shape[-1])
        encoder = BlockEncoder(
            classes=classes,
            n_features=len(features.names),
            n_edge_features=len(features.names),
            edge_mean=edge_mean,
            known_only=not sums and any((of < 0).any() for of in states),
        )
        return cls(features=features, mean=mean, scale=scale, edge_mean=edge_mean, X=X, states=states, encoder=encoder)

    def raw(self, x: Any) -> Image:
        """Return features of an image from standardised ones."""
        return np.asarray(x * self.scale + self.mean, dtype=np.float32)

    def begin(self, start: SegmenterModel | str | Path, forms: tuple[str, str]) -> GraphModel:
        """Return a field that scores these blocks as a model to start from does; raise if it is of another kind."""
        model = start if isinstance(start, SegmenterModel) else SegmenterModel.load_weights(start)
        check_start(model, self.features, self.encoder.classes, forms)
        w = training_weights(model, self.mean, self.scale, self.edge_mean)
        return GraphModel(self.encoder, self.encoder.field(*forms), w)

    def model(self, trained: GraphModel, rules: MaskRules, upsampling: str) -> SegmenterModel:
        """Return the segmenter of a field that was trained on these blocks."""
        plain = from_equal_features(trained, self.edge_mean)
        return SegmenterModel(self.features, self.mean, self.scale, plain, rules, upsampling, self.edge_mean)
