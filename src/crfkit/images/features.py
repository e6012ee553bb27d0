"""Features of image blocks: dense SIFT, C1 units, colour, position and functions of users, with a cache on disk."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import check_count, is_whole
from crfkit._values import Entries
from crfkit.errors import DataError, ModelFileError, ParameterError
from crfkit.files import limits, modelfile
from crfkit.images.c1 import C1_NAMES, block_means, c1_units
from crfkit.images.custom import CustomFeatures, Function, check_names, with_names
from crfkit.images.sift import CELL, SIFT_NAMES, dense_sift

Image = NDArray[np.float32]

KINDS = ("sift", "c1")
COLOUR_NAMES = ("red", "green", "blue", "lightness", "a*", "b*")
POSITION_NAMES = ("row", "column")
VERSION = 1  # raise it when the values of features change, so that older caches are not used


@dataclass(frozen=True)
class ImageFeatures:
    """The features of an image block.

    Parameters
    ----------
    block_size : side of a block in pixels; blocks at the lower and right border may be smaller
    kinds : any of "sift" (128 features, :mod:`crfkit.images.sift`) and "c1" (34, :mod:`crfkit.images.c1`), and
        functions of images, which become `custom`
    colour : the mean of R, G, B and of CIE L*, a*, b* (6 features)
    position : row and column of the block, from 0 to 1 (2 features)
    size : (height, width) to resize an image to beforehand; None keeps its size
    sift_cell : side of a SIFT cell in pixels, even; the patch around a block is four times as wide
    custom : the functions among the features, which come last (:class:`crfkit.images.custom.CustomFeatures`)

    Examples
    --------
    >>> features = ImageFeatures(position=True)
    >>> len(features.names), features.names[0], features.names[-1]
    (164, 'sift[0,0,0°]', 'column')
    >>> features.compute(np.zeros((80, 100), dtype=np.float32)).shape
    (40, 50, 164)
    """

    block_size: int = 2
    kinds: tuple[str | Function, ...] = KINDS
    colour: bool = False
    position: bool = False
    size: tuple[int, int] | None = None
    sift_cell: int = CELL
    custom: tuple[CustomFeatures, ...] = ()

    def __post_init__(self) -> None:
        check_count(block_size=self.block_size)
        if not is_whole(self.sift_cell) or self.sift_cell < 2 or self.sift_cell % 2:
            raise ParameterError(f"sift_cell must be an even integer >= 2, not {self.sift_cell!r}")
        given = self.kinds
        if isinstance(given, str) or not all(callable(kind) or kind in KINDS for kind in given):
            raise ParameterError(f"features must be a tuple of {', '.join(KINDS)} and functions, not {given!r}")
        kinds = tuple(kind for kind in given if not callable(kind))
        if len(set(kinds)) < len(kinds):
            raise ParameterError(f"features must be a tuple of {', '.join(KINDS)}, each at most once, not {given!r}")
        custom = (*self.custom, *(CustomFeatures.of(kind) for kind in given if callable(kind)))
        check_names(custom)
        for name in ("colour", "position"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ParameterError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if not (kinds or custom or self.colour or self.position):
            raise ParameterError("there are no features; name some, or set colour or position to True")
        size = self.size
        if size is not None:
            if isinstance(size, str) or len(size) != 2 or not all(is_whole(n) and n >= 1 for n in size):
                raise ParameterError(f"size must be None or (height, width), not {size!r}")
            object.__setattr__(self, "size", (int(size[0]), int(size[1])))
        object.__setattr__(self, "block_size", int(self.block_size))
        object.__setattr__(self, "sift_cell", int(self.sift_cell))
        object.__setattr__(self, "kinds", tuple(kind for kind in KINDS if kind in kinds))
        object.__setattr__(self, "colour", bool(self.colour))
        object.__setattr__(self, "position", bool(self.position))
        object.__setattr__(self, "custom", custom)
        if all(part.names is not None for part in custom) and len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ParameterError(f"two features are named {twice!r}; give the function other feature_names")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the features in order; features from functions come last."""
        names = list(self._built_in_names)
        for part in self.custom:
            if part.names is None:
                raise ParameterError(
                    f"the number of features that the function {part.name!r} returns is not known before the first "
                    "image; call measured(image), or give the function feature_names"
                )
            names += part.names
        return tuple(names)

    @property
    def _built_in_names(self) -> tuple[str, ...]:
        parts = {"sift": SIFT_NAMES, "c1": C1_NAMES}
        names = [name for kind in KINDS if kind in self.kinds for name in parts[kind]]
        return (*names, *(COLOUR_NAMES if self.colour else ()), *(POSITION_NAMES if self.position else ()))

    def options(self) -> Entries:
        """Return the options by name, without functions."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name != "custom"}

    def measured(self, image: Image) -> ImageFeatures:
        """Return the features with names for what functions return, after calling them with this image."""
        if all(part.names is not None for part in self.custom):
            return self
        widths = [values.shape[2] for values in self._custom_values(image)]
        return replace(self, custom=with_names(self.custom, widths))

    def blocks(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Return (h, w), the number of rows and columns of blocks of an image of this shape."""
        H, W = self.size or shape[:2]
        return -(-H // self.block_size), -(-W // self.block_size)

    def compute(self, image: Image) -> Image:
        """Return features [h, w, F] of an image [H, W] or [H, W, 3] with values from 0 to 1."""
        parts = [*self._built_in_values(image), *self._custom_values(image)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def _built_in_values(self, image: Image) -> list[Image]:
        h, w = self.blocks(image.shape)
        image = self._resized(image)
        grey = intensity(image)
        parts = []
        if "sift" in self.kinds:
            parts.append(dense_sift(grey, self.block_size, self.sift_cell))
        if "c1" in self.kinds:
            parts.append(c1_units(image, grey, self.block_size))
        if self.colour:
            rgb = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
            parts.append(block_means(np.concatenate([rgb, lab(rgb)], axis=-1), self.block_size))
        if self.position:
            rows, columns = (np.arange(h) + 0.5) / h, (np.arange(w) + 0.5) / w
            parts.append(np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1).astype(np.float32))
        return parts

    def _custom_values(self, image: Image) -> list[Image]:
        if not self.custom:
            return []
        blocks, image = self.blocks(image.shape), self._resized(image)
        return [part.compute(image, blocks, self.block_size) for part in self.custom]

    def _resized(self, image: Image) -> Image:
        h, w = self.blocks(image.shape)
        what = f"an image of {image.shape[0]}×{image.shape[1]} pixels has {h * w:,} blocks: resize it (size) or take "
        limits.check("blocks", h * w, f"{what}larger blocks (block_size)")
        if self.size is None:
            return image
        from crfkit.files.images import resize

        return resize(image, self.size)

    def compute_cached(self, image: Image, folder: str | Path | None) -> Image:
        """Return the features from a folder, by a hash of pixels and options; compute them if missing or damaged.

        Values of functions are not kept, because a change of a function cannot be noticed.
        """
        if folder is None or not self._built_in_names:
            return self.compute(image)
        if self.custom:
            built_in = replace(self, custom=()).compute_cached(image, folder)
            return np.concatenate([built_in, *self._custom_values(image)], axis=-1)
        folder = Path(folder)
        shape = (*self.blocks(image.shape), len(self.names))
        path = folder / f"{self._key(image)}.features"
        if path.exists():
            try:
                found = modelfile.read(path).tensors.get("features")
                if found is not None and found.shape == shape and found.dtype == np.float32:
                    return found
            except ModelFileError:
                pass  # damaged; computed again
        features = self.compute(image)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot keep features there: {error.strerror or error}", folder) from None
        modelfile.write(path, "image-features", {}, {"features": features})
        return features

    def _key(self, image: Image) -> str:
        options = json.dumps([VERSION, self.options(), image.shape, str(image.dtype)], sort_keys=True)
        digest = hashlib.blake2b(options.encode(), digest_size=20)
        digest.update(np.ascontiguousarray(image).view(np.uint8).data)
        return digest.hexdigest()


def intensity(image: Image) -> Image:
    """Return the luma [H, W] (Rec. 601) of [H, W] or [H, W, 3]."""
    if image.ndim == 2:
        return image
    return np.asarray(image @ np.array([0.299, 0.587, 0.114], dtype=np.float32))


def lab(rgb: Image) -> Image:
    """Return CIE L*a*b* (D65), divided by 100, of sRGB values from 0 to 1."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = linear @ (to_xyz / to_xyz.sum(axis=1, keepdims=True)).T  # relative to white
    delta = 6 / 29
    f = np.where(xyz > delta**3, np.cbrt(xyz), xyz / (3 * delta**2) + 4 / 29)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([1.16 * y - 0.16, 5 * (x - y), 2 * (y - z)], axis=-1).astype(np.float32)
