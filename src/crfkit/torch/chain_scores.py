"""The score map of chains on tensors, weights → log-potentials, and its adjoint.

Weights of attributes become a table [attribute, label]. A row's scores are the sum of its attributes' table rows; the
gradient of an attribute is the sum of the residuals of the rows where it occurs. Both are sums over lists of rows, so
that nothing is added to the same place at the same time: sums have a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from crfkit.torch.chain_arrays import ChainArrays
from crfkit.torch.kernels import usable
from crfkit.torch.packing import Packing

if TYPE_CHECKING:
    from crfkit.torch.kernels.sums import ListSums


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of table rows (32-bit numbers) with factors: list k has ``rows[offsets[k] : offsets[k + 1]]``.

    Factors None are 1.

    `gap` is how many more rows kernels leave room for behind the sums; see :class:`crfkit.torch.kernels.sums.ListSums`.
    """

    offsets: Tensor
    rows: Tensor
    factors: Tensor | None = None
    gap: int = 0

    @cached_property
    def by_kernels(self) -> ListSums:
        """The same sums by kernels."""
        from crfkit.torch.kernels.sums import ListSums

        return ListSums(self.offsets, self.rows, self.factors, self.gap)

    def sums(self, table: Tensor, power: int = 1) -> Tensor:
        """Return ``Σ factor^power · table[row]`` of every list, [lists, columns]."""
        n = len(self.offsets) - 1
        if len(self.rows) == 0:
            return table.new_zeros(n, table.shape[1])
        if usable(table.device, table.shape[1]):
            return self.by_kernels.buffer(table.contiguous(), power)[:n]
        factors = None if self.factors is None else (self.factors**power).to(table.dtype)
        rows, offsets = self._for_bags
        return embedding_bag(rows, table, offsets, mode="sum", per_sample_weights=factors, include_last_offset=True)

    @cached_property
    def _for_bags(self) -> tuple[Tensor, Tensor]:
        """Rows and offsets of one type."""
        kind = torch.int32 if len(self.rows) < 2**31 else torch.int64
        return self.rows.to(kind), self.offsets.to(kind)

    def inverted(self, n: int, gap: int = 0) -> Lists:
        """Return the lists of the n rows: in which of these lists each occurs."""
        device = self.rows.device
        order = torch.argsort(self.rows, stable=True)
        lists = torch.arange(len(self.offsets) - 1, dtype=self.rows.dtype, device=device)
        of = torch.repeat_interleave(lists, self.offsets.diff())
        ends = torch.bincount(self.rows, minlength=n).cumsum(0)
        offsets = torch.cat([ends.new_zeros(1), ends])
        return Lists(offsets, of[order], None if self.factors is None else self.factors[order], gap)


def taken_lists(lists: Lists, order: Tensor) -> Lists:
    """Return these of the lists, in this order."""
    counts = lists.offsets.diff()[order]
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    places = torch.arange(int(offsets[-1]), device=order.device)
    places += torch.repeat_interleave(lists.offsets[order] - offsets[:-1], counts)
    return Lists(offsets, lists.rows[places], None if lists.factors is None else lists.factors[places])


class FieldKeys:
    """Where the weights of a field stand in their tables, and what it does not allow, on a device."""

    def __init__(self, arrays: ChainArrays, device: torch.device) -> None:
        self.n_labels = arrays.n_labels
        self.n_attributes = arrays.n_attributes
        state, transition = arrays.blocks["state"], arrays.blocks["transition"]
        self.n_state, self.n_transition = state.size, transition.size
        self.state = None if state.complete else tensor(state.keys, device, torch.int64)
        self.transition = None if transition.complete else tensor(transition.keys, device, torch.int64)
        self.allowed, self.allowed_start, self.allowed_end = (
            None if mask is None else tensor(mask, device, torch.bool)
            for mask in (arrays.allowed, arrays.allowed_start, arrays.allowed_end)
        )

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.n_state + self.n_transition


class ScoreMap:
    """The map of a field on packed rows, whose attributes are in `lists`."""

    def __init__(self, field: FieldKeys, packing: Packing, lists: Lists) -> None:
        self.field = field
        self.packing = packing
        self.lists = lists

    @cached_property
    def by_attribute(self) -> Lists:
        """The rows in which each attribute occurs."""
        field = self.field
        return self.lists.inverted(field.n_attributes, -(-field.n_transition // field.n_labels))

    def linear(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores [T, L] and [L, L], linear in the weights."""
        field, L = self.field, self.field.n_labels
        table = _spread(w[: field.n_state], field.state, field.n_attributes * L).view(field.n_attributes, L)
        pairs = w.new_zeros(L * L)
        if field.n_transition:
            pairs = _spread(w[field.n_state :], field.transition, L * L)
        return self.lists.sums(table), pairs.view(L, L)

    def potentials(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same with −∞ for what the field does not allow."""
        field, (unary, pairs) = self.field, self.linear(w)
        if field.allowed is not None:
            pairs = torch.where(field.allowed, pairs, -torch.inf)
        if field.allowed_start is not None:
            unary[: self.packing.n_begun].masked_fill_(~field.allowed_start, -torch.inf)
        if field.allowed_end is not None:
            last = self.packing.last
            unary[last] = unary[last].masked_fill(~field.allowed_end, -torch.inf)
        return unary, pairs

    def adjoint(self, rows: Tensor, pairs: Tensor, power: int = 1) -> Tensor:
        """Return what residuals of rows [T, L] and of label pairs [L, L] are for each weight; `power` is of values."""
        field, table = self.field, self.by_attribute.sums(rows, power)
        if field.state is None and table.untyped_storage().nbytes() >= field.size * table.itemsize:
            out = table.as_strided((field.size,), (1,))  # kernels have left room for transitions behind the table
        else:
            out = table.new_empty(field.size)
            _gather(table.reshape(-1), field.state, out[: field.n_state])
        if field.n_transition:
            _gather(pairs.reshape(-1).to(rows.dtype), field.transition, out[field.n_state :])
        return out


def _spread(w: Tensor, keys: Tensor | None, n: int) -> Tensor:
    """Return n numbers with the weights at their keys, 0 elsewhere."""
    if keys is None:
        return w
    table = w.new_zeros(n)
    table[keys] = w
    return table


def _gather(table: Tensor, keys: Tensor | None, out: Tensor) -> None:
    if keys is None:
        out.copy_(table)
    else:
        torch.index_select(table, 0, keys, out=out)


def tensor(array: object, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return a copy of an array on a device."""
    return torch.asarray(array, dtype=dtype, device=device, copy=True)
