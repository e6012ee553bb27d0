"""Picture files by Pillow: their pixels, whether the file is lossy, and resizing."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array
from crfkit.errors import DataError, LimitError
from crfkit.extras import load
from crfkit.files import limits

Image = NDArray[np.float32]

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm", ".ppm", ".webp", ".gif")
_ORIENTATION = 0x0112  # EXIF's number for how the camera was held
LOSSY = ("JPEG", "MPO")


def open_picture(path: str | Path, palette: bool) -> tuple[Array, bool]:
    """Return (pixels, whether the file is lossy). With `palette`, pixels of palette
    images are colours instead of numbers of entries.

    A file of one bit per pixel gives an array of bool.
    """
    pil = pillow()
    _allow_pixels(pil)
    transpose = load("PIL.ImageOps", "images need").exif_transpose
    try:
        with pil.open(path) as picture:
            name = picture.format
            _check_pixels(picture.size, path)
            if (count := getattr(picture, "n_frames", 1)) > 1 and name != "MPO":  # MPO: a photograph and its previews
                kind = "pages" if name == "TIFF" else "frames"
                raise DataError(f"the file has {count} {kind}; expected one", path)
            turned = transpose(picture) if picture.getexif().get(_ORIENTATION, 1) != 1 else picture
            if turned.mode in ("P", "PA") and palette:
                turned = turned.convert("RGB")
            elif turned.mode == "PA":
                turned = turned.convert("P")
            elif turned.mode == "P" and name == "GIF":  # the numbers of colours in a GIF have no meaning
                levels = np.array(turned.convert("RGB"))
                if (levels == levels[..., :1]).all():
                    turned = turned.convert("L")
            elif turned.mode in ("CMYK", "YCbCr", "LAB", "HSV", "RGBX", "RGBa", "La"):
                turned = turned.convert("RGB")
            pixels = np.array(turned)
            lossy = name in LOSSY or (name == "WEBP" and not _webp_lossless(path))
    except (DataError, LimitError):
        raise
    except FileNotFoundError:
        raise DataError("there is no such file", path) from None
    except OSError as error:
        if error.strerror is None:  # Pillow's, not the system's
            raise DataError(_not_an_image(error), path) from None
        raise DataError(f"cannot read the file: {error.strerror}", path) from None
    except (pil.DecompressionBombError, pil.DecompressionBombWarning):
        raise LimitError(
            f"{path}: the image has more pixels than the limit of {limits.current().pixels:,}; if you trust the file, "
            "set CRFKIT_LIMITS=pixels=4e8 or as many as it has"
        ) from None
    except MemoryError:  # a damaged file can state that its data are gigabytes
        raise DataError("there is not enough memory for this image, or the file is damaged", path) from None
    except Exception as error:  # Pillow's plug-ins raise all kinds on damaged files
        raise DataError(_not_an_image(error), path) from None
    if pixels.ndim < 2 or pixels.size == 0:
        raise DataError(f"the image has no pixels: its shape is {pixels.shape}", path)
    return pixels, lossy


def _check_pixels(size: tuple[int, int], path: str | Path) -> None:
    """Raise LimitError if the size that a file declares is too large; nothing has been decoded yet."""
    width, height = size
    limits.check("pixels", width * height, f"{path}: the image has {width:,} × {height:,} pixels", path)


def _allow_pixels(pil: Any) -> None:
    """Let Pillow open what the limit of crfkit allows, if somebody has raised it above Pillow's own."""
    most = pil.MAX_IMAGE_PIXELS
    if most is not None and most < limits.current().pixels:
        pil.MAX_IMAGE_PIXELS = limits.current().pixels


def _not_an_image(error: Exception) -> str:
    return f"the file cannot be read as an image: {str(error) or type(error).__name__}"


def _webp_lossless(path: str | Path) -> bool:
    """Return whether a WebP file is lossless (its pixels are in a chunk "VP8L"), which Pillow does not tell."""
    data = Path(path).read_bytes()
    place = 12  # after "RIFF", the size and "WEBP"
    while place + 8 <= len(data):
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        if name in (b"VP8 ", b"VP8L"):
            return name == b"VP8L"
        place += 8 + size + size % 2
    return False


def resize(image: Image, size: tuple[int, int]) -> Image:
    """Return the image at (height, width), bilinear; averaged where it shrinks."""
    if image.shape[:2] == tuple(size):
        return image
    pil = pillow()
    channels = [image] if image.ndim == 2 else list(np.moveaxis(image, -1, 0))
    new = [
        np.asarray(pil.fromarray(np.ascontiguousarray(c)).resize((size[1], size[0]), pil.Resampling.BILINEAR))
        for c in channels
    ]
    return np.ascontiguousarray(new[0] if image.ndim == 2 else np.stack(new, axis=-1))


def resize_nearest(labels: Array, size: tuple[int, int]) -> Array:
    """Return labels [h, w] at (height, width): each pixel has the label of the pixel that its centre lies in.

    >>> resize_nearest(np.array([[1, 2]]), (2, 4)).tolist()
    [[1, 1, 2, 2], [1, 1, 2, 2]]
    """
    rows, columns = (
        np.minimum(((np.arange(new) + 0.5) * (old / new)).astype(np.int64), old - 1)
        for new, old in zip(size, labels.shape[:2], strict=True)
    )
    return np.asarray(labels[rows][:, columns])


def pillow() -> ModuleType:
    """Return the module PIL.Image."""
    return load("PIL.Image", "images need")
