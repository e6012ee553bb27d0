"""What a trained chain can say beyond its best labels: the n best labellings, probabilities of labellings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit._types import Floats
from crfkit.data.sequences import encode_labels
from crfkit.encoders.sequences import label_rows
from crfkit.errors import ParameterError

if TYPE_CHECKING:
    from crfkit.models.chain import ChainModel


@dataclass(frozen=True)
class Labelling:
    """The labels of a sequence, with their probability and their score (its log but for the constant log Z)."""

    labels: list[Any]
    probability: float
    score: float


def predict_nbest(model: ChainModel, X: Iterable[Any], n: int) -> list[list[Labelling]]:
    """Return the n best labellings of each sequence, best first; fewer where no more exist."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ParameterError(f"n must be an integer >= 1, not {n!r}")
    data = model.encode(X)
    names = model.class_list
    log_z = model.inference.log_partition(data).tolist()
    return [
        [Labelling([names[j] for j in labels.tolist()], float(np.exp(score - total)), score) for labels, score in found]
        for found, total in zip(model.inference.nbest(data, int(n)), log_z, strict=True)
    ]


def sequence_probability(model: ChainModel, X: Iterable[Any], y: Iterable[Sequence[Any]], log: bool = False) -> Floats:
    """Return the probability of given labels for each sequence; with `log`, its logarithm, which does not underflow."""
    data = model.encode(X)
    labels = encode_labels(label_rows(y), data.lengths, {name: j for j, name in enumerate(model.class_list)})
    log_probability = np.minimum(model.inference.score(data, labels) - model.inference.log_partition(data), 0.0)
    return log_probability if log else np.exp(log_probability)
