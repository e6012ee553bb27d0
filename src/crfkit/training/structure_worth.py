"""What edges are worth to second order: those that are on, if they were dropped, and those that are off, if added."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crfkit._threads import thread_count
from crfkit._types import Floats, Ints
from crfkit.losses.ising_table import products
from crfkit.losses.structure_evaluation import SparseEvaluation
from crfkit.losses.structure_pseudo import StructurePseudoLikelihood

DOUBTFUL = 3.0  # times its price: an edge that is worth more is not dropped
MIRRORED = 64  # rows of a matrix whose transpose is written at a time
DELAYED = 64  # weights that are dropped between updates of the whole matrix
PARALLEL = 1500  # weights from which on BLAS works with all threads, which then wait for each other by spinning


def eliminated(
    loss: StructurePseudoLikelihood, w: Floats, ridge: Floats, prices: Floats, priors: Floats, certain: float
) -> tuple[Ints, Floats]:
    """(places of the edges to drop, the poorest first; the weights without them).

    Dropping an edge costs wᵀ[(H⁻¹)_ee]⁻¹w, and all else adapts to that; it saves its price and, of k edges, priors[k].
    The poorest is dropped, then the poorest of the others; of this order the part is taken that saves most. Edges with
    a weight of at least `certain`, where the second order is far off, stay.
    """
    evaluation = loss.at(w)
    nodes = loss.field.n_node_weights
    A, cross = _inverse(evaluation, ridge, nodes)
    index = loss.block_index[nodes:]
    v = w[nodes:]
    order = np.argsort(loss.active_ids, kind="stable")
    which = order[np.searchsorted(loss.active_ids, index, sorter=order)]  # [weights] the place of each one's edge
    n_edges = len(loss.active_ids)
    sizes = np.zeros(n_edges)
    np.maximum.at(sizes, which, np.abs(v))
    limit = DOUBTFUL * (prices + priors.max(initial=0.0))
    costs = _costs(A, v, which, n_edges)
    doubtful = np.flatnonzero((sizes < certain) & (costs < limit))
    if not len(doubtful):
        return np.zeros(0, dtype=np.int64), w
    dropped = _sequence(A, v, which, doubtful, prices, priors, n_edges)
    if not len(dropped):
        return dropped, w
    out = np.flatnonzero(np.isin(which, dropped))
    change = -A[:, out] @ np.linalg.solve(A[np.ix_(out, out)], v[out])
    new = w.copy()
    new[nodes:] += change
    new[nodes:][out] = 0.0
    new[:nodes] -= cross(change)
    return dropped, new


def upper_costs(loss: StructurePseudoLikelihood, w: Floats) -> Floats:
    """[E] w²·H of each coupling of binary variables: what dropping it costs at most, as no other weight adapts."""
    nodes = loss.field.n_node_weights
    evaluation: Any = loss.at(w)
    diagonal = np.asarray(evaluation.sparse_hessian().diagonal())[nodes:]
    order = np.argsort(loss.active_ids, kind="stable")
    found = np.empty(len(loss.active_ids))
    found[order[np.searchsorted(loss.active_ids, loss.block_index[nodes:], sorter=order)]] = (
        np.square(w[nodes:]) * diagonal
    )
    return found


def _inverse(evaluation: Any, ridge: Floats, nodes: int) -> tuple[Floats, Any]:
    """(the inverse Hessian of edges, nodes adapting [weights, weights]; what nodes do for a change of edges)."""
    if isinstance(evaluation, SparseEvaluation):
        H = evaluation.sparse_hessian()
        b = H.diagonal()[:nodes] + np.maximum(ridge[:nodes], 1e-10)
        half = H[:nodes, nodes:].multiply(1.0 / np.sqrt(b)[:, None]).tocsr()
        S = (H[nodes:, nodes:] - half.T @ half).toarray()
        S[np.diag_indices_from(S)] += ridge[nodes:]
        cross = H[:nodes, nodes:]
        return _inverted(S), lambda change: (cross @ change) / b
    H = evaluation.hessian()
    least = np.maximum(ridge[:nodes], 1e-8 * float(H.max(initial=1.0)))
    Hb = H[:nodes, :nodes] + np.diag(least)
    gain = np.linalg.solve(Hb, H[:nodes, nodes:])
    S = H[nodes:, nodes:] + np.diag(ridge[nodes:]) - H[nodes:, :nodes] @ gain
    return _inverted(S), lambda change: gain @ change


def _inverted(S: Floats) -> Floats:
    """The inverse of a positive definite matrix: n³ flops by Cholesky, where an inverse by LU takes 2n³."""
    with threadpool_limits(thread_count(), "blas") if len(S) >= PARALLEL else nullcontext():
        factor, failed = dpotrf(S, lower=1, overwrite_a=0)
        if failed:  # not positive definite to rounding
            return np.asarray(np.linalg.inv(S), dtype=np.float64)
        found: Floats = dpotri(factor, lower=1, overwrite_c=1)[0].T  # its upper triangle
    for first in range(0, len(found), MIRRORED):
        rest = slice(first, first + MIRRORED)
        corner = found[rest, rest]
        corner += np.triu(corner, 1).T
        found[rest.stop :, rest] = found[rest, rest.stop :].T
    return found


def _costs(A: Floats, v: Floats, which: Ints, n_edges: int) -> Floats:
    """[E] wᵀ[(H⁻¹)_ee]⁻¹w"""
    if len(v) == n_edges:
        found = np.empty(n_edges)
        found[which] = np.square(v) / np.diagonal(A)
        return found
    places = [np.flatnonzero(which == e) for e in range(n_edges)]
    return np.array([_quadratic(A[np.ix_(place, place)], v[place]) for place in places])


def _quadratic(block: Floats, v: Floats) -> float:
    return float(v @ np.linalg.solve(block, v))


def _sequence(A: Floats, v: Floats, which: Ints, doubtful: Ints, prices: Floats, priors: Floats, n_edges: int) -> Ints:
    """The edges to drop among the doubtful ones, in order."""
    inside = np.flatnonzero(np.isin(which, doubtful))
    inside = inside[np.argsort(which[inside], kind="stable")]
    inverse = _Inverse(A[np.ix_(inside, inside)], v[inside], which[inside])
    order: list[int] = []
    balance, best, taken = 0.0, 0.0, 0
    for k in range(n_edges, n_edges - len(doubtful), -1):
        edges, costs = inverse.costs()
        net = costs - prices[edges]
        poorest = int(net.argmin())
        e = int(edges[poorest])
        if net[poorest] > 2.0 * prices[e] + priors[1]:
            break
        balance += float(net[poorest]) - priors[k]
        order.append(e)
        if balance < best - 1e-9:
            best, taken = balance, len(order)
        inverse.drop(poorest)
    return np.array(order[:taken], dtype=np.int64)


class _Inverse:
    """The inverse Hessian of the edges that are left, and their weights.

    Without the edges dropped so far it is A − UᵀU, a row of U for each of their weights. Only its diagonal blocks are
    kept up to date; the rows of an edge are made when it is dropped, and A when U has many rows.
    """

    def __init__(self, A: Floats, v: Floats, which: Ints) -> None:
        self.A, self.v, self.which = A, v, which  # [weights] which: the edge of each, ascending
        starts = np.flatnonzero(np.diff(which, prepend=-1))
        self.spans = [slice(a, b) for a, b in pairwise([*starts.tolist(), len(which)])]
        self.edges = which[starts]
        self.left = np.ones(len(starts), dtype=bool)
        self.single = len(starts) == len(which)
        self.diagonal = A.diagonal().copy()
        self.blocks = [] if self.single else [A[span, span].copy() for span in self.spans]
        widest = int(np.diff(starts, append=len(which)).max(initial=1))
        self.U, self.used = np.empty((DELAYED + widest, len(A))), 0

    def costs(self) -> tuple[Ints, Floats]:
        """(edges, wᵀ[(H⁻¹)_ee]⁻¹w of each, infinite if it has been dropped)."""
        found = np.full(len(self.edges), np.inf)
        if self.single:
            np.divide(np.square(self.v), self.diagonal, out=found, where=self.left)
        else:
            for e in np.flatnonzero(self.left).tolist():
                found[e] = _quadratic(self.blocks[e], self.v[self.spans[e]])
        return self.edges, found

    def drop(self, e: int) -> None:
        mine, U = self.spans[e], self.U[: self.used]
        rows = self.A[mine] - U[:, mine].T @ U  # [weights of the edge, weights]
        if self.single:
            root = np.sqrt(_safe(rows[:, mine]))
            new = rows / root
            self.v -= new[0] * (self.v[mine] / root[0])
            self.diagonal -= np.square(new[0])
        else:
            root = np.linalg.cholesky(_safe(rows[:, mine]))
            new = np.linalg.solve(root, rows)
            self.v -= new.T @ np.linalg.solve(root, self.v[mine])
        self.U[self.used : self.used + len(new)] = new
        self.used += len(new)
        self.left[e] = False
        if self.used >= DELAYED:
            keep = np.flatnonzero(np.repeat(self.left, [s.stop - s.start for s in self.spans]))
            U = self.U[: self.used, keep]
            A = self.A[np.ix_(keep, keep)]
            A -= U.T @ U
            self.__init__(A, self.v[keep], self.which[keep])  # type: ignore[misc]
        elif not self.single:
            for other in np.flatnonzero(self.left).tolist():
                its = new[:, self.spans[other]]
                self.blocks[other] -= its.T @ its


def _safe(block: Floats) -> Floats:
    """A block that rounding may have made indefinite, a little larger."""
    return block + max(1e-13 * float(np.trace(block)), 1e-300) * np.eye(len(block))


def gains(loss: StructurePseudoLikelihood, w: Floats) -> tuple[Ints, Floats]:
    """(ids of the edges that are off, by how much twice the loss would fall with each, about).

    The score statistic G²/h of each coupling, where h is the curvature that the bias of the same variable (or its
    weight of the same feature) leaves; in tables the cells are summed as in Pearson's χ².
    """
    evaluation: Any = loss.at(w)
    table = loss.table
    G = evaluation.pairs
    K, D = evaluation.curvature, table.indicator_rows
    shared, _ = table.edge_parts
    total = np.zeros(G.shape[1:])
    for f in range(shared):
        x = np.square(table.features[:, f]) if table.has_inputs else None
        k = K if x is None else K * x
        sums = k.sum(axis=1)
        T = products(lambda rows, k=k: k[rows], D)  # type: ignore[misc]
        squares = sums[:, None] if table.ising else T  # Σ k·D², of ±1 and of indicators
        if table.ordinal:
            squares = k @ np.square(D).T
        with np.errstate(divide="ignore", invalid="ignore"):
            h = squares - np.square(T) / sums[:, None]
            h = np.maximum(h, 0.0)
            found = np.square(G[f]) / (h + h.T)
        total += np.where(np.isfinite(found), found, 0.0)
    if not table.single:
        shares = (table.weights @ table.one_hot) / table.total
        total *= np.outer(1.0 - shares, 1.0 - shares)
        total = np.add.reduceat(np.add.reduceat(total, table.starts, axis=0), table.starts, axis=1)
    ids = loss.candidate_ids
    return ids, total.ravel()[ids]
