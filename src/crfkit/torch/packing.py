"""Sequences of different lengths in one table: a row for every position, step by step.

Sequences are ranked by length, the longest first. Step t of all sequences that are longer than t lies together, in
the order of their ranks: step t of rank k is row ``first[t] + k``. What recursions read and write at a step is then one
contiguous block, with no padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Packing:
    """The rows of N sequences with T positions."""

    order: Tensor  # [N]: the sequence of each rank
    positions: Tensor  # [T]: the position of each row
    ranks: Tensor  # [T]: the rank of the sequence of each row
    first: Tensor  # [steps + 1]: where each step begins
    sizes: tuple[int, ...]  # [steps]: how many sequences are longer than t
    lengths: Tensor  # [N]: of each rank

    @classmethod
    def of(cls, starts: Tensor) -> Packing:
        """Return the packing of sequences n that are ``starts[n] : starts[n + 1]``."""
        device = starts.device
        lengths = starts.diff()
        order = torch.argsort(lengths, descending=True, stable=True)
        rank = torch.empty_like(order)
        rank[order] = torch.arange(len(order), device=device)
        counts = torch.bincount(lengths)
        sizes = len(order) - counts.cumsum(0)[:-1]  # longer than t
        first = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        of = torch.repeat_interleave(torch.arange(len(order), device=device), lengths)
        steps = torch.arange(len(of), device=device) - starts[of]
        ranks = rank[of]
        rows = first[steps] + ranks
        positions, by_row = torch.empty_like(rows), torch.empty_like(rows)
        positions[rows] = torch.arange(len(rows), device=device)
        by_row[rows] = ranks
        return cls(order, positions, by_row, first, tuple(sizes.tolist()), lengths[order])

    @property
    def n_rows(self) -> int:
        return len(self.positions)

    @property
    def n_begun(self) -> int:
        """The number of sequences that are not empty: their first positions are the first rows."""
        return self.sizes[0] if self.sizes else 0

    @cached_property
    def before(self) -> Tensor:
        """Return the row of the previous position, for every row of a later step than the first."""
        later = torch.arange(self.n_begun, self.n_rows, device=self.first.device)
        sizes = self.first.diff()
        return later - torch.repeat_interleave(sizes[:-1], sizes[1:])

    @cached_property
    def last(self) -> Tensor:
        """Return the last row of every sequence that is not empty, by rank."""
        lengths = self.lengths[: self.n_begun]
        return self.first[lengths - 1] + torch.arange(self.n_begun, device=self.first.device)

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield (row of the step before, row of the step, sequences) of every step but the first."""
        before, begin = 0, self.n_begun
        for n in self.sizes[1:]:
            yield before, begin, n
            before, begin = begin, begin + n

    def steps_back(self) -> Iterator[tuple[int, int, int]]:
        """Yield the same in the opposite order."""
        begin = self.n_rows
        for t in range(len(self.sizes) - 1, 0, -1):
            begin -= self.sizes[t]
            yield begin - self.sizes[t - 1], begin, self.sizes[t]
