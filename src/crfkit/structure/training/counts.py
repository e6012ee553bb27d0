"""How often a pseudo-likelihood counts an edge: once at each end, but less where one end hardly depends on it.

The conditional of variable i has the slope u_i and the curvature h_i by the coupling of i and j, its bias adapting. For
an edge that is not there u_i has the variance h_i, so that the variance of u_i + u_j is at most (√h_i + √h_j)², and the
decrease of twice the loss is at most

    (u_i + u_j)² / (h_i + h_j)  =  t·χ²,        t = (√h_i + √h_j)² / (h_i + h_j)

t is 2 if both ends say as much about the edge, and 1 if all is said at one end: the other is certain given the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import Flags, Floats, Ints
from crfkit.structure.losses.evaluation import SparseEvaluation
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood

TWICE = 2.0
PIECE = 1 << 22  # numbers that are made at a time


def times_counted(first: Floats, second: Floats) -> Floats:
    """Return t of edges whose ends have these curvatures; 2 if both are zero."""
    total = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.square(np.sqrt(first) + np.sqrt(second)) / total
    return np.where(total > 0, found, TWICE)


def with_one_weight(loss: StructurePseudoLikelihood, i: Ints, j: Ints) -> Flags:
    """Return [E] which edges are one coupling. Tables of weights and edges with features count twice."""
    scored = loss.table.has_scores
    found: Flags = scored[i] & scored[j] & (loss.table.widths[1] == 1)
    return found


def edges_counted(loss: StructurePseudoLikelihood, evaluation: Any) -> Floats:
    """Return [E] t of the active edges at the point of an evaluation."""
    i, j = loss.edges[:, 0].astype(np.int64), loss.edges[:, 1].astype(np.int64)
    single = with_one_weight(loss, i, j)
    found = np.full(len(i), TWICE)
    if not single.any():
        return found
    if isinstance(evaluation, SparseEvaluation):
        return _from_hessian(loss, evaluation.sparse_hessian(), i, j)
    K, D = evaluation.curvature, loss.table.indicator_rows
    first, second = loss.table.starts[i[single]], loss.table.starts[j[single]]
    found[single] = times_counted(_curvatures(K, D, first, second), _curvatures(K, D, second, first))
    return found


def _from_hessian(loss: StructurePseudoLikelihood, H: Any, i: Ints, j: Ints) -> Floats:
    """The bias of i meets the coupling of i and j in the conditional of i alone; couplings of ±1 have its curvature."""
    nodes = loss.field.n_node_weights
    places = nodes + np.arange(len(i))
    biases = H.diagonal()[:nodes]

    def end(k: Ints) -> Floats:
        cross = np.asarray(H[k, places]).ravel()
        with np.errstate(divide="ignore", invalid="ignore"):
            left = biases[k] - np.square(cross) / biases[k]
        return np.where(biases[k] > 0, np.maximum(left, 0.0), 0.0)

    return times_counted(end(i), end(j))


def _curvatures(K: Floats, D: Floats, here: Any, there: Any) -> Floats:
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
