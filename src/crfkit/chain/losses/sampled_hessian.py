"""A sample of the Hessian of a chain's likelihood, from labellings that are drawn from the model.

The Hessian is the covariance of the feature counts F(y), summed over sequences. For two labellings y, y′ of a sequence
that are drawn independently,

    ½ E[(F(y) − F(y′)) (F(y) − F(y′))ᵀ] = Cov F,

and F(y) − F(y′) has entries only where the two labellings differ. It is a sum over the *runs* of such positions. Given
that both agree at a position, what comes after it may be swapped between them: that is as likely, and changes the sign
of the later runs alone. So the products of different runs are zero on average, and each run may be a row of its own:
the rows ``√½·(F(y) − F(y′))`` of all runs are a sparse matrix A with E[AᵀA] = ∇²f. (In chains of order 2 runs end where
both labellings agree at two positions in a row.)
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

Entries = tuple[Ints, Ints, Floats]  # positions, weights, values


MOST_PAIRS = 8  # of labellings of each sequence
MOST_LABELS = 10_000_000  # that are drawn in all
TABLE, MOST_KEYS = 32, 1 << 22  # numbers for each weight that is looked up: a table of so many is faster than a search


def sampled_hessian(
    data: SequenceData, field: ChainField, w: Floats, sequences: int, seed: int, n_threads: int | None, kernels: str
) -> csr_matrix:
    """Return A with E[AᵀA] = ∇²f at w, from about so many sequences.

    Of more sequences, some are drawn at random; of fewer, each has several pairs of labellings.
    """
    from scipy.sparse import vstack

    n, pairs = len(data), 1
    if n > sequences:
        data = data.take(np.sort(np.random.default_rng(seed).choice(n, max(sequences, 1), replace=False)))
    elif n > 0:
        most = min(MOST_PAIRS, MOST_LABELS // max(2 * data.n_positions, 1))
        pairs = max(1, min(most, -(-sequences // n)))
    drawn = ChainInference(field, w, n_threads, kernels).sample(data, 2 * pairs, seed)
    labels = np.concatenate(drawn, axis=1) if drawn else np.zeros((2 * pairs, 0), dtype=np.int32)
    share = n / max(len(data), 1) / pairs  # of the whole that a pair of labellings stands for
    parts = [_differences(data, field, labels[2 * k], labels[2 * k + 1], share) for k in range(pairs)]
    return parts[0] if pairs == 1 else vstack(parts, format="csr")


def _differences(data: SequenceData, field: ChainField, first: Ids, second: Ids, share: float) -> csr_matrix:
    """Return ``√(½·share·weight)·(F(y) − F(y′))`` of every run of labellings y and y′ as rows."""
    from scipy.sparse import csr_matrix

    inner = np.ones(data.n_positions, dtype=bool)
    inner[data.starts[:-1][data.lengths > 0]] = False
    differ = first != second
    apart = differ if field.order == 1 else differ | _before(differ, inner)
    run = np.cumsum(apart & ~_before(apart, inner)) - 1
    weights = np.ones(len(data)) if data.weights is None else data.weights
    scale = np.sqrt(0.5 * share * np.repeat(weights, data.lengths))
    found = [
        (run[t], places, sign * scale[t] * values)
        for sign, labels in ((1.0, first), (-1.0, second))
        for t, places, values in _counts(data, field, labels.astype(np.int64), differ, inner)
    ]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return csr_matrix((values, (rows, columns)), shape=(int(run[-1]) + 1 if len(run) else 0, field.size))


def _before(flags: Flags, inner: Flags) -> Flags:
    """Return the flag of the position before each, False at the first of a sequence."""
    shifted = np.zeros_like(flags)
    shifted[1:] = flags[:-1]
    return shifted & inner


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

    later = differ | _before(differ, inner)  # where the label or the one before differs
    at = np.flatnonzero(later & inner)
    yield counted("transition", at, np.zeros_like(at), L * y[at - 1] + y[at])
    if data.pair_offsets is not None and data.pair_attributes is not None:
        entries, t = _ranges(data.pair_offsets, at)
        yield counted("pair", t, data.pair_attributes[entries].astype(np.int64), L * y[t - 1] + y[t])
    if field.order == 2:
        at = np.flatnonzero((later | _before(later, inner)) & inner & _before(inner, inner))
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
    if block.size == 0:
        return keys, np.zeros(len(keys), dtype=bool)
    n_keys = block.width * block.n
    if n_keys <= min(TABLE * len(keys), MOST_KEYS):
        table = np.full(n_keys, -1, dtype=np.int32)
        table[block.keys] = np.arange(block.size, dtype=np.int32)
        places = table[keys]
        return places, places >= 0
    places = np.minimum(np.searchsorted(block.keys, keys), block.size - 1)
    return places, block.keys[places] == keys
