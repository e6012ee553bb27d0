"""Choose the edges to keep: solutions along strengths, supports refitted without the edge penalty, and rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.errors import ParameterError
from crfkit.result import Status
from crfkit.solvers.parts.loop import Callback
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.observations import Observations
from crfkit.structure.options import StructureOptions
from crfkit.structure.solve import EdgeSolver, Solution
from crfkit.structure.subsets import RowSubsets
from crfkit.structure.support import Supports, without_copies
from crfkit.training.path import PathPoint, follow, gathered
from crfkit.training.tasks import Tasks
from crfkit.warn import warn_caller

TableOf = Callable[[Ints], Observations]  # of some of the rows


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges at one strength: under the penalty and, where a rule asks for it, refitted without it."""

    penalised: Solution
    refitted: Solution | None = None

    @property
    def support(self) -> Ints:
        """Return the edges that the penalty leaves."""
        return self.penalised.support


EdgePoint = PathPoint[Edges]


def edge_point(strength: float, solution: Solution) -> EdgePoint:
    """Return the point of a path for a solution whose edges are all different from zero."""
    result, weights = solution.result, int(np.count_nonzero(solution.w))
    value = math.nan if result is None else result.value
    edges = len(solution.support)
    return PathPoint(strength, value, weights, n_edges=edges, result=result, solution=Edges(solution))


def refitted_point(point: EdgePoint, refitted: Solution, score: float) -> EdgePoint:
    """Return the point with refitted edges, which count from now on, and their score."""
    edges = replace(point.model, refitted=refitted)
    return replace(point, solution=edges, n_edges=len(refitted.support), score=score)


@dataclass(frozen=True)
class Hooks:
    """Functions to call while edges are selected, and tasks that solve folds and random halves."""

    on_iteration: tuple[Callback, ...] = ()  # callbacks of every minimisation at a strength
    on_point: Callable[[EdgePoint], None] | None = None
    on_half: Callable[[int, int], None] | None = None  # takes the numbers of random halves: those done, and all
    tasks: Tasks = field(default_factory=Tasks)


@dataclass(frozen=True, eq=False)
class Selected:
    """The edges that a rule chose, with its path."""

    solution: Solution
    strength: float
    critical: float  # the smallest strength without edges
    steps: list[EdgePoint] = field(default_factory=list)
    chosen: int | None = None  # of the steps
    stability: dict[int, float] = field(default_factory=dict)  # edge → share of random halves
    interrupted: bool = False  # by Ctrl-C; the edges are from the strengths so far

    @cached_property
    def entries(self) -> list[tuple[int, float]]:
        """Return (edge, strength) of every edge of the path, in the order of entry."""
        return entry_order(self.steps)


@dataclass(frozen=True)
class Selection:
    """Solves along strengths and chooses among the solutions."""

    options: StructureOptions = field(default_factory=StructureOptions)
    hooks: Hooks = field(default_factory=Hooks)

    @cached_property
    def solver(self) -> EdgeSolver:
        return EdgeSolver(self.options, self.hooks.on_iteration)

    @cached_property
    def supports(self) -> Supports:
        return Supports(self.solver)

    # --- the rules

    def choose(self, loss: EdgeLoss, table_of: TableOf, n: int) -> Selected:
        """Return the edges that the strength, or the rule that chooses it, selects from `n` rows."""
        rule = self.options.edge_strength
        if not isinstance(rule, str):
            return self._at_strength(loss, float(rule))
        if rule == "path":
            return self._along_path(loss)
        copies = self.supports.copies(loss)
        return self._by_score(loss, copies, table_of, n)

    def _at_strength(self, loss: EdgeLoss, strength: float) -> Selected:
        empty = self.solver.empty(loss)
        critical = self.solver.critical_strength(empty)
        solution = self.solver.minimise(empty, strength) if loss.n_candidates else empty
        interrupted = solution.result is not None and solution.result.status is Status.INTERRUPTED
        return Selected(solution.reduced(), strength, critical, interrupted=interrupted)

    def _along_path(self, loss: EdgeLoss) -> Selected:
        """Return the edges at the last strength of the path."""
        empty = self.solver.empty(loss)
        critical = self.solver.critical_strength(empty)
        steps, interrupted = gathered(self.path(loss, self.strengths(empty)))
        if not steps:  # no candidate has a slope
            return Selected(empty, critical, critical, interrupted=interrupted)
        last = len(steps) - 1
        return Selected(steps[-1].model.penalised, steps[-1].strength, critical, steps, last, interrupted=interrupted)

    def _by_score(self, every: EdgeLoss, copies: Ints, table_of: TableOf, n: int) -> Selected:
        """Return the edges of "cv", "ebic" or "stability"; the search leaves out the copies of columns."""
        rule = self.options.edge_strength
        loss = without_copies(every, copies)
        empty = self.solver.empty(loss)
        critical = self.solver.critical_strength(empty)
        path = self.by_folds(loss, table_of, n) if rule == "cv" else self.by_ebic(loss)
        steps, interrupted = gathered(path)
        if not steps:  # no candidate has a slope
            kept = self.supports.with_copies(empty, every, copies)
            return Selected(kept, critical, critical, interrupted=interrupted)
        chosen = within_an_error(steps) if rule == "cv" else lowest_score(steps)
        step = steps[chosen]
        found = Selected(step.model.penalised, step.strength, critical, steps, chosen, interrupted=interrupted)
        if rule == "stability" and not interrupted:
            strength = self._strength_for_halves(step, found.entries)
            try:
                shares = self.stability(loss, table_of, n, strength)
                kept = self._stable(empty, shares)
            except KeyboardInterrupt:  # the edges are those of the path
                found = replace(found, interrupted=True)
            else:
                shares = dict(sorted((shares | dict.fromkeys(copies.tolist(), 1.0)).items()))
                kept = self.supports.with_copies(kept, every, copies)
                return replace(found, solution=kept, strength=strength, stability=shares)
        kept = step.model.refitted or self.supports.refit(step.model.penalised)
        if rule == "ebic" and not interrupted:
            kept = self.supports.completed(kept)
            steps[chosen] = refitted_point(step, kept, self.supports.ebic(kept))
        return replace(found, solution=self.supports.with_copies(kept, every, copies))

    # --- paths

    def strengths(self, empty: Solution) -> Floats:
        """Return strengths in geometric progression, from the critical one down."""
        largest = self.solver.critical_strength(empty)
        if not (largest > 0 and math.isfinite(largest)):
            return np.zeros(0)
        return np.geomspace(largest, self.options.strength_ratio * largest, self.options.n_strengths)

    def extended(self, strengths: Floats) -> Iterator[float]:
        """Yield the strengths, and more of the same progression below them."""
        yield from strengths.tolist()
        if len(strengths) > 1:
            ratio, last = float(strengths[-1] / strengths[-2]), float(strengths[-1])
            further = last * ratio
            while further > self.options.tunables.path_extension * last:
                yield further
                further *= ratio

    def path(self, loss: EdgeLoss, strengths: Iterable[float], rough: bool = False) -> Iterator[EdgePoint]:
        """Yield the solutions, the largest strength first, each started from the one before."""

        def solve(strength: float, before: Solution) -> tuple[EdgePoint, Solution]:
            solution = self.solver.solve(before, strength, rough)
            return edge_point(strength, solution.reduced()), solution

        return follow(strengths, self.solver.empty(loss), solve, self.hooks.on_point)

    def by_ebic(self, loss: EdgeLoss) -> Iterator[EdgePoint]:
        """Yield the path, refitted, with extended BICs, until no further edge is worth its price."""
        steps: list[EdgePoint] = []
        complete: dict[int, Ints] = {}
        grid = self.strengths(self.solver.empty(loss))
        for step in self.path(loss, self.extended(grid), rough=True):
            last = steps[-1].model.refitted if steps else None
            same = bool(steps) and np.array_equal(steps[-1].model.support, step.model.support)
            refitted = last if same and last else self.supports.refit(step.model.penalised, near=last)
            steps.append(refitted_point(step, refitted, self.supports.ebic(refitted)))
            yield steps[-1]
            if self._at_end(steps, len(grid), complete):
                return
        _warn_if_best_is_last(steps)

    def _at_end(self, steps: list[EdgePoint], n_strengths: int, complete: dict[int, Ints]) -> bool:
        """Return whether the best score is some strengths ago and all edges that would lower it have come in since.

        A support that stays the same is no reason to end: a pair of copies enters long before all other edges.
        A strength that lets in twice as many edges as the best step kept is one: most of them are noise, and on wide
        tables they take most of the time. `complete` keeps the completed edges of the best step.
        """
        tunables, best = self.options.tunables, lowest_score(steps)
        if len(steps) >= n_strengths and (best < len(steps) - 1 or n_strengths == 1):
            return True
        model, last = steps[best].model.refitted, steps[-1].model.support
        if model is not None and best < len(steps) - 1:
            most = max(tunables.many_edges, tunables.max_edge_growth * len(model.loss.edges))
            if len(last) > most:
                return True
        if len(steps) - 1 - best < tunables.patience:
            return False
        if model is None:
            return True
        if best not in complete:
            complete.clear()
            promising = len(self.supports.promising(model)) > 0
            complete[best] = self.supports.completed(model).loss.active_ids if promising else model.loss.active_ids[:0]
        return bool(np.isin(complete[best], last).all())

    # --- folds and random halves

    def by_folds(self, loss: EdgeLoss, table_of: TableOf, n: int) -> Iterator[EdgePoint]:
        """Yield the path with held-out losses.

        Each fold has a path of its own; see :meth:`RowSubsets.held_out`. The folds go down their paths together.
        """
        self.check_folds(n)
        grid = self.strengths(self.solver.empty(loss))
        subsets = self._subsets(loss, table_of, n, quiet=True)
        steps: list[EdgePoint] = []
        numbers = range(self.options.n_folds)
        together = self.hooks.tasks.together(RowSubsets.held_out, subsets, numbers, self.extended(grid))
        with closing(together):
            for step in self.path(loss, self.extended(grid), rough=True):
                scores = next(together)
                error = float(np.std(scores, ddof=1) / math.sqrt(len(scores)))
                steps.append(replace(step, score=float(np.mean(scores)), error=error))
                yield steps[-1]
                since = len(steps) - 1 - lowest_score(steps)
                if len(steps) >= len(grid) and (since > 0 or len(grid) == 1):
                    return
                if since >= self.options.tunables.patience:
                    refitted = self.supports.refit(steps[lowest_score(steps)].model.penalised)
                    if not len(self.supports.promising(refitted)):
                        return
        _warn_if_best_is_last(steps)

    def check_folds(self, n: int) -> None:
        """Raise ParameterError if n rows are too few for the folds."""
        if n < (folds := self.options.n_folds):
            raise ParameterError(f"{n} rows cannot make {folds} folds: lower n_folds, or choose by 'ebic'")

    def stability(self, loss: EdgeLoss, table_of: TableOf, n: int, strength: float) -> dict[int, float]:
        """Return, for every edge that was ever selected, the share of random halves of the rows that select it.

        (Meinshausen & Bühlmann 2010.) Halves are solved at half the strength, as the loss is a sum over rows.
        """
        tasks, total = self.hooks.tasks, self.options.n_subsamples
        subsets = self._subsets(loss, table_of, n, quiet=not tasks.here)
        counts: dict[int, int] = {}
        halves = tasks.map(RowSubsets.half, subsets, ((rng, 0.5 * strength) for rng in subsets.generators()))
        with closing(halves):
            for done, support in enumerate(halves, start=1):
                for edge in support.tolist():
                    counts[edge] = counts.get(edge, 0) + 1
                if self.hooks.on_half is not None:
                    self.hooks.on_half(done, total)
        return {edge: count / total for edge, count in sorted(counts.items())}

    def _subsets(self, loss: EdgeLoss, table_of: TableOf, n: int, quiet: bool) -> RowSubsets:
        solver = replace(self.solver, callbacks=()) if quiet else self.solver
        return RowSubsets(solver, loss.maker(), table_of, n)

    def _strength_for_halves(self, step: EdgePoint, entries: list[tuple[int, float]]) -> float:
        """Return a strength below the one at which the last of the best edges enters.

        At that strength itself, half of the halves would select the edge.
        """
        refitted, ratio = step.model.refitted, self.options.tunables.subsample_strength_ratio
        best = set() if refitted is None else set(self.supports.completed(refitted).support.tolist())
        return min([step.strength, *(ratio * strength for edge, strength in entries if edge in best)])

    def _stable(self, empty: Solution, shares: dict[int, float]) -> Solution:
        """Return the edges that enough random halves select, refitted."""
        full = empty.loss.with_active([edge for edge, share in shares.items() if share >= self.options.threshold])
        start = np.zeros(full.size)
        start[: len(empty.w)] = empty.w
        return self.supports.refit(Solution(full, start + 1e-12 * (full.block_index >= 0)), prune=False)


# --- points of a path


def lowest_score(steps: Sequence[EdgePoint]) -> int:
    """Return the step with the lowest score; among scores that are equal to rounding, the largest strength."""
    scores = np.array([step.score for step in steps])
    lowest = scores.min()
    return int(np.flatnonzero(scores <= lowest + 1e-6 * abs(lowest))[0])


def within_an_error(steps: Sequence[EdgePoint]) -> int:
    """Return the step with the largest strength whose score is within a standard error of the lowest."""
    best = steps[lowest_score(steps)]
    limit = (best.score or 0.0) + (best.error or 0.0)
    return next(k for k, step in enumerate(steps) if step.score is not None and step.score <= limit)


def entry_order(steps: Iterable[EdgePoint]) -> list[tuple[int, float]]:
    """Return (edge, strength) of every edge of a path in the order of entry; at one strength, the longest first."""
    seen: dict[int, float] = {}
    for step in steps:
        loss, w = step.model.penalised.loss, step.model.penalised.w
        new = [edge for edge in loss.active_ids.tolist() if edge not in seen]
        if new:
            order = np.argsort(loss.block_index, kind="stable")
            starts = np.searchsorted(loss.block_index, new, sorter=order)
            ends = np.searchsorted(loss.block_index, new, "right", sorter=order)
            sizes = [float(np.linalg.norm(w[order[a:b]])) for a, b in zip(starts, ends, strict=True)]
            seen |= {new[k]: step.strength for k in np.argsort(-np.array(sizes), kind="stable").tolist()}
    return list(seen.items())


def _warn_if_best_is_last(steps: Sequence[EdgePoint]) -> None:
    if len(steps) > 1 and lowest_score(steps) == len(steps) - 1:
        warn_caller(
            f"the path of strengths ended at {steps[-1].strength:g} with its best score: smaller strengths may be "
            "better; raise n_strengths, or give edge_strength as a number",
            UserWarning,
        )
