"""A small table for the examples of losses, which the laws of losses are tested with."""

from __future__ import annotations

import numpy as np

from crfkit.structure.observations import Observations


def table_example() -> Observations:
    """Return forty rows of four variables with two states, of which the first two are often equal."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, size=(40, 4))
    rows[:, 1] = np.where(rng.random(40) < 0.7, rows[:, 0], rows[:, 1])
    return Observations.of(rows, [2] * 4)
