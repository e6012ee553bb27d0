"""Pictures that `crfkit segment` and `crfkit refine` write, and their progress."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from crfkit._types import Array
from crfkit.cli.runtime.output import say, unwritable
from crfkit.errors import DataError, ParameterError
from crfkit.files.atomic import replacing

if TYPE_CHECKING:
    from crfkit.files.images import Image
    from crfkit.images.model.segmenter import Segmentation

MAP = "_probabilities"  # follows the name of an image in the name of its probability map
# colours of classes in overlays; the first class has none
COLOURS = np.array([[230, 60, 40], [40, 120, 230], [60, 180, 75], [245, 180, 30], [150, 80, 200], [70, 200, 210]])


def write_pictures(folder: Path, stem: str, image: Image, found: Segmentation, classes: Array) -> None:
    """Write STEM_mask.png (with the values of the training masks), STEM_overlay.png and STEM_probability.png.

    Shows the probability of the second class if there are two classes, otherwise of the predicted class.
    """
    write_mask(folder, stem, found.mask, classes)
    write_picture(folder / f"{stem}_overlay.png", overlay(image, found.mask, classes))
    assert found.probabilities is not None
    p = found.probabilities[..., 1] if len(classes) == 2 else found.probabilities.max(axis=-1)
    write_picture(folder / f"{stem}_probability.png", np.rint(255 * p).astype(np.uint8))


def check_classes(classes: Array) -> None:
    """Raise ParameterError unless the classes are integers that a picture can hold."""
    if classes.dtype.kind not in "iu" or int(classes.min()) < 0 or int(classes.max()) > 65535:
        shown = ", ".join(map(str, classes.tolist()[:6]))
        raise ParameterError(f"masks need classes that are integers from 0 to 65535; the model's classes are {shown}")


def write_mask(folder: Path, stem: str, mask: Array, classes: Array) -> None:
    """Write STEM_mask.png with 8 or 16 bits per pixel."""
    check_classes(classes)
    write_picture(folder / f"{stem}_mask.png", mask.astype(np.uint8 if classes.max() <= 255 else np.uint16))


def write_map(folder: Path, stem: str, probabilities: object) -> None:
    """Write STEM_probabilities.npy, a float32 array [H, W, classes] in the order of the classes."""
    path = folder / f"{stem}{MAP}.npy"
    with replacing(path, unwritable(path), durable=False) as stream:
        np.save(stream, np.asarray(probabilities, dtype=np.float32))


def overlay(image: Image, mask: Array, classes: Array) -> Array:
    """Return the image [H, W, 3] with all classes but the first tinted."""
    rgb = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    tints = np.concatenate([[[0, 0, 0]], COLOURS[np.arange(len(classes) - 1) % len(COLOURS)]]).astype(np.float32)
    shares = np.where(np.arange(len(classes)) > 0, 0.45, 0).astype(np.float32)
    states = np.searchsorted(classes, mask)
    share = shares[states][..., None]
    return np.rint(255 * rgb * (1 - share) + tints[states] * share).astype(np.uint8)


def write_picture(path: Path, pixels: object) -> None:
    """Write an array of pixels as a PNG file."""
    from crfkit.files.pictures import pillow

    buffer = io.BytesIO()
    pillow().fromarray(pixels).save(buffer, format="PNG", compress_level=1)
    with replacing(path, unwritable(path), durable=False) as stream:
        stream.write(buffer.getvalue())


def make_folder(path: Path) -> None:
    """Create a folder for output, with its parents, unless it exists."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot create the folder: {error.strerror or error}", path) from None


def exit_if_failed(failed: int, total: int, what: str) -> None:
    """Exit with code 1 if some images could not be processed."""
    if failed:
        say(f"crfkit: error: {failed} of {total} images could not be {what}", err=True)
        raise typer.Exit(1)


@contextmanager
def bar(text: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
