"""A sample of the Hessian of a chain's likelihood, from labellings that are drawn from the model.

The Hessian is the covariance of the feature counts F(y), summed over sequences. For two labellings y, y′ of a sequence
that are drawn independently,

    ½ E[(F(y) − F(y′)) (F(y) − F(y′))ᵀ] = Cov F,

so the rows ``√½·(F(y) − F(y′))`` of all sequences are a matrix A with E[AᵀA] = ∇²f. It includes what positions of a
sequence have to do with each other, and is sparse: F(y) − F(y′) has entries only where the two labellings differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Flags, Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.block import WeightBlock
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Entries = tuple[Ints, Ints, Floats]  # sequences, weights, values


def sampled_hessian(
    data: SequenceData, field: ChainField, w: Floats, rows: int, seed: int, n_threads: int | None, kernels: str
) -> csr_matrix:
    """Return A with E[AᵀA] = ∇²f at w and about as many rows as were asked for, at least one.

    With more sequences than that, some are drawn at random; with fewer, each has several pairs of labellings.
    """
    from scipy.sparse import vstack

    n = len(data)
    if n > rows:
        chosen = np.sort(np.random.default_rng(seed).choice(n, max(rows, 1), replace=False))
        data = data.take(chosen)
    pairs = max(1, -(-rows // max(n, 1))) if n <= rows else 1
    drawn = ChainInference(field, w, n_threads, kernels).sample(data, 2 * pairs, seed)
    labels = np.concatenate(drawn, axis=1) if drawn else np.zeros((2 * pairs, 0), dtype=np.int32)
    parts = [_differences(data, field, labels[2 * k], labels[2 * k + 1]) for k in range(pairs)]
    share = n / max(len(data), 1) / pairs  # of the whole that a row stands for
    weights = np.ones(len(data)) if data.weights is None else data.weights
    scale = np.tile(np.sqrt(0.5 * share * weights), pairs)
    found: csr_matrix = vstack(parts).multiply(scale[:, None]).tocsr()
    return found


def _differences(data: SequenceData, field: ChainField, first: Ids, second: Ids) -> csr_matrix:
    """Return F(y) − F(y′) of every sequence as rows, for the labels y and y′ of all positions."""
    from scipy.sparse import csr_matrix

    sequence = np.repeat(np.arange(len(data)), data.lengths)
    inner = np.ones(data.n_positions, dtype=bool)
    inner[data.starts[:-1][data.lengths > 0]] = False
    found = [
        (sequence[t], weights, sign * values)
        for sign, labels, other in ((1.0, first, second), (-1.0, second, first))
        for t, weights, values in _counts(data, field, labels.astype(np.int64), labels != other, inner)
    ]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return csr_matrix((values, (rows, columns)), shape=(len(data), field.size))


def _counts(data: SequenceData, field: ChainField, y: Ints, differ: Flags, inner: Flags) -> Iterator[Entries]:
    """Yield (positions, weights, values) of the features with labels y where labellings differ, block by block."""
    L, blocks, layout = field.n_labels, field.blocks, field.layout

    def counted(name: str, t: Ints, lists: Ints, codes: Ints, values: Floats | None = None) -> Entries:
        places, there = _places(blocks[name], lists, codes)
        values = np.ones(len(t)) if values is None else values
        return t[there], layout[name].start + places[there], values[there]

    at = np.flatnonzero(differ)
    entries, t = _ranges(data.offsets, at)
    values = None if data.values is None else data.values[entries]
    attributes = data.attributes[entries].astype(np.int64)
    yield counted("state", t, attributes, y[t], values)
    if field.label_classes is not None:
        yield counted("class", t, attributes, field.label_classes[y[t]].astype(np.int64), values)

    later = differ.copy()  # where the label or the one before differs
    later[1:] |= differ[:-1]
    at = np.flatnonzero(later & inner)
    yield counted("transition", at, np.zeros_like(at), L * y[at - 1] + y[at])
    if data.pair_offsets is not None and data.pair_attributes is not None:
        entries, t = _ranges(data.pair_offsets, at)
        yield counted("pair", t, data.pair_attributes[entries].astype(np.int64), L * y[t - 1] + y[t])
    if field.order == 2:
        latest = later.copy()
        latest[1:] |= later[:-1]
        second = inner.copy()
        second[1:] &= inner[:-1]
        at = np.flatnonzero(latest & second)
        yield counted("triple", at, np.zeros_like(at), (L * y[at - 2] + y[at - 1]) * L + y[at])


def _ranges(offsets: Ints, at: Ints) -> tuple[Ints, Ints]:
    """Return the entries ``offsets[t] … offsets[t+1] − 1`` of some positions t, and the position of each."""
    counts = offsets[at + 1] - offsets[at]
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(offsets[at] - (ends - counts), counts), np.repeat(
        at, counts
    )


def _places(block: WeightBlock, lists: Ints, codes: Ints) -> tuple[Ints, Flags]:
    """Return where the weights of some codes of some lists stand in their block, and which of them there are."""
    keys = lists * block.width + codes
    if block.complete:
        return keys, np.full(len(keys), block.size > 0)
    places = np.minimum(np.searchsorted(block.keys, keys), max(block.size - 1, 0))
    there = block.keys[places] == keys if block.size else np.zeros(len(keys), dtype=bool)
    return places, there
