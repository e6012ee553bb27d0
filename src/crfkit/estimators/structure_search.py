"""Which edges to keep: solutions along strengths, supports refitted without the edge penalty, and rules to choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc, chdtri

from crfkit.data.observations import Observations
from crfkit.data.sequences import Floats, Ints
from crfkit.errors import ParameterError, StopTraining
from crfkit.estimators.solver_options import SolverOptions
from crfkit.losses.edges import EdgeLoss
from crfkit.losses.structure_pseudo import StructurePseudoLikelihood
from crfkit.penalties import L1, L2, Blockwise, ByBlock, GroupL2, GroupLinf
from crfkit.protocols import Penalty
from crfkit.result import Result, Status
from crfkit.solvers import AnyOf, GradientNorm, SuccessiveChanges
from crfkit.solvers.loop import Callback

METHODS = ("agpm", "grafting-light", "grafting", "full")
NORMS = {"inf": "l1", "2": "l2", "1": "max"}  # of a group → its dual, of the gradient
REFIT = 1e-2  # strength of L2 on edges that are refitted: finite weights where variables determine each other
CERTAIN = (
    2.0  # weights as large as this say that variables determine each other, where this test fails (Hauck & Donner)
)
DENSE = 1500  # weights whose Hessian is kept as a matrix
NEWTON = 1e-2  # of the tolerance: the relative decrease of the last step of Newton's method, whose errors are squared
PATIENCE = 4  # strengths without a better score before a path ends


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
        """Without the edges that are zero."""
        loss, w = self.loss.keep(self.support, self.w)
        return Solution(loss, w, self.result)


@dataclass(frozen=True, eq=False)
class PathStep:
    """One strength: its edges, penalised and, where a rule asked for it, refitted without the edge penalty."""

    strength: float
    solution: Solution = field(repr=False)
    refitted: Solution | None = field(default=None, repr=False)
    score: float | None = None  # of the rule: lower is better
    error: float | None = None  # standard error of the score

    @property
    def support(self) -> Ints:
        return self.solution.support

    @property
    def n_edges(self) -> int:
        return len(self.support if self.refitted is None else self.refitted.support)


@dataclass(frozen=True)
class Search:
    """How to solve and choose; the names are those of StructureLearner."""

    method: str = "agpm"
    group_norm: str = "inf"
    node_strength: float = 1.0
    select_unit: int = 10
    options: SolverOptions = field(default_factory=SolverOptions)
    n_strengths: int = 30
    ratio: float = 0.01
    gamma: float = 0.5
    n_folds: int = 5
    n_subsamples: int = 50
    callback: Callable[[PathStep], None] | None = None
    callbacks: tuple[Callback, ...] = ()  # of every minimisation at a strength

    # --- one strength

    def penalty(self, loss: EdgeLoss, strength: float) -> Penalty:
        if self.method.startswith("grafting"):
            kind = {"inf": GroupLinf, "2": GroupL2, "1": L1}[self.group_norm]
            single = loss.table.ising and loss.table.widths[1] == 1
            return ByBlock(L1 if single else kind, strength, L2(self.node_strength))
        groups = loss.block_index[loss.layout["edge"]]
        edges: Any
        if self.group_norm == "1" or len(np.unique(groups)) == len(groups):  # groups of one weight
            edges = L1(strength)
        else:
            edges = (GroupLinf if self.group_norm == "inf" else GroupL2)(strength, groups)
        return Blockwise({"node": L2(self.node_strength), "edge": edges}, loss.layout)

    def solve(self, start: Solution, strength: float) -> Solution:
        """The optimum at one strength, over all candidates; KeyboardInterrupt or StopTraining where it was ended."""
        return _checked(self.minimise(start, strength))

    def minimise(self, start: Solution, strength: float) -> Solution:
        """The same, or where it was ended. Callbacks see the strength as a number of the trace."""
        if self.method in ("agpm", "full"):
            start = _all_on(start)
        callbacks: Any = (lambda _: {"strength": strength}, *self.callbacks) if self.callbacks else ()
        penalty = self.penalty(start.loss, strength)
        result = self._solver(strength).minimize(start.loss, penalty, start.w, callbacks)
        return Solution(result.loss or start.loss, result.w, result)

    def _solver(self, strength: float) -> Any:
        if self.method.startswith("grafting"):
            return replace(self.options, solver=self.method).make_solver(select_unit=self.select_unit)
        if self.method == "full":
            return replace(self.options, solver="fista").make_solver()
        options, given = replace(self.options, solver="agpm"), self.options.tolerance
        if not isinstance(given, (int, float)):
            return options.make_solver()
        # AGPM is not monotone: ten steps without a decrease say nothing. It ends by its projected gradient.
        eps = 1000.0 * given * max(strength, 1.0)
        return options.make_solver(stopping=GradientNorm(given), eps=eps)

    def empty(self, loss: EdgeLoss) -> Solution:
        """The optimum without edges."""
        none = loss.with_active(())
        return self._smooth(Solution(none, np.zeros(none.size)), REFIT)

    def refit(self, solution: Solution, prune: bool = True, near: Solution | None = None) -> Solution:
        """The edges of a solution, without the edge penalty (a trace of L2 keeps weights finite).

        A penalty that keeps weak edges also lets in some that only stand in for the shrinkage of others. `prune` drops
        edges that the extended BIC finds not worth their price. `near`, of other edges, is where to start.
        """
        refitted = self._smooth(_started(solution.reduced(), near), REFIT)
        while prune and len(refitted.loss.edges):
            worth, w = self._worth(refitted)
            poor = refitted.loss.active_ids[np.argsort(worth, kind="stable")[: np.count_nonzero(worth < 0)]]
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

    def _without(self, refitted: Solution, edges: Ints, w: Floats) -> Solution:
        kept = np.setdiff1d(refitted.loss.active_ids, edges)
        return self._smooth(Solution(*refitted.loss.keep(kept, w)), REFIT)

    def _worth(self, refitted: Solution) -> tuple[Floats, Floats]:
        """([E] by how much the extended BIC would rise without each edge, the weights without those that are < 0).

        To second order, wᵀ[(H⁻¹)_ee]⁻¹w − price, with the H of the pseudo-likelihood whatever the loss. The poorest
        edge is dropped and all else adapts to that, until no edge is poor.
        """
        loss, w = refitted.loss, refitted.w.copy()
        H = StructurePseudoLikelihood(loss.table, loss.edges, loss.active_ids).at(w).hessian()
        ridge = np.full(loss.size, REFIT)
        ridge[: loss.field.n_node_weights] = max(self.node_strength, 1e-8 * float(H.max(initial=1.0)))
        A = np.linalg.inv(H + np.diag(ridge))
        places = [np.flatnonzero(loss.block_index == edge) for edge in loss.active_ids]
        prices = 2.0 * self._prices(loss)
        worth = np.full(len(places), np.inf)
        alive = [e for e, place in enumerate(places) if np.abs(w[place]).max() < CERTAIN]
        single = np.concatenate(places) if all(len(place) == 1 for place in places) else None
        while alive:
            if single is not None:
                some = single[alive]
                worth[alive] = np.square(w[some]) / A[some, some] - prices[alive]
            for e in alive if single is None else ():
                block = w[places[e]]
                worth[e] = block @ np.linalg.solve(A[np.ix_(places[e], places[e])], block) - prices[e]
            poorest = alive[int(worth[alive].argmin())]
            if worth[poorest] >= 0:
                break
            place = places[poorest]
            gain = np.linalg.solve(A[np.ix_(place, place)], A[place]).T  # [size, weights of the edge]
            w -= gain @ w[place]
            A -= gain @ A[place]
            alive.remove(poorest)
        return worth, w

    def _prices(self, loss: EdgeLoss) -> Floats:
        """[E] df·log n + 4γ·log p, where df is (K_i − 1)(K_j − 1).

        With features, what is as unlikely by chance for df·features weights: log n for each would be too dear, as the
        features of an edge are given, and not chosen.
        """
        table = loss.table
        K = table.n_states.astype(float)
        first, second = K[loss.edges[:, 0]] - 1, K[loss.edges[:, 1]] - 1
        plain: Floats = first * second
        prices: Floats = plain * math.log(max(table.total, 2.0)) + 4.0 * self.gamma * math.log(table.n_variables)
        if table.widths[1] == 1:
            return prices
        df = plain * table.widths[1]
        if not table.ising:  # what tables say on one end given features of the other: seen by one conditional only
            df += table.edge_parts[1] * (first + second) * (0.5 if isinstance(loss, StructurePseudoLikelihood) else 1.0)
        chance = chdtrc(plain, prices)
        found: Floats = np.where(chance > 0, chdtri(df, np.maximum(chance, 1e-300)), prices * df / plain)
        return found

    def _smooth(self, start: Solution, strength: float) -> Solution:
        penalties = {"node": L2(self.node_strength), "edge": L2(strength)}
        result = self._smooth_solver(start.loss).minimize(
            start.loss, Blockwise(penalties, start.loss.layout), start.w
        )  # fmt: skip
        return _checked(Solution(start.loss, result.w, result))

    def _smooth_solver(self, loss: EdgeLoss) -> Any:
        """Newton's method while its matrix is small: a few steps, where L-BFGS takes dozens."""
        given = self.options.tolerance
        if not isinstance(loss, StructurePseudoLikelihood) or loss.size > DENSE or not isinstance(given, (int, float)):
            return replace(self.options, solver="lbfgs").make_solver()
        stopping = AnyOf((SuccessiveChanges(NEWTON * given, 1), GradientNorm(given)))
        return replace(self.options, solver="newton").make_solver(direction="dense", stopping=stopping)

    def critical_strength(self, empty: Solution) -> float:
        """The least strength at which no edge is selected."""
        scores = empty.loss.candidates(empty.loss.at(empty.w), NORMS[self.group_norm])[1]
        return float(scores[0]) if len(scores) else 0.0

    # --- many strengths

    def strengths(self, empty: Solution) -> Floats:
        """From the critical one down, in geometric progression."""
        largest = self.critical_strength(empty)
        if not (largest > 0 and math.isfinite(largest)):
            return np.zeros(0)
        return np.geomspace(largest, self.ratio * largest, self.n_strengths)

    def path(self, loss: EdgeLoss, strengths: Sequence[float] | Floats) -> Iterator[PathStep]:
        """Solutions, the largest strength first, each started from the one before."""
        solution = self.empty(loss)
        for strength in strengths:
            solution = self.solve(solution, float(strength))
            step = PathStep(float(strength), solution.reduced())
            if self.callback is not None:
                self.callback(step)
            yield step

    def ebic(self, refitted: Solution) -> float:
        """Extended BIC (Chen & Chen 2008; Foygel & Drton 2010): 2·loss + df·log n + 4γ·edges·log p.

        A pseudo-likelihood counts what an edge explains twice, at either end: twice its increase for an edge that is
        not there is 2χ², so that the price is doubled too.
        """
        loss = refitted.loss
        twice = 2.0 if isinstance(loss, StructurePseudoLikelihood) else 1.0
        return 2.0 * loss.at(refitted.w).value + twice * float(self._prices(loss).sum())

    def by_ebic(self, loss: EdgeLoss) -> Iterator[PathStep]:
        """The path, refitted, with extended BICs; it ends when none has been the least for a while."""
        steps: list[PathStep] = []
        for step in self.path(loss, self.strengths(self.empty(loss))):
            last = steps[-1].refitted if steps else None
            same = bool(steps) and np.array_equal(steps[-1].support, step.support)
            refitted = last if same and last else self.refit(step.solution, near=last)
            steps.append(replace(step, refitted=refitted, score=self.ebic(refitted)))
            yield steps[-1]
            if len(steps) - 1 - least(steps) >= PATIENCE:
                break

    def by_folds(self, loss: EdgeLoss, table_of: Callable[[Ints], Observations], n: int) -> Iterator[PathStep]:
        """The path, with held-out losses. Each fold has a path of its own; what is scored is its support, refitted
        without the edge penalty."""
        folds = self._folds(n)
        grid = self.strengths(self.empty(loss))
        sides = [(table_of(np.setdiff1d(np.arange(n), fold)), table_of(fold)) for fold in folds]
        held_out = [loss.on(test) for _, test in sides]
        quiet = replace(self, callback=None, callbacks=())
        paths = [quiet.path(loss.on(train), grid * (train.total / n)) for train, _ in sides]
        steps: list[PathStep] = []
        for step in self.path(loss, grid):
            scores = []
            for fold_path, test in zip(paths, held_out, strict=True):
                refitted = self.refit(next(fold_path).solution)
                scores.append(test.with_active(refitted.loss.active_ids).at(refitted.w).value / test.table.total)
            error = float(np.std(scores, ddof=1) / math.sqrt(len(scores)))
            steps.append(replace(step, score=float(np.mean(scores)), error=error))
            yield steps[-1]
            if len(steps) - 1 - least(steps) >= PATIENCE:
                break

    def _folds(self, n: int) -> list[Ints]:
        if n < self.n_folds:
            raise ParameterError(f"{n} rows cannot make {self.n_folds} folds: lower n_folds, or choose by 'ebic'")
        order = np.random.default_rng(self.options.seed).permutation(n)
        return [np.sort(part) for part in np.array_split(order, self.n_folds)]

    def stability(
        self, loss: EdgeLoss, table_of: Callable[[Ints], Observations], n: int, strength: float
    ) -> dict[int, float]:
        """Of every edge that was ever selected, the share of random halves of the rows that select it
        (Meinshausen & Bühlmann 2010), at half the strength, as the loss is a sum over rows."""
        rng = np.random.default_rng(self.options.seed)
        counts: dict[int, int] = {}
        for _ in range(self.n_subsamples):
            half = loss.on(table_of(np.sort(rng.permutation(n)[: max(1, n // 2)])))
            for edge in self.solve(self.empty(half), 0.5 * strength).support.tolist():
                counts[edge] = counts.get(edge, 0) + 1
        return {edge: count / self.n_subsamples for edge, count in sorted(counts.items())}


def least(steps: Sequence[PathStep]) -> int:
    """The step of the least score; of scores that are equal to rounding, the one with the largest strength."""
    scores = np.array([step.score for step in steps])
    lowest = scores.min()
    return int(np.flatnonzero(scores <= lowest + 1e-6 * abs(lowest))[0])


def within_an_error(steps: Sequence[PathStep]) -> int:
    """The step with the largest strength within a standard error of the least score."""
    best = steps[least(steps)]
    limit = (best.score or 0.0) + (best.error or 0.0)
    return next(k for k, step in enumerate(steps) if step.score is not None and step.score <= limit)


def _started(solution: Solution, near: Solution | None) -> Solution:
    """The solution with the weights of `near`, where that has any."""
    if near is None:
        return solution
    w = solution.w.copy()
    mine, others = solution.loss.block_index, near.loss.block_index
    both = np.intersect1d(mine, others)  # edges, and −1, the nodes
    here, there = (np.flatnonzero(np.isin(index, both)) for index in (mine, others))
    w[here[np.argsort(mine[here], kind="stable")]] = near.w[there[np.argsort(others[there], kind="stable")]]
    return Solution(solution.loss, w, solution.result)


def _all_on(start: Solution) -> Solution:
    missing = start.loss.candidate_ids
    if not len(missing):
        return start
    larger, place = start.loss.activate(missing)
    w = np.zeros(larger.size)
    w[place] = start.w
    return Solution(larger, w)


def _checked(solution: Solution) -> Solution:
    status = None if solution.result is None else solution.result.status
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt(str(status))
    if status is Status.STOPPED_BY_CALLBACK:
        raise StopTraining(str(status))
    return solution
