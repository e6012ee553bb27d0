"""The loop of inference that repeats sweeps until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from crfkit._checks import is_whole
from crfkit.errors import ParameterError

CHECK = 8  # sweeps between looks at the change, each of which waits for the device


class Settled(NamedTuple):
    """How a loop ended: the number of sweeps, the largest change in the last one, whether that is small enough."""

    iterations: int
    residual: float
    settled: bool


def check_options(damping: float | None, max_iterations: int, tolerance: float) -> None:
    """Raise ParameterError if an option of a loop is out of range."""
    if damping is not None and not (_is_number(damping) and 0 <= damping < 1):
        raise ParameterError(f"damping must be a number from 0 to below 1, not {damping!r}")
    if not is_whole(max_iterations) or max_iterations < 1:
        raise ParameterError(f"max_iterations must be an integer >= 1, not {max_iterations!r}")
    if not _is_number(tolerance) or not tolerance >= 0:
        raise ParameterError(f"the tolerance must be a number >= 0, not {tolerance!r}")


def _is_number(given: object) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)


def repeat(
    sweep: Callable[[float, bool], Tensor | None], damping: float | None, max_iterations: int, tolerance: float
) -> Settled:
    """Repeat sweeps until the largest change is at most the tolerance.

    `sweep(damping, look)` returns the largest change, as it would be without damping, if it is to look. Damping None
    is 0, and one half for the second half of the sweeps if the first did not settle.
    """
    parts = (
        [(max_iterations, damping)]
        if damping is not None
        else [
            ((max_iterations + 1) // 2, 0.0),
            (max_iterations // 2, 0.5),
        ]
    )
    done, residual = 0, float("inf")
    for limit, share in parts:
        for k in range(1, limit + 1):
            look = k % CHECK == 0 or k == limit
            change = sweep(share or 0.0, look)
            done += 1
            if change is not None:
                residual = float(change)
                if residual <= tolerance:
                    return Settled(done, residual, True)
    return Settled(done, residual, False)
