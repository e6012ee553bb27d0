"""Weights times features of nodes or edges, by type, on tensors; and the transposed maps.

coefficients_i = W[type_i] · features[row_i],    W [T, B, d]
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from crfkit._types import Features, Flags, Ids
from crfkit.torch.chain_scores import Lists, tensor
from crfkit.torch.grouped_sums import GroupedSums


class Product(Protocol):
    """Features of a kind: W [T, B, d] → [m, B], and its transpose; `power` is of the features."""

    def times(self, W: Tensor) -> Tensor: ...
    def transposed(self, values: Tensor, power: int) -> Tensor: ...


class FeatureMap:
    """The map of nodes or of edges. Those that have the same row and type have the same coefficients."""

    def __init__(
        self, features: Features, rows: Ids | None, types: Ids | None, active: Flags, device: torch.device
    ) -> None:
        T, B = active.shape
        self._shape = T, B, int(features.shape[1])
        self._active = None if active.all() else tensor(np.flatnonzero(active), device, torch.int64)
        self.size = int(active.sum()) * self._shape[2]
        self.places: Tensor | None = None  # [n] which row of coefficients each has; None: its own
        self._sums: GroupedSums | None = None
        one_each = rows is None
        if rows is not None:
            places = rows.astype(np.int64) * T + (0 if types is None or T == 1 else types)
            self.places = tensor(places, device, torch.int64)
            self._sums = GroupedSums.by_group(self.places, features.shape[0] * T)
        typed = types if one_each and T > 1 else None
        self._product = _product(features, T, typed, device)

    def rows(self, w: Tensor) -> Tensor:
        """Return the different rows of coefficients [m, B]; `places` says whose they are."""
        T, B, d = self._shape
        if self._active is None:
            W = w.view(T * B, d)
        else:
            W = w.new_zeros(T * B, d)
            W[self._active] = w.view(-1, d)
        return self._product.times(W.view(T, B, d))

    def coefficients(self, w: Tensor) -> Tensor:
        """Return [n, B]."""
        rows = self.rows(w)
        return rows if self.places is None else rows[self.places]

    def gathered(self, values: Tensor) -> Tensor:
        """Return values [n, B] summed by their rows of coefficients, [m, B]."""
        return values if self._sums is None else self._sums(values)

    def adjoint(self, rows: Tensor, power: int = 1) -> Tensor:
        """Return the weights' values for values of rows [m, B], flat."""
        found = self._product.transposed(rows, power).reshape(self._shape[0] * self._shape[1], self._shape[2])
        return (found if self._active is None else found[self._active]).reshape(-1)


def _product(features: Features, T: int, types: Ids | None, device: torch.device) -> Product:
    if not isinstance(features, np.ndarray):
        return _Sparse(features, T, types, device)
    if types is None:
        return _Dense(features, T, device)
    samples = len(features) // T
    if np.array_equal(types, np.tile(np.arange(T), samples)):
        return _Tiled(features, T, device)
    return _ByType(features, T, types, device)


class _Matrix:
    """Dense features in any precision, which are kept."""

    def __init__(self, features: Any, device: torch.device) -> None:
        self._by_type = {torch.float64: tensor(features, device, torch.float64)}

    def of(self, dtype: torch.dtype, power: int = 1) -> Tensor:
        if dtype not in self._by_type:
            self._by_type[dtype] = self._by_type[torch.float64].to(dtype)
        found = self._by_type[dtype]
        return found if power == 1 else found**power


class _Dense:
    """All types see all rows: the row of features r and type t is row r · T + t."""

    def __init__(self, features: Any, T: int, device: torch.device) -> None:
        self._T, self._features = T, _Matrix(features, device)

    def times(self, W: Tensor) -> Tensor:
        return (self._features.of(W.dtype) @ W.flatten(0, 1).T).reshape(-1, W.shape[1])

    def transposed(self, values: Tensor, power: int) -> Tensor:
        features = self._features.of(values.dtype, power)
        found = values.reshape(len(features), self._T * values.shape[1]).T @ features
        return found.view(self._T, values.shape[1], -1)


class _Tiled:
    """A table whose rows have one item of each type, in order."""

    def __init__(self, features: Any, T: int, device: torch.device) -> None:
        n = len(features) // T
        self._features = _Matrix(features.reshape(n, T, -1).transpose(1, 0, 2), device)

    def times(self, W: Tensor) -> Tensor:
        return torch.bmm(self._features.of(W.dtype), W.transpose(1, 2)).transpose(0, 1).reshape(-1, W.shape[1])

    def transposed(self, values: Tensor, power: int) -> Tensor:
        features = self._features.of(values.dtype, power)
        by_type = values.view(features.shape[1], features.shape[0], -1).permute(1, 2, 0)
        return torch.bmm(by_type, features)


class _ByType:
    """A row each, of one type each."""

    def __init__(self, features: Any, T: int, types: Ids, device: torch.device) -> None:
        self._features = _Matrix(features, device)
        self._chosen = [tensor(np.flatnonzero(types == t), device, torch.int64) for t in range(T)]

    def times(self, W: Tensor) -> Tensor:
        features = self._features.of(W.dtype)
        out = W.new_empty(len(features), W.shape[1])
        for t, chosen in enumerate(self._chosen):
            out[chosen] = features[chosen] @ W[t].T
        return out

    def transposed(self, values: Tensor, power: int) -> Tensor:
        features = self._features.of(values.dtype, power)
        return torch.stack([values[chosen].T @ features[chosen] for chosen in self._chosen])


class _Sparse:
    """Sparse features: sums over the entries of a row, of table rows (type, feature) or of all types together."""

    def __init__(self, features: Any, T: int, types: Ids | None, device: torch.device) -> None:
        matrix = features.tocsr()
        self._T, self._together = T, types is None
        columns = matrix.indices.astype(np.int64)
        if types is not None:
            columns = columns + matrix.shape[1] * np.repeat(types.astype(np.int64), np.diff(matrix.indptr))
        lists = Lists(
            tensor(matrix.indptr, device, torch.int64),
            tensor(columns, device, torch.int32),
            tensor(matrix.data, device, torch.float64),
        )
        n_columns = matrix.shape[1] * (1 if types is None else T)
        self._lists, self._inverted = GroupedSums(lists), GroupedSums(lists.inverted(n_columns))

    def times(self, W: Tensor) -> Tensor:
        T, B, d = W.shape
        if self._together:
            return self._lists(W.reshape(T * B, d).T).reshape(-1, B)
        return self._lists(W.transpose(1, 2).reshape(T * d, B))

    def transposed(self, values: Tensor, power: int) -> Tensor:
        T, B = self._T, values.shape[1]
        if self._together:
            return self._inverted(values.reshape(-1, T * B), power).T.reshape(T, B, -1)
        return self._inverted(values, power).view(T, -1, B).transpose(1, 2)
