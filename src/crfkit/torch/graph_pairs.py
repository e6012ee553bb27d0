"""What the labels of neighbours add to the scores of a node, linear in the coefficients of edges; and the transpose.

message to i from j: P_ij(·, y_j),  to j from i: P_ij(y_i, ·),    P_ij = Σ_b c_ij,b · T_b
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from crfkit._types import Floats
from crfkit.torch.chain_scores import tensor
from crfkit.torch.feature_maps import FeatureMap
from crfkit.torch.graph_arrays import GraphArrays
from crfkit.torch.grouped_sums import GroupedSums


class Pairs(Protocol):
    def messages(self, rows: Tensor) -> Tensor:
        """Return [2E, K] messages for rows of coefficients [m, B]: to all first ends, then to all second ends."""
        ...

    def adjoint(self, values: Tensor) -> Tensor:
        """Return the rows' values [m, B] for node values [n, K], which go to all messages of a node."""
        ...

    def variances(self, p: Tensor, weights: Tensor) -> Tensor:
        """Return [m, B] sums over messages of weight · Var T_b, with labels of the receiving node drawn from p."""
        ...


def pairs_of(arrays: GraphArrays, edges: FeatureMap, device: torch.device) -> Pairs:
    basis = arrays.edge_basis
    if basis is None or (len(basis) >= arrays.most_states and _are_indicators(basis)):
        return TablePairs(arrays, edges, device)
    return BasisPairs(arrays, edges, device)


def _are_indicators(basis: Floats) -> bool:
    """Return whether each table has at most a one in a row or column, and zeros otherwise."""
    return bool(np.isin(basis, (0, 1)).all() and basis.sum(1).max() <= 1 and basis.sum(2).max() <= 1)


class _Ends:
    """The nodes of edges and their labels."""

    def __init__(self, arrays: GraphArrays, edges: FeatureMap, device: torch.device) -> None:
        ends = tensor(arrays.edges, device, torch.int64)
        labels = tensor(arrays.labels, device, torch.int64)
        self.first, self.second = ends[:, 0].contiguous(), ends[:, 1].contiguous()
        self.first_labels, self.second_labels = labels[self.first], labels[self.second]
        self.edges = edges
        self.K = arrays.most_states
        self.basis = None if arrays.edge_basis is None else tensor(arrays.edge_basis, device, torch.float64)


class TablePairs(_Ends):
    """Tables [m, K, K] are written out, where there are as many weights as entries, or nearly."""

    def __init__(self, arrays: GraphArrays, edges: FeatureMap, device: torch.device) -> None:
        super().__init__(arrays, edges, device)
        places = torch.arange(len(self.first), device=device) if edges.places is None else edges.places
        features = arrays.edge_features.shape[0]
        self._n = features if edges.places is None else features * len(arrays.edge_active)
        self._by_second, self._by_first = places * self.K + self.second_labels, places * self.K + self.first_labels
        m = self._n * self.K
        self._sums_by_second = GroupedSums.by_group(self._by_second, m, self.first)
        self._sums_by_first = GroupedSums.by_group(self._by_first, m, self.second)

    def messages(self, rows: Tensor) -> Tensor:
        K = self.K
        if self.basis is not None:
            rows = rows @ self.basis.flatten(1).to(rows.dtype)
        tables = rows.view(-1, K, K)
        columns = tables.transpose(1, 2).reshape(-1, K)
        return torch.cat([columns[self._by_second], tables.reshape(-1, K)[self._by_first]])

    def adjoint(self, values: Tensor) -> Tensor:
        K = self.K
        columns = self._sums_by_second(values).view(self._n, K, K)
        tables = columns.transpose(1, 2) + self._sums_by_first(values).view(self._n, K, K)
        flat = tables.reshape(self._n, K * K)
        return flat if self.basis is None else flat @ self.basis.flatten(1).to(flat.dtype).T

    def variances(self, p: Tensor, weights: Tensor) -> Tensor:
        # T_b(·, y) is an indicator, or 0
        return self.adjoint(weights * p * (1 - p))


class BasisPairs(_Ends):
    """A few tables: their rows and columns are added with the coefficients of each edge."""

    def messages(self, rows: Tensor) -> Tensor:
        each = rows if self.edges.places is None else rows[self.edges.places]
        columns, lines = self._tables(rows.dtype)
        first = torch.einsum("eb,ekb->ek", each, columns[self.second_labels])
        return torch.cat([first, torch.einsum("eb,ekb->ek", each, lines[self.first_labels])])

    def _tables(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return T(k, l) as [l, k, B], and T(l, k)."""
        assert self.basis is not None
        basis = self.basis.to(dtype)
        return basis.permute(2, 1, 0).contiguous(), basis.permute(1, 2, 0).contiguous()

    def adjoint(self, values: Tensor) -> Tensor:
        columns, lines = self._tables(values.dtype)
        each = torch.einsum("ek,ekb->eb", values[self.first], columns[self.second_labels])
        each = each + torch.einsum("ek,ekb->eb", values[self.second], lines[self.first_labels])
        return self.edges.gathered(each)

    def variances(self, p: Tensor, weights: Tensor) -> Tensor:
        columns, lines = self._tables(p.dtype)
        each = self._variance(p, weights, self.first, columns[self.second_labels])
        return self.edges.gathered(each + self._variance(p, weights, self.second, lines[self.first_labels]))

    @staticmethod
    def _variance(p: Tensor, weights: Tensor, nodes: Tensor, tables: Tensor) -> Tensor:
        mean = torch.einsum("ek,ekb->eb", p[nodes], tables)
        return weights[nodes] * (torch.einsum("ek,ekb->eb", p[nodes], tables.square()) - mean.square())
