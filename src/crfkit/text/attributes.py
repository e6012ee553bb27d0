"""Forms of input sequences, other than columns for a template."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import ascends, sparse_matrix, unmasked
from crfkit._types import Array, Sparse
from crfkit.errors import DataError

if TYPE_CHECKING:
    import scipy.sparse


def is_matrix(sequence: object) -> bool:
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
            sequence = scipy.sparse.csr_matrix(unmasked(sequence, f"sequence {n}"), dtype=np.float64)
        elif not _is_plain(sequence):
            sequence = sparse_matrix(sequence, f"sequence {n}")
        parts.append(sequence)
        starts.append(starts[-1] + sequence.shape[0])
    if n_features is not None and n_features >= 2**31:
        raise DataError(f"{n_features:,} features; matrices of sequences can have at most {2**31 - 1:,}")
    if not parts:
        return np.zeros(1, dtype=np.int64), scipy.sparse.csr_matrix((0, n_features or 0))
    places = np.array(starts, dtype=np.int64)
    stacked = _stacked(parts, places, n_features or 0)
    if stacked is None:  # one is not valid, which raises here, or has room for more entries
        parts = [sparse_matrix(part, f"sequence {n}") for n, part in enumerate(parts)]
        stacked = _stacked(parts, places, n_features or 0)
    assert stacked is not None
    matrix = scipy.sparse.csr_matrix(stacked, shape=(starts[-1], n_features or 0))
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        k = int(np.argmin(np.isfinite(matrix.data)))
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        n = int(np.searchsorted(places, row, side="right")) - 1
        raise DataError(f"sequence {n}, position {row - starts[n]}: feature {matrix.indices[k]} is {matrix.data[k]}")
    return places, matrix


def _is_plain(part: Sparse) -> bool:
    """Return whether a sparse matrix is of the usual kind: CSR, with arrays that have the right types and sizes."""
    if part.format != "csr":
        return False
    offsets, ids, values = part.indptr, part.indices, part.data
    return (
        type(offsets) is type(ids) is type(values) is np.ndarray
        and offsets.dtype.kind == ids.dtype.kind == "i"
        and values.dtype.kind in "biuf"
        and offsets.shape == (part.shape[0] + 1,)
        and ids.ndim == 1
        and ids.shape == values.shape
    )


def _stacked(parts: list[Any], starts: NDArray[np.int64], n_features: int) -> tuple[Array, Array, Array] | None:
    """Return (values, columns, offsets) of all matrices as one, copied and then checked; None if they are not valid."""
    listed = [(part.data, part.indices, part.indptr) for part in parts]
    values = np.concatenate([part[0] for part in listed], dtype=np.float64)
    ids = np.concatenate([part[1] for part in listed])
    ends = np.cumsum([0, *(len(part[1]) for part in listed)], dtype=np.int64)
    own = np.concatenate([part[2] for part in listed])  # offsets of each, with a 0 before
    firsts = starts[:-1] + np.arange(len(parts))
    if own[firsts].any() or own.min() < 0 or own.max() > len(ids):  # so that sums with them cannot wrap around
        return None
    offsets = np.concatenate([[0], np.delete(own, firsts) + np.repeat(ends[:-1], np.diff(starts))])
    if not np.array_equal(offsets[starts], ends) or not ascends(offsets):
        return None
    if ids.size and (ids.min() < 0 or ids.max() >= n_features):
        return None
    return values, ids, offsets
