"""Features of image blocks and of the edges between them, as matrices that are computed in strips when multiplied.

Training needs two products: features times weights, and values times features. Both read the single-precision
features of blocks a strip of rows at a time, so the differences |h_i − h_j| of all edges, and doubles of all
features, are never in memory together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crfkit._types import Array, Floats, Ids
from crfkit.errors import DataError

STRIP = 1 << 18  # numbers in a strip: 2 MB as doubles, which a cache holds


@dataclass(frozen=True, eq=False)
class ImageBlocks:
    """Features of the blocks of one image and, for edges, the blocks at both ends."""

    values: NDArray[np.float32]  # [n, F]
    ends: Ids | None = None  # [E, 2]; None: the rows are the blocks themselves

    def __len__(self) -> int:
        return len(self.values if self.ends is None else self.ends)

    def fill(self, out: Floats, begin: int, spare: NDArray[np.float32]) -> None:
        """Write the rows from `begin` on into `out` [m, F]: h_i of blocks, |h_i − h_j| of edges."""
        m = len(out)
        if self.ends is None:
            out[:] = self.values[begin : begin + m]
            return
        i, j = np.ascontiguousarray(self.ends[begin : begin + m].T)
        first, second = spare[0, :m], spare[1, :m]
        np.take(self.values, i, axis=0, out=first, mode="clip")
        np.take(self.values, j, axis=0, out=second, mode="clip")
        np.subtract(first, second, out=first)
        np.abs(first, out=out)


@dataclass(frozen=True, eq=False)
class BlockFeatures:
    """The matrix [rows, 1 + F] of [1, x − mean] over all rows of all images; it multiplies like an array.

    With `power` 2, it has the squares of these numbers.

    >>> features = BlockFeatures((ImageBlocks(np.float32([[1], [3], [7]]), np.array([[0, 1], [1, 2]])),), np.ones(1))
    >>> (features @ np.eye(2)).tolist(), (np.ones((1, 2)) @ features).tolist()
    ([[1.0, 1.0], [1.0, 3.0]], [[2.0, 4.0]])
    """

    parts: Sequence[ImageBlocks]
    mean: Floats | float = 0.0  # [F]
    exponent: int = 1

    streamed = True  # `check_features` leaves such matrices unchanged
    __array_ufunc__ = None  # array @ features is __rmatmul__
    ndim = 2

    def __post_init__(self) -> None:
        for g, part in enumerate(self.parts):
            values = part.values
            if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
                row, column = np.argwhere(~np.isfinite(values))[0]
                raise DataError(f"image {g}: feature {column} of block {row} is {values[row, column]}")

    @cached_property
    def shape(self) -> tuple[int, int]:
        return sum(map(len, self.parts)), 1 + self.parts[0].values.shape[1]

    @cached_property
    def starts(self) -> Ids:
        """Return [images + 1], where the rows of each image begin."""
        return np.cumsum([0, *map(len, self.parts)])

    def power(self, exponent: int) -> BlockFeatures:
        """Return the matrix with every number raised to 1 or 2."""
        return BlockFeatures(self.parts, self.mean, exponent)

    def __matmul__(self, weights: Floats) -> Floats:
        """Return [rows, B] for weights [1 + F, B]."""
        out = np.empty((self.shape[0], weights.shape[1]))
        slopes = np.ascontiguousarray(weights[1:].T)  # as rows: BLAS is faster with few long rows
        constant = weights[0] - (self._mean @ weights[1:] if self.exponent == 1 else 0.0)
        for rows, strip in self._strips():
            out[rows] = (slopes @ strip.T).T
        out += constant
        return out

    def __rmatmul__(self, values: Floats) -> Floats:
        """Return [B, 1 + F] for values [B, rows]."""
        found = np.zeros((len(values), self.shape[1]))
        found[:, 0] = values.sum(axis=1)
        for rows, strip in self._strips():
            found[:, 1:] += np.ascontiguousarray(values[:, rows]) @ strip
        if self.exponent == 1:
            found[:, 1:] -= found[:, :1] * self._mean
        return found

    def __getitem__(self, rows: ArrayLike) -> Floats:
        """Return some rows as an array."""
        ids = np.asarray(rows)
        out = np.ones((len(ids), self.shape[1]))
        image = np.searchsorted(self.starts, ids, side="right") - 1
        for k in np.unique(image).tolist():
            here, part = image == k, self.parts[k]
            own = ids[here] - self.starts[k]
            chosen = part.values[own] if part.ends is None else part.values[part.ends[own]]
            found = chosen.astype(np.float64) if part.ends is None else np.abs(np.subtract(*np.moveaxis(chosen, 1, 0)))
            out[here, 1:] = (found - self._mean) ** self.exponent
        return out

    def dense(self) -> Floats:
        """Return all rows as an array."""
        out = np.ones(self.shape)
        for rows, strip in self._strips():
            out[rows, 1:] = strip
        if self.exponent == 1:
            out[:, 1:] -= self._mean
        return out

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.asarray(self.dense(), dtype=dtype)

    @cached_property
    def _mean(self) -> Floats:
        return np.asarray(np.zeros(self.shape[1] - 1) + self.mean)

    def _strips(self) -> Iterator[tuple[slice, Floats]]:
        """Yield some rows and their numbers, in memory that the next strip uses again.

        The mean is not subtracted where that can wait until after a product.
        """
        width = self.shape[1] - 1
        size = min(max(1, STRIP // width), max(map(len, self.parts)))
        strip, spare = np.empty((size, width)), np.empty((2, size, width), dtype=np.float32)
        for part, first in zip(self.parts, self.starts.tolist(), strict=False):
            for begin in range(0, len(part), size):
                some = strip[: min(size, len(part) - begin)]
                part.fill(some, begin, spare)
                if self.exponent == 2:
                    some -= self._mean
                    np.square(some, out=some)
                yield slice(first + begin, first + begin + len(some)), some
