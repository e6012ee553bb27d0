"""Measure whether probabilities can be trusted: of labels with 80 % confidence, 80 % should be right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import check_count
from crfkit._types import Floats, Ints, Label, Sequences
from crfkit.chain.data import SequenceData, check_labels
from crfkit.chain.model.spans import runs_of, spans_of
from crfkit.errors import DataError, ParameterError
from crfkit.schemes import phrases

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

Block = tuple[SequenceData, list[list[Label]]]  # encoded sequences and their true labels
Kind = Literal["spans", "tokens"]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Probabilities of predictions against how often they were right, in bins of equal width.

    `ece` is the expected calibration error, Σ over bins of (share of the predictions) · |accuracy − confidence|.
    """

    kind: str
    edges: Floats  # [bins + 1]
    counts: Ints  # [bins]
    confidence: Floats  # [bins], mean probability; NaN in empty bins
    accuracy: Floats  # [bins], share that was right; NaN in empty bins
    ece: float
    log_loss: float  # mean of −log p(what happened)
    mean_confidence: float
    mean_accuracy: float

    @property
    def total(self) -> int:
        """The number of predictions."""
        return int(self.counts.sum())

    def __str__(self) -> str:
        lines = [f"{'probability':>13}  {self.kind:>8}  confidence  accuracy"]
        for low, high, n, p, right in zip(
            self.edges[:-1], self.edges[1:], self.counts, self.confidence, self.accuracy, strict=True
        ):
            if n:
                lines.append(f"{low:6.2f}–{high:5.2f}   {n:8d}  {p:10.3f}  {right:8.3f}")
        lines.append(f"{'all':>13}  {self.total:8d}  {self.mean_confidence:10.3f}  {self.mean_accuracy:8.3f}")
        lines.append(f"expected calibration error {self.ece:.4f}, log-loss {self.log_loss:.4f}")
        return "\n".join(lines)


def reliability(
    model: ChainModel, X: Sequences, y: Iterable[Sequence[Label]], kind: Kind = "spans", bins: int = 10
) -> Reliability:
    """Return how well the probabilities of predictions fit labelled sequences."""
    if kind not in ("spans", "tokens"):
        raise ParameterError(f"kind must be 'spans' or 'tokens', not {kind!r}")
    return reliability_of(model, [labelled_block(model, X, y)], kind, bins)


def reliability_of(model: ChainModel, blocks: Sequence[Block], kind: Kind = "spans", bins: int = 10) -> Reliability:
    """Return the same for encoded sequences."""
    check_count(bins=bins)
    if kind == "spans":
        _, p, right = predicted_spans(model, blocks)
    else:
        p, right = predicted_tokens(model, blocks)
    if len(p) == 0:
        raise DataError(f"the model predicts no {kind} on these sequences, so nothing can be said about them")
    return measure(kind, p, right, int(bins))


def measure(kind: str, p: Floats, right: NDArray[np.bool_], bins: int = 10) -> Reliability:
    """Return the reliability of predictions with probabilities p, of which some were right.

    >>> measure("tokens", np.array([0.9, 0.9, 0.6, 0.6]), np.array([True, True, True, False])).ece
    0.1
    """
    edges = np.linspace(0.0, 1.0, bins + 1)
    at = np.clip(np.ceil(p * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(at, minlength=bins)
    with np.errstate(invalid="ignore"):
        confidence = np.bincount(at, weights=p, minlength=bins) / counts
        accuracy = np.bincount(at, weights=right, minlength=bins) / counts
    gaps = np.where(counts > 0, np.abs(accuracy - confidence), 0.0)
    ece = float((counts / len(p) * gaps).sum())
    return Reliability(
        kind,
        edges,
        counts,
        confidence,
        accuracy,
        round(ece, 15),
        log_loss(p, right),
        float(p.mean()),
        float(right.mean()),
    )


def log_loss(p: Floats, right: NDArray[np.bool_]) -> float:
    """Return the mean of −log p(right) or −log p(wrong), with probabilities kept off 0 and 1 by 1e-12."""
    chance = np.clip(np.where(right, p, 1.0 - p), 1e-12, 1.0)
    return float(-np.log(chance).mean())


def labelled_block(model: ChainModel, X: Sequences, y: Iterable[Sequence[Label]]) -> Block:
    """Return sequences as encoded data with their labels; raise DataError if the labels do not fit."""
    from crfkit.chain.encoding.sequences import label_rows

    data = model.encode(X)
    rows = [list(row) for row in label_rows(y)]
    check_labels(rows, data.lengths)
    return data, rows


def predicted_spans(model: ChainModel, blocks: Iterable[Block]) -> tuple[list[str], Floats, NDArray[np.bool_]]:
    """Return (type, probability, whether it is true) of every phrase of the best labellings."""
    runs = runs_of(model)
    kinds: list[str] = []
    chances: list[float] = []
    right: list[bool] = []
    for data, rows in blocks:
        for spans, gold in zip(spans_of(model, data, runs), rows, strict=True):
            true = set(phrases(gold)) if spans else set()
            for start, end, kind, p in spans:
                kinds.append(kind)
                chances.append(p)
                right.append((kind, start, end) in true)
    return kinds, np.array(chances), np.array(right, dtype=bool)


def predicted_tokens(model: ChainModel, blocks: Iterable[Block]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return (marginal probability, whether it is true) of the chosen label of every position."""
    chances, right = [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for data, rows in blocks:
        best, _ = model.inference.decode(data)
        node = model.inference.node_marginals(data)
        chances.append(np.minimum(node[np.arange(len(best)), best], 1.0))
        names = model.class_list
        gold = [label for row in rows for label in row]
        right.append(np.array([names[j] == g for j, g in zip(best.tolist(), gold, strict=True)], dtype=bool))
    return np.concatenate(chances), np.concatenate(right)
