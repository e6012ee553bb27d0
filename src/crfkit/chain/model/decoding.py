"""Answers of a trained chain beyond its best labels: other labellings, probabilities, entropies, samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from crfkit import _core
from crfkit._checks import check_count, make_seed
from crfkit._types import Flags, Floats, Ids, Label, Sequences
from crfkit.chain.data import SequenceData, encode_labels
from crfkit.chain.encoding.sequences import label_rows
from crfkit.chain.model.limits import Allowed, Known, Limits, Pairs, make_limits, one_run_each
from crfkit.chain.model.spans import check_probability
from crfkit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

Listed = list[list[tuple[Ids, float]]]  # (labels, score), best first, of each sequence


@dataclass(frozen=True)
class Labelling:
    """The labels of a sequence, with their probability and their score (its log but for the constant log Z).

    `difference` is log p of this labelling minus log p of the best one: 0 for the best, negative for the others.
    """

    labels: list[Label]
    probability: float
    score: float
    log_probability: float
    difference: float = 0.0


@dataclass(frozen=True)
class Decoded:
    """The chosen labels of a sequence and how sure the model is of them.

    Probabilities are those among the labellings that known labels, allowed labels and constraints leave. `confidences`
    are the marginal probabilities of the chosen labels. Where one is below `min_confidence`, `labels` has the abstain
    label and `full_labels` still has the chosen one. `exact` is False if `contiguous` ended its search at the limit.
    """

    labels: list[Label]
    score: float
    probability: float
    log_probability: float
    alternatives: list[Labelling]  # the next best labellings, best first, without the chosen one
    confidences: Floats  # [positions]
    full_labels: list[Label]
    entropy: float | None = None  # of the whole labelling, in nats
    exact: bool = True


class Entropy(NamedTuple):
    """The uncertainty of the labels of a sequence, in nats: of all together, and at each position."""

    sequence: float
    positions: Floats


def decode(
    model: ChainModel,
    X: Sequences,
    n: int = 1,
    method: Literal["viterbi", "posterior"] = "viterbi",
    *,
    known: Known = None,
    allowed: Allowed = None,
    constraints: Pairs = None,
    contiguous: bool | Collection[Label] = False,
    min_confidence: float | None = None,
    abstain: Label = None,
    entropy: bool = False,
    search_limit: int = 50_000,
) -> list[Decoded]:
    """Return the labels of each sequence with probabilities and alternatives; see ChainAnswers.decode."""
    check_count(n=n, search_limit=search_limit)
    if method not in ("viterbi", "posterior"):
        raise ParameterError(f"method must be 'viterbi' or 'posterior', not {method!r}")
    one_run = contiguous is not False
    if method == "posterior" and (n > 1 or one_run):
        option = "contiguous" if one_run else "n > 1"
        raise ParameterError(f"{option} is for method='viterbi': posterior decoding chooses each position by itself")
    least = None if min_confidence is None else check_probability("min_confidence", min_confidence)
    rule = one_run_each(model.class_list, contiguous) if one_run else None

    data = model.encode(X)
    limits = make_limits(model, data, known, allowed, constraints)
    inference, mask = limits.inference, limits.allowed
    log_z, node = inference.beliefs(data, mask)
    exact = np.ones(len(data), dtype=bool)
    if method == "posterior":
        ids = node.argmax(axis=1).astype(np.int32)
        found = _single(data, ids, inference.score(data, ids))
    elif rule is not None:
        found, exact = inference.nbest_one_run(data, n, *rule, search_limit, mask)
        _check_found(found, exact, search_limit)
    elif n > 1:
        found = inference.nbest(data, n, mask)
    else:
        found = _single(data, *inference.decode(data, mask))
    entropies = inference.entropies(data, mask).tolist() if entropy else [None] * len(data)

    listed = _labellings(model, found, log_z)
    chosen = np.concatenate([row[0][0] for row in found]) if found else np.zeros(0, dtype=np.int32)
    confidence = np.minimum(node[np.arange(len(chosen)), chosen], 1.0)
    results = []
    for k, (begin, end) in enumerate(pairwise(data.starts.tolist())):
        best, here = listed[k][0], confidence[begin:end]
        labels = best.labels
        if least is not None and (here < least).any():
            labels = [
                abstain if low else label for label, low in zip(best.labels, (here < least).tolist(), strict=True)
            ]
        results.append(
            Decoded(
                labels,
                best.score,
                best.probability,
                best.log_probability,
                listed[k][1:],
                here,
                best.labels,
                entropies[k],
                bool(exact[k]),
            )
        )
    return results


def predict_nbest(model: ChainModel, X: Sequences, n: int) -> list[list[Labelling]]:
    """Return the n best labellings of each sequence, best first; all of them where there are fewer than n."""
    check_count(n=n)
    data = model.encode(X)
    return nbest_of(model, data, n)


def nbest_of(model: ChainModel, data: SequenceData, n: int) -> list[list[Labelling]]:
    """Return the n best labellings of encoded sequences."""
    log_z = model.inference.log_partition(data)
    return _labellings(model, model.inference.nbest(data, n), log_z)


def sequence_probability(model: ChainModel, X: Sequences, y: Iterable[Sequence[Label]], log: bool = False) -> Floats:
    """Return the probability of given labels for each sequence; with `log`, its logarithm, which does not underflow."""
    data = model.encode(X)
    log_probability = log_probabilities(model, data, label_ids(model, data, y))
    return log_probability if log else np.exp(log_probability)


def label_ids(model: ChainModel, data: SequenceData, y: Iterable[Sequence[Label]]) -> Ids:
    """Return the ids of given labels; raise DataError if they do not fit the sequences or the model."""
    return encode_labels(label_rows(y), data.lengths, {name: j for j, name in enumerate(model.class_list)})


def log_probabilities(model: ChainModel, data: SequenceData, labels: Ids) -> Floats:
    """Return log p(labels | x) of each sequence, −inf where constraints forbid the labels."""
    found: Floats = np.minimum(model.inference.score(data, labels) - model.inference.log_partition(data), 0.0)
    return found


def sample(
    model: ChainModel,
    X: Sequences,
    n: int = 1,
    random_state: object = None,
    *,
    known: Known = None,
    allowed: Allowed = None,
    constraints: Pairs = None,
) -> list[list[list[Label]]]:
    """Return n labellings of each sequence, drawn from p(y | x)."""
    check_count(n=n)
    data = model.encode(X)
    limits = make_limits(model, data, known, allowed, constraints)
    drawn = limits.inference.sample(data, n, make_seed(random_state, None), limits.allowed)
    names = model.class_list
    return [[[names[j] for j in row] for row in rows.tolist()] for rows in drawn]


def entropies(
    model: ChainModel,
    X: Sequences,
    *,
    known: Known = None,
    allowed: Allowed = None,
    constraints: Pairs = None,
) -> list[Entropy]:
    """Return the entropy of the labelling of each sequence, and the entropies of its positions."""
    data = model.encode(X)
    limits = make_limits(model, data, known, allowed, constraints)
    total = limits.inference.entropies(data, limits.allowed)
    positions = position_entropies(limits, data)
    return [
        Entropy(value, row)  # type: ignore[arg-type]
        for value, row in zip(total.tolist(), data.split(positions), strict=True)
    ]


def position_entropies(limits: Limits, data: SequenceData) -> Floats:
    """Return −Σ_j p_t(j) log p_t(j) of every position."""
    from scipy.special import entr

    found: Floats = entr(limits.inference.node_marginals(data, limits.allowed)).sum(axis=1)
    return found


# --- from arrays to results


def _single(data: SequenceData, ids: Ids, scores: Floats) -> Listed:
    return [[(ids[a:b], score)] for (a, b), score in zip(pairwise(data.starts.tolist()), scores.tolist(), strict=True)]


def _labellings(model: ChainModel, found: Listed, log_z: Floats) -> list[list[Labelling]]:
    ids = [labels for row in found for labels, _ in row]
    starts = np.cumsum([0, *map(len, ids)])
    flat = np.concatenate(ids) if ids else np.zeros(0, dtype=np.int32)
    named = iter(_core.name_labels(model.class_list, flat, starts))
    listed = []
    for row, total in zip(found, log_z.tolist(), strict=True):
        scores = np.array([score for _, score in row])
        logs = np.minimum(scores - total, 0.0)
        # Posterior decoding may join labels that a constraint forbids: the score is then −inf, the difference still 0.
        differences = np.zeros_like(scores)
        differences[1:] = scores[1:] - scores[:1]
        listed.append(
            [
                Labelling(next(named), p, score, log, difference)
                for p, score, log, difference in zip(
                    np.exp(logs).tolist(), scores.tolist(), logs.tolist(), differences.tolist(), strict=True
                )
            ]
        )
    return listed


def _check_found(found: Listed, exact: Flags, limit: int) -> None:
    """Raise DataError for a sequence without a labelling in which each label has at most one run."""
    for k, row in enumerate(found):
        if not row:
            why = (
                "exists; name fewer labels in contiguous, or loosen the constraints and allowed labels"
                if exact[k]
                else f"was found within search_limit={limit}; raise it"
            )
            raise DataError(f"sequence {k}: no labelling with at most one run of each label {why}")
