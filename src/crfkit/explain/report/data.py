"""The values that a report on a tagger and a labelled set shows: scores, calibration, weights, errors, suspects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Entries, Floats, Label
from crfkit.chain.model.token_text import token_text
from crfkit.errors import DataError
from crfkit.explain.comparison import Interval, bootstrap, check_sampling, interval, sentence_counts
from crfkit.explain.inputs import trained_model
from crfkit.explain.label_errors import Group, Suspect, suspect_labels
from crfkit.explain.labels import Confusions, Mistakes, confusions, mistakes
from crfkit.explain.report.errors import SentenceError, sentence_errors
from crfkit.explain.report.weights import LabelWeights, label_weights, transition_table
from crfkit.metrics import Evaluation, evaluate
from crfkit.schemes import are_phrases, phrases

if TYPE_CHECKING:
    from crfkit.chain.model.model import ChainModel
    from crfkit.chain.model.reliability import Reliability


@dataclass(frozen=True)
class Score:
    """A score with its confidence interval."""

    name: str
    value: float
    interval: Interval


@dataclass(frozen=True)
class TypeScore:
    """The scores of a type of phrases, or of a label."""

    name: str
    precision: float
    recall: float
    f1: float
    interval: Interval  # of F1
    gold: int
    found: int
    correct: int


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that the page shows. Spans are phrases or, where labels do not mark phrases, single positions."""

    title: str
    model: dict[str, Label]  # a few facts about the model
    test: dict[str, Label]  # and about the set
    evaluation: Evaluation
    phrases: bool
    labels: list[str]
    scores: list[Score]
    by_type: list[TypeScore]
    calibration: Reliability | None  # None if nothing is predicted
    confusions: Confusions
    mistakes: Mistakes | None
    transitions: Floats  # [label, next label]; NaN where there is no weight
    weights: list[LabelWeights]
    errors: list[SentenceError]
    n_errors: int  # sentences with errors, also those left out
    suspects: list[Suspect]
    corrections: list[Group]  # of all suspects, by what would be corrected
    contexts: dict[int, list[str]]  # the tokens of the sentences of suspects
    confidence: float

    def to_html(self) -> str:
        """Return the page: one file that needs nothing else and no network."""
        from crfkit.explain.report.page import page

        return page(self)


def make_report(
    model: object,
    X: Sequence[object],
    y: Sequence[Sequence[Label]],
    tokens: Sequence[Sequence[str]] | None = None,
    title: str = "Tagger report",
    names: tuple[str, str] = ("", ""),
    samples: int = 2000,
    confidence: float = 0.95,
    max_errors: int = 1000,
    alternatives: int = 4,
    seed: int = 0,
) -> Report:
    """Collect what there is to know about a tagger on a labelled set. ``report.to_html()`` is the page.

    model : a fitted :class:`~crfkit.ChainCRF` or a :class:`~crfkit.ChainModel`
    X, y : sequences that it was not trained on, and their labels
    tokens : texts to show; by default words are looked for in X
    names : of the model and of the set, e.g. their files
    samples, confidence, seed : of the bootstrap over sequences that gives the intervals
    max_errors : number of sequences with errors that are kept, the least probable ones
    alternatives : number of labellings that are shown beside the best one

    >>> from crfkit import ChainCRF
    >>> X, y = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> report = make_report(ChainCRF().fit(X, y), X, [["DET", "NOUN"], ["NOUN", "NOUN"]], samples=100)
    >>> report.scores[0].name, report.scores[0].value, len(report.errors)
    ('accuracy', 0.75, 1)
    >>> report.to_html()[:15]
    '<!doctype html>'
    """
    check_sampling(samples, confidence)
    trained = trained_model(model)
    gold = [[str(label) for label in row] for row in y]
    if len(X) != len(gold):
        raise DataError(f"there are {len(X)} sequences but {len(gold)} label sequences")
    if not gold:
        raise DataError("there are no sequences to report on")
    texts = [[token_text(x, t) or str(t) for t in range(len(g))] for x, g in zip(X, gold, strict=True)]
    if tokens is not None:
        texts = [[str(token) for token in row] for row in tokens]
    predicted = [[str(label) for label in row] for row in trained.predict(X)]
    found = evaluate(gold, predicted)
    of_phrases = found.has_phrases and are_phrases(trained.class_list)
    rows = [(spans_of(g, of_phrases), spans_of(p, of_phrases)) for g, p in zip(gold, predicted, strict=True)]
    typed = [_typed(trained, row) for row in y]
    errors = sentence_errors(trained, X, gold, predicted, texts, max_errors, alternatives)
    doubts = suspect_labels(trained, X, typed)
    suspects = doubts.ranked()[:100]
    sampled = _sampled(found, gold, predicted, rows, samples, confidence, seed, of_phrases)
    return Report(
        title=title,
        model=_facts(trained, names[0]),
        test={"name": names[1], "sequences": len(gold), "tokens": found.tokens, "scheme": found.scheme},
        evaluation=found,
        phrases=of_phrases,
        labels=[str(label) for label in trained.class_list],
        scores=sampled[0],
        by_type=sampled[1],
        calibration=_calibration(trained, X, typed, of_phrases),
        confusions=confusions(gold, predicted),
        mistakes=mistakes(gold, predicted) if of_phrases else None,
        transitions=transition_table(trained),
        weights=label_weights(trained),
        errors=errors,
        n_errors=sum(g != p for g, p in zip(gold, predicted, strict=True)),
        suspects=suspects,
        corrections=doubts.groups(),
        contexts={s.sequence: texts[s.sequence] for s in suspects},
        confidence=confidence,
    )


def _typed(model: ChainModel, row: Sequence[Label]) -> list[Label]:
    """Return labels as the model has them: files give strings, whatever the model was trained on."""
    own = {str(label): label for label in model.class_list}
    return [own.get(str(label), label) for label in row]


def _facts(model: ChainModel, name: str) -> Entries:
    field = model.field
    facts: Entries = {"name": name, "labels": field.n_labels, "attributes": field.n_attributes}
    facts |= {"weights": field.size, "order": field.order}
    told = model.training
    return facts | {key: told[key] for key in ("penalty", "solver", "objective") if isinstance(told.get(key), str)}


def spans_of(labels: Sequence[str], of_phrases: bool) -> list[tuple[int, int, str]]:
    """Return (start, end, type) of the phrases, or of every position."""
    if of_phrases:
        return [(p.begin, p.end, p.type or "phrase") for p in phrases(labels)]
    return [(t, t + 1, label) for t, label in enumerate(labels)]


def _sampled(
    found: Evaluation,
    gold: list[list[str]],
    predicted: list[list[str]],
    rows: list[tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]]],
    samples: int,
    confidence: float,
    seed: int,
    of_phrases: bool,
) -> tuple[list[Score], list[TypeScore]]:
    """Return the overall scores and the scores of each type, with intervals from the same resampled sequences."""
    counts = sentence_counts(gold, predicted)
    counts["perfect"] = np.array([g == p for g, p in zip(gold, predicted, strict=True)], dtype=np.float64)
    counts["sequences"] = np.ones(len(gold))
    kinds = sorted({kind for pair in rows for spans in pair for *_, kind in spans})
    for kind in kinds:
        table = np.array([_counts(kind, *pair) for pair in rows], dtype=np.float64).reshape(-1, 3)
        counts |= {f"{kind}\0{k}": table[:, k] for k in range(3)}  # correct, predicted, gold
    drawn = bootstrap(counts, samples, seed)
    total = {name: column.sum(keepdims=True) for name, column in counts.items()}

    def score(name: str, over: list[str], under: list[str], factor: float = 1.0) -> Score:
        def value(c: dict[str, Floats]) -> Floats:
            top, bottom = factor * sum(c[x] for x in over), sum(c[x] for x in under)
            ratio: Floats = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
            return ratio

        return Score(name, float(value(total)[0]), interval(value(drawn), confidence))

    scores = [
        score("accuracy", ["right"], ["labels"]),
        score("sentences without error", ["perfect"], ["sequences"]),
    ]
    if of_phrases:
        scores = [
            score("F1", ["correct"], ["predicted", "gold"], 2.0),
            score("precision", ["correct"], ["predicted"]),
            score("recall", ["correct"], ["gold"]),
            *scores,
        ]
    by_type = []
    for kind in kinds:
        own = found.by_type[kind if kind in found.by_type else ""] if of_phrases else found.by_label[kind]
        f1 = score(kind, [f"{kind}\0{0}"], [f"{kind}\0{1}", f"{kind}\0{2}"], 2.0)
        numbers = (own.precision, own.recall, own.f1, f1.interval, own.gold, own.predicted, own.correct)
        by_type.append(TypeScore(kind, *numbers))
    return scores, sorted(by_type, key=lambda row: -row.gold)


def _counts(kind: str, gold: list[tuple[int, int, str]], found: list[tuple[int, int, str]]) -> tuple[int, int, int]:
    a, b = ({span for span in spans if span[2] == kind} for spans in (gold, found))
    return len(a & b), len(b), len(a)


def _calibration(
    model: ChainModel, X: Sequence[object], y: Sequence[list[Label]], of_phrases: bool
) -> Reliability | None:
    """Return how often predictions of a probability are right; None if there are no predictions."""
    try:
        return model.reliability(X, y, "spans" if of_phrases else "tokens")
    except DataError:  # nothing is predicted
        return None
