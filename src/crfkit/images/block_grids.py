"""Grids of image blocks: features of blocks on nodes, centred differences on edges, blocks without a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Floats, Ids, Tabular
from crfkit.errors import DataError
from crfkit.files.images import VOID
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.grids import GridEncoder, cached_grid
from crfkit.graph.graph import Graph
from crfkit.images.block_features import BlockFeatures, ImageBlocks
from crfkit.images.blocks import block_labels
from crfkit.images.features import Image, ImageFeatures
from crfkit.images.pairs import Pairs

DENSE_NUMBERS = 1 << 25  # features of nodes and edges that are written out (0.27 GB): products are then a little faster


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockEncoder(GridEncoder):
    """Encode standardised features [h, w, F] of the blocks of images, with edge features |h_i − h_j| − edge_mean.

    |h_i − h_j| is never negative: uncentred, every edge weight also shifts the coupling of all neighbours, and a
    penalty on edge weights holds that shift down too. Centred, the intercept alone is the coupling of an average pair.
    """

    edge_mean: Floats | float = 0.0  # [F]
    known_only: bool = False  # whether to leave out blocks without a label, and their edges

    noun = "graph"  # in errors; training puts the name of the image in its place

    def training_data(self, X: Tabular, states: Ids, weights: Tabular, rows: str) -> GraphData:
        graphs, nodes, edges, begin = [], [], [], 0
        for image in X:
            h, w, width = image.shape
            known = states[begin : begin + h * w] >= 0
            begin += h * w
            graph, features = cached_grid(h, w), np.asarray(image, dtype=np.float32).reshape(h * w, width)
            if self.known_only and not known.all():
                graph, features = induced(graph, known), features[known]
            graphs.append(graph)
            nodes.append(ImageBlocks(features))
            edges.append(ImageBlocks(features, graph.edges))
        matrices = BlockFeatures(nodes), BlockFeatures(edges, self.edge_mean)
        few = sum(matrix.shape[0] * matrix.shape[1] for matrix in matrices) <= DENSE_NUMBERS
        of_nodes, of_edges = (matrix.dense() if few else matrix for matrix in matrices)
        return GraphData(
            Graph.join(graphs),
            of_nodes,
            of_edges,
            labels=states[states >= 0] if self.known_only else states,
            weights=weights,
        )


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


def block_states(given: Pairs, classes: Array, features: ImageFeatures) -> list[Ids]:
    """Return the states [h·w] of the blocks of each image, −1 where unknown; raise if a class has no block."""
    out = []
    for mask in given.masks:
        labels = block_labels(mask, classes, features).ravel()
        states = np.searchsorted(classes, labels).astype(np.int32)
        out.append(np.where(labels == VOID, np.int32(-1), states))
    missing = set(range(len(classes))) - set(np.unique(np.concatenate(out)).tolist())
    if missing:
        raise DataError(
            f"no block has mostly the label {classes[min(missing)]}; use smaller blocks (block_size), or resize images "
            "to a larger size"
        )
    return out
