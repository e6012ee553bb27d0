"""Features of image blocks that a user's function computes; a model file records their names, never code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfkit._checks import unmasked
from crfkit.errors import ParameterError
from crfkit.images.c1 import block_means

Image = NDArray[np.float32]
Function = Callable[[Image], ArrayLike]


@dataclass(frozen=True)
class CustomFeatures:
    """A function `f(image)` of an image [H, W] or [H, W, 3], and the names of the features that it returns.

    It returns [H, W, F], which is averaged over blocks, or [rows, columns, F] for the blocks themselves; without the
    last axis, one feature. Two are equal if their names are: functions cannot be compared.
    """

    name: str
    names: tuple[str, ...] | None = None  # names of the features; None until the first image
    function: Function | None = field(default=None, compare=False, repr=False)  # None until it is passed to load

    @classmethod
    def of(cls, function: Function) -> CustomFeatures:
        """Return the features of a function; their names are its attribute `feature_names`, if it has one."""
        name, names = function_name(function), getattr(function, "feature_names", None)
        if names is None:
            return cls(name, None, function)
        if isinstance(names, str) or not names or not all(isinstance(of, str) for of in names):
            raise ParameterError(f"feature_names of the function {name!r} must be a tuple of strings, not {names!r}")
        return cls(name, tuple(names), function)

    def compute(self, image: Image, blocks: tuple[int, int], block_size: int) -> Image:
        """Return [h, w, F] for the grid of `blocks` (h, w) of an image."""
        if self.function is None:
            raise ParameterError(missing([self.name]))
        values = np.asarray(unmasked(self.function(image.copy()), f"what the function {self.name!r} returned"))
        shape, pixels = values.shape, image.shape[:2]
        if values.dtype.kind not in "fiub" or values.ndim not in (2, 3) or shape[:2] not in (pixels, blocks):
            given = f"shape {shape}" if values.dtype.kind in "fiub" else f"an array of type {values.dtype}"
            per_block = "" if blocks == pixels else f", or ({blocks[0]}, {blocks[1]}, features) for blocks"
            raise ParameterError(
                f"the function {self.name!r} returned {given} for an image of {pixels[0]}×{pixels[1]} pixels; expected "
                f"numbers of shape ({pixels[0]}, {pixels[1]}, features){per_block}"
            )
        with np.errstate(over="ignore"):  # an overflow is reported below
            values = values.reshape(*shape[:2], -1).astype(np.float32)
        if not np.isfinite(values).all():
            worst = values[~np.isfinite(values)][0]
            raise ParameterError(f"the function {self.name!r} returned {worst}; expected finite numbers of 32 bits")
        if values.shape[2] == 0 or (self.names is not None and values.shape[2] != len(self.names)):
            expected = "at least one" if self.names is None else len(self.names)
            raise ParameterError(f"the function {self.name!r} returned {values.shape[2]} features; expected {expected}")
        return values if shape[:2] == blocks else block_means(values, block_size)


def function_name(function: object) -> str:
    """Return the name that a model file has for a function; for an object, the name of its class."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def check_names(parts: Iterable[CustomFeatures]) -> None:
    """Raise ParameterError if two functions have the same name."""
    names = [part.name for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(
                f"{names.count(name)} feature functions are named {name!r}, but a model file knows them by name; give "
                "each its own name (def, or function.__name__ = …)"
            )


def with_names(parts: Iterable[CustomFeatures], widths: Iterable[int]) -> tuple[CustomFeatures, ...]:
    """Return the parts with names for their features: their own names, or custom0, custom1, … over all parts."""
    out, begin = [], 0
    for part, width in zip(parts, widths, strict=True):
        names = part.names if part.names is not None else tuple(f"custom{begin + k}" for k in range(width))
        out.append(replace(part, names=names))
        begin += width
    return tuple(out)


def handed_in(parts: Iterable[CustomFeatures], functions: Mapping[str, Function] | None) -> tuple[CustomFeatures, ...]:
    """Return the parts of a model file with their functions; raise ParameterError if one is missing or wrong."""
    parts = tuple(parts)
    functions = {} if functions is None else functions
    if not isinstance(functions, Mapping) or not all(callable(f) for f in functions.values()):
        raise ParameterError(f"features must be a dict of functions by name, not {functions!r}")
    known = {part.name for part in parts}
    unknown = [name for name in functions if name not in known]
    if unknown:
        there = f"its functions are {', '.join(sorted(known))}" if known else "it has no functions"
        raise ParameterError(f"the model has no feature function named {unknown[0]!r}; {there}")
    absent = [part.name for part in parts if part.name not in functions]
    if absent:
        raise ParameterError(missing(absent))
    for part in parts:
        names = CustomFeatures.of(functions[part.name]).names
        if names is not None and names != part.names:
            raise ParameterError(
                f"the function for {part.name!r} has the feature_names {names}; expected {part.names}, as in the model"
            )
    return tuple(replace(part, function=functions[part.name]) for part in parts)


def missing(names: Iterable[str]) -> str:
    """Return the message about functions that a model file names but that were not given."""
    listed = ", ".join(f"{name!r}: …" for name in names)
    return (
        "the model was trained with Python functions as features, and model files contain no code; pass the functions "
        f"again in Python: ImageSegmenter.load(path, features={{{listed}}}), or SegmenterModel.load"
    )
