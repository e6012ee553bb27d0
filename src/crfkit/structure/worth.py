"""Estimate, to second order, what dropping active edges would cost and adding inactive ones would gain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.sparse.linalg import ArpackError, eigsh
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from crfkit._threads import thread_count
from crfkit._types import Floats, Ints, Sparse
from crfkit.structure.losses.evaluation import SparseEvaluation
from crfkit.structure.losses.ising_table import products
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.price import BOTH_ENDS, times_counted, with_one_weight

SAFE_PRICE_RATIO = 3.0  # an edge that is worth this many times its price is not considered for dropping
SCREENING_WEIGHTS = 200  # number of weights from which on safe edges are set aside before the inverse is computed
MIRROR_ROWS = 64  # rows of a matrix whose transpose is written at a time
DROPS_PER_UPDATE = 64  # weights that are dropped between updates of the whole matrix
PARALLEL_WEIGHTS = 1500  # number of weights from which on BLAS uses all threads; below, they would mostly wait


def eliminated(
    loss: StructurePseudoLikelihood, w: Floats, *, ridge: Floats, prices: Floats, priors: Floats, certain: float
) -> tuple[Ints, Floats]:
    """Return (places of the edges to drop, the poorest first; the weights without them).

    Dropping an edge costs wᵀ[(H⁻¹)_ee]⁻¹w, and all else adapts to that; it saves its price and, of k edges, priors[k].
    The poorest is dropped, then the poorest of the others, and so on; the part of this order that saves most is taken.
    Edges with a weight of at least `certain`, where the second order is far off, stay.
    """
    evaluation = loss.at(w)
    nodes = loss.field.n_node_weights
    S, cross = _curvature(evaluation, ridge, nodes)
    v = w[nodes:]
    which = _edge_places(loss)
    n_edges = len(loss.active_ids)
    sizes = np.zeros(n_edges)
    np.maximum.at(sizes, which, np.abs(v))
    limit = SAFE_PRICE_RATIO * (prices + priors.max(initial=0.0))
    open_ = sizes < certain
    open_[which[_least_costs(S, v) > limit[which]]] = False
    inside = np.flatnonzero(open_[which])
    if not len(inside):
        return np.zeros(0, dtype=np.int64), w
    factored = _Factored(S, inside)
    A, edges = factored.corner, which[inside]
    costs = _costs(A, v[inside], edges, n_edges)
    doubtful = np.flatnonzero(open_ & (costs < limit))
    if not len(doubtful):
        return np.zeros(0, dtype=np.int64), w
    dropped = _sequence(A, v[inside], edges, doubtful=doubtful, prices=prices, priors=priors)
    if not len(dropped):
        return dropped, w
    out = np.flatnonzero(np.isin(edges, dropped))
    force = np.zeros(len(v))
    force[inside[out]] = np.linalg.solve(A[np.ix_(out, out)], v[inside[out]])
    change = -factored.solve(force)
    new = w.copy()
    new[nodes:] += change
    new[nodes:][inside[out]] = 0.0
    new[:nodes] -= cross(change)
    return dropped, new


def upper_costs(loss: StructurePseudoLikelihood, w: Floats) -> Floats:
    """Return [E] w²·H of each coupling of binary variables: the cost of dropping it if no other weight adapts."""
    nodes = loss.field.n_node_weights
    evaluation: Any = loss.at(w)
    diagonal = np.asarray(evaluation.sparse_hessian().diagonal())[nodes:]
    found = np.empty(len(loss.active_ids))
    found[_edge_places(loss)] = np.square(w[nodes:]) * diagonal
    return found


def _edge_places(loss: StructurePseudoLikelihood) -> Ints:
    """Return [weights of edges] the place of each weight's edge among the active ones."""
    order = np.argsort(loss.active_ids, kind="stable")
    index = loss.block_index[loss.field.n_node_weights :]
    found: Ints = order[np.searchsorted(loss.active_ids, index, sorter=order)]
    return found


def _curvature(evaluation: Any, ridge: Floats, nodes: int) -> tuple[Sparse, Callable[[Floats], Floats]]:
    """Return the Hessian of edges with adapting nodes, and the function from a change of edges to the nodes' answer."""
    if isinstance(evaluation, SparseEvaluation):
        H = evaluation.sparse_hessian()
        b = H.diagonal()[:nodes] + np.maximum(ridge[:nodes], 1e-10)
        half = H[:nodes, nodes:].multiply(1.0 / np.sqrt(b)[:, None]).tocsr()
        cross = H[:nodes, nodes:]
        S = (H[nodes:, nodes:] - half.T @ half).tocsr()
        S.setdiag(S.diagonal() + ridge[nodes:])
        return S, lambda change: (cross @ change) / b
    H = evaluation.hessian()
    least = np.maximum(ridge[:nodes], 1e-8 * float(H.max(initial=1.0)))
    Hb = H[:nodes, :nodes] + np.diag(least)
    gain = np.linalg.solve(Hb, H[:nodes, nodes:])
    S = H[nodes:, nodes:] + np.diag(ridge[nodes:]) - H[nodes:, :nodes] @ gain
    return S, lambda change: gain @ change


def _least_costs(S: Sparse, v: Floats) -> Floats:
    """Return [weights] lower bounds of v²/(S⁻¹)_ee for a sparse S with an edge per weight; 0 where none is known.

    Scaled to a diagonal of ones, with m the rest of a row and λ the least eigenvalue, 1/(S⁻¹)_ee >= S_ee·(1 − |m|²/λ).
    """
    if isinstance(S, np.ndarray) or len(v) < SCREENING_WEIGHTS:
        return np.zeros(len(v))
    d = np.asarray(S.diagonal())
    scale = 1.0 / np.sqrt(np.maximum(d, 1e-300))
    M: Sparse = S.multiply(scale[:, None]).multiply(scale).tocsr()
    try:
        least = eigsh(M, 1, which="SA", v0=np.ones(len(v)), tol=1e-2, return_eigenvectors=False)[0]
    except ArpackError:
        return np.zeros(len(v))
    rest = np.asarray(M.multiply(M).sum(axis=1)).ravel() - 1.0
    return np.asarray(np.square(v) * d * np.maximum(1.0 - rest / max(0.8 * least, 1e-300), 0.0))


class _Factored:
    """A positive definite matrix as LLᵀ, with the weights `last` at its end.

    Their part of its inverse, `corner`, is then (L₂L₂ᵀ)⁻¹, with L₂ the corner of L.
    """

    def __init__(self, S: Sparse, last: Ints) -> None:
        first = np.ones(S.shape[0], dtype=bool)
        first[last] = False
        self._order = np.concatenate([np.flatnonzero(first), last])
        some = S[self._order][:, self._order]
        dense = some if isinstance(some, np.ndarray) else some.toarray()
        with _blas_threads(len(dense)):
            self._factor, failed = dpotrf(dense.T, lower=1)
        self._inverse = np.linalg.inv(dense) if failed else None  # not positive definite to rounding
        begin = len(dense) - len(last)
        if self._inverse is None:
            self.corner = _inverted(self._factor[begin:, begin:])
        else:
            self.corner = self._inverse[begin:, begin:]

    def solve(self, b: Floats) -> Floats:
        """Return S⁻¹b."""
        some, found = b[self._order], np.empty_like(b)
        found[self._order] = dpotrs(self._factor, some, lower=1)[0] if self._inverse is None else self._inverse @ some
        return found


def _blas_threads(n: int) -> Any:
    """Return a block in which BLAS uses all threads if there are enough weights for them."""
    return threadpool_limits(thread_count(), "blas") if n >= PARALLEL_WEIGHTS else nullcontext()


def _inverted(factor: Floats) -> Floats:
    """Return (LLᵀ)⁻¹, by the triangle that LAPACK writes and its transpose."""
    with _blas_threads(len(factor)):
        found: Floats = dpotri(factor, lower=1)[0].T  # its upper triangle
    for first in range(0, len(found), MIRROR_ROWS):
        rest = slice(first, first + MIRROR_ROWS)
        corner = found[rest, rest]
        corner += np.triu(corner, 1).T
        found[rest.stop :, rest] = found[rest, rest.stop :].T
    return found


def _costs(A: Floats, v: Floats, which: Ints, n_edges: int) -> Floats:
    """Return [E] wᵀ[(H⁻¹)_ee]⁻¹w, infinite for edges without weights."""
    found = np.full(n_edges, np.inf)
    edges, counts = np.unique(which, return_counts=True)
    if (counts == 1).all():
        found[which] = np.square(v) / np.diagonal(A)
        return found
    for e in edges.tolist():
        place = np.flatnonzero(which == e)
        found[e] = _quadratic(A[np.ix_(place, place)], v[place])
    return found


def _quadratic(block: Floats, v: Floats) -> float:
    return float(v @ np.linalg.solve(block, v))


def _sequence(A: Floats, v: Floats, which: Ints, *, doubtful: Ints, prices: Floats, priors: Floats) -> Ints:
    """Return the edges to drop among the doubtful ones, in order; `priors` [E + 1] is for numbers of edges."""
    n_edges = len(priors) - 1
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
    """The inverse Hessian of the edges that remain, and their weights.

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
        self.U, self.used = np.empty((DROPS_PER_UPDATE + widest, len(A))), 0

    def costs(self) -> tuple[Ints, Floats]:
        """Return (edges, wᵀ[(H⁻¹)_ee]⁻¹w of each, infinite if it has been dropped)."""
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
        if self.used >= DROPS_PER_UPDATE:
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
    """Return a block that rounding may have made indefinite, a little larger."""
    return block + max(1e-13 * float(np.trace(block)), 1e-300) * np.eye(len(block))


def gains(loss: StructurePseudoLikelihood, w: Floats) -> tuple[Ints, Floats, Floats]:
    """Return (ids of inactive edges, about how much twice the loss would fall with each, how often each counts).

    The score statistic G²/h of each coupling, where h is the curvature that the bias of the same variable (or its
    weight of the same feature) leaves; in tables the cells are summed as in Pearson's χ².
    """
    evaluation: Any = loss.at(w)
    table = loss.table
    G = evaluation.pairs
    K, D = evaluation.curvature, table.indicator_rows
    shared, _ = table.edge_parts
    total, counts = np.zeros(G.shape[1:]), np.full((table.n_variables,) * 2, BOTH_ENDS)
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
        variables = np.arange(table.n_variables)
        single = with_one_weight(loss, variables[:, None], variables)
        if single.any():
            h = np.where(np.isfinite(h), h, 0.0)[np.ix_(table.starts, table.starts)]
            counts = np.where(single, times_counted(h, h.T), BOTH_ENDS)
    if not table.single:
        shares = (table.weights @ table.indicators) / table.total
        left = np.where(np.repeat(table.has_scores, table.factors), 1.0, 1.0 - shares)
        total *= np.outer(left, left)
        total = np.add.reduceat(np.add.reduceat(total, table.starts, axis=0), table.starts, axis=1)
    ids = loss.candidate_ids
    return ids, total.ravel()[ids], counts.ravel()[ids]
