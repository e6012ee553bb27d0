"""Weights of a segmenter in terms of other features: centred or not, of another mean and scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit._types import Array, Floats
from crfkit.errors import ParameterError
from crfkit.graph.encoding.grids import GridEncoder
from crfkit.graph.model import GraphModel
from crfkit.images.features import ImageFeatures
from crfkit.images.model.segmenter import SegmenterModel


def from_equal_features(model: GraphModel, edge_mean: Floats) -> GraphModel:
    """Return the model with edge weights of |h_i − h_j| in place of |h_i − h_j| − edge_mean: the same scores.

    ``φ₀ + φᵀ(d − m) = (φ₀ − φᵀm) + φᵀd``: the intercept becomes the coupling of neighbours with equal features.
    """
    encoder = model.encoder
    assert isinstance(encoder, GridEncoder)
    plain = GridEncoder(classes=encoder.classes, n_features=encoder.n_features, n_edge_features=encoder.n_edge_features)
    return replace(model, encoder=plain, w=_shifted(model, -edge_mean))


def training_weights(start: SegmenterModel, mean: Floats, scale: Floats, edge_mean: Floats) -> Floats:
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


def check_start(start: SegmenterModel, features: ImageFeatures, classes: Array, forms: tuple[str, str]) -> None:
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
