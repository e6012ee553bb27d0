"""Scores of single positions, and best labellings where some labels are known: what `label -s` and `--force` need.

ψ_t(i, j) is the score of label j at position t after label i: its attributes, the transition, and the attributes of the
pair. The best labellings of whole files come from the compiled core; those with known labels are found here, a sequence
at a time, in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfkit._types import Floats, Ids, Ints
from crfkit.data.sequences import SequenceData
from crfkit.errors import ParameterError
from crfkit.models.chain import ChainModel


@dataclass(frozen=True, eq=False)
class Lattice:
    """The scores ψ of a model."""

    model: ChainModel

    def __post_init__(self) -> None:
        field = self.model.field
        if field.order != 1 or field.n_classes or field.constrained:
            raise ParameterError(
                "scores of single labels and forced decoding need a model of order 1 without constraints and label "
                "classes"
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

    def forced(self, data: SequenceData, known: Ids, n: int) -> list[tuple[Ids, float]]:
        """Return the n best labellings of one sequence that keep the labels `known` (−1: any), with their scores."""
        L, T = self.model.field.n_labels, data.n_positions
        states, pairs = self._codes
        owner = np.repeat(np.arange(T), np.diff(data.offsets))
        codes = data.attributes.astype(np.int64)[:, None] * L + np.arange(L)
        scores = _lookup(states, codes) if data.values is None else _lookup(states, codes) * data.values[:, None]
        unary = np.zeros((T, L))
        np.add.at(unary, owner, scores)

        def pairwise(t: int) -> Floats:
            if data.pair_offsets is None or data.pair_attributes is None:
                return self._transitions
            here = data.pair_attributes[data.pair_offsets[t] : data.pair_offsets[t + 1]].astype(np.int64)
            codes = here[:, None, None] * L * L + np.arange(L * L).reshape(L, L)
            table: Floats = self._transitions + _lookup(pairs, codes).sum(axis=0)
            return table

        return best_paths(force(unary, known), pairwise, n)


def force(unary: Floats, known: Ids) -> Floats:
    """Return scores [T, L] that are −inf for all labels but the known one."""
    fixed = known >= 0
    held = np.where(fixed[:, None], -np.inf, unary)
    held[fixed, known[fixed]] = unary[fixed, known[fixed]]
    return held


def best_paths(unary: Floats, pairwise: Callable[[int], Floats] | None, n: int) -> list[tuple[Ids, float]]:
    """Return the n labellings with the greatest Σ unary[t, y_t] + Σ_{t>0} pairwise(t)[y_{t−1}, y_t], and these sums.

    Fewer are returned where no more are possible. Of equal ones, those of the first labels come first.
    """
    T, L = unary.shape
    best = unary[0][:, None]  # [L, k]: the k best that end in each label
    steps: list[Ints] = []  # [L, k]: label before · (its k) + rank before
    for t in range(1, T):
        k = best.shape[1]
        coming = best.reshape(-1, 1) + (0.0 if pairwise is None else np.repeat(pairwise(t), k, axis=0))
        coming = np.broadcast_to(coming, (L * k, L))
        kept = np.argsort(-coming, axis=0, kind="stable")[:n]
        steps.append(kept.T)
        best = np.take_along_axis(coming, kept, axis=0).T + unary[t][:, None]
    order = np.argsort(-best.ravel(), kind="stable")[:n]
    found = []
    for end in order.tolist():
        score = float(best.ravel()[end])
        if score == -np.inf:
            break
        path = np.empty(T, dtype=np.int32)
        path[T - 1], rank = divmod(end, best.shape[1])
        for t in range(T - 1, 0, -1):
            came = int(steps[t - 1][path[t], rank])
            path[t - 1], rank = divmod(came, steps[t - 2].shape[1] if t > 1 else 1)
        found.append((path, score))
    return found


def _lookup(table: tuple[Ints, Floats], codes: Ints) -> Floats:
    """Return the weights of codes, 0 where there is none."""
    have, weights = table
    if len(have) == 0:
        return np.zeros(codes.shape)
    at = np.minimum(np.searchsorted(have, codes), len(have) - 1)
    return np.where(have[at] == codes, weights[at], 0.0)
