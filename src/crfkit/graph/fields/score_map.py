"""Weights times features, by type, and the transposed map; dense or sparse, with rows that nodes share."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from crfkit._types import Array, Features, Floats, Ids, Ints, Sparse
from crfkit.graph.data import GraphData


def coefficients(data: GraphData, kind: str, weights: Floats) -> Floats:
    """Return [n, B] weights[type]·features of each node or edge."""
    rows, places = distinct_coefficients(data, kind, weights)
    return rows if places is None else rows[places]


def distinct_coefficients(data: GraphData, kind: str, weights: Floats) -> tuple[Floats, Array | None]:
    """Return ([R, B] weights[type]·features, the row of each node or edge): those that are equal are computed once.

    The second is None where each has a row of its own.
    """
    features: Features = getattr(data, f"{kind}_features")
    T, B, width = weights.shape
    index = _index(data, kind, T)
    if index.tiled is not None:
        out = np.empty((features.shape[0] // T, T, B))
        np.matmul(index.tiled, weights.transpose(0, 2, 1), out=out.transpose(1, 0, 2))
        return out.reshape(features.shape[0], B), None
    if index.by_type is not None:
        out = np.empty((features.shape[0], B))
        for t, chosen in enumerate(index.by_type):
            out[chosen] = features[chosen] @ weights[t].T
        return out, None
    W = weights.reshape(T * B, width)
    # BLAS is faster with few long rows than with few long columns
    flat = (W @ features.T).T if T * B <= 8 and isinstance(features, np.ndarray) else features @ W.T
    return np.ascontiguousarray(flat).reshape(features.shape[0] * T, B), index.places


def transposed(data: GraphData, kind: str, values: Floats, T: int) -> Floats:
    """Return [T, B, d] Σ values·features by type: the transpose of `coefficients`."""
    features: Features = getattr(data, f"{kind}_features")
    B = values.shape[1]
    index = _index(data, kind, T)
    if index.tiled is not None:
        by_type = values.reshape(features.shape[0] // T, T, B).transpose(1, 2, 0)
        product: Floats = np.matmul(by_type, index.tiled)
        return product
    if index.by_type is not None:
        return np.array([values[chosen].T @ features[chosen] for chosen in index.by_type])
    if index.gather is not None:
        values = index.gather @ values
    flat = values.reshape(features.shape[0], T * B).T @ features  # as rows: the features are read in their order
    return np.asarray(flat).reshape(T, B, features.shape[1])


@dataclass(frozen=True)
class _Index:
    """The row of features and the type of each node or edge; all None: its own row."""

    tiled: Features = (
        None  # [T, samples, d] a view of the features of a table whose nodes (edges) have rows of their own
    )
    by_type: list[Ints] | None = None  # [T] who is of each type, where all have rows of their own
    places: Ids | Ints | None = None  # [n] row · T + type
    gather: Sparse = None  # [R · T, n] sums values by place


_indices: WeakKeyDictionary[GraphData, dict[tuple[str, int], _Index]] = WeakKeyDictionary()


def _index(data: GraphData, kind: str, T: int) -> _Index:
    """Return the index, which is made once because training needs it at every step."""
    known = _indices.setdefault(data, {})
    if (kind, T) not in known:
        known[kind, T] = _make_index(data, kind, T)
    return known[kind, T]


def _make_index(data: GraphData, kind: str, T: int) -> _Index:
    n_rows: int = getattr(data, f"{kind}_features").shape[0]
    rows: Ids | None = getattr(data, f"{kind}_rows")
    types: Ids | None = getattr(data, f"{kind}_types")
    if rows is None:
        if T <= 1:
            return _Index()
        features = getattr(data, f"{kind}_features")
        n_samples = n_rows // T
        if (
            isinstance(features, np.ndarray)
            and types is not None
            and np.array_equal(types, np.tile(np.arange(T), n_samples))
        ):
            return _Index(tiled=features.reshape(n_samples, T, features.shape[1]).transpose(1, 0, 2))
        return _Index(by_type=[np.flatnonzero(types == t) for t in range(T)])
    places = rows if T <= 1 or types is None else rows.astype(np.int64) * T + types
    n = len(places)
    if n == n_rows * T and np.array_equal(places, np.arange(n)):
        return _Index()  # a table with features: rows and types in order
    columns = csr_array((np.ones(n), places, np.arange(n + 1)), shape=(n, n_rows * T))
    return _Index(places=places, gather=csr_array(columns.T))
