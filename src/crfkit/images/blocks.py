"""Between pixels and square blocks: the label of a block, and values of blocks at the size of the image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array, Floats, Ids
from crfkit.files.images import VOID, Mask, resize
from crfkit.images.c1 import block_means
from crfkit.images.features import ImageFeatures

UPSAMPLING = ("bilinear", "nearest")
MIN_KNOWN_SHARE = 1e-6  # share of known pixels below which a block has none


def block_labels(mask: Mask, classes: Array, features: ImageFeatures) -> Array:
    """Return [h, w], the label that most of the known pixels of a block have; VOID where none is known.

    If several labels are equally frequent, it is the first of the classes.
    """
    if features.size is None and features.block_size == 1:
        return mask
    shares = []
    for label in classes:
        of_label = (mask == label).astype(np.float32)
        if features.size is not None:
            of_label = resize(of_label, features.size)
        shares.append(block_means(of_label, features.block_size))
    labels = classes[np.argmax(shares, axis=0)]
    if (mask == VOID).any():
        labels = np.where((np.sum(shares, axis=0) > MIN_KNOWN_SHARE) & _has_known(mask, features), labels, VOID)
    return np.asarray(labels)


def _has_known(mask: Mask, features: ImageFeatures) -> NDArray[np.bool_]:
    """Return [h, w], whether a pixel of the block is known; resizing spreads known pixels to blocks beside them."""
    h, w = features.blocks(mask.shape)
    rows, columns = _block_of_pixel((h, w), mask.shape, features)
    places = (rows[:, None] * w + columns).ravel()
    pixels = np.bincount(places, minlength=h * w)
    known = np.bincount(places, weights=(mask != VOID).ravel(), minlength=h * w)
    return np.asarray((known > 0) | (pixels == 0)).reshape(h, w)  # an image that grows has blocks between its pixels


def full_size(blocks: Array, shape: tuple[int, ...], features: ImageFeatures) -> Array:
    """Return [H, W, …] from [h, w, …]: every pixel gets the value of the block it lies in."""
    rows, columns = _block_of_pixel(blocks.shape, shape, features)
    return blocks[rows][:, columns]


def _block_of_pixel(blocks: tuple[int, ...], shape: tuple[int, ...], features: ImageFeatures) -> list[Ids]:
    """Return the row of blocks [H] that each row of pixels lies in, and the column of blocks [W]."""
    indices: list[Ids] = []
    for length, resized, n in zip(shape[:2], features.size or shape[:2], blocks[:2], strict=True):
        pixels = ((np.arange(length) + 0.5) * (resized / length)).astype(np.int32)
        indices.append(np.minimum(pixels // features.block_size, n - 1))
    return indices


def interpolate(blocks: Floats, shape: tuple[int, ...], features: ImageFeatures) -> Floats:
    """Return [H, W, …] from [h, w, …], bilinear between the centres of blocks and constant beyond the outermost.

    The weights of a pixel sum to one, so probabilities stay probabilities.
    """
    values = blocks
    for axis, (length, resized) in enumerate(zip(shape[:2], features.size or shape[:2], strict=True)):
        low, share = _between(length, resized, blocks.shape[axis], features.block_size)
        if not share.any():  # every pixel is the centre of a block
            values = np.take(values, low, axis=axis)
            continue
        share = share.reshape(-1, *(1,) * (values.ndim - 1 - axis))
        first = np.take(values, low, axis=axis)
        high = np.minimum(low + 1, blocks.shape[axis] - 1)
        values = first + share * (np.take(values, high, axis=axis) - first)
    return values


def _between(length: int, resized: int, n: int, block_size: int) -> tuple[Ids, Floats]:
    """Return the last block [length] whose centre is not after the pixel's, and the share [length] of the next one."""
    edges = np.minimum(np.arange(n + 1) * block_size, resized)  # the last block may be smaller
    centres = (edges[:-1] + edges[1:]) / 2
    pixels = (np.arange(length) + 0.5) * (resized / length)
    position = np.interp(pixels, centres, np.arange(n))
    low = np.minimum(position.astype(np.int32), n - 1)
    return low, position - low
