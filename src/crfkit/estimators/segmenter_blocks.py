"""Between pixels and blocks: the label of a block, and blocks drawn at the size of the image."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit.data.sequences import Ids
from crfkit.errors import DataError
from crfkit.features.c1 import block_means
from crfkit.features.image import ImageFeatures
from crfkit.readers.images import Mask, resize

COPIES = 8  # of the features of a block that training holds at once: its own, those of two edges, and while encoding


def block_labels(mask: Mask, classes: NDArray[Any], features: ImageFeatures) -> NDArray[Any]:
    """[h, w] the label that most pixels of a block have; the first of the classes where there are as many of each."""
    if features.size is None and features.block_size == 1:
        return mask
    shares = []
    for label in classes:
        of_label = (mask == label).astype(np.float32)
        if features.size is not None:
            of_label = resize(of_label, features.size)
        shares.append(block_means(of_label, features.block_size))
    return np.asarray(classes[np.argmax(shares, axis=0)])


def full_size(blocks: NDArray[Any], shape: tuple[int, ...], features: ImageFeatures) -> NDArray[Any]:
    """[H, W, …] from [h, w, …]: every pixel has the value of the block it lies in."""
    indices: list[Ids] = []
    for length, resized, n in zip(shape[:2], features.size or shape[:2], blocks.shape[:2], strict=True):
        pixels = ((np.arange(length) + 0.5) * (resized / length)).astype(np.int32)
        indices.append(np.minimum(pixels // features.block_size, n - 1))
    return blocks[indices[0]][:, indices[1]]


def check_size(image: Any, mask: Any, where: str, mask_where: str) -> None:
    if image.shape[:2] != mask.shape:
        pixels = ["×".join(map(str, shape)) for shape in (image.shape[:2], mask.shape)]
        raise DataError(f"{where} is {pixels[0]} pixels (height×width), {mask_where} {pixels[1]}; expected equal sizes")


def check_memory(n_blocks: int, n_features: int) -> None:
    """Raises where training would need more than the machine has: features of nodes and edges, in double precision."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        return
    needed = 8 * COPIES * n_blocks * (n_features + 1)
    if needed > there:
        raise DataError(
            f"{n_blocks} blocks of {n_features} features need about {needed / 1e9:.0f} GB; this machine has "
            f"{there / 1e9:.0f}: resize the images (size), take larger blocks (block_size), or fewer images"
        )
