"""Learning of structure, from tables to a model; without scikit-learn.

tables → rows, groups and states (structure_data) → a loss → a path of strengths and a rule that chooses one
(structure_search, structure_solve) → weights without shrinkage (structure_refit, structure_final) → a model with its
record (structure_record) → what the user should know (structure_warnings).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit._types import Floats, Ids, Ints
from crfkit.errors import ParameterError
from crfkit.graph.model import GraphModel, ready_engine
from crfkit.result import Status
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.likelihood import StructureLikelihood, learning_engine
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations
from crfkit.structure.training.choices import structure_choices
from crfkit.structure.training.data import StructureData
from crfkit.structure.training.final import Refit, refit_weights
from crfkit.structure.training.missing import ROUNDS, Draws
from crfkit.structure.training.options import REFITTING, StructureOptions
from crfkit.structure.training.record import Learned, StructureFit, StructureRecord
from crfkit.structure.training.refit import Solution, pseudo
from crfkit.structure.training.search import EdgePoint, least, refitted_point, within_an_error
from crfkit.structure.training.threads import structure_threads
from crfkit.structure.training.warnings import concern_of_engine
from crfkit.training.path import PathOptions, PathPoint, gathered
from crfkit.warn import warn_caller

BELOW = 0.75  # share of the strength where an edge comes in at which halves of the rows are asked for it


@dataclass(frozen=True)
class StructureTraining(StructureOptions):
    """Learn the graph of a table; the options are those of StructureLearner."""

    def fit(self, Y: Any, inputs: Any = None) -> tuple[StructureFit, StructureData]:
        """Return what was learnt from a table Y [samples, variables] and inputs, and the table as it was read."""
        data = self._read(Y, inputs)
        with self._threads():
            data, interrupted = self._filled(data)
            learned = self._refitted(interrupted or self._selected(data))
            learned = replace(learned, scaling=data.scaling)
        record = self._record(learned, data)
        return StructureFit(self.model(data, learned, record), record, learned), data

    def path(self, Y: Any, inputs: Any, options: PathOptions) -> tuple[PathPoint[GraphModel], ...]:
        """Return a point with a model for every strength; the weights are those under the penalty."""
        data = self._read(Y, inputs)
        search = replace(self.search, callback=options.callback)
        points: list[PathPoint[GraphModel]] = []
        with self._threads():
            data, _ = self._filled(data)
            loss = self.make_loss(data.tables()(None), data.pairs)
            empty = search.empty(loss)
            critical = search.critical_strength(empty)
            if options.strengths is None:
                options.check_grid()
                grid = replace(search, n_strengths=options.n, ratio=options.ratio).strengths(empty).tolist()
            else:
                grid = options.descending()
            if not grid:
                raise ParameterError("no pair of columns depends on each other; give strengths")
            found, _ = gathered(search.path(loss, grid))
        for point in found:
            by = Refit(f"penalised {_loss_name(point.model.penalised.loss)}")
            learned = Learned(
                point.model.penalised, point.strength, [], None, {}, critical, refit=by, scaling=data.scaling
            )
            model = self.model(data, learned, self._record(learned, data, number=True))
            points.append(replace(point, solution=model))  # type: ignore[arg-type]
        return tuple(points)

    def _read(self, Y: Any, inputs: Any) -> StructureData:
        self.check()
        data = self.table.read(Y, inputs, self.search.node_strength > 0)
        if self.loss == "likelihood" and (said := concern_of_engine(self.inference)):
            warn_caller(said, UserWarning)
        return data

    def _filled(self, data: StructureData) -> tuple[StructureData, Learned | None]:
        """Return the table with draws of its missing labels from a graph that was learned from earlier draws.

        If that was interrupted, also what was learned until then.
        """
        seed = self.search.options.seed
        draws = Draws.by_shares(data.states, seed)
        if draws is None:
            return data, None
        rule = "ebic" if isinstance(self.edge_strength, str) else self.edge_strength
        quiet = replace(self, search=self.search.quiet(), edge_strength=rule, loss="pseudo-likelihood")
        for turn in range(ROUNDS):
            data = replace(data, draws=draws)
            learned = quiet._selected(data)
            if learned.interrupted:
                return data, learned
            draws = draws.redrawn(conditionals_of(learned.solution, data), seed + turn)
        return replace(data, draws=draws), None

    def _threads(self) -> AbstractContextManager[None]:
        return structure_threads(self.search.options.n_threads)

    def make_loss(self, table: Observations, pairs: Ids | None) -> EdgeLoss:
        """Return the loss of a table whose edges are to be chosen among pairs."""
        if self.loss == "pseudo-likelihood":
            return pseudo_likelihood(table, pairs)
        options = self.search.options
        name = learning_engine(table, pairs) if self.inference == "auto" else self.inference
        if self.inference == "auto" and name != "junction":
            warn_caller(
                "exact inference on the graph of all candidates is too expensive: edges are chosen by "
                "pseudo-likelihood instead, which finds better graphs than approximate inference. The weights of the "
                "chosen edges are those of the likelihood where that is possible (refit='auto')",
                UserWarning,
            )
            return pseudo_likelihood(table, pairs)
        graph, K = StructureLikelihood(table, pairs).graph, int(table.n_states.max())
        engine = ready_engine(name, graph, K, options.n_threads, options.seed)
        return StructureLikelihood(table, pairs, (), engine)

    def _refitted(self, learned: Learned) -> Learned:
        """Return the chosen edges with the weights of the likelihood, where `refit` and the rule ask for that."""
        rule, solution = self.edge_strength, learned.solution
        wanted = self.refit == "likelihood" or (self.refit == "auto" and rule in REFITTING)
        if not wanted or learned.interrupted:
            by = _loss_name(solution.loss)
            return replace(learned, refit=Refit(by if rule in REFITTING else f"penalised {by}"))
        engine = solution.loss.engine if isinstance(solution.loss, StructureLikelihood) else None
        own = engine if rule in REFITTING else None
        try:
            found, how = refit_weights(solution, self.search, self.refit, own)
        except KeyboardInterrupt:
            return replace(learned, interrupted=True)
        return replace(learned, solution=found, refit=how, method=self.search.method_for(solution.loss))

    def _selected(self, data: StructureData) -> Learned:
        """Return the chosen edges; explain errors of inference on graphs that became too dense."""
        table_of, n = data.tables(), len(data.states)
        loss = self.make_loss(table_of(None), data.pairs)
        if isinstance(loss, StructurePseudoLikelihood):
            return self._choose(loss, table_of, n)
        if self.edge_strength == "cv":
            self.search.check_folds(n)
        try:
            return self._choose(loss, table_of, n)
        except ParameterError as error:
            first = "all candidates are in the graph from the start (method 'grafting-light' adds them one by one)"
            grows = self.search.method_for(loss).startswith("grafting")
            why = "a larger edge_strength selects fewer edges" if grows else first
            raise ParameterError(
                f"inference is refused on the graph of selected edges: {error}. Here, {why}; "
                "loss='pseudo-likelihood' needs no inference"
            ) from None

    def _choose(self, loss: EdgeLoss, table_of: Callable[[Ints | None], Observations], n: int) -> Learned:
        """Return the edges that the strength, or the rule that chooses it, selects."""
        search, rule = self.search, self.edge_strength
        if not isinstance(rule, str):
            empty = search.empty(loss)
            critical = search.critical_strength(empty)
            solution = search.minimise(empty, float(rule)) if loss.n_candidates else empty
            interrupted = solution.result is not None and solution.result.status is Status.INTERRUPTED
            return Learned(solution.reduced(), float(rule), [], None, {}, critical, [], interrupted)
        whole, copies = loss, np.zeros(0, dtype=np.int64)
        if rule != "path":
            copies = search.refits.copies(loss)
            loss = loss.among(without_columns(loss, copies)) if len(copies) else loss
        empty = search.empty(loss)
        critical = search.critical_strength(empty)
        path = {
            "path": lambda: search.path(loss, search.strengths(empty)),
            "cv": lambda: search.by_folds(loss, table_of, n),
        }.get(rule, lambda: search.by_ebic(loss))()
        steps, interrupted = gathered(path)
        entries = entered(steps)
        if not steps:  # no candidate has a slope
            kept = search.refits.joined(empty, whole, copies)
            return Learned(kept, critical, [], None, {}, critical, entries, interrupted)
        if rule == "path":
            last = len(steps) - 1
            kept = steps[-1].model.penalised
            return Learned(kept, steps[-1].strength, steps, last, {}, critical, entries, interrupted)
        chosen = within_an_error(steps) if rule == "cv" else least(steps)
        step = steps[chosen]
        if rule == "stability" and not interrupted:
            strength = self._strength_of_halves(step, entries)
            try:
                shares = search.stability(loss, table_of, n, strength)
                kept = self._stable(empty, shares)
            except KeyboardInterrupt:  # the edges are those of the path
                interrupted = True
            else:
                shares = dict(sorted((shares | dict.fromkeys(copies.tolist(), 1.0)).items()))
                kept = search.refits.joined(kept, whole, copies)
                return Learned(kept, strength, steps, chosen, shares, critical, entries)
        kept = step.model.refitted or search.refit(step.model.penalised)
        if rule == "ebic" and not interrupted:
            kept = search.refits.completed(kept)
            steps[chosen] = refitted_point(step, kept, search.ebic(kept))
        kept = search.refits.joined(kept, whole, copies)
        return Learned(kept, step.strength, steps, chosen, {}, critical, entries, interrupted)

    def _strength_of_halves(self, step: EdgePoint, entries: list[tuple[int, float]]) -> float:
        """Return a strength below that where the last of the best edges comes in.

        At that strength itself, half of the halves would select the edge.
        """
        refitted = step.model.refitted
        best = set() if refitted is None else set(self.search.refits.completed(refitted).support.tolist())
        return min([step.strength, *(BELOW * strength for edge, strength in entries if edge in best)])

    def _stable(self, empty: Solution, shares: dict[int, float]) -> Solution:
        """Return the edges that enough random halves select, refitted."""
        full = empty.loss.with_active([edge for edge, share in shares.items() if share >= self.threshold])
        start = np.zeros(full.size)
        start[: len(empty.w)] = empty.w
        return self.search.refit(Solution(full, start + 1e-12 * (full.block_index >= 0)), prune=False)

    def model(self, data: StructureData, learned: Learned, record: StructureRecord) -> GraphModel:
        """Return a model of the edges that were chosen, in the order of their ends."""
        loss, w = in_order(learned.solution)
        if learned.scaling is not None:
            w = learned.scaling.original(w, loss.field, data.encoder.edge_inputs)
        result, options = learned.solution.result, self.search.options
        stored: dict[str, Any] = {"structure": record.plain()}
        if result is not None:
            stored |= {
                "objective": result.objective,
                "value": result.value if math.isfinite(result.value) else None,
                "status": result.status.name,
                "iterations": result.iterations,
            }
        fitted = replace(data.encoder, structure=loss.graph)
        threads, seed = options.n_threads, options.seed
        model = GraphModel(fitted, loss.field, w, self.inference, "auto", stored, threads, seed)
        stored["auto"] = structure_choices(model)
        return model

    def _record(self, learned: Learned, data: StructureData, number: bool = False) -> StructureRecord:
        """Return how the edges were chosen; `number` if the strength is one of a path that the user asked for."""
        rule = self.edge_strength if isinstance(self.edge_strength, str) and not number else None
        return StructureRecord(
            learned.method or self.search.method_for(learned.solution.loss),
            self.loss,
            rule,
            learned.strength,
            learned.critical,
            tuple(point.numbers() for point in learned.steps),
            learned.chosen,
            None if learned.refit is None else learned.refit.record(),
            learned.stability,
            tuple(learned.entries),
            None if learned.scaling is None else learned.scaling.input_scales,
            data.cuts,
        )


def conditionals_of(solution: Solution, data: StructureData) -> Callable[[Ids], list[Floats]]:
    """Return a function from states of the lines with drawn labels to p(variable | the others of its line)."""
    assert data.draws is not None
    rows = data.tables()
    lines = np.flatnonzero(np.isin(rows.source, data.draws.rows))

    def of(states: Ids) -> list[Floats]:
        table = rows.lines(lines, states)
        found: Any = pseudo(solution.loss).on(table).at(solution.w)
        return list(found.conditionals)

    return of


def without_columns(loss: EdgeLoss, copies: Ints) -> Any:
    """Return [p, p] which pairs may be edges, without those of the second columns of the copies."""
    allowed = loss.allowed.copy()
    second = copies % loss.table.n_variables
    allowed[second, :] = False
    allowed[:, second] = False
    return allowed


def entered(steps: list[EdgePoint]) -> list[tuple[int, float]]:
    """Return (edge, strength) of every edge of the path in the order of entry; at one strength the longest first."""
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


def in_order(solution: Solution) -> tuple[EdgeLoss, Floats]:
    """Return the loss and the weights of a solution with its edges in the order of their ids."""
    loss, w = solution.loss, solution.w
    order = np.argsort(loss.block_index, kind="stable")  # nodes, −1, stay in front
    return loss.with_active(np.sort(loss.active_ids)), w[order]


def _loss_name(loss: EdgeLoss) -> str:
    """Return the loss that the edges were chosen by, which may not be the one that was asked for."""
    return "pseudo-likelihood" if isinstance(loss, StructurePseudoLikelihood) else "likelihood"
