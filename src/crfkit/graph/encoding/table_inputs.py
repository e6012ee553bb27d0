"""Features of tables: shared by all variables of a row, of each variable, or both."""

from __future__ import annotations

import numpy as np

from crfkit._checks import unmasked
from crfkit._types import Floats, Samples, Tabular
from crfkit.errors import DataError


def split_inputs(X: Samples) -> tuple[Tabular, Tabular]:
    """Return shared features [samples, F] and features of each variable [samples, variables, d], or None for either.

    >>> shared, own = split_inputs(np.zeros((5, 3, 2)))
    >>> shared is None, own.shape
    (True, (5, 3, 2))
    """
    if isinstance(X, tuple) and len(X) == 2 and any(hasattr(x, "shape") or _depth(x) > 1 for x in X):
        shared, own = X
        if _depth(shared) not in (0, 2) or (shared is None) != (_depth(shared) == 0) or _depth(own) != 3:
            found = ", ".join("None" if x is None else str(np.shape(x)) for x in X)
            raise DataError(
                "X is a tuple: expected features of rows [samples, features] and of variables [samples, variables, "
                f"features]; got the shapes {found}"
            )
        return shared, own
    return (None, X) if _depth(X) == 3 else (X, None)


def check_own(own: object, n_variables: int, n_features: int | None = None) -> Floats:
    """Return the features [samples, variables, d] of variables; raise DataError unless they are finite numbers."""
    own = unmasked(own, "the features of variables in X")
    try:
        values = np.ascontiguousarray(own, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("the features of variables in X must be numbers [samples, variables, features]") from None
    if values.shape[1] != n_variables:
        raise DataError(f"X has features of {values.shape[1]} variables (shape {values.shape}); Y has {n_variables}")
    if values.shape[2] == 0:
        raise DataError(f"X has no features of variables: shape {values.shape}")
    if n_features is not None and values.shape[2] != n_features:
        raise DataError(f"X has {values.shape[2]} features of each variable; the model has {n_features}")
    if (bad := np.argwhere(~np.isfinite(values))).size:
        row, i, f = bad[0].tolist()
        raise DataError(f"X: row {row}, variable {i}, feature {f} is {values[row, i, f]}; fill or drop missing values")
    return values


def _depth(x: Tabular) -> int:
    if hasattr(x, "shape"):
        return len(x.shape)
    try:
        return int(np.ndim(x))
    except ValueError:  # rows of different lengths: the error comes where the table is read
        return 2
