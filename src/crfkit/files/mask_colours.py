"""Colours of masks and the classes that they mean."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Array
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import read_small

Colours = tuple[tuple[int, int, int, int | None], ...]  # (red, green, blue, class); class None is unknown

NAMES = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "grey": (128, 128, 128),
    "gray": (128, 128, 128),
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "cyan": (0, 255, 255),
    "magenta": (255, 0, 255),
    "orange": (255, 165, 0),
    "purple": (128, 0, 128),
    "maroon": (128, 0, 0),
    "navy": (0, 0, 128),
    "brown": (165, 42, 42),
    "pink": (255, 192, 203),
}
UNKNOWN = ("ignore", "unknown", "void")


def read_colours(given: object) -> Colours:
    """Return the map of colours that a dict, a text such as "black=0, #ff0000=1" or a file describes.

    A file has a line per colour: ``#ff0000 1``, ``red 1`` or ``255 0 0 1``, also separated by commas or =. The class
    "ignore" means that pixels of this colour have no known class.

    >>> read_colours("black=0, #800000=1, white=ignore")
    ((0, 0, 0, 0), (128, 0, 0, 1), (255, 255, 255, None))
    """
    if isinstance(given, Mapping):
        items: Iterable[tuple[object, object]] = given.items()
    elif isinstance(given, (str, Path)):
        items = _read_text(given)
    else:
        raise ParameterError(f"the colours of masks must be a dict {{colour: class}}, a text or a file, not {given!r}")
    found: dict[tuple[int, int, int], int | None] = {}
    for colour, label in items:
        rgb = _colour(colour)
        if rgb in found:
            raise ParameterError(f"the colour {show_colour(rgb)} is given twice; give each colour once")
        found[rgb] = _label(label, rgb)
    if len({label for label in found.values() if label is not None}) < 2:
        raise ParameterError("the colours of masks must name at least two classes, such as black=0,red=1")
    return tuple((*rgb, found[rgb]) for rgb in sorted(found))


def classes_of(pixels: Array, colours: Colours, nearest: bool) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return ([H, W] the place in `colours` of each pixel, [H, W] whether it is there); or the nearest colour."""
    table = np.array([colour[:3] for colour in colours], dtype=np.int64)
    if not nearest:
        codes = table @ (65536, 256, 1)  # ascending, as the colours are sorted
        given = pixels.astype(np.int64) @ np.array((65536, 256, 1))
        places = np.minimum(np.searchsorted(codes, given), len(codes) - 1)
        return places, codes[places] == given
    distances = np.stack([((pixels.astype(np.int64) - rgb) ** 2).sum(axis=-1) for rgb in table])
    return distances.argmin(axis=0), np.ones(pixels.shape[:2], dtype=bool)


def show_colour(colour: Sequence[Any]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*(int(part) for part in colour[:3]))


def _read_text(given: str | Path) -> list[tuple[object, object]]:
    path = Path(given)
    if isinstance(given, str) and "=" in given and not path.is_file():
        return [_item(part, f"in {part.strip()!r}") for part in re.split(r"[;,]", given) if part.strip()]
    try:
        lines = read_small(path, "the colours of masks").decode("utf-8").splitlines()
    except (DataError, UnicodeDecodeError) as error:
        reason = getattr(error.__cause__, "strerror", None) or "not a text file"
        raise DataError(f"cannot read the colours of masks: {reason}; or give them as black=0,red=1", path) from None
    return [_item(line, f"in line {n} of {path}") for n, line in enumerate(lines, 1) if line.strip()]


def _item(text: str, where: str) -> tuple[object, object]:
    parts = [part for part in re.split(r"[\s,;=:]+", text.strip()) if part]
    if len(parts) == 2:
        return parts[0], parts[1]
    if len(parts) == 4:
        return parts[:3], parts[3]
    raise ParameterError(f"expected a colour and a class {where}, such as red=1, #800000=1 or 128 0 0 1")


def _colour(given: Any) -> tuple[int, int, int]:
    if isinstance(given, str):
        if given.lower() in NAMES:
            return NAMES[given.lower()]
        if re.fullmatch(r"#[0-9a-fA-F]{6}", given):
            return int(given[1:3], 16), int(given[3:5], 16), int(given[5:7], 16)
        raise ParameterError(
            f"unknown colour {given!r}; expected #rrggbb, red green blue, or one of {', '.join(NAMES)}"
        )
    try:
        red, green, blue = (int(part) for part in given)
    except (TypeError, ValueError):
        raise ParameterError(f"a colour must be a name, '#rrggbb' or (red, green, blue), not {given!r}") from None
    if not all(0 <= part <= 255 for part in (red, green, blue)):
        raise ParameterError(f"red, green and blue must be from 0 to 255, not {given!r}")
    return red, green, blue


def _label(given: object, colour: tuple[int, int, int]) -> int | None:
    if given is None or (isinstance(given, str) and given.lower() in UNKNOWN):
        return None
    if isinstance(given, numbers.Integral) and not isinstance(given, bool):
        return int(given)
    if isinstance(given, str) and re.fullmatch(r"-?\d{1,9}", given):
        return int(given)
    raise ParameterError(f"the class of {show_colour(colour)} must be an integer, or 'ignore', not {given!r}")
