"""Forward and backward sums, alpha and beta in CRF++'s module: log Z of the beginning and of the end of a sequence.

alpha(t, j) is log Σ exp(score) over the labellings of x_1 … x_t that end in label j, and beta(t, j) over those of
x_t … x_T that begin with j. cost(t, j) is the score of the attributes of x_t alone, which both contain, so
p(y_t = j) = exp(alpha + beta − cost − log Z).
"""

from __future__ import annotations

import numpy as np

from crfkit._types import Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.inference import ChainInference


def restricted(inference: ChainInference, data: SequenceData, begin: int, end: int, at: int) -> Floats:
    """Return log Z of positions begin … end−1 of one sequence with label j at position `at`, for every j."""
    L, T = inference.field.n_labels, end - begin
    allowed = np.ones((L, T, L), dtype=bool)
    allowed[:, at - begin] = np.eye(L, dtype=bool)
    copies = _part(data, begin, end).take(np.zeros(L, dtype=np.int64))
    return inference.log_partition(copies, allowed.reshape(L * T, L))


def _part(data: SequenceData, begin: int, end: int) -> SequenceData:
    """Return positions begin … end−1 of one sequence. The first has no label before it, and so no pair attributes."""
    offsets, (first, last) = _cut(data.offsets, begin, end)
    pair_offsets: Ints | None = None
    pair_attributes: Ids | None = None
    if data.pair_offsets is not None and data.pair_attributes is not None:
        later, (a, b) = _cut(data.pair_offsets, begin + 1, end)
        pair_offsets, pair_attributes = np.concatenate([[0], later]), data.pair_attributes[a:b]
    values = None if data.values is None else data.values[first:last]
    starts = np.array([0, end - begin])
    return SequenceData(starts, offsets, data.attributes[first:last], values, pair_offsets, pair_attributes)


def _cut(offsets: Ints, begin: int, end: int) -> tuple[Ints, tuple[int, int]]:
    part = offsets[begin : end + 1]
    return part - part[0], (int(part[0]), int(part[-1]))
