"""Supports without the edge penalty: edges are dropped and added until the extended BIC cannot fall further.

A penalty that keeps weak edges also lets in some that only stand in for the shrinkage of others, and it meets some weak
edges late. Both are corrected here, to second order (``worth``) and by refits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crfkit._types import Floats, Ids, Ints
from crfkit.structure.encoding.tables import label_pattern
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.options import Tunables
from crfkit.structure.price import EdgePrices, edges_counted
from crfkit.structure.solve import EdgeSolver, Solution
from crfkit.structure.worth import eliminated, gains, upper_costs


@dataclass(frozen=True)
class Supports:
    """Refits supports, and improves them by the extended BIC."""

    solver: EdgeSolver

    @cached_property
    def prices(self) -> EdgePrices:
        return EdgePrices(self.solver.options)

    @property
    def tunables(self) -> Tunables:
        return self.solver.options.tunables

    def ebic(self, refitted: Solution) -> float:
        """Return the extended BIC of refitted edges."""
        return self.prices.ebic(refitted)

    def refit(self, solution: Solution, prune: bool = True, near: Solution | None = None) -> Solution:
        """Return the edges of a solution without the edge penalty (a trace of L2 keeps weights finite).

        `prune` drops edges that do not lower the extended BIC. `near`, of other edges, is where to start.
        """
        refitted = self.solver.refit(solution.reduced().started_from(near))
        return self.pruned(refitted) if prune else refitted

    # --- dropping edges

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
        many = self.tunables.many_edges
        while len(refitted.loss.edges) >= many and isinstance(refitted.loss, StructurePseudoLikelihood):
            loss = refitted.loss
            if not loss.sparse:
                break
            prices = 2.0 * self.prices.of_active(loss, self.prices.marginal(loss, len(loss.edges)))
            poor = loss.active_ids[upper_costs(loss, refitted.w) < 0.5 * prices]
            if len(poor) < 0.1 * len(loss.edges):
                break
            refitted = self._without(refitted, poor, refitted.w)
        return refitted

    def _without(self, refitted: Solution, edges: Ints, w: Floats) -> Solution:
        """Return the optimum without some edges; `w` is where to start."""
        kept = np.setdiff1d(refitted.loss.active_ids, edges)
        return self.solver.refit(Solution(*refitted.loss.keep(kept, w)))

    def _poor(self, refitted: Solution) -> tuple[Ints, Floats]:
        """Return the edges that are not worth their price, the poorest first, and the weights without them."""
        loss = refitted.loss
        prices, marginals = self.prices.of_active(loss, 0.0), self.prices.marginals(loss)
        if loss.table.widths[1] > 1:
            prices = self.prices.of_active(loss, self.prices.marginal(loss, len(loss.edges)))
            marginals = 0.0 * marginals
        conditionals = pseudo_likelihood_of(loss)
        counts = edges_counted(conditionals, conditionals.at(refitted.w))
        places, w = eliminated(
            conditionals,
            refitted.w,
            ridge=self.solver.ridge(loss),
            prices=counts * prices,
            priors=float(counts.mean()) * marginals,
            certain=self.tunables.certain_weight,
        )
        return loss.active_ids[places], w

    # --- adding edges

    def completed(self, refitted: Solution) -> Solution:
        """Add edges that are worth their price, and drop others as they come in, until no single edge is worth it."""
        tunables, best = self.tunables, self.ebic(refitted)
        for _ in range(tunables.completion_rounds):
            edges = self.promising(refitted, tunables.promising_share)
            if not len(edges):
                break
            larger = self._grown(refitted, _disjoint(edges, refitted.loss.table.n_variables))
            score = self.ebic(larger)
            if not score < best - tunables.score_resolution * abs(best):
                larger = self._grown(refitted, edges[:1])
                score = self.ebic(larger)
                if not score < best - tunables.score_resolution * abs(best):
                    break
            refitted, best = larger, score
        return self._without_certain(refitted, best)

    def _grown(self, refitted: Solution, edges: Ints) -> Solution:
        """Return the optimum with more edges, pruned."""
        return self.pruned(self.solver.refit(refitted.grown(edges)))

    def _without_certain(self, refitted: Solution, best: float) -> Solution:
        """Drop edges whose weights are too large for Wald's test and that are not worth their price."""
        loss = refitted.loss
        sizes = np.array([np.abs(refitted.w[loss.block_index == edge]).max() for edge in loss.active_ids])
        certain = np.flatnonzero(sizes >= self.tunables.certain_weight)
        smallest = certain[np.argsort(sizes[certain])][: self.tunables.certain_edges_tried]
        for edge in loss.active_ids[smallest].tolist():
            fewer = self._without(refitted, np.array([edge]), refitted.w)
            if (score := self.ebic(fewer)) < best:
                refitted, best = fewer, score
        return refitted

    def promising(self, refitted: Solution, share: float = 1.0) -> Ints:
        """Return the inactive edges that would lower the extended BIC, to second order; the best first.

        `share` of its price is what an edge has to gain.
        """
        loss = refitted.loss
        ids, found, counts = gains(pseudo_likelihood_of(loss), refitted.w)
        if not len(ids):
            return ids
        p = loss.table.n_variables
        marginal = self.prices.marginal(loss, len(loss.edges) + 1)
        prices = self.prices.of_edges(loss, np.stack([ids // p, ids % p], axis=1), marginal)
        worth = found - share * counts * prices
        kept = np.flatnonzero(worth > 0)
        return ids[kept[np.argsort(-worth[kept], kind="stable")]]

    # --- columns that are copies of each other

    def copies(self, loss: EdgeLoss) -> Ints:
        """Return edges (first, copy) between columns with the same information, whose copy the search may leave out.

        Given its copy a column is certain, so its conditional has nothing to say about any other edge. The copy must
        have no candidates that the first lacks, and be worth its edge: two rare columns may be equal by chance.
        """
        table, p = loss.table, loss.table.n_variables
        seen: dict[bytes, int] = {}
        found = []
        both = loss.allowed | loss.allowed.T
        for j, column in enumerate(table.states.T):
            if column.min() == column.max():
                continue
            i = seen.setdefault(label_pattern(column), j)
            if table.ordinal and table.has_scores[[i, j]].any() and not _same_scale(table.states[:, i], column):
                continue
            if i != j and loss.allowed[i, j] and not (both[j] & ~both[i] & (np.arange(p) != i)).any():
                shares = np.bincount(column, table.weights) / table.total
                entropy = -float(sum(q * math.log(q) for q in shares.tolist() if q > 0))
                price = self.prices.of_edges(loss, np.array([[i, j]]), self.prices.marginal(loss, 1))[0]
                if 2.0 * table.total * entropy > price:
                    found.append(i * p + j)
        return np.array(found, dtype=np.int64)

    def with_copies(self, solution: Solution, loss: EdgeLoss, copies: Ints) -> Solution:
        """Return the solution with the edges of copies, refitted among all pairs that were allowed."""
        if not len(copies):
            return solution
        same = Solution(loss.with_active(solution.loss.active_ids), solution.w, solution.result)
        return self.solver.refit(same.grown(copies))


def without_copies(loss: EdgeLoss, copies: Ints) -> EdgeLoss:
    """Return the loss whose candidates leave out the second columns of the copies."""
    if not len(copies):
        return loss
    allowed = loss.allowed.copy()
    second = copies % loss.table.n_variables
    allowed[second, :] = False
    allowed[:, second] = False
    return loss.among(allowed)


def pseudo_likelihood_of(loss: EdgeLoss) -> StructurePseudoLikelihood:
    """Return the pseudo-likelihood with the same edges."""
    if isinstance(loss, StructurePseudoLikelihood):
        return loss
    return pseudo_likelihood(loss.table, loss.allowed, loss.active_ids)


def _same_scale(first: Ids, second: Ids) -> bool:
    """Return whether states are in the same order, or in the opposite one."""
    return np.array_equal(first, second) or np.array_equal(first, second.max() - second)


def _disjoint(edges: Ints, p: int) -> Ints:
    """Return the edges that share no variable with one before, as edges of a triangle stand in for each other."""
    seen: set[int] = set()
    kept = []
    for edge in edges.tolist():
        ends = {edge // p, edge % p}
        if not ends & seen:
            kept.append(edge)
            seen |= ends
    return np.array(kept, dtype=np.int64)
