"""Regions of an image as nodes: pixels, square blocks or superpixels, and which of them are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from crfkit._types import Array, Floats, Ids
from crfkit.extras import load
from crfkit.graph.encoding.grids import cached_grid
from crfkit.graph.graph import Graph
from crfkit.images.features import Image


@dataclass(frozen=True, eq=False)
class Regions:
    """Divide the pixels of one image into regions: each region is a node, and regions that touch share an edge."""

    ids: Ids  # [H, W] the region of each pixel
    graph: Graph
    grid: tuple[int, int] | None = None  # rows and columns of square blocks
    size: int = 1  # the side of a block in pixels

    @classmethod
    def blocks(cls, shape: tuple[int, ...], size: int, neighbours: int) -> Regions:
        """Return square blocks of `size` pixels a side; those at the lower and right border may be smaller.

        >>> Regions.blocks((4, 6), 2, 4).graph.n_edges
        7
        """
        rows, columns = (np.arange(n, dtype=np.int32) // size for n in shape[:2])
        h, w = int(rows[-1]) + 1, int(columns[-1]) + 1
        return cls(rows[:, None] * np.int32(w) + columns, cached_grid(h, w, neighbours), (h, w), size)

    @classmethod
    def superpixels(cls, image: Image, count: int) -> Regions:
        """Return about `count` regions of similar colour, found by SLIC of scikit-image."""
        found: Any = load("skimage.segmentation", "superpixels need").slic(
            image, n_segments=count, compactness=10 if image.ndim == 3 else 0.1, start_label=0,
            channel_axis=-1 if image.ndim == 3 else None,
        )  # fmt: skip
        _, flat = np.unique(found, return_inverse=True)
        ids = flat.reshape(found.shape).astype(np.int32)
        return cls(ids, _touching(ids))

    def mean(self, values: Array) -> Floats:
        """Return [n, C]: the mean of [H, W, C] over each region."""
        flat = self.ids.ravel()
        sizes = np.maximum(np.bincount(flat, minlength=self.graph.n_nodes), 1)
        columns = values.reshape(len(flat), -1).T
        sums = [np.bincount(flat, weights=column, minlength=self.graph.n_nodes) for column in columns]
        return np.stack(sums, axis=1) / sizes[:, None]

    def majority(self, states: Ids, n_states: int) -> Ids:
        """Return [n]: the state that most known pixels [H, W] of a region have, −1 where none is known."""
        known = states.ravel() >= 0
        codes = self.ids.ravel()[known].astype(np.int64) * n_states + states.ravel()[known]
        counts = np.bincount(codes, minlength=self.graph.n_nodes * n_states).reshape(-1, n_states)
        return np.where(counts.any(axis=1), counts.argmax(axis=1), -1).astype(np.int32)

    def spread(self, values: Floats) -> Floats:
        """Return [H, W, C] from values [n, C] of regions: linear between the centres of blocks, flat in superpixels."""
        if self.grid is None or self.grid == self.ids.shape:
            return np.asarray(values[self.ids])
        blocks = values.reshape(*self.grid, -1)
        axes = []
        for length, n in zip(self.ids.shape, self.grid, strict=True):
            axes.append(np.clip((np.arange(length) + 0.5) / self.size - 0.5, 0, n - 1))
        places = np.meshgrid(*axes, indexing="ij")
        planes = [map_coordinates(plane, places, order=1, mode="nearest") for plane in np.moveaxis(blocks, -1, 0)]
        return np.stack(planes, axis=-1)

    def offsets(self) -> Floats:
        """Return [E, 2]: the step between the centres of both ends, in rows and columns of pixels or blocks."""
        if self.grid is not None:
            rows, columns = np.divmod(np.arange(self.graph.n_nodes), self.grid[1])
            places = np.stack([rows, columns], axis=1).astype(np.float64)
        else:
            places = self.mean(np.moveaxis(np.indices(self.ids.shape), 0, -1))
        i, j = self.graph.edges.T
        return np.asarray(places[j] - places[i])


def _touching(ids: Ids) -> Graph:
    """Return a graph with an edge between every two regions that share a side of a pixel."""
    pairs = np.concatenate(
        [
            np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1),
            np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1),
        ]
    )
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return Graph(int(ids.max()) + 1, np.unique(pairs, axis=0).astype(np.int32), checked=True)
