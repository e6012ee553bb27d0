"""The sequences that a model finds hardest to believe, and how scores grow with the number of training sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crfkit._checks import check_count
from crfkit._types import Axes, Floats, Frame, Ints, Label
from crfkit.errors import DataError, ParameterError
from crfkit.explain.inputs import trained_model
from crfkit.extras import load
from crfkit.metrics import evaluate
from crfkit.metrics.scorers import phrase_f1_scorer
from crfkit.schemes import are_phrases

Scorer = Callable[[Any, Sequence[object], Sequence[Sequence[Label]]], float]


class WorstSequence(NamedTuple):
    """A sequence whose labels the model finds improbable."""

    sequence: int
    log_probability: float  # of the given labels; −inf if the model does not know one of them
    gold: list[Label]
    predicted: list[Label]

    @property
    def wrong(self) -> list[int]:
        """Return the positions where the best labels are others."""
        return [t for t, (a, b) in enumerate(zip(self.gold, self.predicted, strict=True)) if a != b]


def worst_sequences(
    model: object, X: Sequence[object], y: Sequence[Sequence[Label]], n: int = 10
) -> list[WorstSequence]:
    """Return the n sequences with the lowest log-probability of their labels, lowest first.

    >>> from crfkit import ChainCRF
    >>> X, y = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"]]], [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> crf = ChainCRF().fit(X, y)
    >>> [(found.sequence, found.wrong) for found in worst_sequences(crf, X, [["DET", "NOUN"], ["DET", "DET"]], n=1)]
    [(1, [1])]
    """
    gold = [list(row) for row in y]
    chances = log_probabilities(model, X, gold)
    order = np.argsort(chances, kind="stable")[: max(n, 0)].tolist()
    predicted = trained_model(model).predict([X[k] for k in order])
    return [WorstSequence(k, float(chances[k]), gold[k], list(row)) for k, row in zip(order, predicted, strict=True)]


def log_probabilities(model: object, X: Sequence[object], y: Sequence[Sequence[Label]]) -> Floats:
    """Return the log-probability of the labels of each sequence, −inf where the model does not know one of them."""
    if len(X) != len(y):
        raise DataError(f"there are {len(X)} sequences but {len(y)} label sequences")
    trained = trained_model(model)
    known = set(trained.class_list)
    fine = [k for k, row in enumerate(y) if known.issuperset(row)]
    found = np.full(len(y), -np.inf)
    if fine:
        found[fine] = trained.sequence_probability([X[k] for k in fine], [y[k] for k in fine], log=True)
    return found


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Scores after training on the first sequences of random orders: `scores` [sizes, seeds]."""

    sizes: list[int]
    tokens: Ints  # [sizes, seeds]
    scores: Floats
    score: str  # what the scores are

    @property
    def mean(self) -> Floats:
        return np.asarray(self.scores.mean(axis=1))

    @property
    def std(self) -> Floats:
        return np.asarray(self.scores.std(axis=1))

    def to_frame(self) -> Frame:
        """Return a pandas DataFrame with a row for each training."""
        rows = [
            {"size": size, "seed": seed, "tokens": int(self.tokens[k, seed]), "score": float(self.scores[k, seed])}
            for k, size in enumerate(self.sizes)
            for seed in range(self.scores.shape[1])
        ]
        return load("pandas", "to_frame needs").DataFrame(rows)

    def plot(self, ax: Axes = None) -> Axes:
        """Draw the mean score with its standard deviation against tokens. Return the axes; needs matplotlib."""
        plt = load("matplotlib.pyplot", "plots need")
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        tokens = self.tokens.mean(axis=1)
        ax.plot(tokens, self.mean, marker="o")
        ax.fill_between(tokens, self.mean - self.std, self.mean + self.std, alpha=0.2)
        ax.set_xlabel("tokens of the training set")
        ax.set_ylabel(self.score)
        ax.grid(alpha=0.3)
        return ax

    def __str__(self) -> str:
        lines = [f"sequences     tokens  {self.score}"]
        for size, tokens, mean, std in zip(self.sizes, self.tokens, self.mean, self.std, strict=True):
            lines.append(f"{size:9d}  {round(float(tokens.mean())):9d}  {mean:.4f} ± {std:.4f}")
        return "\n".join(lines)


def learning_curve(
    estimator: object,
    X: Sequence[object],
    y: Sequence[Sequence[Label]],
    X_test: Sequence[object],
    y_test: Sequence[Sequence[Label]],
    sizes: Sequence[int | float] = (0.1, 0.2, 0.4, 0.7, 1.0),
    seeds: int = 3,
    scorer: Scorer | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LearningCurve:
    """Train on growing parts of a training set and score each model on a test set.

    sizes : numbers of sequences, or shares of all between 0 and 1
    seeds : number of random orders; within an order, each part contains the smaller ones
    scorer : ``scorer(estimator, X, y)``; by default F1 of phrases or, if the labels do not mark phrases, accuracy
    progress : called with the number of trainings that are done and the number of all

    >>> from crfkit import ChainCRF
    >>> from crfkit.explain import learning_curve
    >>> X, y = 8 * [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"]]], 16 * [["DET", "NOUN"]]
    >>> learning_curve(ChainCRF(), X, y, X, y, sizes=[4, 1.0], seeds=2).sizes
    [4, 16]
    """
    from sklearn.base import clone

    if len(X) != len(y):
        raise DataError(f"there are {len(X)} sequences but {len(y)} label sequences")
    check_count(seeds=seeds)
    counts = [_size(size, len(X)) for size in sizes]
    if not counts:
        raise ParameterError("sizes is empty; give at least one number of sequences or share of them")
    name, score = _scorer(scorer, y_test)
    tokens = np.zeros((len(counts), seeds), dtype=np.int64)
    scores = np.zeros((len(counts), seeds))
    done = 0
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(X)).tolist()
        for k, size in enumerate(counts):
            part = order[:size]
            fitted = clone(estimator).fit([X[i] for i in part], [y[i] for i in part])
            tokens[k, seed] = sum(len(y[i]) for i in part)
            scores[k, seed] = score(fitted, X_test, y_test)
            done += 1
            if progress is not None:
                progress(done, len(counts) * seeds)
    return LearningCurve(counts, tokens, scores, name)


def _size(size: int | float, most: int) -> int:
    count = round(size * most) if isinstance(size, float) else int(size)
    if not 1 <= count <= most:
        raise ParameterError(f"the size {size!r} is outside 1 … {most} sequences; shares are floats in (0, 1]")
    return count


def _scorer(scorer: Scorer | None, y: Iterable[Sequence[Label]]) -> tuple[str, Scorer]:
    if scorer is not None:
        return getattr(scorer, "__name__", "score"), scorer
    if are_phrases({label for row in y for label in row}):
        return "F1 of phrases", phrase_f1_scorer
    return "accuracy", lambda estimator, X, y: evaluate(y, estimator.predict(X)).accuracy
