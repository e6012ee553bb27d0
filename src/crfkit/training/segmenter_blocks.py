"""Blocks of images as graphs to learn from: centred differences on edges, blocks whose label is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Floats, Ids
from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.encoders.blocks import block_labels
from crfkit.encoders.grids import GridEncoder
from crfkit.encoders.image_pairs import Pairs
from crfkit.errors import DataError, ParameterError
from crfkit.features.image import Image, ImageFeatures
from crfkit.models.graph import GraphModel
from crfkit.models.segmenter import SegmenterModel, grid
from crfkit.readers.images import VOID

SUMS_OVER_UNKNOWN = ("likelihood",)  # losses that can; others are given the blocks with labels only


@dataclass(frozen=True, eq=False)
class BlockEncoder(GridEncoder):
    """Standardised features [h, w, F] of the blocks of images, to graphs with edge features |h_i − h_j| − edge_mean.

    |h_i − h_j| is never negative: uncentred, every edge weight also shifts the coupling of all neighbours, and a
    penalty on edge weights holds that shift down too. Centred, the intercept alone is the coupling of an average pair.
    """

    edge_mean: Any = 0.0  # [F]
    known_only: bool = False  # leave out blocks without a label, and their edges

    noun = "graph"  # in errors; the segmenter puts the name of the image in its place

    def training_data(self, X: Any, states: Ids, weights: Any, rows: str) -> GraphData:
        parts, begin = [], 0
        for image in X:
            h, w, width = image.shape
            known = states[begin : begin + h * w] >= 0
            begin += h * w
            graph, features = grid(h, w), np.asarray(image, dtype=np.float64).reshape(h * w, width)
            if self.known_only and not known.all():
                graph, features = induced(graph, known), features[known]
            i, j = graph.edges.T
            parts.append(GraphData.make(graph, features, np.abs(features[i] - features[j]) - self.edge_mean))
        data = GraphData.join(parts)
        return replace(data, labels=states[states >= 0] if self.known_only else states, weights=weights)


def induced(graph: Graph, chosen: NDArray[np.bool_]) -> Graph:
    """Return the chosen nodes of a graph and the edges among them."""
    numbers = np.cumsum(chosen) - 1
    kept = graph.edges[chosen[graph.edges].all(axis=1)]
    return Graph(int(chosen.sum()), numbers[kept].astype(np.int32), checked=True)


def average_difference(X: Sequence[Image]) -> Floats:
    """Return [F], the mean of |h_i − h_j| over the edges of all images."""
    total, count = np.zeros(X[0].shape[-1]), 0
    for x in X:
        for axis in (0, 1):
            differences = np.abs(np.diff(x, axis=axis))
            total += differences.sum(axis=(0, 1), dtype=np.float64)
            count += differences.shape[0] * differences.shape[1]
    return total / max(1, count)


def block_states(given: Pairs, classes: NDArray[Any], features: ImageFeatures) -> list[Ids]:
    """Return the state numbers [h·w] of the blocks of each image, −1 where unknown; every class has a block."""
    out = []
    for mask in given.masks:
        labels = block_labels(mask, classes, features).ravel()
        states = np.searchsorted(classes, labels).astype(np.int32)
        out.append(np.where(labels == VOID, np.int32(-1), states))
    missing = set(range(len(classes))) - set(np.unique(np.concatenate(out)).tolist())
    if missing:
        raise DataError(f"no block has mostly the label {classes[min(missing)]}: take smaller blocks, or a larger size")
    return out


def from_equal_features(model: GraphModel, edge_mean: Floats) -> GraphModel:
    """Return the model with edge weights of |h_i − h_j| in place of |h_i − h_j| − edge_mean: the same scores.

    ``φ₀ + φᵀ(d − m) = (φ₀ − φᵀm) + φᵀd``: the intercept becomes the coupling of neighbours with equal features.
    """
    encoder = model.encoder
    assert isinstance(encoder, GridEncoder)
    plain = GridEncoder(encoder.classes, encoder.n_features, encoder.n_edge_features, True, True, 4, "difference")
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


def check_start(start: SegmenterModel, features: ImageFeatures, classes: NDArray[Any], forms: tuple[str, str]) -> None:
    """Raise unless a model to start from has these features, classes and forms."""
    if start.features != features:
        raise ParameterError(f"the model to start from has other features: {start.features}; now {features}")
    if not np.array_equal(start.classes, classes):
        raise ParameterError(
            f"the model to start from has the classes {start.classes.tolist()}; now {classes.tolist()}"
        )
    field = start.field.field
    if (field.node_form, field.edge_form) != forms:
        raise ParameterError(f"the model to start from has the forms {field.node_form}, {field.edge_form}; now {forms}")
