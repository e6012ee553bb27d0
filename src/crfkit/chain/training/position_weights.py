"""Weights of single positions: those that the caller gives, and those of the label's class."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crfkit._types import Floats
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.constraints import nearest
from crfkit.errors import ParameterError


def check_class_weight(class_weight: Any) -> None:
    """Raise ParameterError if this can be no weights of classes."""
    if class_weight is None or isinstance(class_weight, Mapping):
        return
    if isinstance(class_weight, str) and class_weight == "balanced":
        return
    raise ParameterError(
        f"class_weight must be 'balanced', a mapping from labels to weights, or None, not {class_weight!r}"
    )


def weighted(data: SequenceData, class_weight: Any, classes: Sequence[Any]) -> SequenceData:
    """Return the data with the weights of classes multiplied into those of the positions.

    Where all positions of a sequence weigh the same, this is its own weight: the loss is then the plain likelihood.
    """
    weights = data.token_weights
    if class_weight is not None:
        of_class = _by_class(data, class_weight, classes)
        weights = of_class if weights is None else weights * of_class
    if weights is None:
        return data
    filled = data.starts[:-1][data.lengths > 0]
    low, high = np.minimum.reduceat(weights, filled), np.maximum.reduceat(weights, filled)
    if (low < high).any():
        return replace(data, token_weights=weights)
    own = np.ones(len(data)) if data.weights is None else data.weights.copy()
    own[data.lengths > 0] *= low
    return replace(data, weights=own, token_weights=None)


def _by_class(data: SequenceData, class_weight: Any, classes: Sequence[Any]) -> Floats:
    """Return the weight of each position: of its label, or the mean over the labels that are possible there."""
    balanced = class_weight == "balanced"
    of_label = _balanced(data, len(classes)) if balanced else _named(class_weight, classes)
    if data.targets is None:
        assert data.labels is not None
        return np.asarray(of_label[data.labels])
    return np.asarray(data.targets @ of_label / data.targets.sum(axis=1))


def _balanced(data: SequenceData, n_labels: int) -> Floats:
    """Return positions / (labels · positions of the label), as scikit-learn has it.

    Only positions whose label is known count, each with the weight of its sequence.
    """
    own = np.ones(len(data)) if data.weights is None else data.weights
    share = np.repeat(own, data.lengths)
    if data.targets is None:
        assert data.labels is not None
        counts = np.bincount(data.labels, share, n_labels)
    else:
        sure = data.targets.sum(axis=1) == 1
        counts = share[sure] @ data.targets[sure]
    weights = np.ones(n_labels)
    seen = counts > 0
    weights[seen] = counts.sum() / (seen.sum() * counts[seen])
    return weights


def _named(class_weight: Mapping[Any, Any], classes: Sequence[Any]) -> Floats:
    unknown = [label for label in class_weight if label not in classes]
    if unknown:
        raise ParameterError(
            f"class_weight names {unknown[0]!r}, which is not a label of the training data"
            f"{nearest(unknown[0], classes) or f'; the labels are {list(classes)!r}'}"
        )
    for label, weight in class_weight.items():
        if not isinstance(weight, numbers.Real):
            raise ParameterError(f"the class weight of {label!r} must be a number, not {weight!r}")
    weights = np.array([class_weight.get(label, 1.0) for label in classes], dtype=np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ParameterError(
            f"the class weight of {classes[wrong[0]]!r} is {weights[wrong[0]]}; weights must be finite and >= 0"
        )
    return weights
