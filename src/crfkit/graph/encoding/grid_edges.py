"""Features of edges between pixels, blocks or superpixels: how much the image changes from one to the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from crfkit._checks import unmasked
from crfkit._types import Floats
from crfkit.errors import ParameterError

EdgeFunction = Callable[..., ArrayLike]  # of the features of both ends, and of the offsets if it takes them
CONTRAST_NAMES = ("similar", "alike", "diagonal")
SHARP = 8.0  # how much smaller a difference must be for "alike" than for "similar"


def contrast_features(first: Floats, second: Floats, offsets: Floats) -> Floats:
    """Return features [E, 3] of edges with the colours `first` and `second` [E, C] and `offsets` [E, 2] of their ends.

    "similar" is exp(−d²/2m) for the squared difference d² of colours and its mean m over the edges of the image, so
    the contrast of the image does not matter; "alike" is the same with m/8. "diagonal" is 1 where both offsets
    differ from 0.

    >>> contrast_features(np.array([[0.2]]), np.array([[0.2]]), np.array([[0.0, 1.0]])).tolist()
    [[1.0, 1.0, 0.0]]
    """
    squares = np.square(first - second).sum(axis=1)
    mean = max(float(squares.mean()) if len(squares) else 0.0, 1e-12)
    diagonal = (offsets != 0).all(axis=1)
    return np.stack([np.exp(-squares / (2 * mean)), np.exp(-squares * SHARP / (2 * mean)), diagonal], axis=1)


def call_edge_function(function: EdgeFunction, first: Floats, second: Floats, offsets: Floats) -> Floats:
    """Return what a user's function gives for these edges as [E, g]; one number per edge becomes a column.

    Functions of two arguments get the features of both ends, functions of three also the offsets.
    """
    given = (first, second, offsets) if takes_offsets(function) else (first, second)
    values = np.asarray(unmasked(function(*given), "what edge_features returned"), dtype=np.float64)
    if values.ndim == 1 and len(values) == len(first):
        values = values[:, None]
    if values.ndim != 2 or len(values) != len(first):
        raise ParameterError(
            f"edge_features returned shape {values.shape}; expected ({len(first)},) or ({len(first)}, features)"
        )
    if not np.isfinite(values).all():
        raise ParameterError(f"edge_features returned {values[~np.isfinite(values)][0]}; expected finite numbers")
    return values


def takes_offsets(function: EdgeFunction) -> bool:
    """Return whether a function has a third positional argument."""
    from inspect import Parameter, signature

    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a ufunc, or written in C
        return False
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in kinds and p.default is Parameter.empty]
    named = any(p.name == "offsets" for p in parameters)
    return len(needed) >= 3 or named or any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
