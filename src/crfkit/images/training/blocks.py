"""The blocks that a segmenter learns from, and models in terms of their features: centred or not, scaled or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Floats, Ids
from crfkit.errors import ParameterError
from crfkit.files.masks import MaskRules
from crfkit.graph.encoding.grids import GridEncoder
from crfkit.graph.model import GraphModel
from crfkit.images.block_grids import BlockEncoder, average_difference, block_states
from crfkit.images.features import Image, ImageFeatures
from crfkit.images.model.segmenter import SegmenterModel, learn_scales
from crfkit.images.pairs import Pairs


@dataclass(frozen=True, eq=False, kw_only=True)
class Blocks:
    """Standardised features and states of the blocks of all images, with their encoder."""

    features: ImageFeatures
    mean: Floats  # [F] of the features
    scale: Floats  # [F] their standard deviations
    edge_mean: Floats  # [F] of the differences |h_i − h_j|; zeros if they are not centred
    X: list[Array]  # [h, w, F] standardised features of each image, in single precision
    states: list[Ids]  # [h·w] of each image, −1 where unknown
    encoder: BlockEncoder

    @classmethod
    def learn(
        cls, given: Pairs, rules: MaskRules, features: ImageFeatures, values: list[Image], *, centred: bool, sums: bool
    ) -> Blocks:
        """Return the blocks of images with these raw features. The images in `values` are freed on the way.

        `sums`: whether the loss sums over unknown labels; otherwise blocks without a label are omitted.
        """
        classes = given.classes(rules.multiclass)
        mean, scale = learn_scales(values)
        X: list[Array] = []
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

    def raw(self, x: Array) -> Image:
        """Return features of an image from standardised ones."""
        return np.asarray(x * self.scale + self.mean, dtype=np.float32)

    def begin(self, start: SegmenterModel | str | Path, forms: tuple[str, str]) -> GraphModel:
        """Return a field that scores these blocks as a model to start from does; raise if it is of another kind."""
        model = start if isinstance(start, SegmenterModel) else SegmenterModel.load_weights(start)
        _check_start(model, self.features, self.encoder.classes, forms)
        w = _training_weights(model, self.mean, self.scale, self.edge_mean)
        return GraphModel(self.encoder, self.encoder.field(*forms), w)

    def model(self, trained: GraphModel, rules: MaskRules, upsampling: str) -> SegmenterModel:
        """Return the segmenter of a field that was trained on these blocks."""
        plain = from_equal_features(trained, self.edge_mean)
        return SegmenterModel(self.features, self.mean, self.scale, plain, rules, upsampling, self.edge_mean)


def from_equal_features(model: GraphModel, edge_mean: Floats) -> GraphModel:
    """Return the model with edge weights of |h_i − h_j| instead of |h_i − h_j| − edge_mean: the same scores.

    ``φ₀ + φᵀ(d − m) = (φ₀ − φᵀm) + φᵀd``: the intercept becomes the coupling of neighbours with equal features.
    """
    encoder = model.encoder
    assert isinstance(encoder, GridEncoder)
    plain = GridEncoder(classes=encoder.classes, n_features=encoder.n_features, n_edge_features=encoder.n_edge_features)
    return replace(model, encoder=plain, w=_shifted(model, -edge_mean))


def _training_weights(start: SegmenterModel, mean: Floats, scale: Floats, edge_mean: Floats) -> Floats:
    """Return the weights of a model for features of another mean and scale: the same scores of the same images."""
    field = start.field.field
    nodes, edges = field.unpack(start.field.w)
    ratio = scale / start.scale
    nodes[..., 0] += nodes[..., 1:] @ ((mean - start.mean) / start.scale)
    nodes[..., 1:] *= ratio
    edges[..., 1:] *= ratio
    return _shifted(replace(start.field, w=field.pack(nodes, edges)), edge_mean)


def _shifted(model: GraphModel, by: Floats) -> Floats:
    nodes, edges = model.field.unpack(model.w)
    edges[..., 0] += edges[..., 1:] @ by
    return model.field.pack(nodes, edges)


def _check_start(start: SegmenterModel, features: ImageFeatures, classes: NDArray[Any], forms: tuple[str, str]) -> None:
    """Raise ParameterError unless a model to start from has these features, classes and forms."""
    if start.features != features:
        raise ParameterError(f"the model to start from has other features: {start.features}; expected {features}")
    if not np.array_equal(start.classes, classes):
        raise ParameterError(
            f"the model to start from has the classes {start.classes.tolist()}; expected {classes.tolist()}"
        )
    field = start.field.field
    if (field.node_form, field.edge_form) != forms:
        raise ParameterError(
            f"the model to start from has the forms {field.node_form}, {field.edge_form}; expected {forms}"
        )
