"""What a sequence of inputs may look like, other than columns for a template."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import sparse_matrix, unmasked
from crfkit.errors import DataError

if TYPE_CHECKING:
    import scipy.sparse


def is_matrix(sequence: Any) -> bool:
    """Return whether a sequence is a matrix [positions, features] and not a list of items."""
    if isinstance(sequence, np.ndarray):
        return sequence.dtype.kind in "biuf"
    sparse = sys.modules.get("scipy.sparse")  # if it is not loaded, no matrix is sparse
    return sparse is not None and bool(sparse.issparse(sequence))


def column_name(j: int) -> str:
    """Return the attribute of column j of a feature matrix."""
    return f"x{j}"


def stack_matrices(X: Iterable[Any], n_features: int | None) -> tuple[NDArray[np.int64], scipy.sparse.csr_matrix]:
    """Return (starts, all positions as one sparse matrix). All sequences must have the same number of columns."""
    import scipy.sparse

    starts, parts = [0], []
    for n, sequence in enumerate(X):
        if not is_matrix(sequence):
            raise DataError(f"sequence {n} is {type(sequence).__name__}, but the ones before are matrices")
        if sequence.ndim != 2:
            raise DataError(f"sequence {n} has shape {sequence.shape}; expected (positions, features)")
        if n_features is None:
            n_features = int(sequence.shape[1])
        if sequence.shape[1] != n_features:
            raise DataError(f"sequence {n} has {sequence.shape[1]} features; expected {n_features}")
        if isinstance(sequence, np.ndarray):
            part = scipy.sparse.csr_matrix(unmasked(sequence, f"sequence {n}"), dtype=np.float64)
        else:
            part = scipy.sparse.csr_matrix(sparse_matrix(sequence, f"sequence {n}"))
        if not np.isfinite(part.data).all():
            k = int(np.argmin(np.isfinite(part.data)))
            t = int(np.searchsorted(part.indptr, k, side="right")) - 1
            raise DataError(f"sequence {n}, position {t}: feature {part.indices[k]} is {part.data[k]}")
        parts.append(part)
        starts.append(starts[-1] + part.shape[0])
    if not parts:
        return np.zeros(1, dtype=np.int64), scipy.sparse.csr_matrix((0, n_features or 0))
    return np.array(starts, dtype=np.int64), scipy.sparse.vstack(parts, format="csr")
