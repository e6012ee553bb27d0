"""Labels instead of missing ones, drawn from the graph that was learned last.

A row with missing labels occurs several times in the table, each time with other labels in its gaps. Its copies weigh
s² together, where s is the share of its labels that are known, as an edge needs both of its ends. First, the labels are
drawn by the shares of their columns, then from the learned graph by Gibbs sampling, given the known labels of the row
(a Monte Carlo EM algorithm, Wei & Tanner 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crfkit._types import Flags, Floats, Ids, Ints


@dataclass(frozen=True, eq=False)
class DrawnLabels:
    """Rows with missing labels, filled in."""

    rows: Ints  # [lines] the row of each line, ascending
    states: Ids  # [lines, variables]
    missing: Flags  # [lines, variables]
    copies: int  # lines of a row

    @classmethod
    def by_shares(cls, states: Ids, seed: int, copies: int) -> DrawnLabels | None:
        """Return labels drawn from the columns by themselves, `copies` times; None if no label is missing."""
        gaps = states < 0
        rows = np.repeat(np.flatnonzero(gaps.any(axis=1)), copies)
        if not len(rows):
            return None
        rng = np.random.default_rng([seed, 0])
        filled, missing = states[rows].copy(), gaps[rows]
        for i in np.flatnonzero(missing.any(axis=0)).tolist():
            known = states[~gaps[:, i], i]
            filled[missing[:, i], i] = rng.choice(known, int(missing[:, i].sum()))
        return cls(rows, filled, missing, copies)

    def redrawn(self, conditionals: Callable[[Ids], list[Floats]], seed: int, sweeps: int) -> DrawnLabels:
        """Return labels drawn by Gibbs sampling; `conditionals` maps states to p(variable | the others of its line).

        A sweep draws the first missing label of every line, then the second, and so on: lines are independent.
        """
        rng = np.random.default_rng([seed, 1])
        states, place = self.states.copy(), np.cumsum(self.missing, axis=1) * self.missing
        for _ in range(sweeps):
            for k in range(1, int(place.max()) + 1):
                lines, variables = np.nonzero(place == k)
                p = conditionals(states)
                for i in np.unique(variables).tolist():
                    its = lines[variables == i]
                    states[its, i] = draw_states(p[i][its], rng)
        return DrawnLabels(self.rows, states, self.missing, self.copies)

    def expanded(self, states: Ids) -> tuple[Ids, Ints, Floats]:
        """Return (complete rows and filled-in lines [lines, variables], the row of each, its weight), by row."""
        complete = np.flatnonzero((states >= 0).all(axis=1))
        source = np.concatenate([complete, self.rows])
        known = 1.0 - self.missing.mean(axis=1)
        weights = np.concatenate([np.ones(len(complete)), np.square(known) / self.copies])
        order = np.argsort(source, kind="stable")
        return np.concatenate([states[complete], self.states])[order], source[order], weights[order]


def draw_states(p: Floats, rng: np.random.Generator) -> Ids:
    """Return a state for each row of probabilities [rows, K]."""
    above = rng.random((len(p), 1)) * p.sum(axis=1, keepdims=True) > np.cumsum(p, axis=1)
    found: Ids = np.minimum(above.sum(axis=1), p.shape[1] - 1).astype(np.int32)
    return found
