"""Edges without their penalty: refits, what an edge is worth in the extended BIC, edges to drop and edges to add."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri, gammaln

from crfkit._types import Floats, Ids, Ints
from crfkit.errors import StopTraining
from crfkit.penalties import L2, Blockwise
from crfkit.result import Result, Status
from crfkit.solvers import AnyOf, GradientNorm, SuccessiveChanges
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.training.counts import edges_counted
from crfkit.structure.training.worth import eliminated, gains, upper_costs
from crfkit.training.options import SolverOptions

REFIT = 1e-2  # strength of L2 on edges that are refitted: finite weights where variables determine each other
CERTAIN = 2.0  # weights as large as this say that variables determine each other, where Wald's test fails
DENSE = 1500  # weights whose Hessian is kept as a matrix
FACTORED = 1_000_000  # entries of a sparse Hessian that is factored
NEWTON = 1e-2  # of the tolerance: the relative decrease of the last step of Newton's method, whose errors are squared
NEARLY = 0.9  # of its price: an edge that gains as much to second order is tried, as the second order is a bit low
SAME = 1e-9  # of a score: a smaller difference is rounding
ROUNDS = 20  # of adding edges
IN_FULL = 2  # edges that pay as with γ = 1
MANY = 300  # edges from which on those that are clearly poor are dropped before the others are weighed up
CERTAINTIES = 20  # edges of certain variables that are tried one by one


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights and the loss that they belong to, with its active edges."""

    loss: EdgeLoss
    w: Floats
    result: Result | None = field(default=None, repr=False)

    @property
    def support(self) -> Ints:
        """The edges with a weight that is not zero, ascending."""
        return self.loss.nonzero_ids(self.w)

    def reduced(self) -> Solution:
        """Return the solution without the edges that are zero."""
        loss, w = self.loss.keep(self.support, self.w)
        return Solution(loss, w, self.result)

    def grown(self, edges: Ints) -> Solution:
        """Return the solution with more edges, of weight zero."""
        loss, place = self.loss.activate(edges)
        w = np.zeros(loss.size)
        w[place] = self.w
        return Solution(loss, w, self.result)


@dataclass(frozen=True)
class Refits:
    """Refits supports and compares them by the extended BIC."""

    node_strength: float = 1.0
    gamma: float = 0.35
    options: SolverOptions = field(default_factory=SolverOptions)

    def smooth(self, start: Solution) -> Solution:
        """Return the optimum of the loss on these edges, with only a trace of L2 on them."""
        penalties = {"node": L2(self.node_strength), "edge": L2(REFIT)}
        result = self._solver(start.loss).minimize(start.loss, Blockwise(penalties, start.loss.layout), start.w)
        return checked(Solution(start.loss, result.w, result))

    def _solver(self, loss: EdgeLoss) -> Any:
        """Newton's method where the Hessian is known: a few steps, where L-BFGS takes dozens."""
        given = self.options.tolerance
        if not isinstance(loss, StructurePseudoLikelihood) or not isinstance(given, (int, float)):
            given = NEWTON * given if isinstance(given, (int, float)) else given
            return replace(self.options, solver="lbfgs", tolerance=given).make_solver()
        stopping = AnyOf((SuccessiveChanges(NEWTON * given, 1), GradientNorm(given)))
        direction = _newton_direction(loss)
        return replace(self.options, solver="newton").make_solver(direction=direction, stopping=stopping)

    def refit(self, solution: Solution, prune: bool = True, near: Solution | None = None) -> Solution:
        """Return the edges of a solution without the edge penalty (a trace of L2 keeps weights finite).

        A penalty that keeps weak edges also lets in some that only stand in for the shrinkage of others. `prune` drops
        edges that the extended BIC finds not worth their price. `near`, of other edges, is where to start.
        """
        refitted = self.smooth(started(solution.reduced(), near))
        return self.pruned(refitted) if prune else refitted

    def pruned(self, refitted: Solution) -> Solution:
        """Return the solution without edges that are not worth their price."""
        refitted = self._thinned(refitted)
        while len(refitted.loss.edges):
            poor, w = self._poor(refitted)
            if not len(poor):
                break
            # The second order is far off where edges with many features make conditionals certain: fewer, then.
            if refitted.loss.table.widths[1] > 1:
                poor, w = poor[: max(1, len(poor) // 4)], refitted.w
            smaller = self._without(refitted, poor, w)
            while refitted.loss.table.widths[1] > 1 and len(poor) > 1:
                fewer = self._without(refitted, poor := poor[: len(poor) // 2], refitted.w)
                if self.ebic(fewer) > self.ebic(smaller):
                    break
                smaller = fewer
            if self.ebic(smaller) > self.ebic(refitted) and refitted.loss.table.widths[1] > 1:
                break
            refitted = smaller
        return refitted

    def _thinned(self, refitted: Solution) -> Solution:
        """Drop edges that cost less than half their price even if no other weight adapts; only if there are many.

        This needs no inverse of the Hessian, which takes most of the time where there are many edges.
        """
        while len(refitted.loss.edges) >= MANY and isinstance(refitted.loss, StructurePseudoLikelihood):
            loss = refitted.loss
            if not loss.sparse:
                break
            prices = 2.0 * self.prices(loss, self.marginal(loss, len(loss.edges)))
            poor = loss.active_ids[upper_costs(loss, refitted.w) < 0.5 * prices]
            if len(poor) < 0.1 * len(loss.edges):
                break
            refitted = self._without(refitted, poor, refitted.w)
        return refitted

    def _without(self, refitted: Solution, edges: Ints, w: Floats) -> Solution:
        kept = np.setdiff1d(refitted.loss.active_ids, edges)
        return self.smooth(Solution(*refitted.loss.keep(kept, w)))

    def _poor(self, refitted: Solution) -> tuple[Ints, Floats]:
        """Return the edges that are not worth their price, the poorest first, and the weights without them."""
        loss = refitted.loss
        ridge = np.full(loss.size, REFIT)
        ridge[: loss.field.n_node_weights] = self.node_strength
        prices = self.prices(loss, 0.0), self._marginals(n_pairs(loss), len(loss.edges))
        if loss.table.widths[1] > 1:
            prices = self.prices(loss, self.marginal(loss, len(loss.edges))), 0.0 * prices[1]
        conditionals = pseudo(loss)
        counts = edges_counted(conditionals, conditionals.at(refitted.w))
        priors = float(counts.mean()) * prices[1]
        places, w = eliminated(conditionals, refitted.w, ridge, counts * prices[0], priors, CERTAIN)
        return loss.active_ids[places], w

    def completed(self, refitted: Solution) -> Solution:
        """Add edges that are worth their price, and drop others as they come in, until no single edge is worth it.

        The penalised path meets weak edges late, together with ones that are not there.
        """
        best = self.ebic(refitted)
        for _ in range(ROUNDS):
            edges = self.promising(refitted, NEARLY)
            if not len(edges):
                break
            larger = self.pruned(self.smooth(refitted.grown(_apart(edges, refitted.loss.table.n_variables))))
            score = self.ebic(larger)
            if not score < best - SAME * abs(best):
                larger = self.pruned(self.smooth(refitted.grown(edges[:1])))
                score = self.ebic(larger)
                if not score < best - SAME * abs(best):
                    break
            refitted, best = larger, score
        return self._tried(refitted, best)

    def _tried(self, refitted: Solution, best: float) -> Solution:
        """Drop edges whose weights are too large for Wald's test and that are not worth their price."""
        loss = refitted.loss
        sizes = np.array([np.abs(refitted.w[loss.block_index == edge]).max() for edge in loss.active_ids])
        certain = np.flatnonzero(sizes >= CERTAIN)
        for edge in loss.active_ids[certain[np.argsort(sizes[certain])][:CERTAINTIES]].tolist():
            fewer = self._without(refitted, np.array([edge]), refitted.w)
            if (score := self.ebic(fewer)) < best:
                refitted, best = fewer, score
        return refitted

    def promising(self, refitted: Solution, nearly: float = 1.0) -> Ints:
        """Return the edges that are off and that would lower the extended BIC, to second order; the best first.

        `nearly` is the share of its price that an edge has to gain.
        """
        loss = refitted.loss
        ids, found, counts = gains(pseudo(loss), refitted.w)
        if not len(ids):
            return ids
        p = loss.table.n_variables
        marginal = self.marginal(loss, len(loss.edges) + 1)
        worth = found - nearly * counts * self._priced(loss, np.stack([ids // p, ids % p], axis=1), marginal)
        kept = np.flatnonzero(worth > 0)
        return ids[kept[np.argsort(-worth[kept], kind="stable")]]

    # --- columns that are copies of each other

    def copies(self, loss: EdgeLoss) -> Ints:
        """Return edges (first, copy) between columns with the same information, whose copy the search may leave out.

        Given its copy a column is certain, so that its conditional has nothing to say about any other edge. The copy
        must have no candidates that the first lacks, and be worth its edge: two rare columns may be equal by chance.
        """
        table, p = loss.table, loss.table.n_variables
        seen: dict[bytes, int] = {}
        found = []
        both = loss.allowed | loss.allowed.T
        for j, column in enumerate(table.states.T):
            _, first, which = np.unique(column, return_index=True, return_inverse=True)
            if len(first) < 2:
                continue
            i = seen.setdefault(first[which.ravel()].tobytes(), j)
            if table.ordinal and table.has_scores[[i, j]].any() and not _same_scale(table.states[:, i], column):
                continue
            if i != j and loss.allowed[i, j] and not (both[j] & ~both[i] & (np.arange(p) != i)).any():
                shares = np.bincount(column, table.weights) / table.total
                entropy = -float(sum(q * math.log(q) for q in shares.tolist() if q > 0))
                price = self._priced(loss, np.array([[i, j]]), self.marginal(loss, 1))[0]
                if 2.0 * table.total * entropy > price:
                    found.append(i * p + j)
        return np.array(found, dtype=np.int64)

    def joined(self, solution: Solution, loss: EdgeLoss, copies: Ints) -> Solution:
        """Return the solution with the edges of copies, refitted among all pairs that were allowed."""
        if not len(copies):
            return solution
        same = Solution(loss.with_active(solution.loss.active_ids), solution.w, solution.result)
        return self.smooth(same.grown(copies))

    # --- the extended BIC

    def ebic(self, refitted: Solution) -> float:
        """Extended BIC (Chen & Chen 2008): 2·loss + Σ df·log n + 2γ·log(how many graphs have as many edges).

        The first two edges pay as with γ = 1: among independent columns a small γ finds edges by chance too often.
        In graphs that have many edges this surcharge is small beside what the edges gain.

        A pseudo-likelihood counts what an edge explains at either end, up to twice, so that the edge has to pay its
        price as often (:mod:`structure_counts`).
        """
        loss = refitted.loss
        k = len(loss.edges)
        prior = 2.0 * self.gamma * _log_graphs(n_pairs(loss), k)
        prior += 2.0 * max(0.0, 1.0 - self.gamma) * _log_graphs(n_pairs(loss), min(k, IN_FULL))
        evaluation = loss.at(refitted.w)
        prices, counts = self.prices(loss, prior / max(k, 1)), np.ones(k)
        if isinstance(loss, StructurePseudoLikelihood):
            counts = edges_counted(loss, evaluation)
        return 2.0 * evaluation.value + float(counts @ prices)

    def marginal(self, loss: EdgeLoss, k: int) -> float:
        """Return what the k-th edge adds to 2γ·log(number of graphs with k edges)."""
        M = n_pairs(loss)
        return 2.0 * self.gamma * (_log_graphs(M, k) - _log_graphs(M, k - 1)) if k > 0 else 0.0

    def _marginals(self, pairs: int, edges: int) -> Floats:
        """Return [edges + 1] what the k-th edge adds, for k = 0, 1, …"""
        logs = np.array([_log_graphs(pairs, k) for k in range(edges + 1)])
        return 2.0 * self.gamma * np.diff(logs, prepend=0.0)

    def prices(self, loss: EdgeLoss, prior: float) -> Floats:
        """Return [E] what each edge has to gain: df·log n + prior; df is (K_i − 1)(K_j − 1), with 1 for a scale."""
        return self._priced(loss, loss.edges, prior)

    def _priced(self, loss: EdgeLoss, edges: Any, prior: float) -> Floats:
        """Return the prices of edges. With features, a price is as unlikely by chance for df·features weights.

        log n for each of them would be too expensive, as the features of an edge are given and not chosen.
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


def _newton_direction(loss: StructurePseudoLikelihood) -> str:
    """Return how Newton's method finds its direction."""
    if loss.sparse:
        return "sparse"
    if loss.patterned and sum(part.index.size**2 for part in loss.conditionals) <= FACTORED:
        return "factored"
    return "dense" if loss.size <= DENSE else "cg"


def pseudo(loss: EdgeLoss) -> StructurePseudoLikelihood:
    """Return the pseudo-likelihood with the same edges."""
    if isinstance(loss, StructurePseudoLikelihood):
        return loss
    return pseudo_likelihood(loss.table, loss.allowed, loss.active_ids)


def n_pairs(loss: EdgeLoss) -> int:
    """Return how many edges there could be."""
    return loss.n_candidates + len(loss.edges)


def _same_scale(first: Ids, second: Ids) -> bool:
    """Return whether states are in the same order, or in the opposite one."""
    return np.array_equal(first, second) or np.array_equal(first, second.max() - second)


@cache
def _log_graphs(pairs: int, edges: int) -> float:
    """log(pairs choose edges); beyond half of the pairs, where there would be fewer graphs again, as at half."""
    k = min(edges, pairs // 2)
    return float(gammaln(pairs + 1) - gammaln(k + 1) - gammaln(pairs - k + 1)) if k > 0 else 0.0


def _apart(edges: Ints, p: int) -> Ints:
    """Return the edges that share no variable with one before, as edges of a triangle stand in for each other."""
    seen: set[int] = set()
    kept = []
    for edge in edges.tolist():
        ends = {edge // p, edge % p}
        if not ends & seen:
            kept.append(edge)
            seen |= ends
    return np.array(kept, dtype=np.int64)


def started(solution: Solution, near: Solution | None) -> Solution:
    """Return the solution with the weights of `near`, where that has any."""
    if near is None:
        return solution
    w = solution.w.copy()
    mine, others = solution.loss.block_index, near.loss.block_index
    both = np.intersect1d(mine, others)  # edges, and −1, the nodes
    here, there = (np.flatnonzero(np.isin(index, both)) for index in (mine, others))
    w[here[np.argsort(mine[here], kind="stable")]] = near.w[there[np.argsort(others[there], kind="stable")]]
    return Solution(solution.loss, w, solution.result)


def checked(solution: Solution) -> Solution:
    """Return the solution; raise KeyboardInterrupt or StopTraining if its minimisation was ended early."""
    status = None if solution.result is None else solution.result.status
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt(str(status))
    if status is Status.STOPPED_BY_CALLBACK:
        raise StopTraining(str(status))
    return solution
