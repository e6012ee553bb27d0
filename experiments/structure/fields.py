"""Tables drawn from fields whose graphs are known: random, hubs, grid, scale-free, a copied column, rare pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scores import Pairs, Scores, judged

FAMILIES = ("random", "hubs", "grid", "scale-free", "duplicate", "rare")
SWEEPS = 150


@dataclass(frozen=True)
class Planted:
    """A table [n, p] of 0 and 1, its edges, and which column is the copy of which."""

    Y: NDArray[np.int32]
    edges: Pairs
    copy: tuple[int, int] | None = None

    def judged(self, found: Pairs, scores: Scores) -> dict[str, Any]:
        """F1 and the rest of `scores.judged`; an edge to a copied column may as well be to its copy."""
        merged: Scores = {}
        for pair, score in scores.items():
            pair = self._first(pair)
            merged[pair] = max(score, merged.get(pair, 0.0))
        true = {self._first(pair) for pair in self.edges}
        return judged({self._first(pair) for pair in found}, merged, true, range(self.Y.shape[1]))

    def _first(self, pair: tuple[int, int]) -> tuple[int, int]:
        if self.copy is None or set(pair) == set(self.copy):
            return pair
        i, j = (self.copy[0] if end == self.copy[1] else end for end in pair)
        return min(i, j), max(i, j)


@dataclass(frozen=True)
class Sizes:
    """What a set of fields is drawn from: those that are tuned on differ from those that are reported."""

    p: int = 25
    degree: float = 2.4
    low: float = 0.3
    high: float = 0.7
    side: int = 5
    seed: int = 0


REPORTED = Sizes(seed=7_000)
TUNED = Sizes(p=18, degree=3.0, low=0.25, high=0.6, side=4, seed=90_000)


def draw(family: str, n: int, seed: int, sizes: Sizes = REPORTED) -> Planted:
    """A field of a family and n rows of it."""
    rng = np.random.default_rng([sizes.seed, FAMILIES.index(family), seed])
    p = sizes.p
    if family == "rare":
        return _rare(n, rng)
    if family == "grid":
        p = sizes.side**2
        steps = [(i, i + 1) for i in range(p) if (i + 1) % sizes.side] + [
            (i, i + sizes.side) for i in range(p - sizes.side)
        ]
        return Planted(gibbs(n, p, steps, rng.uniform(0.25, 0.45, len(steps)), rng), set(steps))
    if family == "hubs":
        edges = [(h, j) for h in range(3) for j in range(3 + h, p, 3)]
    elif family == "scale-free":
        ends = [0, 1]
        edges = [(0, 1)]
        for j in range(2, p):
            i = int(rng.choice(ends))
            edges.append((i, j))
            ends += [i, j]
    else:
        pairs = [(i, j) for i in range(p) for j in range(i + 1, p)]
        chosen = rng.choice(len(pairs), round(sizes.degree * p / 2), replace=False)
        edges = [pairs[k] for k in np.sort(chosen)]
    couplings = rng.uniform(sizes.low, sizes.high, len(edges)) * rng.choice([-1.0, 1.0], len(edges))
    Y = gibbs(n, p, edges, couplings, rng)
    if family != "duplicate":
        return Planted(Y, set(edges))
    i = int(rng.integers(p))
    return Planted(np.hstack([Y, Y[:, i : i + 1]]), {*edges, (i, p)}, (i, p))


def gibbs(
    n: int, p: int, edges: list[tuple[int, int]], w: NDArray, rng: np.random.Generator, sweeps: int = SWEEPS
) -> NDArray:
    """[n, p] independent chains of a Gibbs sampler, after many sweeps."""
    W = np.zeros((p, p))
    for (i, j), weight in zip(edges, w, strict=True):
        W[i, j] = W[j, i] = weight
    b = rng.uniform(-0.4, 0.4, p)
    s = rng.choice([-1.0, 1.0], (p, n))
    for _ in range(sweeps):
        for i in range(p):
            near = np.flatnonzero(W[i])
            s[i] = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * (W[i, near] @ s[near] + b[i]))), 1.0, -1.0)
    return (s.T > 0).astype(np.int32)


def _rare(n: int, rng: np.random.Generator) -> Planted:
    """A chain of ten balanced columns, and six pairs of columns with 1 to 10 % ones, the second mostly as the first."""
    chain = [(rng.random(n) < 0.5).astype(np.int32)]
    for _ in range(9):
        chain.append(np.where(rng.random(n) < 0.72, chain[-1], 1 - chain[-1]))
    columns, edges = chain, {(i, i + 1) for i in range(9)}
    for share in np.geomspace(0.01, 0.1, 6):
        first = rng.random(n) < share
        second = np.where(rng.random(n) < 0.6, first, rng.random(n) < share)
        edges.add((len(columns), len(columns) + 1))
        columns += [first.astype(np.int32), second.astype(np.int32)]
    return Planted(np.stack(columns, axis=1).astype(np.int32), edges)


def independent(n: int, p: int, seed: int) -> NDArray[np.int32]:
    """[n, p] columns that have nothing to do with each other, of 10 to 90 % ones."""
    rng = np.random.default_rng([31, seed])
    return (rng.random((n, p)) < rng.uniform(0.1, 0.9, p)).astype(np.int32)
