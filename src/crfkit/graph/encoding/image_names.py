"""Errors about graphs that are images name the image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from crfkit.errors import CrfkitError, DataError


@contextmanager
def naming_images(names: Sequence[str] | None = None) -> Iterator[None]:
    """Replace "graph" and a number in errors by the name of the image; without names, by "image" and the number.

    >>> with naming_images(["a.png", "b.png"]):
    ...     raise DataError("graph 1 has width 70")
    Traceback (most recent call last):
    ...
    crfkit.errors.DataError: b.png has width 70
    """

    def name(found: re.Match[str]) -> str:
        k = int(found[1])
        return names[k] if names is not None and k < len(names) else f"image {k}"

    try:
        yield
    except CrfkitError as error:
        text = re.sub(r"\bgraph (\d+)\b", name, str(error))
        if text == str(error):
            raise
        raise (DataError(text) if isinstance(error, DataError) else type(error)(text)) from None
