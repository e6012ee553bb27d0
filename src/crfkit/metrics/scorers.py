"""Scorers for scikit-learn's searches, which call ``scorer(estimator, X, y)``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from crfkit._values import Label, Sequences


def phrase_f1_scorer(estimator: Any, X: Sequences, y: Iterable[Sequence[Label]]) -> float:
    """Return the F1 of phrases of an estimator's predictions, between 0 and 1; higher is better.

    Raises DataError if the labels do not mark phrases ("B-NP", "I-NP", "O" …).

    >>> from sklearn.model_selection import cross_val_score
    >>> from crfkit import ChainCRF
    >>> from crfkit.metrics import phrase_f1_scorer
    >>> X = 6 * [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=dogs"], ["w=bark"]]]
    >>> y = 6 * [["B-NP", "I-NP", "O"], ["B-NP", "O"]]
    >>> cross_val_score(ChainCRF(), X, y, scoring=phrase_f1_scorer, cv=3).tolist()
    [1.0, 1.0, 1.0]
    """
    from crfkit.metrics import evaluate

    return evaluate(y, estimator.predict(X)).overall.f1
