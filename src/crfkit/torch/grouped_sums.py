"""Sums of table rows by group in a fixed order, however long the groups are."""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.torch.chain_scores import Lists

CHUNK = 4096  # rows


class GroupedSums:
    """Sums over lists. Long lists are cut into chunks, whose sums are added: in parallel, and with small errors.

    >>> sums = GroupedSums.by_group(torch.tensor([1, 0, 1]), 2)
    >>> sums(torch.tensor([[1.0], [10.0], [100.0]])).tolist()
    [[10.0], [101.0]]
    """

    def __init__(self, lists: Lists) -> None:
        self._levels: list[Lists] = []
        device = lists.offsets.device
        while True:
            chunks = ((lists.offsets.diff() + CHUNK - 1) // CHUNK).clamp_min(1)
            if len(chunks) == 0 or int(chunks.max()) == 1:
                self._levels.append(lists)
                return
            ends = chunks.cumsum(0)
            of = torch.repeat_interleave(torch.arange(len(chunks), device=device), chunks)
            number = torch.arange(len(of), device=device) - (ends - chunks)[of]
            begins = lists.offsets[:-1][of] + number * CHUNK
            self._levels.append(Lists(torch.cat([begins, lists.offsets[-1:]]), lists.rows, lists.factors))
            rows = torch.arange(len(of), dtype=torch.int32, device=device)
            lists = Lists(torch.cat([ends.new_zeros(1), ends]), rows)

    @classmethod
    def by_group(cls, groups: Tensor, n: int, rows: Tensor | None = None) -> GroupedSums:
        """Return the sums of the n groups; `groups` has the group of each of `rows`, by default of all rows."""
        order = torch.argsort(groups, stable=True)
        ends = torch.bincount(groups, minlength=n).cumsum(0)
        chosen = order if rows is None else rows[order]
        return cls(Lists(torch.cat([ends.new_zeros(1), ends]), chosen.to(torch.int32)))

    def __call__(self, table: Tensor, power: int = 1) -> Tensor:
        """Return ``Σ factor^power · table[row]`` of every group, [groups, columns]."""
        for level in self._levels:
            table = level.sums(table.contiguous(), power)
            power = 1
        return table
