"""Find labels that are probably wrong.

A model that was trained on other sequences gives p(y | x). What was written down, `given`, is evidence as well: most of
it is right. Both together are the posterior p(y | x, given) ∝ p(y | x) · Π_t c(given_t | y_t)^trust, with a channel c
with the probability that an annotator writes k for j (:mod:`crfkit.explain.channel`). A position is suspect by

    1 − p(y_t = given_t | x, given),

so given labels around it count, which 1 − p(y_t = given_t | x) ignores. The channel is estimated by
expectation–maximisation: c(k | j) is the share of k among the positions that are probably j. `trust` is below 1 because
wrong labels come in groups (all labels of a phrase), so they confirm each other.

Models learn from wrong labels, too. In the second round they are trained on corrected labels, each on those of other
folds, and the given labels are judged again. A label is corrected there if it is very suspect: it gets the one of the
best labelling under the posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crfkit._checks import check_count, is_whole
from crfkit._types import Floats, Frame, Ids, Ints, Label
from crfkit.chain.data import SequenceData, encode_labels
from crfkit.chain.model.token_text import token_text
from crfkit.errors import DataError, ParameterError
from crfkit.explain.channel import with_channel, with_given
from crfkit.explain.inputs import given_labels, trained_model
from crfkit.explain.labels import mistakes
from crfkit.extras import load
from crfkit.labels import sort_labels
from crfkit.schemes import are_phrases
from crfkit.wording import counted

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel

# chosen on 3,000 corrupted sentences each of CoNLL-2000 and of Spanish names
TRUST = 0.3
CORRECTION_THRESHOLD = 0.8  # labels that are more suspect than this are corrected before the next round
NOISE = 0.05  # the share of wrong labels that estimation begins with
STEPS = 5  # of expectation–maximisation


class Suspect(NamedTuple):
    """A label that is probably wrong."""

    sequence: int
    position: int
    token: str
    given: object
    suggested: Label  # the label of the corrected labelling
    score: float  # 1 − p(given | x, the labels around it)
    marginal: float  # p(given | x)


class Group(NamedTuple):
    """Corrections of the same kind: of labels, or of phrases that mark them."""

    change: str
    size: int
    score: float  # mean over its suspects
    sequences: list[int]


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """The suspicion of each given label. `print` shows the most suspect ones and groups of corrections."""

    given: list[list[Label]]
    corrected: list[list[Label]]
    scores: list[Floats]  # of each position: 1 − p(given | x, given labels around it)
    marginals: list[Floats]  # of each position: p(given | x), of models that learnt from the given labels
    tokens: list[list[str]]

    def ranked(self, n: int | None = None) -> list[Suspect]:
        """Return the n most suspect labels (all whose correction is another label, if n is None), worst first."""
        flat = np.concatenate([np.zeros(0), *self.scores])
        order = np.argsort(-flat, kind="stable")
        lengths = [len(row) for row in self.given]
        starts = np.cumsum([0, *lengths])
        found = []
        for k in order.tolist() if n is None else order[: max(n, 0)].tolist():
            i = int(np.searchsorted(starts, k, side="right")) - 1
            t = k - int(starts[i])
            if n is None and self.given[i][t] == self.corrected[i][t]:
                continue
            found.append(self._suspect(i, t))
        return found

    def _suspect(self, i: int, t: int) -> Suspect:
        given, corrected = self.given[i][t], self.corrected[i][t]
        score, marginal = float(self.scores[i][t]), float(self.marginals[i][t])
        return Suspect(i, t, self.tokens[i][t], given, corrected, score, marginal)

    def groups(self) -> list[Group]:
        """Return what would be corrected, in groups of the same change, largest group first."""
        found: dict[str, list[tuple[int, float]]] = {}
        for change, i, score in self._changes():
            found.setdefault(change, []).append((i, score))
        groups = [
            Group(change, len(rows), float(np.mean([score for _, score in rows])), sorted({i for i, _ in rows}))
            for change, rows in found.items()
        ]
        return sorted(groups, key=lambda group: (-group.size, group.change))

    def _changes(self) -> Iterator[tuple[str, int, float]]:
        """Yield (what changes, sequence, score)."""
        if not are_phrases({label for row in (*self.given, *self.corrected) for label in row}):
            for i, (a, b) in enumerate(zip(self.given, self.corrected, strict=True)):
                for t, (x, y) in enumerate(zip(a, b, strict=True)):
                    if x != y:
                        yield f"{x} → {y}", i, float(self.scores[i][t])
            return
        for item in mistakes(self.corrected, self.given):  # what is corrected is taken for right
            right, wrong = item.gold, item.predicted
            phrase = wrong or right
            assert phrase is not None
            score = float(self.scores[item.sequence][phrase.begin : phrase.end].max())
            if wrong is None and right is not None:
                yield f"{right.type} is missing", item.sequence, score
            elif right is None and wrong is not None:
                yield f"{wrong.type} is no phrase", item.sequence, score
            elif right is not None and wrong is not None:
                other = f"{wrong.type} → {right.type}"
                text = {"boundary": f"ends of {wrong.type}", "type": other, "both": f"{other}, with other ends"}
                yield text[item.kind], item.sequence, score

    def to_frame(self, n: int | None = None) -> Frame:
        """Return a pandas DataFrame with a row for each suspect, worst first."""
        return load("pandas", "to_frame needs").DataFrame(self.ranked(n), columns=list(Suspect._fields))

    def __str__(self) -> str:
        changed = self.ranked()
        total = sum(map(len, self.given))
        lines = [f"{counted(len(changed), 'suspect label')} among {total}"]
        lines += [
            f"  {s.score:.3f}  sequence {s.sequence}, position {s.position} {s.token!r}: {s.given} → {s.suggested}"
            for s in changed[:10]
        ]
        groups = self.groups()
        if groups:
            lines += ["corrections by what changes", *(f"  {g.size:6d}  {g.change}" for g in groups[:10])]
        return "\n".join(lines)


def find_label_errors(
    estimator: object,
    X: Sequence[object],
    y: Sequence[Sequence[Label]],
    cv: int = 5,
    rounds: int = 2,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LabelErrors:
    """Find labels that are probably wrong, by exact posteriors of models that were trained on other sequences.

    estimator : a :class:`~crfkit.ChainCRF` with its options; copies of it are trained
    cv : number of folds; the sequences of each are judged by a model of the others
    rounds : with 2, models are trained again on corrected labels, which finds more where errors are systematic
    seed : random seed of the folds
    progress : called with the number of trainings that are done and the number of all

    >>> from crfkit import ChainCRF
    >>> from crfkit.explain import find_label_errors
    >>> X = 10 * [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"]]]
    >>> y = 20 * [["DET", "NOUN"]]
    >>> y[7] = ["DET", "DET"]
    >>> found = find_label_errors(ChainCRF(), X, y, cv=4)
    >>> [(s.sequence, s.position, s.given, s.suggested) for s in found.ranked()]
    [(7, 1, 'DET', 'NOUN')]
    """
    from sklearn.base import clone

    X, given = list(X), given_labels(y)
    if len(X) != len(given):
        raise DataError(f"there are {len(X)} sequences but {len(given)} label sequences")
    if not X:
        raise DataError("there are no sequences whose labels could be judged")
    if not is_whole(cv) or not 2 <= cv <= len(X):
        raise ParameterError(f"cv must be an integer from 2 to the number of sequences, {len(X)}, not {cv!r}")
    check_count(rounds=rounds)
    names = sort_labels([label for row in given for label in row])
    fold = np.random.default_rng(seed).permutation(len(X)) % cv
    learnt_from, done = given, 0
    marginals: list[Floats] = []
    for turn in range(rounds):
        judged = []
        for k in range(cv):
            others, mine = np.flatnonzero(fold != k).tolist(), np.flatnonzero(fold == k).tolist()
            fitted = clone(estimator).fit([X[i] for i in others], [learnt_from[i] for i in others])
            judged.append(_Judged.of(fitted.model_, [X[i] for i in mine], [given[i] for i in mine], names, mine))
            done += 1
            if progress is not None:
                progress(done, rounds * cv)
        found = _errors(judged, given, names, X)
        marginals = found.marginals if turn == 0 else marginals
        learnt_from = [
            [b if score > CORRECTION_THRESHOLD else a for a, b, score in zip(old, new, scores.tolist(), strict=True)]
            for old, new, scores in zip(given, found.corrected, found.scores, strict=True)
        ]
    return replace(found, marginals=marginals)


def suspect_labels(model: object, X: Sequence[object], y: Sequence[Sequence[Label]]) -> LabelErrors:
    """Find labels that are probably wrong in sequences that a model was not trained on, such as a test set.

    >>> from crfkit import ChainCRF
    >>> X, y = 10 * [[["w=the"], ["w=cat"]]], 10 * [["DET", "NOUN"]]
    >>> found = suspect_labels(ChainCRF().fit(X, y), X[:2], [["DET", "NOUN"], ["NOUN", "NOUN"]])
    >>> [(s.sequence, s.given, s.suggested) for s in found.ranked(1)]
    [(1, 'NOUN', 'DET')]
    """
    X, given = list(X), given_labels(y)
    trained = trained_model(model)
    names = sort_labels([*trained.class_list, *(label for row in given for label in row)])
    judged = [_Judged.of(trained, X, given, names, list(range(len(X))))]
    return _errors(judged, given, names, X)


@dataclass(frozen=True, eq=False)
class _Judged:
    """Sequences and the model that judges their labels."""

    model: ChainModel
    data: SequenceData
    labels: Ids  # the given ones, by their place in all names
    own: Ints  # the place of each label of the model in all names
    sequences: list[int]

    @classmethod
    def of(
        cls, model: ChainModel, X: Sequence[object], given: Sequence[Label], names: Sequence[Label], at: list[int]
    ) -> _Judged:
        place = {name: k for k, name in enumerate(names)}
        data = model.encode(X)
        own = np.array([place[name] for name in model.class_list])
        return cls(model, data, encode_labels(given, data.lengths, place), own, at)

    def spread(self, p: Floats, n: int) -> Floats:
        """Return probabilities of the model's labels as probabilities of all labels."""
        table = np.zeros((len(p), n))
        table[:, self.own] = p
        return table

    def chances(self, p: Floats, n: int) -> Floats:
        """Return the probability of each given label."""
        picked: Floats = self.spread(p, n)[np.arange(len(p)), self.labels]
        return picked


def _errors(
    judged: Sequence[_Judged], given: list[list[Label]], names: Sequence[Label], X: Sequence[object]
) -> LabelErrors:
    """Estimate the channel, and judge all given labels by the posterior."""
    n = len(names)
    prior = np.full((n, n), NOISE / max(n - 1, 1))
    np.fill_diagonal(prior, 1.0 - NOISE)
    channel = prior
    for _ in range(STEPS):
        counts = prior.copy()  # as if each label had been seen once more
        for part in judged:
            inference = with_channel(part.model, TRUST * np.log(channel[part.own]))
            p = inference.node_marginals(with_given(part.data, part.labels, part.model.field.n_attributes))
            np.add.at(counts.T, part.labels, part.spread(p, n))
        channel = counts / counts.sum(axis=1, keepdims=True)
    scores: list[Floats] = [np.zeros(0)] * len(given)
    marginals: list[Floats] = [np.zeros(0)] * len(given)
    corrected: list[list[Label]] = [[] for _ in given]
    for part in judged:
        inference = with_channel(part.model, TRUST * np.log(channel[part.own]))
        data = with_given(part.data, part.labels, part.model.field.n_attributes)
        score = 1.0 - part.chances(inference.node_marginals(data), n)
        marginal = part.chances(part.model.inference.node_marginals(part.data), n)
        best = part.own[inference.decode(data)[0]].tolist()
        for i, begin, end in zip(part.sequences, data.starts[:-1].tolist(), data.starts[1:].tolist(), strict=True):
            scores[i], marginals[i] = score[begin:end], marginal[begin:end]
            corrected[i] = [names[j] for j in best[begin:end]]
    tokens = [[token_text(x, t) for t in range(len(row))] for x, row in zip(X, given, strict=True)]
    return LabelErrors(given, corrected, scores, marginals, tokens)
