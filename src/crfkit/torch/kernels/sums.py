"""Sums of table rows over lists, on CUDA: scores (attributes of a row) and gradients (rows of an attribute).

A program sums some lists side by side, each of at most CHUNK rows; lists are sorted by length, so that those side by
side are of like length. Longer lists are cut into chunks, whose sums are the table of a second level, and so on. No
two programs add to the same place: sums have a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from crfkit.torch.kernels import padded

CHUNK = 64
CELLS = 512  # numbers that a program sums side by side


@triton.jit
def _sum_lists(
    table, rows, factors, begins, ends, targets, out, n_lists, n_columns,
    POWER: tl.constexpr, LISTS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    k = tl.program_id(0).to(tl.int64) * LISTS + tl.arange(0, LISTS)
    j = tl.arange(0, WIDTH)
    begin = tl.load(begins + k, mask=k < n_lists, other=0)
    end = tl.load(ends + k, mask=k < n_lists, other=0)
    target = tl.load(targets + k, mask=k < n_lists, other=0)
    total = tl.zeros((LISTS, WIDTH), dtype=out.dtype.element_ty)
    most = tl.max(end - begin, 0)
    for i in range(most):
        here = begin + i < end
        row = tl.load(rows + begin + i, mask=here, other=0).to(tl.int64)
        x = tl.load(
            table + row[:, None] * n_columns + j[None, :], mask=here[:, None] & (j < n_columns)[None, :], other=0.0
        )
        if POWER > 0:
            factor = tl.load(factors + begin + i, mask=here, other=0.0).to(x.dtype)
            if POWER == 2:
                factor *= factor
            x *= factor[:, None]
        total += x
    tl.store(
        out + target[:, None] * n_columns + j[None, :], total, mask=(k < n_lists)[:, None] & (j < n_columns)[None, :]
    )


@dataclass(frozen=True, eq=False)
class Level:
    """Lists of at most CHUNK rows, the longest first: list k is ``begins[k] : ends[k]``, its sum row ``targets[k]``."""

    begins: Tensor
    ends: Tensor
    targets: Tensor
    rows: Tensor

    def run(self, table: Tensor, factors: Tensor | None, power: int, out: Tensor) -> None:
        n_lists, n_columns = len(self.begins), table.shape[1]
        width = padded(n_columns)
        side = max(1, CELLS // width)
        _sum_lists[(triton.cdiv(n_lists, side),)](
            table, self.rows, self.rows if factors is None else factors, self.begins, self.ends, self.targets, out,
            n_lists, n_columns, 0 if factors is None else power, side, width, num_warps=4,
        )  # fmt: skip


class ListSums:
    """The sums of all lists ``rows[offsets[k] : offsets[k + 1]]``.

    They are the first rows of a buffer. `gap` rows follow, for whatever the caller puts there, and then the sums of
    chunks.
    """

    def __init__(self, offsets: Tensor, rows: Tensor, factors: Tensor | None, gap: int = 0) -> None:
        self.n = len(offsets) - 1
        self.n_rows = self.n + gap
        self._factors = factors
        self._levels: list[Level] = []
        targets, rows = torch.arange(self.n, device=offsets.device), rows.to(torch.int32)
        while len(targets):
            begins, ends, goals, offsets, targets, n_partial = _cut(offsets, targets, self.n_rows)
            self._levels.append(Level(begins, ends, goals, rows))
            rows = torch.arange(self.n_rows, self.n_rows + n_partial, dtype=torch.int32, device=offsets.device)
            self.n_rows += n_partial

    def buffer(self, table: Tensor, power: int = 1) -> Tensor:
        """Return a buffer whose first rows are ``Σ factor^power · table[row]`` of every list."""
        out, factors = table.new_empty(self.n_rows, table.shape[1]), self._factors
        for level in self._levels:
            level.run(table, factors, power, out)
            table, factors = out, None
        return out


def _cut(offsets: Tensor, targets: Tensor, next_row: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, int]:
    """Return (begins, ends, targets) of lists cut into chunks, (offsets, targets) of lists of chunks, their number.

    A list of one chunk has its own target; chunks of longer lists have the targets from `next_row` on.
    """
    device = offsets.device
    counts = offsets.diff()
    chunks = ((counts + CHUNK - 1) // CHUNK).clamp_min(1)
    of = torch.repeat_interleave(torch.arange(len(counts), device=device), chunks)
    number = torch.arange(len(of), device=device) - (chunks.cumsum(0) - chunks)[of]
    begins = offsets[:-1][of] + number * CHUNK
    ends = torch.minimum(begins + CHUNK, offsets[1:][of])
    long = chunks > 1
    partial = long[of]
    goals = targets[of]
    n_partial = int(partial.sum())
    goals[partial] = next_row + torch.arange(n_partial, device=device)
    order = torch.argsort(ends - begins, descending=True, stable=True)
    later = torch.cat([chunks.new_zeros(1), chunks[long].cumsum(0)])
    return begins[order], ends[order], goals[order], later, targets[long], n_partial
