"""The earlier part of a run that continues from a saved state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._checks import is_whole
from crfkit._types import Floats
from crfkit.errors import ParameterError
from crfkit.result import TraceRow

PAST = "past"  # in a state: (value, optimality) of each iteration, for the stopping rule
PAST_ROWS = "past_rows"  # in a state: the number of rows of its past
ITERATIONS = "iterations"  # in a state: how many there were, if the run was cut off before its end
LARGEST = 1e300  # of a past value; differences of larger ones overflow


@dataclass(frozen=True)
class Past:
    """The rows before the first one of this part, and how many iterations count towards the limit.

    A run that was cut off goes on with its count of iterations. One that had ended gets `max_iterations` more.
    """

    rows: tuple[TraceRow, ...] = ()
    iterations: int = 0

    @classmethod
    def of(cls, saved: Mapping[str, Any], value: float) -> Past:
        """Return what a saved state knows, if the objective at its weights is still `value`."""
        iterations = saved.get(ITERATIONS, 0)
        table = np.asarray(saved.get(PAST, np.zeros((0, 2))))
        if not is_whole(iterations) or iterations < 0:
            raise ParameterError(f"the saved state cannot be resumed: its number of iterations is {iterations!r}")
        if table.dtype != np.float64 or table.ndim != 2 or table.shape[1] != 2:
            raise ParameterError("the saved state cannot be resumed: its past is not a table of two columns")
        check_past(table, saved.get(PAST_ROWS, len(table)))
        if not len(table) or not _same(float(table[-1, 0]), value):  # other data or another penalty
            return cls((), int(iterations))
        # the last row is that of the saved weights, and comes again
        rows = tuple(TraceRow(k, v, g, 0, 0.0, 0) for k, (v, g) in enumerate(table[:-1].tolist()))
        return cls(rows, int(iterations))


def check_past(table: Floats, rows: Any) -> None:
    """Raise ParameterError unless a past could have been saved by a run, with so many rows.

    Its values are numbers, or all are NaN, where a solver minimises no objective. Optimalities are >= 0, or all NaN.
    """
    if rows != len(table):
        raise ParameterError(f"the saved state is damaged: its past has {len(table)} rows, not {rows!r:.40}")
    values, optimalities = table.T
    sound = all(np.isnan(column).all() or (np.abs(column) <= LARGEST).all() for column in (values, optimalities))
    if not sound or (optimalities < 0).any():
        raise ParameterError("the saved state is damaged: its past has numbers that no run has")


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
