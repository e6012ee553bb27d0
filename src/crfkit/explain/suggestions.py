"""Choose the sequences to label next: those that the model is least sure of, without near-duplicates.

With node marginals p_t(j), the value of a sequence of T positions is

    entropy          Σ_t H(p_t) / n, with H(p) = −Σ_j p(j) log p(j) and n = max(T, MIN_POSITIONS)
    margin           1 − (p(y¹ | x) − p(y² | x)) of the two best labellings, over √n
    expected-change  √(Σ_t |x_t|² Σ_j p_t(j) (1 − p_t(j))) / √n, about how long a gradient its labels are expected to
                     bring for the weights of attributes x_t

Long sequences tell more, but cost more to label. Sequences shorter than MIN_POSITIONS count as that long: a single
uncertain word is not worth more than a whole uncertain sentence. The divisors were chosen for the number of labels that
are needed to reach a score, on chunking; larger values of MIN_POSITIONS save labels there and cost as many on Spanish
names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crfkit._checks import check_count
from crfkit._types import Floats, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.model.model import ChainModel
from crfkit.errors import ParameterError
from crfkit.explain.inputs import trained_model
from crfkit.names import unknown_name

MIN_POSITIONS = 5  # positions
SHORTLIST = 5  # diversity looks at the best n·SHORTLIST sequences


class Suggestion(NamedTuple):
    """A sequence that is worth labelling, and how much."""

    sequence: int
    value: float


def suggest(
    model: object,
    X: Sequence[object],
    n: int,
    strategy: str = "entropy",
    diversity: float = 0.5,
    min_length: int = 1,
) -> list[Suggestion]:
    """Return the n unlabelled sequences that are most worth labelling, best first.

    model : a fitted :class:`~crfkit.ChainCRF` or a :class:`~crfkit.ChainModel`
    strategy : "entropy", "margin" or "expected-change", see :mod:`crfkit.explain.suggestions`
    diversity : from 0 (value alone) to 1: how much a sequence loses that resembles one already chosen. Resemblance is
        the cosine between counts of attributes, rare ones weighing more.
    min_length : shorter sequences are never returned

    >>> from crfkit import ChainCRF
    >>> crf = ChainCRF().fit([[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> [found.sequence for found in suggest(crf, [[["w=the"], ["w=cat"]], [["w=zebra"], ["w=okapi"]]], n=1)]
    [1]
    """
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, sorted(STRATEGIES))
    check_count(n=n, min_length=min_length)
    if not 0.0 <= diversity <= 1.0:
        raise ParameterError(f"diversity must be from 0 to 1, not {diversity!r}")
    trained = trained_model(model)
    data = trained.encode(X)
    values = STRATEGIES[strategy](trained, data)
    order = np.argsort(-values, kind="stable")
    order = order[data.lengths[order] >= min_length]
    count = min(int(n), len(order))
    chosen = order[:count] if diversity == 0.0 else _diverse(data, values, order, count, diversity)
    return [Suggestion(int(k), float(values[k])) for k in chosen]


def _entropy(model: ChainModel, data: SequenceData) -> Floats:
    p = model.inference.node_marginals(data)
    own = -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=1)
    mean: Floats = _sums(own, data.starts) / _cost(data)
    return mean


def _margin(model: ChainModel, data: SequenceData) -> Floats:
    log_z = model.inference.log_partition(data)
    values = np.ones(len(data))
    for k, found in enumerate(model.inference.nbest(data, 2)):
        chances = [float(np.exp(score - log_z[k])) for _, score in found]
        values[k] -= chances[0] - (chances[1] if len(chances) > 1 else 0.0) if chances else 1.0
    shortened: Floats = values / np.sqrt(_cost(data))
    return shortened


def _expected_change(model: ChainModel, data: SequenceData) -> Floats:
    p = model.inference.node_marginals(data)
    squares: Floats = np.diff(data.offsets).astype(np.float64)
    if data.values is not None:
        squares = _sums(data.values**2, data.offsets)
    total = _sums(squares * np.sum(p * (1.0 - p), axis=1), data.starts)
    length: Floats = np.sqrt(total / _cost(data))
    return length


STRATEGIES: Mapping[str, Callable[[ChainModel, SequenceData], Floats]] = {
    "entropy": _entropy,
    "margin": _margin,
    "expected-change": _expected_change,
}


def _cost(data: SequenceData) -> Ints:
    """Return how many positions count as the cost of labelling each sequence."""
    lengths: Ints = np.maximum(data.lengths, MIN_POSITIONS)
    return lengths


def _sums(values: Floats, starts: Ints) -> Floats:
    of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    sums: Floats = np.bincount(of, values, minlength=len(starts) - 1).astype(np.float64, copy=False)
    return sums


def _diverse(data: SequenceData, values: Floats, order: Ints, n: int, diversity: float) -> list[int]:
    """Choose greedily the largest value · (1 − diversity · largest resemblance to those chosen)."""
    from scipy.sparse import csr_matrix

    some = order[: max(SHORTLIST * n, 100)]
    part = data.take(some)
    rows = np.repeat(np.arange(len(part)), _sums(np.diff(part.offsets).astype(np.float64), part.starts).astype(int))
    size = int(part.attributes.max(initial=-1)) + 1
    counts = csr_matrix((np.ones(len(rows)), (rows, part.attributes)), shape=(len(part), max(size, 1)))
    counts.sum_duplicates()
    rarity = np.log((1 + len(part)) / (1 + np.bincount(counts.indices, minlength=counts.shape[1])))
    counts.data = np.sqrt(counts.data) * rarity[counts.indices]
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
    counts = csr_matrix(counts.multiply(1.0 / np.maximum(norms, 1e-12)[:, None]))
    resemblance, left = np.zeros(len(part)), np.ones(len(part), dtype=bool)
    own, chosen = values[some], []
    for _ in range(n):
        k = int(np.argmax(np.where(left, own * (1.0 - diversity * resemblance), -np.inf)))
        chosen.append(int(some[k]))
        left[k] = False
        alike = np.asarray((counts @ counts[k].T).todense()).ravel()
        resemblance = np.maximum(resemblance, np.minimum(alike, 1.0))
    return chosen
