"""C1 units and centre-surround channels: the 34 channels of biologically inspired scene features, per block.

16 C1 units, 4 bands × 4 orientations (Serre, Wolf, Bileschi, Riesenhuber & Poggio 2007, their first four bands): Gabor
filters (S1) at the two scales of a band, then the maximum over both and over nearby positions. 18 centre-surround
differences as in Siagian & Itti (2007): 6 pairs of scales for each of intensity, red–green and blue–yellow; the colour
ones are zero on grey images.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft2, next_fast_len, rfft2
from scipy.ndimage import gaussian_filter, maximum_filter, uniform_filter

from crfkit._types import Array

Image = NDArray[np.float32]

ANGLES = (0, 45, 90, 135)
# filter side, σ, λ of the two scales of each band; side of the neighbourhood of the maximum
BANDS = (
    (((7, 2.8, 3.5), (9, 3.6, 4.6)), 8),
    (((11, 4.5, 5.6), (13, 5.4, 6.8)), 10),
    (((15, 6.3, 7.9), (17, 7.3, 9.1)), 12),
    (((19, 8.2, 10.3), (21, 9.2, 11.5)), 14),
)
ASPECT = 0.3  # γ of the Gabor filters
CENTRES = (1, 2, 4)  # σ in pixels
SURROUNDS = (4, 8)  # times the centre
PAIRS = tuple((c, s * c) for c in CENTRES for s in SURROUNDS)
_DARK = 0.1  # least brightness of a pixel that has a colour
_MARGIN = 10  # half of the largest filter
_LONG = 7.0  # λ from which a filter passes less than a quarter of the sampling rate
_CACHED = 1 << 20  # pixels of an image up to which transformed filters are kept

C1_NAMES = tuple(f"c1[band {b},{angle}°]" for b in range(1, len(BANDS) + 1) for angle in ANGLES) + tuple(
    f"{channel}[{c}−{s}]" for channel in ("intensity", "red-green", "blue-yellow") for c, s in PAIRS
)


def c1_units(image: Image, grey: Image, block: int) -> Image:
    """Return C1 units [h, w, 34] of an image [H, W] or [H, W, 3] with values from 0 to 1 and its intensity [H, W].

    >>> grey = np.zeros((5, 7), dtype=np.float32)
    >>> c1_units(grey, grey, 2).shape
    (3, 4, 34)
    """
    maps = [*_c1(grey, block), *_centre_surround(grey, block)]
    if image.ndim == 3:
        for opponent in _opponents(image):
            maps += _centre_surround(opponent, block)
    else:
        maps += [np.zeros_like(maps[0])] * (2 * len(PAIRS))
    return np.stack(maps, axis=-1)


def block_means(image: Image, block: int) -> Image:
    """Return means [h, w, …] over blocks; blocks at the lower and right border may be smaller."""
    H, W = image.shape[:2]
    rows, columns = np.arange(0, H, block), np.arange(0, W, block)
    counts = np.outer(np.minimum(block, H - rows), np.minimum(block, W - columns)).astype(np.float32)
    sums = _over_blocks(_over_blocks(image, block, 0, np.add), block, 1, np.add)
    return np.asarray(sums / counts.reshape(*counts.shape, *[1] * (image.ndim - 2)), dtype=np.float32)


def _over_blocks(maps: Image, block: int, axis: int, function: np.ufunc) -> Image:
    """Return the sum or maximum of every `block` entries along an axis; the last block may have fewer."""
    maps = np.moveaxis(maps, axis, 0)
    out = maps[::block].copy()
    for k in range(1, block):
        part = maps[k::block]
        function(out[: len(part)], part, out=out[: len(part)])
    return np.moveaxis(out, 0, axis)


def _c1(grey: Image, block: int) -> list[Image]:
    H, W = grey.shape
    padded = np.pad(grey, _MARGIN, mode="symmetric")
    shape = (_length(padded.shape[0]), _length(padded.shape[1]))
    spectrum = rfft2(padded, shape)
    squares = grey * grey
    units = []
    for scales, side in BANDS:
        best: Any = None  # [4, h, w]
        # Long waves hardly have high frequencies: without them, every second pixel of the responses will do.
        step = 2 if scales[0][2] >= _LONG and block % 2 == 0 else 1
        kept, edge = (shape[0] // step, shape[1] // step), _MARGIN // step
        h, w = -(-H // step), -(-W // step)
        low = _low(spectrum, step)
        for size, sigma, wavelength in scales:
            filters = _filters(size, sigma, wavelength, shape, step)
            responses = np.abs(irfft2(low * filters, kept)[:, edge : edge + h, edge : edge + w])
            # of filters with norm 1, relative to the norm of the patch
            energy = np.sqrt(np.maximum(uniform_filter(squares, size, mode="reflect")[::step, ::step], 0)) * size
            responses /= energy + 1e-3 * size
            # The maximum of a block first: the neighbourhood is then counted in blocks.
            responses = _over_blocks(
                _over_blocks(responses, block // step, 1, np.maximum), block // step, 2, np.maximum
            )
            best = responses if best is None else np.maximum(best, responses)
        pool = max(1, round(side / block))
        units += list(maximum_filter(best, (1, pool, pool), mode="nearest"))
    return units


def _length(n: int) -> int:
    """Return a multiple of 4 that is a fast length for a Fourier transform."""
    return 4 * int(next_fast_len(-(-n // 4), real=True))


def _low(spectrum: Array, step: int) -> Array:
    """Return the low frequencies of a spectrum [n, m/2 + 1], which is the spectrum of every `step`-th pixel."""
    if step == 1:
        return spectrum
    rows, columns = spectrum.shape[0] // (2 * step), (spectrum.shape[1] - 1) // step + 1
    return np.concatenate([spectrum[:rows, :columns], spectrum[-rows:, :columns]]) / np.float32(step * step)


def _filters(size: int, sigma: float, wavelength: float, shape: tuple[int, int], step: int) -> Array:
    return (_kept if shape[0] * shape[1] <= _CACHED else _transformed)(size, sigma, wavelength, shape, step)


def _transformed(size: int, sigma: float, wavelength: float, shape: tuple[int, int], step: int) -> Array:
    """Return conjugate spectra [4, …] of the centred Gabor filters, for correlation."""
    half = size // 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float64)
    inside = np.hypot(x, y) <= size / 2
    spectra = []
    for angle in np.deg2rad(ANGLES):
        along, across = x * np.cos(angle) + y * np.sin(angle), -x * np.sin(angle) + y * np.cos(angle)
        gabor = np.exp(-(along**2 + (ASPECT * across) ** 2) / (2 * sigma**2)) * np.cos(2 * np.pi * along / wavelength)
        gabor[~inside] = 0
        gabor[inside] -= gabor[inside].mean()
        gabor /= np.linalg.norm(gabor)
        placed = np.zeros(shape, dtype=np.float32)
        placed[:size, :size] = gabor
        spectrum = rfft2(np.roll(placed, (-half, -half), axis=(0, 1))).conj()
        spectra.append(_low(spectrum, step) * np.float32(step * step))
    return np.stack(spectra)


_kept = lru_cache(maxsize=32)(_transformed)


def _centre_surround(channel: Image, block: int) -> list[Image]:
    """Return |centre − surround| on the grid of blocks for each pair of scales."""
    means = block_means(channel, block)
    blurred = {
        sigma: gaussian_filter(means, sigma / block, mode="nearest", truncate=3.0)
        for sigma in sorted({sigma for pair in PAIRS for sigma in pair})
    }
    return [np.abs(blurred[c] - blurred[s]) for c, s in PAIRS]


def _opponents(image: Image) -> list[Image]:
    """Return (r − g)/max and (b − min(r, g))/max (Walther & Koch 2006); both are 0 for dark pixels."""
    red, green, blue = np.moveaxis(image, -1, 0)
    top = image.max(axis=-1)
    scale = np.where(top >= _DARK, 1 / np.maximum(top, _DARK), 0).astype(np.float32)
    return [(red - green) * scale, (blue - np.minimum(red, green)) * scale]
