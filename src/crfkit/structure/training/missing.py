"""Missing labels of a table that structure is learned from: drawn from the graph that was learned last.

A row with missing labels stands in the table DRAWS times, each with other labels in its gaps, and has the weight s² in
all, where s is the share of its labels that are known: an edge needs both of its ends. First the labels are drawn by
the shares of their columns, then from the learned graph by Gibbs sampling, given the known labels of the row (a Monte
Carlo EM algorithm, Wei & Tanner 1990).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crfkit._types import Flags, Floats, Ids, Ints

DRAWS = 5  # times that a row with missing labels is filled in
ROUNDS = 2  # times that labels are drawn from a learned graph
SWEEPS = 5  # of Gibbs sampling


@dataclass(frozen=True, eq=False)
class Draws:
    """Rows with missing labels, filled in."""

    rows: Ints  # [lines] the row that each line is of, ascending
    states: Ids  # [lines, variables]
    missing: Flags  # [lines, variables]

    @classmethod
    def by_shares(cls, states: Ids, seed: int) -> Draws | None:
        """Return draws from the columns by themselves; None if no label is missing."""
        gaps = states < 0
        rows = np.repeat(np.flatnonzero(gaps.any(axis=1)), DRAWS)
        if not len(rows):
            return None
        rng = np.random.default_rng([seed, 0])
        filled, missing = states[rows].copy(), gaps[rows]
        for i in np.flatnonzero(missing.any(axis=0)).tolist():
            known = states[~gaps[:, i], i]
            filled[missing[:, i], i] = rng.choice(known, int(missing[:, i].sum()))
        return cls(rows, filled, missing)

    def redrawn(self, conditionals: Any, seed: int) -> Draws:
        """Return draws by Gibbs sampling; `conditionals` is a function from states to p(variable | the others).

        A sweep draws the first missing label of every line, then the second, and so on: lines are independent.
        """
        rng = np.random.default_rng([seed, 1])
        states, place = self.states.copy(), np.cumsum(self.missing, axis=1) * self.missing
        for _ in range(SWEEPS):
            for k in range(1, int(place.max()) + 1):
                lines, variables = np.nonzero(place == k)
                p = conditionals(states)
                for i in np.unique(variables).tolist():
                    its = lines[variables == i]
                    states[its, i] = drawn(p[i][its], rng)
        return Draws(self.rows, states, self.missing)

    def expanded(self, states: Ids) -> tuple[Ids, Ints, Floats]:
        """Return (complete rows and draws [lines, variables], the row of each, its weight), in the order of rows."""
        whole = np.flatnonzero((states >= 0).all(axis=1))
        source = np.concatenate([whole, self.rows])
        known = 1.0 - self.missing.mean(axis=1)
        weights = np.concatenate([np.ones(len(whole)), np.square(known) / DRAWS])
        order = np.argsort(source, kind="stable")
        return np.concatenate([states[whole], self.states])[order], source[order], weights[order]


def drawn(p: Floats, rng: np.random.Generator) -> Ids:
    """Return a state for each row of probabilities [rows, K]."""
    above = rng.random((len(p), 1)) * p.sum(axis=1, keepdims=True) > np.cumsum(p, axis=1)
    found: Ids = np.minimum(above.sum(axis=1), p.shape[1] - 1).astype(np.int32)
    return found
