"""Images with masks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def disc_images(
    n: int, seed: int = 0, shape: tuple[int, int] = (64, 80)
) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.uint8]]]:
    """Return (images [H, W, 3], masks [H, W] with 1 on the disc): discs with a faint tint under strong noise.

    >>> images, masks = disc_images(2)
    >>> images[0].shape, sorted(set(masks[0].ravel().tolist()))
    ((64, 80, 3), [0, 1])
    """
    H, W = shape
    y, x = np.mgrid[:H, :W]
    images, masks = [], []
    for k in range(n):
        rng = np.random.default_rng((seed, k))
        radius = rng.uniform(0.22, 0.34) * min(H, W)
        row, column = rng.uniform(radius, H - radius), rng.uniform(radius, W - radius)
        mask = (y - row) ** 2 + (x - column) ** 2 < radius**2
        values = 0.5 + mask[..., None] * (0.06, 0.0, -0.06) + rng.normal(0, 0.25, (H, W, 3))
        images.append(np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8))
        masks.append(mask.astype(np.uint8))
    return images, masks
