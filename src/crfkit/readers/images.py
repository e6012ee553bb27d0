"""Images and masks from files and arrays, and folders of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit.errors import DataError, ParameterError

Image = NDArray[np.float32]
Mask = NDArray[np.int64]

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".ppm")
LOSSY = ("JPEG", "MPO")
THRESHOLD = 127  # of masks in lossy files


def read_image(given: Any, where: str = "the image") -> Image:
    """[H, W] or [H, W, 3] with values from 0 to 1, from a path or an array.

    Arrays: grey (H, W) or (H, W, 1), RGB, RGBA; integers of 8 or 16 bits, bool, or floats from 0 to 1. Files: whatever
    Pillow reads, 8 or 16 bits, also with a palette. Transparency is ignored; a photograph is turned as its EXIF says.
    """
    if isinstance(given, (str, Path)):
        array, _ = _open(given, palette=True)
        where = str(given)
    else:
        array = np.asarray(given)
    if array.ndim == 3 and array.shape[2] == 2:
        array = array[..., 0]  # grey with transparency
    if array.ndim == 3:
        array = array[..., 0] if array.shape[2] == 1 else array[..., :3] if array.shape[2] == 4 else array
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise DataError(f"{where} has shape {array.shape}; expected (H, W), (H, W, 3) or (H, W, 4)")
    if array.size == 0:
        raise DataError(f"{where} has no pixels: its shape is {array.shape}")
    return np.ascontiguousarray(_unit(array, where))


def _unit(array: NDArray[Any], where: str) -> Image:
    """Values from 0 to 1."""
    kind = array.dtype.kind
    if kind == "b":
        return array.astype(np.float32)
    if kind in "iu":
        low, high = int(array.min()), int(array.max())
        sixteen = kind == "u" and array.dtype.itemsize == 2
        top = 65535 if sixteen or high > 255 else 255
        if low < 0 or high > top:
            raise DataError(f"{where} has values from {low} to {high}; expected 0 to 255, or to 65535")
        return array.astype(np.float32) / np.float32(top)
    if kind != "f":
        raise DataError(f"{where} is an array of {array.dtype}; expected numbers")
    if not np.isfinite(array).all():
        raise DataError(f"{where} has values that are not finite")
    least, most = float(array.min()), float(array.max())
    if least < -0.01 or most > 1.01:  # a resized image overshoots a little
        raise DataError(
            f"{where} has values from {least:g} to {most:g}; those of an image of floats must be from 0 to 1: scale it"
        )
    return np.asarray(np.clip(array, 0, 1), dtype=np.float32)


def read_mask(given: Any, where: str = "the mask", multiclass: bool = False) -> Mask:
    """[H, W] integers, from a path or an array of integers or bool.

    A mask has at most two values, or any with `multiclass`. A lossy file (JPEG), whose grey levels are never quite
    those that were saved, is thresholded: 255 where they are above 127, else 0. A file with a palette gives the numbers
    of its colours.
    """
    lossy = False
    if isinstance(given, (str, Path)):
        array, lossy = _open(given, palette=False)
        where = str(given)
    else:
        array = np.asarray(given)
    if array.ndim == 3:
        if array.shape[2] in (2, 4):
            array = array[..., :-1]
        if (array != array[..., :1]).any() and not lossy:
            raise DataError(f"{where} has colours; expected a grey level, or a palette entry, per class")
        array = array[..., 0]
    if array.ndim != 2:
        raise DataError(f"{where} has shape {array.shape}; expected (H, W)")
    if array.size == 0:
        raise DataError(f"{where} has no pixels: its shape is {array.shape}")
    if array.dtype.kind == "f" and (array == np.round(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "biu":
        raise DataError(f"{where} is an array of {array.dtype}; expected integers, one per class")
    mask = array.astype(np.int64)
    if lossy:
        if multiclass:
            raise DataError(f"{where} is a lossy file: its classes cannot be told apart; save it as PNG")
        return np.where(mask > THRESHOLD, 255, 0)
    values = np.unique(mask)
    if len(values) > 2 and not multiclass:
        shown = ", ".join(map(str, values[:4])) + (", …" if len(values) > 4 else "")
        raise DataError(f"{where} has {len(values)} values ({shown}); expected two. Threshold it, or say multi-class")
    return mask


def resize(image: Image, size: tuple[int, int]) -> Image:
    """To (height, width); smooth where it shrinks."""
    if image.shape[:2] == tuple(size):
        return image
    pil = _pillow()
    channels = [image] if image.ndim == 2 else list(np.moveaxis(image, -1, 0))
    new = [
        np.asarray(pil.fromarray(np.ascontiguousarray(c)).resize((size[1], size[0]), pil.Resampling.BILINEAR))
        for c in channels
    ]
    return np.ascontiguousarray(new[0] if image.ndim == 2 else np.stack(new, axis=-1))


def list_images(folder: str | Path) -> dict[str, Path]:
    """Stem → file, of the images in a folder, by name."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("no such folder" if not folder.exists() else "expected a folder of images", folder)
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith(".") or not path.is_file():
            continue
        if path.stem in found:
            raise DataError(f"{found[path.stem].name} and {path.name} have the same name but for the ending", folder)
        found[path.stem] = path
    if not found:
        raise DataError(f"the folder has no images ({', '.join(SUFFIXES)})", folder)
    return found


def pair_folders(images: str | Path, masks: str | Path) -> list[tuple[Path, Path]]:
    """(image, mask) by the name of the files without ending; every image has a mask and the other way round."""
    pictures, labels = list_images(images), list_images(masks)
    for stem, path in labels.items():
        if stem not in pictures:
            raise DataError(f"there is no image named {stem} in {images}", path)
    for stem, path in pictures.items():
        if stem not in labels:
            raise DataError(f"there is no mask named {stem} in {masks}", path)
    return [(path, labels[stem]) for stem, path in pictures.items()]


def as_list(given: Any, what: str) -> list[Any]:
    """A list of images or masks; raises for a single one."""
    if isinstance(given, (str, Path)) or not isinstance(given, (Sequence, np.ndarray)):
        raise DataError(f"{what} must be a list of arrays or paths, not {given!r:.60}")
    if isinstance(given, np.ndarray) and given.ndim < 3 and given.dtype.kind not in "OU":
        raise DataError(f"{what} must be a list of arrays or paths, not one array of shape {given.shape}")
    return list(given)


def _open(path: str | Path, palette: bool) -> tuple[NDArray[Any], bool]:
    """(pixels, whether the file is lossy)."""
    pil = _pillow()
    from PIL import ImageOps

    try:
        with pil.open(path) as picture:
            name = picture.format
            if name == "TIFF" and getattr(picture, "n_frames", 1) > 1:
                raise DataError(f"the file has {picture.n_frames} pages; expected one", path)
            turned = ImageOps.exif_transpose(picture)
            if turned.mode in ("P", "PA") and palette:
                turned = turned.convert("RGB")
            elif turned.mode == "PA":
                turned = turned.convert("P")
            elif turned.mode in ("CMYK", "YCbCr", "LAB", "HSV", "RGBX", "RGBa", "La"):
                turned = turned.convert("RGB")
            pixels = np.array(turned)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except Exception as error:  # Pillow's plug-ins raise all kinds on damaged files
        if isinstance(error, MemoryError):
            raise
        raise DataError(f"cannot be read as an image: {str(error) or type(error).__name__}", path) from None
    if pixels.ndim < 2 or pixels.size == 0:
        raise DataError(f"the image has no pixels: its shape is {pixels.shape}", path)
    return pixels, name in LOSSY


def _pillow() -> Any:
    try:
        from PIL import Image as pillow  # noqa: N813
    except ImportError:
        raise ParameterError("images need Pillow: pip install 'crfkit[images]'") from None
    return pillow
