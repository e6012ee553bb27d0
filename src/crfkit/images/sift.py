"""Dense SIFT (Lowe 2004): histograms of gradient orientations in 4×4 cells around the centre of every block."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

CELL = 4  # usual side of a cell in pixels; the patch is then 16×16, as Lowe's
CELLS = 4
ORIENTATIONS = 8
CLIP = 0.2
_FAINT = 0.02  # sum of gradients (of intensities 0 to 1) below which a patch counts as flat

SIFT_NAMES = tuple(
    f"sift[{row},{column},{360 * o // ORIENTATIONS}°]"
    for row in range(CELLS)
    for column in range(CELLS)
    for o in range(ORIENTATIONS)
)


def dense_sift(grey: NDArray[np.float32], block: int, cell: int = CELL) -> NDArray[np.float32]:
    """Return descriptors [h, w, 128] of an image [H, W], h = ⌈H/block⌉: cell by cell in rows, 8 orientations each.

    A cell has `cell`×`cell` pixels.
    Orientation 0° is a gradient to the right, 90° downwards. Weights are linear in orientation, row and column
    (trilinear); the Gaussian window (σ half the patch) is taken at the centre of each cell. A descriptor has norm 1,
    then entries are cut at 0.2 and its norm is 1 again; flat patches stay near zero.

    >>> dense_sift(np.zeros((5, 7), dtype=np.float32), 2).shape
    (3, 4, 128)
    """
    H, W = grey.shape
    h, w = -(-H // block), -(-W // block)
    maps = _orientation_maps(grey)
    # Cells lie at the block's centre + cell·(−1.5, −0.5, 0.5, 1.5); a margin of zeros holds those outside the image.
    reach = cell * (CELLS - 1) // 2
    margin = reach + cell + block
    padded = np.zeros((ORIENTATIONS, H + 2 * margin, W + 2 * margin), dtype=np.float32)
    padded[:, margin : margin + H, margin : margin + W] = maps
    # Of the sums only those at centres of cells are needed: every `step` pixels.
    first, step = margin + (block - 1) // 2 - reach, math.gcd(block, cell)
    sums = _triangle(padded, 1, block, cell)[:, first::step]
    sums = np.ascontiguousarray(np.moveaxis(_triangle(sums, 2, block, cell)[:, :, first::step], 0, -1))
    window = np.exp(-0.5 * ((np.arange(CELLS) - 1.5) / (CELLS / 2)) ** 2)
    out = np.empty((h, w, CELLS, CELLS, ORIENTATIONS), dtype=np.float32)
    stride = block // step
    for a in range(CELLS):
        top = a * cell // step
        for b in range(CELLS):
            left = b * cell // step
            part = sums[top : top + stride * h : stride, left : left + stride * w : stride]
            np.multiply(part, np.float32(window[a] * window[b]), out=out[:, :, a, b])
    flat = out.reshape(h * w, -1)
    _normalise(flat, _FAINT)
    np.minimum(flat, CLIP, out=flat)
    _normalise(flat, 1e-12)
    return flat.reshape(h, w, -1)


def _orientation_maps(grey: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return gradient magnitudes [8, H, W], each divided between the two nearest orientations."""
    H, W = grey.shape
    around = np.pad(grey, 1, mode="edge")
    down = (around[2:, 1:-1] - around[:-2, 1:-1]) / 2
    right = (around[1:-1, 2:] - around[1:-1, :-2]) / 2
    magnitude = np.hypot(right, down)
    angle = np.arctan2(down, right) * np.float32(ORIENTATIONS / (2 * np.pi)) % ORIENTATIONS
    below = np.floor(angle)
    share = (angle - below) * magnitude
    k = below.astype(np.intp).ravel() % ORIENTATIONS
    maps = np.zeros((ORIENTATIONS, H * W), dtype=np.float32)
    pixel = np.arange(H * W)
    maps[k, pixel] = (magnitude - share).ravel()
    maps[(k + 1) % ORIENTATIONS, pixel] = share.ravel()
    return maps.reshape(ORIENTATIONS, H, W)


def _triangle(maps: NDArray[np.float32], axis: int, block: int, cell: int) -> NDArray[np.float32]:
    """Return sums with weights 1 − |d|/cell; d is the distance from pixel p, or p + ½ if a centre is between pixels."""
    taps = np.arange(-cell + 1, cell + 1)
    shift = 0.0 if block % 2 else 0.5
    weights = np.maximum(0.0, 1 - np.abs(taps - shift) / cell)
    return correlate1d(maps, weights, axis, origin=-1, mode="constant")


def _normalise(rows: NDArray[np.float32], least: float) -> None:
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows /= np.maximum(norms, least)[:, None]
