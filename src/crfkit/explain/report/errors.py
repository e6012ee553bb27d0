"""Sentences that a tagger gets wrong, with probabilities, alternatives and what decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfkit.chain.model.explanation import PositionExplanation, explain_data
from crfkit.chain.model.spans import Span
from crfkit.explain.labels import mistakes
from crfkit.explain.sequences import log_probabilities
from crfkit.schemes import are_phrases

if TYPE_CHECKING:
    from crfkit.chain.model.decoding import Labelling
    from crfkit.chain.model.model import ChainModel


@dataclass(frozen=True)
class SentenceError:
    """A sentence whose best labels are not the given ones."""

    sequence: int
    tokens: list[str]
    gold: list[str]
    predicted: list[str]
    probability: float  # of the best labelling
    log_probability: float  # of the given labels
    kinds: list[str]  # of mistakes with phrases
    spans: list[Span]  # that were found, with probabilities; empty if labels do not mark phrases
    alternatives: list[Labelling]
    why: list[PositionExplanation]  # of the positions that are wrong, against the given label


def sentence_errors(
    model: ChainModel,
    X: Sequence[object],
    gold: Sequence[list[str]],
    predicted: Sequence[list[str]],
    tokens: Sequence[list[str]],
    most: int,
    alternatives: int,
) -> list[SentenceError]:
    """Return the sentences that are wrong, in the order of the file: all, or the `most` least probable ones."""
    wrong = [n for n, (g, p) in enumerate(zip(gold, predicted, strict=True)) if g != p]
    own = {str(label): label for label in model.class_list}
    typed = [[own.get(label, label) for label in gold[n]] for n in wrong]
    chances = log_probabilities(model, [X[n] for n in wrong], typed)
    kept = sorted(np.argsort(chances, kind="stable")[: max(most, 0)].tolist())
    rows = [wrong[k] for k in kept]
    some = [X[n] for n in rows]
    labels = {label for n in rows for label in (*gold[n], *predicted[n])}
    of_phrases = bool(rows) and are_phrases(labels) and are_phrases(model.class_list)
    spans = model.predict_spans(some) if of_phrases else [[] for _ in rows]
    best = model.predict_nbest(some, alternatives + 1) if rows else []
    data = model.encode(some)
    ids = {str(label): j for j, label in enumerate(model.class_list)}
    found = []
    for k, n in enumerate(rows):
        g, p = gold[n], predicted[n]
        kinds = sorted({item.kind for item in mistakes([g], [p])}) if of_phrases else []
        places = [t for t, (a, b) in enumerate(zip(g, p, strict=True)) if a != b]
        decided = np.array([ids[label] for label in p], dtype=np.int32)
        against = np.array([ids.get(a, ids[b]) for a, b in zip(g, p, strict=True)], dtype=np.int32)
        why = explain_data(model, data.take([k]), decided, against, tokens[n], places)
        chance, *others = best[k]
        found.append(
            SentenceError(
                sequence=n,
                tokens=tokens[n],
                gold=g,
                predicted=p,
                probability=chance.probability,
                log_probability=float(chances[kept[k]]),
                kinds=kinds,
                spans=spans[k],
                alternatives=others,
                why=list(why),
            )
        )
    return found
