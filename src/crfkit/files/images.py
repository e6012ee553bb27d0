"""Images and masks from files and arrays, and folders of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crfkit._checks import unmasked
from crfkit._types import Array, Tabular
from crfkit.errors import DataError, naming_file
from crfkit.files.image_folders import list_images, pair_folders
from crfkit.files.masks import VOID, Mask, MaskRules, known_values, read_mask
from crfkit.files.pictures import SUFFIXES, Image, open_picture, resize, resize_nearest

__all__ = [
    "SUFFIXES",
    "VOID",
    "Image",
    "Mask",
    "MaskRules",
    "as_list",
    "known_values",
    "list_images",
    "pair_folders",
    "read_image",
    "read_mask",
    "resize",
    "resize_nearest",
]


def read_image(given: object, where: str = "the image") -> Image:
    """Return an image [H, W] or [H, W, 3] with values from 0 to 1, from a path or an array.

    Arrays may be grey (H, W) or (H, W, 1), RGB or RGBA, with integers of 8 or 16 bits, bool, or floats from 0 to 1.
    Files may have any format that Pillow reads, with 8 or 16 bits, also with a palette. Transparency is ignored;
    photographs are rotated by their EXIF orientation.
    """
    if not isinstance(given, (str, Path)):
        return _image(np.asarray(unmasked(given, where)), where)
    with naming_file(given):
        return _image(open_picture(given, palette=True)[0], str(given))


def _image(array: Array, where: str) -> Image:
    if array.ndim == 3 and array.shape[2] == 2:
        array = array[..., 0]  # grey with transparency
    if array.ndim == 3:
        array = array[..., 0] if array.shape[2] == 1 else array[..., :3] if array.shape[2] == 4 else array
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise DataError(f"{where} has shape {array.shape}; expected (H, W), (H, W, 3) or (H, W, 4)")
    if array.size == 0:
        raise DataError(f"{where} has no pixels: its shape is {array.shape}")
    return np.ascontiguousarray(_unit(array, where))


def _unit(array: Array, where: str) -> Image:
    """Return the pixels scaled to values from 0 to 1."""
    kind = array.dtype.kind
    if kind == "b":
        return array.astype(np.float32)
    if kind in "iu":
        low, high = int(array.min()), int(array.max())
        sixteen = kind == "u" and array.dtype.itemsize == 2
        top = 65535 if sixteen or high > 255 else 255
        if low < 0 or high > top:
            raise DataError(f"{where} has values from {low} to {high}; expected 0 to 255 or 0 to 65535")
        scaled = array.astype(np.float32)
        scaled /= np.float32(top)  # in place: these are the largest arrays of a photograph
        return scaled
    if kind != "f":
        raise DataError(f"{where} is an array of {array.dtype}; expected numbers")
    if not np.isfinite(array).all():
        raise DataError(f"{where} has values that are not finite")
    least, most = float(array.min()), float(array.max())
    if least < -0.01 or most > 1.01:  # a resized image overshoots a little
        raise DataError(
            f"{where} has values from {least:g} to {most:g}; expected floats from 0 to 1, so scale the image"
        )
    return np.asarray(np.clip(array, 0, 1), dtype=np.float32)


def as_list(given: object, what: str) -> list[Tabular]:
    """Return a list of images, masks or probability maps; raise DataError for a single one.

    An array [n, H, W] is a list of n grey images; one of [H, W, 3] or [H, W, 4] is a single image in colour.
    """
    one = {"images": "image", "masks": "mask"}.get(what, "map")
    hint = f"; for one {one} give a list of it, [{one}]"
    if isinstance(given, (str, Path)) or not isinstance(given, (Sequence, np.ndarray)):
        raise DataError(f"{what} must be a list of arrays or paths, not {given!r:.60}{hint}")
    if isinstance(given, np.ndarray) and given.dtype.kind not in "OU":
        colour = given.ndim == 3 and given.shape[-1] in (3, 4) and what != "probabilities"
        if given.ndim < 3 or colour:
            raise DataError(f"{what} must be a list of arrays or paths, not one array of shape {given.shape}{hint}")
    return list(given)
