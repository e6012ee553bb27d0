"""Chains of any size: with real inputs, and with any number of labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crfkit.errors import ParameterError


def gaussian_chains(
    n: int = 5000,
    n_inputs: int = 1000,
    n_relevant: int = 100,
    length: int = 8,
    scale: float = 1.0,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]:
    """Return (inputs [n, length, n_inputs], labels 0 or 1 [n, length], the relevant inputs), the data of Zhu, Lao &
    Xing (2010, section 6.1.1).

    Inputs are independent normal numbers. Labels are drawn exactly from a chain whose weights (one for each label and
    relevant input, and for each pair of labels) are normal with this standard deviation.

    >>> X, y, relevant = gaussian_chains(3, n_inputs=20, n_relevant=2)
    >>> X.shape, y.shape, len(relevant)
    ((3, 8, 20), (3, 8), 2)
    """
    if not (n >= 0 and length >= 1 and 0 <= n_relevant <= n_inputs):
        raise ParameterError(
            f"expected n >= 0, length >= 1 and 0 <= n_relevant <= n_inputs; got {n}, {length}, {n_relevant} "
            f"and {n_inputs}"
        )
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, length, n_inputs))
    relevant = np.sort(rng.choice(n_inputs, n_relevant, replace=False))
    node = scale * rng.standard_normal((n_relevant, 2))
    edge = scale * rng.standard_normal((2, 2))  # [from, to]
    scores = X[:, :, relevant] @ node  # [n, length, 2]
    onward = np.zeros((n, length, 2))  # log of the sum over later labels
    for t in range(length - 2, -1, -1):
        later = (scores[:, t + 1] + onward[:, t + 1])[:, None, :] + edge  # [n, label, next]
        onward[:, t] = np.logaddexp(later[..., 0], later[..., 1])
    uniform = rng.random((n, length))
    y = np.zeros((n, length), dtype=np.int32)
    for t in range(length):
        here = scores[:, t] + onward[:, t] + (edge[y[:, t - 1]] if t else 0.0)
        y[:, t] = uniform[:, t] * (1.0 + np.exp(np.minimum(here[:, 0] - here[:, 1], 700.0))) < 1.0
    return X, y, relevant


def labelled_words(
    n: int, n_labels: int, length: tuple[int, int] = (5, 25), context: int = 1, noise: float = 0.3, seed: int = 0
) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return (sequences of attribute lists, labels "L0" …) with any number of labels, to measure how time grows.

    Each label has five usual successors and twenty usual words, which it shares with others; `noise` is the share of
    words that are drawn at random. A token's attributes are the words up to `context` positions away. Lengths are drawn
    from `length`, the upper end excluded.

    >>> X, y = labelled_words(2, n_labels=300)
    >>> X[0][0], y[0][0]
    (['0=1414', '1=401'], 'L134')
    """
    rng = np.random.default_rng(seed)
    n_words = 5 * n_labels
    successors = rng.integers(0, n_labels, (n_labels, 5))
    words = rng.integers(0, n_words, (n_labels, 20))
    X: list[list[list[str]]] = []
    y: list[list[str]] = []
    for _ in range(n):
        labels = [int(rng.integers(n_labels))]
        for _ in range(int(rng.integers(*length)) - 1):
            usual = rng.random() < 0.9
            labels.append(int(successors[labels[-1], rng.integers(5)] if usual else rng.integers(n_labels)))
        usual_words = [int(words[label, min(int(rng.exponential(3.0)), 19)]) for label in labels]
        seen = [int(rng.integers(n_words)) if rng.random() < noise else word for word in usual_words]
        near = range(-context, context + 1)
        X.append([[f"{k}={seen[t + k]}" for k in near if 0 <= t + k < len(seen)] for t in range(len(seen))])
        y.append([f"L{label}" for label in labels])
    return X, y
