"""The extended BIC: how much an edge has to gain, and how often a pseudo-likelihood counts what it gains.

A pseudo-likelihood counts an edge once at each end, but less where one end hardly depends on it. The conditional of
variable i has the slope u_i and the curvature h_i by the coupling of i and j, its bias adapting. For an edge that is
not there u_i has the variance h_i, so the variance of u_i + u_j is at most (√h_i + √h_j)², and the decrease of
twice the loss is at most

    (u_i + u_j)² / (h_i + h_j)  =  t·χ²,        t = (√h_i + √h_j)² / (h_i + h_j)

t is 2 if both ends are equally informative about the edge, and 1 if only one end is: the other is certain given the
rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri, gammaln

from crfkit._types import Flags, Floats, Ids, Ints, Sparse
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.evaluation import SparseEvaluation
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.options import StructureOptions
from crfkit.structure.solve import Solution

BOTH_ENDS = 2.0  # the largest t, and that of edges with several weights
PIECE = 1 << 22  # numbers that are made at a time


@dataclass(frozen=True)
class EdgePrices:
    """The extended BIC (Chen & Chen 2008) of graphs, and what each edge has to gain in it."""

    options: StructureOptions

    def ebic(self, refitted: Solution) -> float:
        """Return 2·loss + Σ df·log n + 2γ·log(number of graphs with as many edges).

        The first two edges are charged as with γ = 1: among independent columns a small γ finds edges by chance too
        often. In graphs that have many edges this surcharge is small beside what the edges gain.

        A pseudo-likelihood counts what an edge explains at either end, up to twice, so the edge has to pay its price as
        often.
        """
        loss, gamma = refitted.loss, self.options.ebic_gamma
        k, pairs = len(loss.edges), n_pairs(loss)
        prior = 2.0 * gamma * _log_graphs(pairs, k)
        full = min(k, self.options.tunables.full_prior_edges)
        prior += 2.0 * max(0.0, 1.0 - gamma) * _log_graphs(pairs, full)
        evaluation = loss.at(refitted.w)
        prices, counts = self.of_active(loss, prior / max(k, 1)), np.ones(k)
        if isinstance(loss, StructurePseudoLikelihood):
            counts = edges_counted(loss, evaluation)
        return 2.0 * evaluation.value + float(counts @ prices)

    def marginal(self, loss: EdgeLoss, k: int) -> float:
        """Return what the k-th edge adds to 2γ·log(number of graphs with k edges)."""
        pairs = n_pairs(loss)
        return 2.0 * self.options.ebic_gamma * (_log_graphs(pairs, k) - _log_graphs(pairs, k - 1)) if k > 0 else 0.0

    def marginals(self, loss: EdgeLoss) -> Floats:
        """Return [edges + 1] what the k-th edge adds, for k = 0, 1, …"""
        pairs = n_pairs(loss)
        logs = np.array([_log_graphs(pairs, k) for k in range(len(loss.edges) + 1)])
        return 2.0 * self.options.ebic_gamma * np.diff(logs, prepend=0.0)

    def of_active(self, loss: EdgeLoss, prior: float) -> Floats:
        """Return [E] what each edge has to gain: df·log n + prior; df is (K_i − 1)(K_j − 1), with 1 for a scale."""
        return self.of_edges(loss, loss.edges, prior)

    def of_edges(self, loss: EdgeLoss, edges: Ids, prior: float) -> Floats:
        """Return what edges [E, 2] have to gain.

        With features, an edge has df·features weights, and the price is the gain that is as unlikely by chance. log n
        for each weight would be too expensive, as the features of an edge are given and not chosen.
        """
        table = loss.table
        free = np.where(table.has_scores, 1.0, table.n_states - 1.0)  # weights that no bias can replace
        first, second = free[edges[:, 0]], free[edges[:, 1]]
        plain: Floats = first * second
        prices: Floats = plain * math.log(max(table.total, 2.0)) + prior
        if table.widths[1] == 1:
            return prices
        df = plain * table.widths[1]
        if not table.single:  # what tables say on one end given features of the other: seen by one conditional only
            df += table.edge_parts[1] * (first + second) * (0.5 if isinstance(loss, StructurePseudoLikelihood) else 1.0)
        chance = chdtrc(plain, prices)
        found: Floats = np.where(chance > 0, chdtri(df, np.maximum(chance, 1e-300)), prices * df / plain)
        return found


def n_pairs(loss: EdgeLoss) -> int:
    """Return how many edges there could be."""
    return loss.n_candidates + len(loss.edges)


@cache
def _log_graphs(pairs: int, edges: int) -> float:
    """Return log(pairs choose edges), and for more than half of the pairs, where it falls again, its largest value."""
    k = min(edges, pairs // 2)
    return float(gammaln(pairs + 1) - gammaln(k + 1) - gammaln(pairs - k + 1)) if k > 0 else 0.0


# --- how often an edge is counted


def times_counted(first: Floats, second: Floats) -> Floats:
    """Return t of edges whose ends have these curvatures; 2 if both are zero."""
    total = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.square(np.sqrt(first) + np.sqrt(second)) / total
    return np.where(total > 0, found, BOTH_ENDS)


def with_one_weight(loss: StructurePseudoLikelihood, i: Ints, j: Ints) -> Flags:
    """Return [E] which edges are one coupling. Tables of weights and edges with features count twice."""
    scored = loss.table.has_scores
    found: Flags = scored[i] & scored[j] & (loss.table.widths[1] == 1)
    return found


def edges_counted(loss: StructurePseudoLikelihood, evaluation: Any) -> Floats:
    """Return [E] t of the active edges at the point of an evaluation."""
    i, j = loss.edges[:, 0].astype(np.int64), loss.edges[:, 1].astype(np.int64)
    single = with_one_weight(loss, i, j)
    found = np.full(len(i), BOTH_ENDS)
    if not single.any():
        return found
    if isinstance(evaluation, SparseEvaluation):
        return _counted_by_hessian(loss, evaluation.sparse_hessian(), i, j)
    K, D = evaluation.curvature, loss.table.indicator_rows
    first, second = loss.table.starts[i[single]], loss.table.starts[j[single]]
    found[single] = times_counted(_curvatures(K, D, first, second), _curvatures(K, D, second, first))
    return found


def _counted_by_hessian(loss: StructurePseudoLikelihood, H: Sparse, i: Ints, j: Ints) -> Floats:
    """Return [E] t of couplings of ±1.

    The bias of i meets the coupling of i and j in the conditional of i alone, and has the curvature of the coupling.
    """
    nodes = loss.field.n_node_weights
    places = nodes + np.arange(len(i))
    biases = H.diagonal()[:nodes]

    def end(k: Ints) -> Floats:
        cross = np.asarray(H[k, places]).ravel()
        with np.errstate(divide="ignore", invalid="ignore"):
            left = biases[k] - np.square(cross) / biases[k]
        return np.where(biases[k] > 0, np.maximum(left, 0.0), 0.0)

    return times_counted(end(i), end(j))


def _curvatures(K: Floats, D: Floats, here: Ids, there: Ids) -> Floats:
    """Return [E] Σ k·d² − (Σ k·d)²/Σ k of the conditionals `here`, with d the scores of the other ends."""
    found = np.empty(len(here))
    sums = K.sum(axis=1)
    step = max(1, PIECE // max(1, K.shape[1]))
    for first in range(0, len(here), step):
        some = slice(first, first + step)
        k, d, total = K[here[some]], D[there[some]], sums[here[some]]
        cross, squares = np.einsum("em,em->e", k, d), np.einsum("em,em,em->e", k, d, d)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[some] = np.where(total > 0, np.maximum(squares - np.square(cross) / total, 0.0), 0.0)
    return found
