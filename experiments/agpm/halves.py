"""Exact inference in many small binary fields on one graph, by listing the labellings in two halves.

Nodes are split into A and B. The score of a labelling y = (a, b), with states 0 and 1, is

    score(a, b) = s_A(a) + s_B(b) + aᵀ W b

so that one product of matrices gives all 2^n scores of a sample as a table [2^|A|, 2^|B|]. Sums over its rows and
columns and AᵀPB are the marginals of nodes and of pairs. The junction tree of a complete graph of 15 nodes visits every
labelling once for each clique; this visits it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.marginals import InferenceStatus, Marginals

Floats = NDArray[np.float64]
BLOCK = 1 << 15  # numbers of a table that stay in a cache


@dataclass(frozen=True)
class Halves:
    """An engine of inference for `GraphLikelihood`: two states, the same edges in every sample, at most 24 nodes."""

    name = "halves"
    bound = "exact"

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        del warm  # nothing to begin with
        n, edges = _shape(potentials)
        constant, h, W = _spins(potentials, n, edges)
        log_z, one, two = _moments(h, W)
        both = two[:, edges.min(axis=1), edges.max(axis=1)]  # [N, E] p(1, 1)
        first, second = one[:, edges[:, 0]], one[:, edges[:, 1]]
        tables = np.stack([1 - first - second + both, second - both, first - both, both], axis=-1)
        nodes = np.stack([1 - one, one], axis=-1).reshape(-1, 2)
        return Marginals(log_z + constant, nodes, lambda: tables.reshape(-1, 2, 2), InferenceStatus.EXACT)


def _shape(potentials: Potentials) -> tuple[int, NDArray[Any]]:
    """Return (nodes of a sample, edges [E, 2] of a sample)."""
    graph = potentials.graph
    n, per = graph.n_nodes // graph.n_graphs, graph.n_edges // graph.n_graphs
    edges = graph.edges[:per]
    shifted = edges[None] + n * np.arange(graph.n_graphs)[:, None, None]
    if potentials.n_states != 2 or not np.array_equal(shifted.reshape(-1, 2), graph.edges):
        raise ValueError("halves needs two states, and the same edges in every sample")
    if n > 24 or not np.isfinite(potentials.unary).all():
        raise ValueError(f"halves needs at most 24 nodes, of which no label is fixed; got {n}")
    return n, edges


def _spins(potentials: Potentials, n: int, edges: NDArray[Any]) -> tuple[Floats, Floats, Floats]:
    """Return (c [N], h [N, n], W [N, n, n] above the diagonal): score(y) = c + h·y + yᵀWy of states 0 and 1."""
    U = potentials.unary.reshape(-1, n, 2)
    T = potentials.tables.reshape(len(U), -1, 2, 2)
    h = U[:, :, 1] - U[:, :, 0]
    W = np.zeros((len(U), n, n))
    for e, (i, j) in enumerate(edges.tolist()):
        h[:, i] += T[:, e, 1, 0] - T[:, e, 0, 0]
        h[:, j] += T[:, e, 0, 1] - T[:, e, 0, 0]
        W[:, min(i, j), max(i, j)] += T[:, e, 1, 1] - T[:, e, 1, 0] - T[:, e, 0, 1] + T[:, e, 0, 0]
    return U[:, :, 0].sum(axis=1) + T[:, :, 0, 0].sum(axis=1), h, W


def _moments(h: Floats, W: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (log Z [N], E[y_i] [N, n], E[y_i y_j] [N, n, n] above the diagonal)."""
    N, n = h.shape
    a = n // 2
    A, pairs_a, products_a = _states(0, a)
    B, pairs_b, products_b = _states(a, n)
    s_a = h[:, :a] @ A.T + W[:, pairs_a[0], pairs_a[1]] @ products_a.T  # [N, 2^a]
    s_b = h[:, a:] @ B.T + W[:, pairs_b[0], pairs_b[1]] @ products_b.T
    ones_a, ones_b = np.ones((len(A), 1)), np.ones((len(B), 1))
    A1, B1 = np.hstack([A, ones_a]), np.hstack([B, ones_b])
    log_z, one, two = np.empty(N), np.empty((N, n)), np.zeros((N, n, n))
    size = max(1, BLOCK // (len(A) * len(B)))
    table = np.empty((size, len(A), len(B)))
    for begin in range(0, N, size):
        some = slice(begin, begin + size)
        m = len(log_z[some])
        left = np.concatenate([A @ W[some, :a, a:], s_a[some, :, None], np.broadcast_to(ones_a, (m, *ones_a.shape))], 2)
        right = np.concatenate(
            [np.broadcast_to(B.T, (m, *B.T.shape)), np.ones((m, 1, len(B))), s_b[some, None, :]], axis=1
        )
        P = np.matmul(left, right, out=table[:m])  # [m, 2^a, 2^b]
        top = P.max(axis=(1, 2), keepdims=True)
        P -= top
        np.exp(P, out=P)
        by_a, by_b = P @ B1, P.sum(axis=1)  # [m, 2^a, |B| + 1], [m, 2^b]
        sums = A1.T @ by_a  # [m, |A| + 1, |B| + 1]; the last is Z
        z = sums[:, -1, -1]
        log_z[some] = np.log(z) + top[:, 0, 0]
        one[some, :a], one[some, a:] = sums[:, :-1, -1] / z[:, None], sums[:, -1, :-1] / z[:, None]
        two[some, :a, a:] = sums[:, :-1, :-1] / z[:, None, None]
        two[some, pairs_a[0], pairs_a[1]] = by_a[:, :, -1] @ products_a / z[:, None]
        two[some, pairs_b[0], pairs_b[1]] = by_b @ products_b / z[:, None]
    return log_z, one, two


def _states(begin: int, end: int) -> tuple[Floats, NDArray[Any], Floats]:
    """Return (all states [2^k, k] of the nodes, their pairs [2, M], products of the states of pairs [2^k, M])."""
    k = end - begin
    states = (np.arange(1 << k)[:, None] >> np.arange(k) & 1).astype(float)
    pairs = np.array(list(combinations(range(k), 2)), dtype=int).reshape(-1, 2).T
    return states, pairs + begin, states[:, pairs[0]] * states[:, pairs[1]]
