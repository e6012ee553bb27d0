"""Best labellings of chains on CUDA: a program for each sequence, with the pair scores in registers.

    δ_t(j) = u_t(j) + max_i (δ_{t−1}(i) + w(i, j)),  less its maximum, so that nothing grows;  pointers say which i

Then the program follows the pointers back from the best last label.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from crfkit.torch.kernels import padded
from crfkit.torch.packing import Packing

WARPS = {32: 1, 64: 4, 128: 8, 256: 16}


@triton.jit
def _viterbi(unary, pairs, first, lengths, pointers, labels, n_labels, WIDTH: tl.constexpr):
    k = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, WIDTH), tl.arange(0, WIDTH)
    real = j < n_labels
    length = tl.load(lengths + k).to(tl.int32)
    # [j, i]: the maximum over i is along the last axis
    square = real[:, None] & (i < n_labels)[None, :]
    moves = tl.load(pairs + i[None, :] * n_labels + j[:, None], mask=square, other=float("-inf"))
    best = tl.load(unary + k * n_labels + j, mask=real, other=float("-inf"))
    for t in range(1, length):
        row = tl.load(first + t) + k
        u = tl.load(unary + row * n_labels + j, mask=real, other=float("-inf"))
        score, pointer = tl.max(moves + best[None, :], 1, return_indices=True)
        tl.store(pointers + row * n_labels + j, pointer.to(tl.uint8), mask=real)
        best = u + score
        best -= tl.max(best, 0)
    label = tl.argmax(best, 0)
    tl.debug_barrier()  # pointers are read by other threads than those that have written them
    for back in range(1, length):
        row = tl.load(first + length - back) + k
        tl.store(labels + row, label)
        label = tl.load(pointers + row * n_labels + label).to(tl.int32)
    tl.store(labels + k, label)


def best_labels(unary: Tensor, pairs: Tensor, packing: Packing) -> Tensor:
    """Return the label of every row in the best labelling of its sequence."""
    n_labels, width = unary.shape[1], padded(unary.shape[1])
    pointers = torch.empty(unary.shape, dtype=torch.uint8, device=unary.device)
    labels = torch.empty(len(unary), dtype=torch.int32, device=unary.device)
    _viterbi[(packing.n_begun,)](
        unary, pairs, packing.first, packing.lengths, pointers, labels, n_labels, width, num_warps=WARPS[width]
    )
    return labels
