"""A binary table seen by one variable at a time: how often each pattern of its sign and its neighbours' signs occurs.

The conditional of a variable with k neighbours depends on u = s_i·[1, s_j …] alone, which has 2^(k + 1) values however
many rows there are. With their counts, which are made once for each neighbourhood, an evaluation

    Σ_u count_u·log(1 + exp(−2·w·u))

costs patterns, not rows. Bit 0 of a pattern's number is set where s_i = 1, the others where s_i·s_j = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.structure.observations import Observations

MAX_PATTERN_SIGNS = 12  # signs of a pattern
CACHED_NEIGHBOURHOODS = 4  # neighbourhoods of a variable whose counts are remembered
CACHED_PATTERNS = 1 << 15  # patterns of a group, which stay in a cache while a few passes are made over them


class BinaryTable:
    """The signs of a table and, of each variable, the counts of patterns of the neighbourhoods that it had last."""

    def __init__(self, table: Observations) -> None:
        self.s = table.indicator_rows  # [p, m] ±1
        self.weights = table.weights
        self.plain = bool((table.weights == 1.0).all())
        self._bits = np.ascontiguousarray(table.states.T, dtype=np.uint16)
        self._kept: list[dict[bytes, Floats]] = [{} for _ in self.s]

    @property
    def most(self) -> int:
        """Return the most neighbours with which patterns are fewer than rows."""
        return min(MAX_PATTERN_SIGNS, len(self.weights).bit_length() - 1) - 1

    def codes(self, i: int, others: Ints) -> Any:
        """Return [m] the number of each row's pattern."""
        mine = self._bits[i]
        found = mine - np.uint16(1)  # all bits where the sign is −1, and its neighbours' signs change
        for place, j in enumerate(others.tolist(), start=1):
            found ^= self._bits[j] << np.uint16(place)
        found &= np.uint16((2 << len(others)) - 2)
        found |= mine
        return found

    def counts(self, i: int, others: Ints) -> Floats:
        """Return [2^(k + 1)] the weight of the rows that have each pattern."""
        kept, key = self._kept[i], others.tobytes()
        found = kept.pop(key, None)
        if found is None:
            codes, size = self.codes(i, others), 2 << len(others)
            found = np.bincount(codes, None if self.plain else self.weights, size).astype(np.float64)
            if len(kept) >= CACHED_NEIGHBOURHOODS:
                kept.pop(next(iter(kept)))  # the one that was not used for the longest time
        kept[key] = found
        return found


_TABLES: WeakKeyDictionary[Observations, BinaryTable] = WeakKeyDictionary()


def binary_table(table: Observations) -> BinaryTable:
    """Return the one of these observations, with what it remembers."""
    found = _TABLES.get(table)
    if found is None:
        found = _TABLES[table] = BinaryTable(table)
    return found


@cache
def signs(n: int) -> Floats:
    """Return [n, 2^n] all patterns, by their numbers.

    >>> signs(2).tolist()
    [[-1.0, 1.0, -1.0, 1.0], [-1.0, -1.0, 1.0, 1.0]]
    """
    found: Floats = 2.0 * (np.arange(1 << n) >> np.arange(n)[:, None] & 1).astype(np.float64) - 1.0
    return found


@dataclass(frozen=True, eq=False)
class Group:
    """Variables with equally many neighbours."""

    variables: Ints  # [g]
    places: Ints  # [g, k] of their neighbours, in the list of all
    counts: Floats  # [g, 2^(k + 1)]


class GroupTerms:
    """The terms of the loss of a group's conditionals, at biases [p] and couplings by place [2E]."""

    def __init__(self, group: Group, b: Floats, w: Floats) -> None:
        self.group = group
        self._signs = U = signs(group.places.shape[1] + 1)
        t = np.concatenate([b[group.variables, None], w[group.places]], axis=1) @ U
        t *= -2.0
        e = np.exp(-np.abs(t))
        self.q = np.where(t > 0, 1.0, e) / (1.0 + e)  # [g, 2^(k + 1)] the probability of the other state
        np.maximum(t, 0.0, out=t)
        t += np.log1p(e)
        self.value = float(np.vdot(group.counts, t))

    @cached_property
    def slopes(self) -> Floats:
        """Return [g, 1 + k] the gradient by the bias and the couplings."""
        found: Floats = (self.group.counts * self.q) @ self._signs.T
        found *= -2.0
        return found

    def blocks(self) -> Floats:
        """Return [g, 1 + k, 1 + k] the second derivatives."""
        U = self._signs
        g, (n, P) = len(self.q), U.shape
        k = 4.0 * self.group.counts * self.q * (1.0 - self.q)
        out = np.empty((g, n, n))
        step = max(1, CACHED_PATTERNS // P)
        for first in range(0, g, step):
            some = slice(first, first + step)
            out[some] = ((k[some, None, :] * U).reshape(-1, P) @ U.T).reshape(-1, n, n)
        return out

    def by_pattern(self, of: Callable[[Floats, Floats], Floats]) -> Floats:
        """Return [g, 2^(k + 1)] a function of (the probability of the other state, the variable's own sign)."""
        return of(self.q, self._signs[0])
