"""Iterated conditional modes: coordinate ascent of the score (Besag, On the statistical analysis of dirty pictures)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._checks import check_count
from crfkit._threads import count_threads
from crfkit._types import Ids
from crfkit.graph.fields.potentials import Potentials, check_states


def icm(
    potentials: Potentials,
    start: ArrayLike | None = None,
    n_restarts: int = 0,
    seed: int = 0,
    n_threads: int | None = None,
) -> Ids:
    """Return an array [n]: a labelling that no change of one node improves by more than rounding; ties keep the state.

    It climbs from `start` (None: each node's best state by itself) and from `n_restarts` random labellings, and keeps
    the best of each graph. The score of `start` is never lost; the result does not depend on n_threads.

    >>> from crfkit.graph.graph import Graph
    >>> field = Potentials.from_tables(Graph.path(3), [[1, 0], [0, 0.5], [1, 0]], np.eye(2))
    >>> icm(field).tolist()
    [0, 0, 0]
    """
    check_count(0, n_restarts=n_restarts, seed=seed)
    first = best_states(potentials) if start is None else check_states(start, potentials)
    best = _climb(potentials, first, n_threads)
    rng = np.random.default_rng(seed)
    for _ in range(n_restarts):
        draws = np.where(potentials.allowed, rng.random(potentials.unary.shape), -1.0)
        best = better(potentials, best, _climb(potentials, draws.argmax(axis=1).astype(np.int32), n_threads))
    return best


def best_states(potentials: Potentials) -> Ids:
    """Return [n] argmax_k U_i(k)."""
    states: Ids = potentials.unary.argmax(axis=1).astype(np.int32)
    return states


def better(potentials: Potentials, first: Ids, second: Ids) -> Ids:
    """Return an array [n]: of two labellings the one of higher score, graph by graph; the first if they are equal."""
    wins = potentials.score(second) > potentials.score(first)
    labels: Ids = np.where(np.repeat(wins, np.diff(potentials.graph.node_offsets)), second, first)
    return labels


def _climb(potentials: Potentials, start: Ids, n_threads: int | None) -> Ids:
    shared = len(potentials.basis) == 1
    labels, _ = _core.iterate_modes(
        potentials.graph.native,
        np.ascontiguousarray(potentials.unary),
        np.ascontiguousarray(potentials.basis if shared else potentials.tables),
        np.ascontiguousarray(potentials.coefficients[:, 0]) if shared else None,
        np.ascontiguousarray(start),
        count_threads(n_threads),
    )
    return labels
