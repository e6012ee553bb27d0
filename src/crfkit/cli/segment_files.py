"""What `crfkit segment` writes as pictures, its progress, and how it ends on SIGTERM."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.models.segmenter import Segmentation
    from crfkit.readers.images import Image

MAP = "_probabilities"  # what follows the name of an image in that of its map
# of classes in overlays: the first is left as it is
COLOURS = np.array([[230, 60, 40], [40, 120, 230], [60, 180, 75], [245, 180, 30], [150, 80, 200], [70, 200, 210]])


def write_pictures(folder: Path, stem: str, image: Image, found: Segmentation, classes: Any) -> None:
    """STEM_mask.png (values of the training masks), STEM_overlay.png and STEM_probability.png.

    The probability is that of the second of two classes; of the label found where there are more.
    """
    top = int(classes.max())
    if top > 65535 or int(classes.min()) < 0:
        raise ParameterError(f"classes from {classes.min()} to {top} cannot be written as a picture; at most 65535")
    write_picture(folder / f"{stem}_mask.png", found.mask.astype(np.uint8 if top <= 255 else np.uint16))
    write_picture(folder / f"{stem}_overlay.png", overlay(image, found.mask, classes))
    assert found.probabilities is not None
    p = found.probabilities[..., 1] if len(classes) == 2 else found.probabilities.max(axis=-1)
    write_picture(folder / f"{stem}_probability.png", np.rint(255 * p).astype(np.uint8))


def write_map(folder: Path, stem: str, probabilities: Any) -> None:
    """Write STEM_probabilities.npy: [H, W, classes], float32, in the order of the classes."""
    np.save(folder / f"{stem}{MAP}.npy", np.asarray(probabilities, dtype=np.float32))


def overlay(image: Image, mask: Any, classes: Any) -> Any:
    """[H, W, 3] the image, with all classes but the first tinted."""
    rgb = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    tints = np.concatenate([[[0, 0, 0]], COLOURS[np.arange(len(classes) - 1) % len(COLOURS)]]).astype(np.float32)
    shares = np.where(np.arange(len(classes)) > 0, 0.45, 0).astype(np.float32)
    states = np.searchsorted(classes, mask)
    share = shares[states][..., None]
    return np.rint(255 * rgb * (1 - share) + tints[states] * share).astype(np.uint8)


def write_picture(path: Path, pixels: Any) -> None:
    from PIL import Image as pillow  # noqa: N813

    buffer = io.BytesIO()
    pillow.fromarray(pixels).save(buffer, format="PNG", compress_level=1)
    path.write_bytes(buffer.getvalue())


@contextmanager
def bar(text: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal; nothing elsewhere."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def termination() -> Iterator[list[bool]]:
    """Turn SIGTERM into KeyboardInterrupt, so that the model so far is kept; the list is not empty once it came."""
    came: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def stop(*_: Any) -> None:
        came.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)
