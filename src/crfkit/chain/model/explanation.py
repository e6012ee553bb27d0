"""Explain the labels that a chain chose: the weights for the chosen label against the runner-up.

The score of a labelling is linear in the weights, so the difference of two scores is a sum with one term for each
weight that counts in one of them. At a position t with the chosen label j, the runner-up is the label at t of the best
labelling y′ that has another label there. The terms of score(y) − score(y′) = log p(y | x) − log p(y′ | x) are:

    attribute a at s:    value_a · (w[a, y_s] − w[a, y′_s]), with the weights of label classes
    pair attribute b:    w[b, y_{s−1}, y_s] − w[b, y′_{s−1}, y′_s]
    transition to s:     w[y_{s−1}, y_s] − w[y′_{s−1}, y′_s], likewise for label triples,

at all positions s where y and y′ differ: often t alone, but more where a phrase would be another one altogether.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crfkit._threads import count_threads
from crfkit._types import Frame, Ids, Ints, Label
from crfkit.chain.data import SequenceData, encode_labels
from crfkit.chain.encoding.sequences import label_rows
from crfkit.chain.model import explanation_text
from crfkit.chain.model.token_text import token_text

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

COPIES = 200_000  # positions that are decoded at once


class Contribution(NamedTuple):
    """A term of the difference between the scores of two labellings; it favours the chosen one if positive.

    `kind` is "attribute", "pair attribute" (of a template's B lines), "transition" or "triple" (order 2). `labels` are
    those that the weight is for in the chosen labelling, `instead` those in the other one, the last at `position`.
    """

    kind: str
    name: str  # of the attribute; "" for transitions
    position: int
    labels: tuple[Label, ...]
    instead: tuple[Label, ...]
    weight: float  # the difference of two weights
    value: float  # of the attribute; 1 for everything else
    amount: float  # weight · value


@dataclass(frozen=True)
class PositionExplanation:
    """The chosen label of a position, its runner-up, and what decided between them.

    The amounts of all `contributions` sum to `difference`, which is the log of the ratio of the probabilities of the
    chosen labelling and of `alternative`. `runner_up` is None if the constraints leave no other label.
    """

    position: int
    token: str
    label: Label
    probability: float  # marginal, of the label at this position
    runner_up: Label
    runner_up_probability: float
    difference: float
    alternative: list[Label] | None  # the best labelling with the runner-up at this position
    contributions: tuple[Contribution, ...]  # largest absolute amount first

    @property
    def from_attributes(self) -> float:
        """Return the sum of the contributions of attributes at this position."""
        return sum(c.amount for c in self.contributions if c.kind == "attribute" and c.position == self.position)

    @property
    def from_transitions(self) -> float:
        """Return the sum of the contributions of transitions, triples and pair attributes."""
        return sum(c.amount for c in self.contributions if c.kind != "attribute")

    @property
    def from_elsewhere(self) -> float:
        """Return the sum of the contributions of attributes at other positions, whose labels would change as well."""
        return sum(c.amount for c in self.contributions if c.kind == "attribute" and c.position != self.position)

    def to_text(self, top: int = 5) -> str:
        """Return the explanation as lines of text, with the `top` largest contributions."""
        return explanation_text.position_text(self, top)

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True)
class Explanation(Sequence[PositionExplanation]):
    """The labels of a sequence and, for each position, what decided. `print` shows it, as does a notebook."""

    labels: list[Label]
    probability: float
    positions: tuple[PositionExplanation, ...]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, t: Any) -> Any:
        return self.positions[t]

    def __iter__(self) -> Iterator[PositionExplanation]:
        return iter(self.positions)

    def to_text(self, top: int = 5) -> str:
        """Return all positions as text, with the `top` largest contributions of each."""
        return explanation_text.text(self, top)

    def to_html(self, top: int = 10) -> str:
        """Return a table in HTML, without styles of its own; all texts are escaped."""
        return explanation_text.html(self, top)

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame with a row for each contribution."""
        return explanation_text.frame(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


def explain(
    model: ChainModel, x: object, against: Sequence[Label] | None = None, tokens: Sequence[str] | None = None
) -> Explanation:
    """Explain the best labelling of one sequence; see :meth:`crfkit.ChainCRF.explain`."""
    data = model.encode([x])
    best = model.inference.decode(data)[0]
    other = None
    if against is not None:
        names = {name: j for j, name in enumerate(model.class_list)}
        other = encode_labels(label_rows([against]), data.lengths, names)
    texts = [token_text(x, t) for t in range(len(best))] if tokens is None else [str(token) for token in tokens]
    return explain_data(model, data, best, other, texts)


def explain_data(
    model: ChainModel,
    data: SequenceData,
    best: Ids,
    against: Ids | None = None,
    tokens: Sequence[str] = (),
    only: Sequence[int] | None = None,
) -> Explanation:
    """Explain the best labels of one encoded sequence, at all positions or at some."""
    names, wanted = model.class_list, list(range(len(best)) if only is None else only)
    node = model.inference.node_marginals(data)
    score = float(model.inference.score(data, best)[0]) if len(best) else 0.0
    log_z = float(model.inference.log_partition(data)[0]) if len(best) else 0.0
    weights = _Weights(model, data)
    found = []
    for t, rival, rival_score in _rivals(model, data, best, against, wanted):
        j = int(best[t])
        possible = np.isfinite(rival_score)
        k = int(rival[t]) if possible else None
        found.append(
            PositionExplanation(
                t,
                tokens[t] if t < len(tokens) else "",
                names[j],
                float(node[t, j]),
                None if k is None else names[k],
                0.0 if k is None else float(node[t, k]),
                score - rival_score,
                None if k is None else [names[i] for i in rival.tolist()],
                tuple(weights.contrast(best, rival)) if possible else (),
            )
        )
    chance = float(np.exp(min(score - log_z, 0.0)))
    return Explanation([names[j] for j in best.tolist()], chance, tuple(found))


def _rivals(
    model: ChainModel, data: SequenceData, best: Ids, against: Ids | None, wanted: Sequence[int]
) -> Iterator[tuple[int, Ids, float]]:
    """Yield (t, labels, score) of the best labelling with another label at t: where `against` differs, with that."""
    T, L = len(best), model.field.n_labels
    step = max(1, COPIES // max(T, 1))
    for begin in range(0, len(wanted), step):
        some = wanted[begin : begin + step]
        copies = data.take([0] * len(some))
        allowed = np.ones((len(some), T, L), dtype=np.uint8)
        for row, t in zip(allowed, some, strict=True):
            if against is not None and against[t] != best[t]:
                row[t] = 0
                row[t, against[t]] = 1
            else:
                row[t, best[t]] = 0
                if not row[t].any():  # the only label there is
                    row[t, best[t]] = 1
        labels, scores = model.inference.decoder.viterbi(copies.native, count_threads(model.n_threads), allowed.ravel())
        for t, rival, score in zip(some, labels.reshape(len(some), T), scores.tolist(), strict=True):
            yield t, rival, score if rival[t] != best[t] else -np.inf


class _Weights:
    """Look up the weights of a model by attribute and labels, for one sequence."""

    def __init__(self, model: ChainModel, data: SequenceData) -> None:
        self.model, self.data, field = model, data, model.field
        self.w = {name: model.w[block] for name, block in field.layout.items()}
        values = np.ones(len(data.attributes)) if data.values is None else data.values
        at = np.repeat(np.arange(data.n_positions), np.diff(data.offsets))
        # values and weights [entries, labels] of the attributes of the sequence
        table = field.blocks["state"].rows(self.w["state"], data.attributes)
        if field.label_classes is not None:
            of_class = field.blocks["class"].rows(self.w["class"], data.attributes)
            table = table + of_class[:, field.label_classes]
        self.values, self.at, self.table = values, at, table

    def contrast(self, best: Ids, rival: Ids) -> list[Contribution]:
        """Return the terms of score(best) − score(rival), largest absolute amount first, without those that are 0."""
        L = self.model.field.n_labels
        found = [*self._attributes(best, rival)]
        moved = np.flatnonzero(best != rival)
        if self.w["transition"].size:
            found += self._runs("transition", best, rival, moved, 1, L)
        if self.w["triple"].size:
            found += self._runs("triple", best, rival, moved, 2, L)
        if self.data.pair_offsets is not None and self.w["pair"].size:
            found += self._pairs(best, rival, moved, L)
        return sorted((c for c in found if c.amount != 0.0), key=lambda c: (-abs(c.amount), c.position, c.name))

    def _attributes(self, best: Ids, rival: Ids) -> Iterator[Contribution]:
        names, labels = self.model.vocabulary.attributes, self.model.class_list
        for e in np.flatnonzero((best != rival)[self.at]).tolist():
            t = int(self.at[e])
            j, k = int(best[t]), int(rival[t])
            weight, value = float(self.table[e, j] - self.table[e, k]), float(self.values[e])
            name = names[int(self.data.attributes[e])]
            yield Contribution("attribute", name, t, (labels[j],), (labels[k],), weight, value, weight * value)

    def _runs(self, kind: str, best: Ids, rival: Ids, moved: Ints, back: int, L: int) -> Iterator[Contribution]:
        """Yield the terms of transitions (back = 1) or triples (back = 2) that have a changed position in them."""
        labels, block = self.model.class_list, self.model.field.blocks[kind]
        for t in sorted({s + ahead for s in moved.tolist() for ahead in range(back + 1)}):
            if not back <= t < len(best):
                continue
            runs = [tuple(row[t - back : t + 1].tolist()) for row in (best, rival)]
            weights = [block.at(self.w[kind], 0, _code(run, L)) for run in runs]
            weight = weights[0] - weights[1]
            first, second = (tuple(labels[j] for j in run) for run in runs)
            yield Contribution(kind, "", t, first, second, weight, 1.0, weight)

    def _pairs(self, best: Ids, rival: Ids, moved: Ints, L: int) -> Iterator[Contribution]:
        names, labels = self.model.vocabulary.pair_attributes, self.model.class_list
        block = self.model.field.blocks["pair"]
        offsets, ids = self.data.pair_offsets, self.data.pair_attributes
        assert offsets is not None
        assert ids is not None
        for t in sorted({s + ahead for s in moved.tolist() for ahead in (0, 1)}):
            if not 1 <= t < len(best):
                continue
            runs = [(int(row[t - 1]), int(row[t])) for row in (best, rival)]
            first, second = (tuple(labels[j] for j in run) for run in runs)
            for b in ids[offsets[t] : offsets[t + 1]].tolist():
                weights = [block.at(self.w["pair"], b, _code(run, L)) for run in runs]
                weight = weights[0] - weights[1]
                yield Contribution("pair attribute", names[b], t, first, second, weight, 1.0, weight)


def _code(run: Sequence[int], L: int) -> int:
    code = 0
    for j in run:
        code = code * L + j
    return code
