"""Errors about graphs that are images name the image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from crfkit.errors import CrfkitError


@contextmanager
def naming_images(names: Sequence[str] | None = None) -> Iterator[None]:
    """Let errors about a graph name the image; without names, they have "image" and the number.

    >>> from crfkit.errors import DataError, sample_error
    >>> with naming_images(["a.png", "b.png"]):
    ...     raise sample_error(DataError, 1, " has width 70")
    Traceback (most recent call last):
    ...
    crfkit.errors.DataError: b.png has width 70
    """
    try:
        yield
    except CrfkitError as error:
        k = error.sample
        if k is None:
            raise
        raise error.of_sample(names[k] if names is not None and k < len(names) else f"image {k}") from None
