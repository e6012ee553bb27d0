"""Scores of single positions, as `label -s` prints them, and labellings of the greatest marginal probabilities.

ψ_t(i, j) is the score of label j at position t after label i: its attributes, the transition, and the attributes of the
pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfkit._types import Floats, Ids, Ints
from crfkit.chain.data import SequenceData
from crfkit.chain.model.model import ChainModel
from crfkit.errors import ParameterError


@dataclass(frozen=True, eq=False)
class Lattice:
    """The scores ψ of a model."""

    model: ChainModel

    def __post_init__(self) -> None:
        field = self.model.field
        if field.order != 1 or field.n_classes or field.constrained:
            raise ParameterError(
                "scores of single labels need a model of order 1 without constraints and label classes"
            )

    @cached_property
    def _codes(self) -> tuple[tuple[Ints, Floats], tuple[Ints, Floats]]:
        """Return (ascending codes, weights) of states (a·L + j) and of pairs ((b·L + i)·L + j)."""
        field, w, L = self.model.field, self.model.w, self.model.field.n_labels
        a, label = field.state_ids()
        b, i, j = field.pair_ids()
        return (
            (a.astype(np.int64) * L + label, w[field.layout["state"]]),
            ((b.astype(np.int64) * L + i) * L + j, w[field.layout["pair"]]),
        )

    @cached_property
    def _transitions(self) -> Floats:
        field = self.model.field
        table = np.zeros((field.n_labels, field.n_labels))
        table[field.transition_ids()] = self.model.w[field.layout["transition"]]
        return table

    def along(self, data: SequenceData, labels: Ids) -> Floats:
        """Return ψ_t(y_{t−1}, y_t) at every position of labelled sequences."""
        L, T = self.model.field.n_labels, data.n_positions
        first = np.zeros(T, dtype=bool)
        first[data.starts[:-1][data.lengths > 0]] = True
        before = np.where(first, 0, np.concatenate([[0], labels[:-1]])).astype(np.int64)
        states, pairs = self._codes
        owner = np.repeat(np.arange(T), np.diff(data.offsets))
        found = _lookup(states, data.attributes.astype(np.int64) * L + labels[owner])
        if data.values is not None:
            found = found * data.values
        total = np.bincount(owner, found, minlength=T).astype(np.float64)
        if data.pair_offsets is not None and data.pair_attributes is not None:
            owner = np.repeat(np.arange(T), np.diff(data.pair_offsets))
            codes = (data.pair_attributes.astype(np.int64) * L + before[owner]) * L + labels[owner]
            total = total + np.bincount(owner, _lookup(pairs, codes), minlength=T)
        return total + np.where(first, 0.0, self._transitions[before, labels])


def best_paths(unary: Floats, n: int) -> list[tuple[Ids, float]]:
    """Return the n labellings with the greatest Σ unary[t, y_t], and these sums.

    Fewer are returned where no more are possible. Among equal ones, the first labels come first.
    """
    T, L = unary.shape
    best = unary[0]  # the sums of the best labellings so far
    steps: list[Ints] = []  # label · (number of the best before) + rank before
    for t in range(1, T):
        coming = (unary[t][:, None] + best).ravel()
        steps.append(np.argsort(-coming, kind="stable")[:n])
        best = coming[steps[-1]]
    sizes = [L, *(len(kept) for kept in steps)]
    found = []
    for end in np.argsort(-best, kind="stable")[:n].tolist():
        if best[end] == -np.inf:
            break
        path, rank = np.empty(T, dtype=np.int32), end
        for t in range(T - 1, 0, -1):
            path[t], rank = divmod(int(steps[t - 1][rank]), sizes[t - 1])
        path[0] = rank
        found.append((path, float(best[end])))
    return found


def _lookup(table: tuple[Ints, Floats], codes: Ints) -> Floats:
    """Return the weights of codes, 0 where there is none."""
    have, weights = table
    if len(have) == 0:
        return np.zeros(codes.shape)
    at = np.minimum(np.searchsorted(have, codes), len(have) - 1)
    return np.where(have[at] == codes, weights[at], 0.0)
