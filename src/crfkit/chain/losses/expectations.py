"""Expected feature counts of chains, as improved iterative scaling needs them.

A sequence's total is the largest number of features, each counted with its value, that any of its labellings has: the
best score when all weights are 1. Scaling needs expectations by total; sequences of similar totals share a bucket,
which takes the largest of them (a bound that is too large slows scaling down, but is never wrong).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crfkit._types import Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.chain.losses.likelihood import ChainLoss
    from crfkit.chain.losses.tilted import TiltedExpectations

ROUNDING = 4 * 2.0**-52


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """The loss at w, in parts."""

    value: float
    grad: Floats  # [n]
    expected: Floats  # [buckets, n]: the sum is gradient + observed counts


class ChainExpectations:
    """Observed and expected feature counts of a likelihood; sequences of weight 0 have no part in them."""

    def __init__(self, loss: ChainLoss, buckets: int = 16) -> None:
        if buckets < 1:
            raise ParameterError(f"buckets must be >= 1, not {buckets!r}")
        self._loss = loss
        weights = loss.data.weights
        ids = np.arange(len(loss.data)) if weights is None else np.flatnonzero(weights)
        data = loss.data.take(ids)
        check_values(data, ids)
        ones = np.ones(loss.size)
        bounds = ChainInference(loss.field, ones, loss.n_threads, loss.kernels).decode(data)[1]
        bucket = _buckets(bounds, np.ones(len(ids)) if data.weights is None else data.weights, buckets)
        self._ids = [ids[bucket == b] for b in range(bucket.max(initial=-1) + 1)]
        self.totals: Floats = np.array([bounds[bucket == b].max() for b in range(len(self._ids))])  # ascending

    def grouped(self, buckets: int) -> ChainExpectations:
        """The same in so many buckets at most."""
        return ChainExpectations(self._loss, buckets)

    def tilted(self) -> TiltedExpectations:
        """Expectations by the total of each labelling instead."""
        from crfkit.chain.losses.tilted import TiltedExpectations

        return TiltedExpectations(self._loss)

    @cached_property
    def observed(self) -> Floats:
        """Feature counts of the labels, with the weights of the sequences."""
        return sum((counts for _, counts in self._parts), np.zeros(self._loss.size))

    @cached_property
    def _parts(self) -> list[tuple[ChainLoss, Floats]]:
        """(loss, observed counts) of every bucket."""
        losses = [self._loss.subset(ids) for ids in self._ids]
        return [(loss, observed_counts(loss.data, loss.field)) for loss in losses]

    def at(self, w: Floats) -> ExpectedCounts:
        """expected = gradient + observed, of each bucket's own loss."""
        value, grad = 0.0, np.zeros(len(w))
        expected = np.empty((len(self._parts), len(w)))
        for row, (loss, observed) in zip(expected, self._parts, strict=True):
            part = loss.at(w)
            value += part.value
            grad += part.grad
            # Where almost nothing is expected, the sum is lost in rounding; it is not negative, and not zero for what
            # has been observed.
            np.maximum(part.grad + observed, ROUNDING * observed, out=row)
        return ExpectedCounts(value, grad, expected)


def check_values(data: SequenceData, ids: Ints) -> None:
    """Raise if a feature has a negative value; `ids` are the numbers of the sequences, for the message."""
    if data.values is None or not (data.values < 0).any():
        return
    entry = int(np.argmax(data.values < 0))
    position = int(np.searchsorted(data.offsets, entry, side="right")) - 1
    n = int(np.searchsorted(data.starts, position, side="right")) - 1
    raise DataError(
        f"improved iterative scaling needs feature values >= 0, but attribute {data.attributes[entry]} is "
        f"{data.values[entry]:g} at position {position - data.starts[n]} of sequence {ids[n]}; split such attributes "
        "into a positive and a negative one, or use another solver"
    )


def _buckets(totals: Floats, weights: Floats, n: int) -> Ints:
    """The bucket of each sequence: equal totals stay together, and the buckets have equal shares of all features."""
    distinct, which = np.unique(totals, return_inverse=True)
    if len(distinct) <= n:
        return which.astype(np.int64)
    mass = np.bincount(which, totals * weights)
    before = np.cumsum(mass) - mass
    coarse = np.minimum(n * before / mass.sum(), n - 1).astype(np.int64)
    return np.unique(coarse, return_inverse=True)[1].astype(np.int64)[which]


def observed_counts(data: SequenceData, field: ChainField) -> Floats:
    """How often each feature occurs with the labels, times its values and the weights of the sequences."""
    if data.labels is None:
        raise DataError("the data have no labels")
    y = data.labels
    weights = np.ones(len(data)) if data.weights is None else data.weights
    weight = np.repeat(weights, data.lengths)  # [T]
    t = np.arange(data.n_positions)
    place = t - np.repeat(data.starts[:-1], data.lengths)
    owner = np.repeat(t, np.diff(data.offsets))  # the position of each attribute
    amount = weight[owner] if data.values is None else weight[owner] * data.values
    one, two = t[place > 0], t[place > 1]
    parts = [
        _count(field.state_ids(), (data.attributes, y[owner]), amount),
        _count(field.transition_ids(), (y[one - 1], y[one]), weight[one]),
    ]
    if data.pair_offsets is None or data.pair_attributes is None:
        parts.append(np.zeros(field.n_pair))
    else:
        pair_owner = np.repeat(t, np.diff(data.pair_offsets))
        inner = place[pair_owner] > 0
        pair_owner, b = pair_owner[inner], data.pair_attributes[inner]
        parts.append(_count(field.pair_ids(), (b, y[pair_owner - 1], y[pair_owner]), weight[pair_owner]))
    parts.append(_count(field.triple_ids(), (y[two - 2], y[two - 1], y[two]), weight[two]))
    if field.label_classes is None:
        parts.append(np.zeros(0))
    else:
        parts.append(_count(field.class_ids(), (data.attributes, field.label_classes[y[owner]]), amount))
    return np.concatenate(parts)


def _count(names: Sequence[Ids], occurring: Sequence[Ids], amount: Floats) -> Floats:
    """Per weight, the sum of the amounts where its name occurs; the names are ascending."""
    if len(names[0]) == 0:
        return np.zeros(0)
    widths = [1 + max(int(a.max(initial=0)), int(b.max(initial=0))) for a, b in zip(names, occurring, strict=True)]

    def codes(columns: Sequence[Ids]) -> NDArray[np.int64]:
        code = np.zeros(len(columns[0]), dtype=np.int64)
        for column, width in zip(columns, widths, strict=True):
            code = code * width + column
        return code

    weights, seen = codes(names), codes(occurring)
    where = np.minimum(np.searchsorted(weights, seen), len(weights) - 1)
    has = weights[where] == seen
    return np.bincount(where[has], amount[has], minlength=len(weights)).astype(np.float64)
