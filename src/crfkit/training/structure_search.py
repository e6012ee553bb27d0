"""Which edges to keep: solutions along strengths, supports refitted without the edge penalty, and rules to choose."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.data.observations import Observations
from crfkit.errors import ParameterError
from crfkit.losses.edges import EdgeLoss
from crfkit.losses.standardised import StandardisedEdges, column_scales
from crfkit.losses.structure_pseudo import StructurePseudoLikelihood
from crfkit.penalties import L1, L2, Blockwise, ByBlock, GroupL2, GroupLinf
from crfkit.protocols import Penalty
from crfkit.solvers import GradientNorm
from crfkit.solvers.parts.loop import Callback
from crfkit.solvers.parts.proximal_newton import ProximalNewton
from crfkit.training.options import SolverOptions
from crfkit.training.structure_refit import Refits, Solution, checked

METHODS = ("auto", "newton", "agpm", "grafting-light", "grafting", "full")
NORMS = {"inf": "l1", "2": "l2", "1": "max"}  # of a group → its dual, of the gradient
PATIENCE = 3  # strengths without a better score before a path may end, if no edge that is off is worth its price
FURTHER = 0.01  # of the last strength: how far a path is extended whose last score is the best
TABLES = 1e-2  # of the tolerance: that of tables of weights
ROUGH = 1e-3  # the tolerance along a path whose solutions are refitted: only their supports count


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

    method: str = "auto"
    group_norm: str = "inf"
    node_strength: float = 1.0
    select_unit: int = 10
    options: SolverOptions = field(default_factory=SolverOptions)
    n_strengths: int = 30
    ratio: float = 0.01
    gamma: float = 0.35
    n_folds: int = 5
    n_subsamples: int = 50
    standardize: bool = True
    callback: Callable[[PathStep], None] | None = None
    callbacks: tuple[Callback, ...] = ()  # of every minimisation at a strength

    @property
    def refits(self) -> Refits:
        return Refits(self.node_strength, self.gamma, self.options)

    # --- one strength

    def penalty(self, loss: Any, strength: float) -> Penalty:
        if self.method_for(loss) in ("newton", "grafting", "grafting-light"):
            kind = {"inf": GroupLinf, "2": GroupL2, "1": L1}[self.group_norm]
            single = loss.table.single and loss.table.widths[1] == 1
            return ByBlock(L1 if single else kind, strength, L2(self.node_strength))
        groups = loss.block_index[loss.layout["edge"]]
        edges: Any
        if self.group_norm == "1" or len(np.unique(groups)) == len(groups):  # groups of one weight
            edges = L1(strength)
        else:
            edges = (GroupLinf if self.group_norm == "inf" else GroupL2)(strength, groups)
        return Blockwise({"node": L2(self.node_strength), "edge": edges}, loss.layout)

    def method_for(self, loss: Any) -> str:
        """The method, where it is "auto": Newton's where the Hessian is sparse."""
        table = loss.table
        able = loss.name == StructurePseudoLikelihood.name and table.ising and not table.has_inputs
        if self.method == "newton" and not able:
            raise ParameterError(
                "method='newton' is for the pseudo-likelihood of binary columns without inputs; use 'grafting-light'"
            )
        return self.method if self.method != "auto" else "newton" if able else "grafting-light"

    def solve(self, start: Solution, strength: float, rough: bool = False) -> Solution:
        """The optimum at one strength, over all candidates; KeyboardInterrupt or StopTraining where it was ended."""
        return checked(self.minimise(start, strength, rough))

    def minimise(self, start: Solution, strength: float, rough: bool = False) -> Solution:
        """The same, or where it was ended. Callbacks see the strength as a number of the trace; where columns are
        standardised, the weights that they see are those of standardised columns."""
        if self.method_for(start.loss) in ("agpm", "full"):
            start = _all_on(start)
        callbacks: Any = (lambda _: {"strength": strength}, *self.callbacks) if self.callbacks else ()
        solver = self._solver(start.loss, strength, rough)
        if not self.standardize:
            result = solver.minimize(start.loss, self.penalty(start.loss, strength), start.w, callbacks)
            return Solution(result.loss or start.loss, result.w, result)
        loss = StandardisedEdges(start.loss, column_scales(start.loss.table))
        result = solver.minimize(loss, self.penalty(loss, strength), start.w * loss.factors, callbacks)
        found: Any = result.loss or loss
        w = result.w / found.factors
        return Solution(found.loss, w, replace(result, w=w, loss=None if result.loss is None else found.loss))

    def _solver(self, loss: EdgeLoss, strength: float, rough: bool) -> Any:
        method, given = self.method_for(loss), self.options.tolerance
        number = isinstance(given, (int, float))
        if method == "newton":
            tolerance = max(ROUGH, given) if rough and isinstance(given, (int, float)) else given
            most = {} if self.options.max_iterations is None else {"max_iterations": self.options.max_iterations}
            return ProximalNewton(tolerance if number else 1e-5, **most)  # type: ignore[arg-type]
        if method.startswith("grafting"):
            # FISTA on tables of weights is slow at the end: its last steps decrease little and still move weights.
            fine = number and not rough and not loss.table.single
            options = replace(self.options, tolerance=TABLES * given) if fine else self.options  # type: ignore[operator]
            return replace(options, solver=method).make_solver(select_unit=self.select_unit)
        if method == "full":
            return replace(self.options, solver="fista").make_solver()
        options = replace(self.options, solver="agpm")
        if not number:
            return options.make_solver()
        # AGPM is not monotone: ten steps without a decrease say nothing. It ends by its projected gradient.
        eps = 1000.0 * given * max(strength, 1.0)  # type: ignore[operator]
        return options.make_solver(stopping=GradientNorm(given), eps=eps)  # type: ignore[arg-type]

    def empty(self, loss: EdgeLoss) -> Solution:
        """The optimum without edges."""
        none = loss.with_active(())
        return self.refits.smooth(Solution(none, np.zeros(none.size)))

    def refit(self, solution: Solution, prune: bool = True, near: Solution | None = None) -> Solution:
        """The edges of a solution, without the edge penalty; see :class:`Refits`."""
        return self.refits.refit(solution, prune, near)

    def critical_strength(self, empty: Solution) -> float:
        """The least strength at which no edge is selected."""
        loss = empty.loss
        scales = column_scales(loss.table) if self.standardize else None
        scores = loss.candidates(loss.at(empty.w), NORMS[self.group_norm], 0.0, scales)[1]
        return float(scores[0]) if len(scores) else 0.0

    # --- many strengths

    def strengths(self, empty: Solution) -> Floats:
        """From the critical one down, in geometric progression."""
        largest = self.critical_strength(empty)
        if not (largest > 0 and math.isfinite(largest)):
            return np.zeros(0)
        return np.geomspace(largest, self.ratio * largest, self.n_strengths)

    def downwards(self, strengths: Floats) -> Iterator[float]:
        """The strengths, and more of the same progression below them."""
        yield from strengths.tolist()
        if len(strengths) > 1:
            ratio, last = float(strengths[-1] / strengths[-2]), float(strengths[-1])
            further = last * ratio
            while further > FURTHER * last:
                yield further
                further *= ratio

    def path(self, loss: EdgeLoss, strengths: Iterable[float], rough: bool = False) -> Iterator[PathStep]:
        """Solutions, the largest strength first, each started from the one before."""
        solution = self.empty(loss)
        for strength in strengths:
            solution = self.solve(solution, float(strength), rough)
            step = PathStep(float(strength), solution.reduced())
            if self.callback is not None:
                self.callback(step)
            yield step

    def ebic(self, refitted: Solution) -> float:
        """The extended BIC of refitted edges."""
        return self.refits.ebic(refitted)

    def by_ebic(self, loss: EdgeLoss) -> Iterator[PathStep]:
        """The path, refitted, with extended BICs, until no edge that is off is worth its price."""
        steps: list[PathStep] = []
        complete: dict[int, Ints] = {}
        grid = self.strengths(self.empty(loss))
        for step in self.path(loss, self.downwards(grid), rough=True):
            last = steps[-1].refitted if steps else None
            same = bool(steps) and np.array_equal(steps[-1].support, step.support)
            refitted = last if same and last else self.refit(step.solution, near=last)
            steps.append(replace(step, refitted=refitted, score=self.ebic(refitted)))
            yield steps[-1]
            if self._at_end(steps, len(grid), complete):
                return
        if steps:
            _warn_of_the_end(steps)

    def _at_end(self, steps: list[PathStep], n_strengths: int, complete: dict[int, Ints]) -> bool:
        """Whether the least score is some strengths ago and all edges that would lower it have come in since.

        A support that stays the same is no reason: a pair of copies enters long before all else. `complete` keeps the
        edges of the best step, completed.
        """
        best = least(steps)
        if len(steps) >= n_strengths and (best < len(steps) - 1 or n_strengths == 1):
            return True
        if len(steps) - 1 - best < PATIENCE:
            return False
        model = steps[best].refitted
        if model is None or not len(self.refits.promising(model)):
            return True
        if best not in complete:
            complete.clear()
            complete[best] = self.refits.completed(model).loss.active_ids
        return bool(np.isin(complete[best], steps[-1].support).all())

    def by_folds(self, loss: EdgeLoss, table_of: Callable[[Ints], Observations], n: int) -> Iterator[PathStep]:
        """The path, with held-out losses. Each fold has a path of its own; what is scored is its support, refitted
        without the edge penalty."""
        folds = self._folds(n)
        grid = self.strengths(self.empty(loss))
        sides = [(table_of(np.setdiff1d(np.arange(n), fold)), table_of(fold)) for fold in folds]
        held_out = [loss.on(test) for _, test in sides]
        quiet = replace(self, callback=None, callbacks=())
        shares = [train.total / n for train, _ in sides]
        paths = [
            quiet.path(loss.on(train), (share * s for s in self.downwards(grid)), rough=True)
            for (train, _), share in zip(sides, shares, strict=True)
        ]
        steps: list[PathStep] = []
        before: list[Solution | None] = [None] * len(folds)
        for step in self.path(loss, self.downwards(grid), rough=True):
            scores = []
            for fold, (fold_path, test) in enumerate(zip(paths, held_out, strict=True)):
                refitted = self.refit(next(fold_path).solution, near=before[fold])
                before[fold] = refitted
                scores.append(test.with_active(refitted.loss.active_ids).at(refitted.w).value / test.table.total)
            error = float(np.std(scores, ddof=1) / math.sqrt(len(scores)))
            steps.append(replace(step, score=float(np.mean(scores)), error=error))
            yield steps[-1]
            since = len(steps) - 1 - least(steps)
            if len(steps) >= len(grid) and (since > 0 or len(grid) == 1):
                return
            if since >= PATIENCE:
                refitted = self.refit(steps[least(steps)].solution)
                if not len(self.refits.promising(refitted)):
                    return
        if steps:
            _warn_of_the_end(steps)

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
            for edge in self.solve(self.empty(half), 0.5 * strength, rough=True).support.tolist():
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


def _warn_of_the_end(steps: Sequence[PathStep]) -> None:
    if least(steps) == len(steps) - 1 and len(steps) > 1:
        warnings.warn(
            f"the path of strengths ended at {steps[-1].strength:g} with its best score: weaker strengths may be "
            "better; raise n_strengths, or give edge_strength as a number",
            UserWarning,
            stacklevel=2,
        )


def _all_on(start: Solution) -> Solution:
    missing = start.loss.candidate_ids
    if not len(missing):
        return start
    larger, place = start.loss.activate(missing)
    w = np.zeros(larger.size)
    w[place] = start.w
    return Solution(larger, w)
