"""A training set on a device: packed rows, their labels and weights, and the score map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from crfkit.errors import DataError
from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.chain_scores import FieldKeys, Lists, ScoreMap, taken_lists, tensor
from crfkit.torch.packing import Packing


@dataclass(frozen=True, eq=False)
class ChainRows:
    """Packed sequences; labels and weights are there if the sequences have them."""

    scores: ScoreMap
    labels: Tensor | None = None  # [rows]
    weights: Tensor | None = None  # [N], by rank

    @classmethod
    def of(cls, arrays: ChainArrays, device: torch.device) -> ChainRows:
        """Return the training set of arrays."""
        lists = Lists(
            tensor(arrays.offsets, device, torch.int64),
            tensor(arrays.attributes, device, torch.int32),
            None if arrays.values is None else tensor(arrays.values, device, torch.float64),
        )
        labels = None if arrays.labels is None else tensor(arrays.labels, device, torch.int64)
        weights = None if arrays.weights is None else tensor(arrays.weights, device, torch.float64)
        rows = cls._packed(
            FieldKeys(arrays, device), tensor(arrays.starts, device, torch.int64), lists, labels, weights
        )
        if labels is not None:
            rows._check_allowed(arrays)
        return rows

    @classmethod
    def _packed(
        cls, field: FieldKeys, starts: Tensor, lists: Lists, labels: Tensor | None, weights: Tensor | None
    ) -> ChainRows:
        """Return sequences that lie one after another as packed rows."""
        packing = Packing.of(starts)
        return cls(
            ScoreMap(field, packing, taken_lists(lists, packing.positions)),
            None if labels is None else labels[packing.positions],
            None if weights is None else weights[packing.order],
        )

    def take(self, ids: Tensor) -> ChainRows:
        """Return the sequences at these places."""
        packing, device = self.packing, ids.device
        rank = torch.empty_like(packing.order)
        rank[packing.order] = torch.arange(len(rank), device=device)
        ranks = rank[ids]
        lengths = packing.lengths[ranks]
        starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        of = torch.repeat_interleave(torch.arange(len(ids), device=device), lengths)
        rows = packing.first[torch.arange(len(of), device=device) - starts[of]] + ranks[of]
        return self._packed(
            self.scores.field,
            starts,
            taken_lists(self.scores.lists, rows),
            None if self.labels is None else self.labels[rows],
            None if self.weights is None else self.weights[ranks],
        )

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.packing.order)

    @property
    def packing(self) -> Packing:
        return self.scores.packing

    @property
    def n_terms(self) -> float:
        """The number of positions, each counted with the weight of its sequence."""
        lengths = self.packing.lengths.double()
        return float(lengths.sum() if self.weights is None else lengths @ self.weights)

    @cached_property
    def row_weights(self) -> Tensor | None:
        """The weight of each row's sequence; None if all are 1."""
        return None if self.weights is None else self.weights[self.packing.ranks]

    @property
    def later_weights(self) -> Tensor | None:
        """The same for all rows but those that begin a sequence."""
        return None if self.row_weights is None else self.row_weights[self.packing.n_begun :]

    @cached_property
    def rows_before(self) -> Tensor:
        """The row of the previous position of every row, −1 where there is none."""
        n = self.packing.n_begun
        return torch.cat([torch.full((n,), -1, device=self.packing.first.device), self.packing.before])

    @cached_property
    def label_pairs(self) -> Tensor:
        """The code i·L + j of the labels of every later row and the row before it."""
        assert self.labels is not None
        return self.labels[self.packing.before] * self.scores.field.n_labels + self.labels[self.packing.n_begun :]

    @cached_property
    def pair_counts(self) -> Tensor:
        """How often each label follows each, by the sequences' weights; [L, L], in double precision."""
        L = self.scores.field.n_labels
        weights = None if self.later_weights is None else self.later_weights.double()
        return torch.bincount(self.label_pairs, weights, minlength=L * L).view(L, L).double()

    def loss(self, log_z_terms: Tensor, pair_top: Tensor, unary: Tensor, pairs: Tensor) -> Tensor:
        """Return ``Σ weight·(log Z − score)`` as one double; its terms are small before they are summed."""
        assert self.labels is not None
        here = (log_z_terms - unary.gather(1, self.labels[:, None])[:, 0]).double()
        later = (pair_top - pairs.reshape(-1)[self.label_pairs]).double()
        if self.row_weights is None or self.later_weights is None:
            return here.sum() + later.sum()
        return here @ self.row_weights + later @ self.later_weights

    def residuals(self, nodes: Tensor) -> Tensor:
        """Return ``weight·(p − observed)`` of every row and label."""
        assert self.labels is not None
        out = nodes.clone()
        out[torch.arange(len(out), device=out.device), self.labels] -= 1.0
        return self.weighted(out)

    def weighted(self, table: Tensor) -> Tensor:
        """Return a table of rows, each times its weight."""
        return table if self.row_weights is None else table * self.row_weights[:, None].to(table.dtype)

    def _check_allowed(self, arrays: ChainArrays) -> None:
        """Raise DataError if labels are out of range, or if the field forbids them."""
        labels = self.labels
        assert labels is not None
        field, packing = self.scores.field, self.packing
        if len(labels) == 0:
            return
        low, high = labels.min(), labels.max()
        if low < 0 or high >= field.n_labels:
            raise DataError(f"labels go from {low} to {high}; expected 0 to {field.n_labels - 1}")
        forbidden = torch.zeros_like(labels, dtype=torch.bool)
        if field.allowed is not None:
            forbidden[packing.n_begun :] |= ~field.allowed.reshape(-1)[self.label_pairs]
        if field.allowed_start is not None:
            forbidden[: packing.n_begun] |= ~field.allowed_start[labels[: packing.n_begun]]
        if field.allowed_end is not None:
            forbidden[packing.last] |= ~field.allowed_end[labels[packing.last]]
        if bool(forbidden.any()):
            position = int(packing.positions[forbidden].min())
            n = int((arrays.starts[1:] <= position).sum())
            raise DataError(
                f"sequence {n}, position {position - int(arrays.starts[n])}: the constraints forbid the label "
                f"{int(arrays.labels[position]) if arrays.labels is not None else ''}"
            )
