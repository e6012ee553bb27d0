"""Masks: an integer class per pixel, from files and arrays, with pixels whose class is not known."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import is_whole
from crfkit._types import Array, Entries
from crfkit.errors import DataError, ParameterError
from crfkit.files.mask_colours import Colours, classes_of, read_colours, show_colour
from crfkit.files.pictures import open_picture

Mask = NDArray[np.int64]

VOID = int(np.iinfo(np.int64).min)  # marks a pixel of unknown class
THRESHOLD = 127  # of masks in lossy files


@dataclass(frozen=True)
class MaskRules:
    """Rules for reading masks.

    Parameters
    ----------
    multiclass : whether masks may have more than two values
    ignore : values of pixels whose class is not known, e.g. 255 in PASCAL VOC: a number or several
    colours : {colour: class} for masks with colours; a colour is a name, "#rrggbb" or (r, g, b), and the class None
        says that it is not known. Masks without colours are read as usual

    >>> rules = MaskRules(ignore=255, colours={"red": 1, "black": 0, (255, 255, 255): None})
    >>> rules.ignore, rules.colours
    ((255,), ((0, 0, 0, 0), (255, 0, 0, 1), (255, 255, 255, None)))
    """

    multiclass: bool = False
    ignore: Any = ()  # kept as a tuple of integers
    colours: Any = None  # kept as ((r, g, b, class), …)

    def __post_init__(self) -> None:
        ignore = () if self.ignore is None else self.ignore
        ignore = (ignore,) if isinstance(ignore, numbers.Integral) else ignore
        if isinstance(ignore, (str, Mapping)) or not all(is_whole(value) for value in ignore):
            raise ParameterError(f"ignore must be None, an integer or a list of integers, not {self.ignore!r}")
        colours: Colours = () if self.colours is None else read_colours(self.colours)
        known = {label for *_, label in colours if label is not None}
        object.__setattr__(self, "ignore", tuple(sorted({int(value) for value in ignore})))
        object.__setattr__(self, "colours", colours)
        object.__setattr__(self, "multiclass", bool(self.multiclass) or len(known) > 2)

    def read(self, given: object, where: str = "the mask") -> tuple[Mask, bool]:
        """Return (mask, whether it is yes or no): an array of bool, one bit per pixel, or a thresholded lossy file.

        The "yes" of such a mask is 255 in a lossy file and 1 in others; a set of masks may have another number for it.
        """
        lossy = False
        if isinstance(given, (str, Path)):
            array, lossy = open_picture(given, palette=bool(self.colours))
            known = np.ones(array.shape[:2], dtype=bool)
            where = str(given)
        else:
            array, known = _known(given, where)
        if array.ndim == 3:
            array = array[..., :-1] if array.shape[2] in (2, 4) else array
            if array.shape[2] == 3 and self.colours:
                return self._by_colour(array, known, lossy, where), False
            if (array != array[..., :1]).any() and not lossy:
                raise DataError(
                    f"{where} has colours; expected one grey level or palette entry per class. Name the class of each "
                    "colour with mask_colours (--mask-colours)"
                )
            array = array[..., 0]
        if array.ndim != 2:
            raise DataError(f"{where} has shape {array.shape}; expected (H, W)")
        if array.size == 0:
            raise DataError(f"{where} has no pixels: its shape is {array.shape}")
        if array.dtype.kind == "f" and (array[known] == np.round(array[known])).all():
            array = np.where(known, array, 0).astype(np.int64)
        if array.dtype.kind not in "biu":
            raise DataError(f"{where} is an array of {array.dtype}; expected integers, one per class")
        if lossy:
            return self._threshold(array, where), True
        mask = array.astype(np.int64)
        mask[~known] = VOID
        return self._checked(mask, where), array.dtype.kind == "b"

    def _by_colour(self, array: Array, known: NDArray[np.bool_], lossy: bool, where: str) -> Mask:
        states, nearest = classes_of(array, self.colours, lossy)
        if (strange := np.argwhere(~nearest & known)).size:
            row, column = strange[0].tolist()
            listed = ", ".join(show_colour(colour) for colour in self.colours)
            raise DataError(
                f"{where} has the colour {show_colour(array[row, column].tolist())} at row {row}, column {column} "
                f"({len(strange)} such pixels); the colours given are {listed}"
            )
        labels = np.array([VOID if label is None else label for *_, label in self.colours], dtype=np.int64)
        return self._checked(np.where(known, labels[states], VOID), where)

    def _threshold(self, array: Array, where: str) -> Mask:
        if self.multiclass or self.ignore:
            what = "classes" if self.multiclass else "pixels to ignore"
            raise DataError(f"{where} is a lossy file, so its {what} cannot be told apart; save it as PNG")
        return np.where(array.astype(np.int64) > THRESHOLD, 255, 0)

    def _checked(self, mask: Mask, where: str) -> Mask:
        mask = np.where(np.isin(mask, self.ignore), VOID, mask) if self.ignore else mask
        values = known_values(mask)
        if len(values[values != -1]) > 2 and not self.multiclass:
            shown = ", ".join(map(str, values[:4])) + (", …" if len(values) > 4 else "")
            last = int(values[-1])
            raise DataError(
                f"{where} has {len(values)} distinct values ({shown}), expected 2; pass multiclass=True "
                f"(--multi-class) to keep them all, or ignore={last} (--ignore {last}) if {last} marks pixels without "
                "a label"
            )
        return mask

    @property
    def colour_map(self) -> dict[tuple[int, int, int], int | None] | None:
        """Return {(r, g, b): class}, or None if masks have no colours."""
        return {(r, g, b): label for r, g, b, label in self.colours} or None

    # --- in model files

    def entry(self) -> Entries:
        return {"ignore": list(self.ignore), "colours": [list(colour) for colour in self.colours]}

    @classmethod
    def from_entry(cls, multiclass: bool, entry: Any) -> MaskRules:
        """Return the rules of a model file; raise ParameterError, TypeError or ValueError if they are damaged."""
        if entry is None:
            return cls(multiclass)
        colours = {(r, g, b): label for r, g, b, label in entry["colours"]}
        return cls(multiclass, entry["ignore"], colours or None)


def read_mask(
    given: object, where: str = "the mask", multiclass: bool = False, ignore: object = None, colours: object = None
) -> Mask:
    """Return [H, W] integers, from a path or an array of integers or bool.

    A mask has at most two values, or any with `multiclass`. A lossy file (JPEG, lossy WebP), whose grey levels are
    never quite those that were saved, is thresholded: 255 where they are above 127, otherwise 0. A file with a palette
    gives the numbers of its colours (a GIF of greys gives the grey levels). Pixels whose class is not known are `VOID`:
    they are masked (numpy.ma), None or NaN in arrays, or have a value of `ignore`. (−1 stays here; in a set of masks it
    is unknown unless all others are 1.) `colours` is {colour: class}.

    >>> mask = read_mask(np.array([[0, 1], [1, 255]]), ignore=255)
    >>> (mask == VOID).tolist()
    [[False, False], [False, True]]
    """
    return MaskRules(multiclass, ignore, colours).read(given, where)[0]


def known_values(mask: Mask) -> Mask:
    """Return the values of a mask, sorted, without VOID."""
    flat = mask.ravel()
    parts = [np.unique(flat[k : k + _PART]) for k in range(0, flat.size, _PART)]  # sorting all at once takes a copy
    values = np.unique(np.concatenate(parts)) if parts else flat
    return np.asarray(values[values != VOID])


_PART = 1 << 20


def _known(given: Any, where: str) -> tuple[Array, NDArray[np.bool_]]:
    """Return (array, which of its pixels are known): not masked, None or NaN."""
    hidden = np.ma.getmaskarray(given) if isinstance(given, np.ma.MaskedArray) else None
    array = np.ma.getdata(given) if hidden is not None else np.asarray(given)
    missing = np.zeros(array.shape, dtype=bool) if hidden is None else hidden
    if array.dtype.kind == "O":
        missing = missing | np.array([v is None or v != v for v in array.ravel()], dtype=bool).reshape(array.shape)
        try:
            array = np.where(missing, 0, array).astype(np.float64)
        except (TypeError, ValueError):
            raise DataError(f"{where} has values that are not numbers; expected integers, one per class") from None
    elif array.dtype.kind == "f":
        missing = missing | np.isnan(array)
    return array, np.asarray(~(missing.any(axis=2) if missing.ndim == 3 else missing))
