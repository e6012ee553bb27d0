"""Scores of label sequences: scikit-learn's metrics over all labels, and the share of sequences that are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crfkit._values import Label
from crfkit.compat.sklearn_crfsuite.utils import flatten
from crfkit.errors import DataError


def _flat(name: str, y_true: Any, y_pred: Any, *args: object, **options: object) -> Any:
    from sklearn import metrics

    return getattr(metrics, name)(flatten(y_true), flatten(y_pred), *args, **options)


def flat_accuracy_score(y_true: object, y_pred: object) -> Any:
    """Return the share of labels that are right.

    >>> float(flat_accuracy_score([["a", "b"], ["a"]], [["a", "b"], ["b"]]))
    0.6666666666666666
    """
    return _flat("accuracy_score", y_true, y_pred)


def flat_precision_score(y_true: object, y_pred: object, **kwargs: object) -> Any:
    """Return the precision over all labels."""
    return _flat("precision_score", y_true, y_pred, **kwargs)


def flat_recall_score(y_true: object, y_pred: object, **kwargs: object) -> Any:
    """Return the recall over all labels."""
    return _flat("recall_score", y_true, y_pred, **kwargs)


def flat_f1_score(y_true: object, y_pred: object, **kwargs: object) -> Any:
    """Return F1 over all labels."""
    return _flat("f1_score", y_true, y_pred, **kwargs)


def flat_fbeta_score(y_true: object, y_pred: object, beta: float, **kwargs: object) -> Any:
    """Return F-beta over all labels."""
    return _flat("fbeta_score", y_true, y_pred, beta=beta, **kwargs)


def flat_classification_report(y_true: object, y_pred: object, labels: object = None, **kwargs: object) -> Any:
    """Return scikit-learn's report over all labels."""
    return _flat("classification_report", y_true, y_pred, labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Sequence[Label], y_pred: Sequence[Label]) -> float:
    """Return the share of sequences whose labels are all right.

    >>> sequence_accuracy_score([["a", "b"], ["a"]], [["a", "b"], ["b"]])
    0.5
    """
    if len(y_true) != len(y_pred):
        raise DataError(f"there are {len(y_true)} sequences of true labels, but {len(y_pred)} of predicted ones")
    right = sum(list(true) == list(found) for true, found in zip(y_true, y_pred, strict=True))
    return right / len(y_true) if len(y_true) else 0
