"""Value and residuals of the chain likelihood by kernels: the host's part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
from torch import Tensor

from crfkit.torch.kernels import padded
from crfkit.torch.kernels.messages import messages, residuals
from crfkit.torch.scaled import SMALLEST, WIDEST

if TYPE_CHECKING:
    from crfkit.torch.chain_rows import ChainRows

SEQUENCES = 16  # of a program: the least that a product of matrices takes
ROWS = {32: 32, 64: 32, 128: 16, 256: 8}  # of a program, at a time
PROGRAMS = 2048  # at most so many; each leaves a table of pair sums
WIDEST_PAIRS = 64  # labels whose pair sums are held in registers
# Products of single floats by three products of tensor cores each, nearly as precise; those of doubles as they are.
PRODUCT = {torch.float32: "tf32x3", torch.float64: "ieee"}
AGREEMENT = {torch.float32: 1e-3, torch.float64: 1e-9}  # of log Z of both directions, for each position
WARPS = {32: 4, 64: 8, 128: 8, 256: 8}
PARTS = {torch.float32: {256: 4}, torch.float64: {256: 8}}  # of E, where shared memory does not hold it


def evaluate(rows: ChainRows, unary: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return (loss, whether probabilities could not hold it, residuals [T, L], pair sums [L, L]); see ChainRows."""
    packing, device, dtype = rows.packing, unary.device, unary.dtype
    n_rows, L = unary.shape
    n, width = packing.n_begun, padded(L)
    pair_top = pairs.amax()
    E = torch.exp(pairs - pair_top)
    a, b = torch.empty_like(unary), torch.empty_like(unary)
    terms = unary.new_empty(n_rows)
    log_z = torch.empty(2, n, dtype=torch.float64, device=device)
    n_blocks, parts = triton.cdiv(n, SEQUENCES), PARTS[dtype].get(width, 1)
    scratch = unary.new_empty(n_blocks * 2 * SEQUENCES * width if parts > 1 else 0)
    messages[(n_blocks, 2)](
        unary, E, packing.first, packing.lengths, a, b, terms, log_z, scratch, n, L, SMALLEST[dtype],
        PRODUCT[dtype], parts, SEQUENCES, width, num_warps=WARPS[width], num_stages=1,
    )  # fmt: skip
    grid = min(PROGRAMS, triton.cdiv(n_rows, ROWS[width]))
    in_kernel = width <= WIDEST_PAIRS
    out = torch.empty_like(unary)
    value = torch.empty(grid, dtype=torch.float64, device=device)
    sums = unary.new_empty((grid, L, L) if in_kernel else (0,))
    weighted = rows.row_weights is not None
    residuals[(grid,)](
        unary, a, b, terms, rows.labels, rows.row_weights if weighted else terms, rows.rows_before,
        pairs, pair_top, out, value, sums, n_rows, L, SMALLEST[dtype],
        PRODUCT[dtype], weighted, in_kernel, ROWS[width], width, num_warps=WARPS[width], num_stages=1,
    )  # fmt: skip
    pair_sums = sums.sum(dim=0, dtype=torch.float64) if in_kernel else (a[packing.before].T @ b[n:]).double()
    off = (log_z[0] - log_z[1]).abs() <= AGREEMENT[dtype] * packing.lengths[:n]  # False for NaN
    wide = pair_top - torch.where(torch.isfinite(pairs), pairs, pair_top).amin() > WIDEST[dtype]
    lost = ((~off).any() | wide).double()
    return value.sum(), lost, out, pair_sums * E.double()
