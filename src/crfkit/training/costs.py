"""The cost of labelling i as j, in losses with a margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats
from crfkit.errors import ParameterError


def cost_matrix(cost: ArrayLike | None, n_labels: int) -> Floats:
    """Return the cost of labelling i as j: as given, checked, or 1 for all mistakes."""
    if cost is None:
        return 1.0 - np.eye(n_labels)
    try:
        matrix = np.array(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"the cost must be a matrix of numbers, not {cost!r}") from None
    if matrix.shape != (n_labels, n_labels):
        raise ParameterError(f"the cost has shape {matrix.shape}; expected ({n_labels}, {n_labels})")
    if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
        raise ParameterError("costs must be finite and >= 0, and 0 for the right label")
    return matrix
