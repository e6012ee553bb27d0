"""Structure learning from a table to a model, without scikit-learn.

read_structure (``table``) → a loss → Selection.choose (``select``) → LikelihoodRefit (``refit``) → a model with its
record (``record``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfkit._types import Entries, Floats, Ids, Samples
from crfkit.errors import ParameterError
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.model import GraphModel, ready_engine
from crfkit.structure.encoding.drawn_labels import DrawnLabels
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.likelihood import StructureLikelihood, learning_engine
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations
from crfkit.structure.options import REFITTING_RULES, StructureOptions
from crfkit.structure.record import Learned, StructureFit, StructureRecord, structure_choices
from crfkit.structure.refit import LikelihoodRefit, Refit
from crfkit.structure.select import Hooks, Selected, Selection
from crfkit.structure.solve import Solution, structure_threads
from crfkit.structure.support import pseudo_likelihood_of
from crfkit.structure.table import StructureData, read_structure
from crfkit.training.path import PathOptions, PathPoint, gathered
from crfkit.warn import warn_caller


@dataclass(frozen=True)
class StructureTraining:
    """Learns the graph of a table."""

    options: StructureOptions = field(default_factory=StructureOptions)
    hooks: Hooks = field(default_factory=Hooks)

    @property
    def selection(self) -> Selection:
        return Selection(self.options, self.hooks)

    def fit(self, Y: Samples, inputs: Samples = None) -> tuple[StructureFit, StructureData]:
        """Return what was learned from a table Y [samples, variables] and inputs, and the table as it was read."""
        data = self._read(Y, inputs)
        with structure_threads(self.options.n_threads):
            data, interrupted = self._filled(data)
            selected = interrupted or self._selected(data)
            learned = self._refitted(selected, data)
        record = StructureRecord.of(learned, data, self.options, self.options.edge_strength)
        return StructureFit(self._model(data, learned, record), record, learned), data

    def path(self, Y: Samples, inputs: Samples, options: PathOptions) -> tuple[PathPoint[GraphModel], ...]:
        """Return a point with a model for every strength; the weights are those under the penalty."""
        data = self._read(Y, inputs)
        selection = Selection(self.options, replace(self.hooks, on_point=options.callback))
        with structure_threads(self.options.n_threads):
            data, _ = self._filled(data)
            loss = self.make_loss(data.tables()(None), data.pairs)
            empty = selection.solver.empty(loss)
            critical = selection.solver.critical_strength(empty)
            if options.strengths is None:
                options.check_grid()
                grid_options = replace(self.options, n_strengths=options.n, strength_ratio=options.ratio)
                grid = Selection(grid_options).strengths(empty).tolist()
            else:
                grid = options.descending()
            if not grid:
                raise ParameterError("no pair of columns depends on each other; give strengths")
            found, _ = gathered(selection.path(loss, grid))
        points: list[PathPoint[GraphModel]] = []
        for point in found:
            solution = point.model.penalised
            selected = Selected(solution, point.strength, critical)
            refit = Refit(f"penalised {_loss_name(solution.loss)}")
            learned = Learned(selected, solution, refit, selection.solver.method_for(solution.loss), data.scaling)
            record = StructureRecord.of(learned, data, self.options, point.strength)
            points.append(replace(point, solution=self._model(data, learned, record)))  # type: ignore[arg-type]
        return tuple(points)

    # --- data

    def _read(self, Y: Samples, inputs: Samples) -> StructureData:
        self.options.check()
        data = read_structure(Y, inputs, self.options)
        if self.options.loss == "likelihood" and (concern := concern_of_engine(self.options.inference)):
            warn_caller(concern, UserWarning)
        return data

    def _filled(self, data: StructureData) -> tuple[StructureData, Selected | None]:
        """Return the table with its missing labels drawn from a graph that was learned from earlier draws.

        If that was interrupted, also return what was learned until then.
        """
        options, tunables = self.options, self.options.tunables
        drawn = DrawnLabels.by_shares(data.states, options.seed, tunables.draws)
        if drawn is None:
            return data, None
        rule = "ebic" if isinstance(options.edge_strength, str) else options.edge_strength
        quiet = StructureTraining(replace(options, edge_strength=rule, loss="pseudo-likelihood"))
        for turn in range(tunables.draw_rounds):
            data = replace(data, drawn=drawn)
            selected = quiet._selected(data)
            if selected.interrupted:
                return data, selected
            conditionals = conditionals_of(selected.solution, data)
            drawn = drawn.redrawn(conditionals, options.seed + turn, tunables.gibbs_sweeps)
        return replace(data, drawn=drawn), None

    # --- edges

    def make_loss(self, table: Observations, pairs: Ids | None) -> EdgeLoss:
        """Return the loss of a table whose edges are to be chosen among pairs."""
        options = self.options
        if options.loss == "pseudo-likelihood":
            return pseudo_likelihood(table, pairs)
        name = learning_engine(table, pairs) if options.inference == "auto" else options.inference
        if options.inference == "auto" and name != "junction":
            warn_caller(
                "exact inference on the graph of all candidates is too expensive: edges are chosen by "
                "pseudo-likelihood instead, which finds better graphs than approximate inference. The weights of "
                "chosen edges come from the likelihood where that is possible (refit='auto')",
                UserWarning,
            )
            return pseudo_likelihood(table, pairs)
        graph, K = StructureLikelihood(table, pairs).graph, int(table.n_states.max())
        engine = ready_engine(name, graph, K, options.n_threads, options.seed)
        return StructureLikelihood(table, pairs, (), engine)

    def _selected(self, data: StructureData) -> Selected:
        """Return the chosen edges; explain errors of inference on graphs that became too dense."""
        table_of, n, selection = data.tables(), len(data.states), self.selection
        loss = self.make_loss(table_of(None), data.pairs)
        if isinstance(loss, StructurePseudoLikelihood):
            return selection.choose(loss, table_of, n)
        if self.options.edge_strength == "cv":
            selection.check_folds(n)
        try:
            return selection.choose(loss, table_of, n)
        except ParameterError as error:
            first = "all candidates are in the graph from the start (method 'grafting-light' adds them one by one)"
            grows = selection.solver.method_for(loss).startswith("grafting")
            why = "a larger edge_strength selects fewer edges" if grows else first
            raise ParameterError(
                f"inference is refused on the graph of selected edges: {error}. Here, {why}; "
                "loss='pseudo-likelihood' needs no inference"
            ) from None

    # --- weights

    def _refitted(self, selected: Selected, data: StructureData) -> Learned:
        """Return the chosen edges with the weights of the likelihood, where `refit` and the rule ask for that."""
        rule, refit, solution = self.options.edge_strength, self.options.refit, selected.solution
        solver = self.selection.solver
        unpenalised = rule in REFITTING_RULES
        by = _loss_name(solution.loss)
        given = Learned(
            selected,
            solution,
            refit=Refit(by if unpenalised else f"penalised {by}"),
            method=solver.method_for(solution.loss),
            scaling=data.scaling,
            interrupted=selected.interrupted,
        )
        if selected.interrupted or not (refit == "likelihood" or (refit == "auto" and unpenalised)):
            return given
        engine = solution.loss.engine if isinstance(solution.loss, StructureLikelihood) and unpenalised else None
        try:
            found, how = LikelihoodRefit(solver).refit(solution, engine)
        except KeyboardInterrupt:
            return replace(given, refit=None, interrupted=True)
        return replace(given, solution=found, refit=how)

    # --- the model

    def _model(self, data: StructureData, learned: Learned, record: StructureRecord) -> GraphModel:
        """Return a model of the edges that were chosen, in the order of their ends."""
        loss, w = in_order(learned.solution)
        if learned.scaling is not None:
            w = learned.scaling.original(w, loss.field, data.encoder.edge_inputs)
        result = learned.solution.result
        stored: Entries = {"structure": record.plain()}
        if result is not None:
            stored |= {
                "objective": result.objective,
                "value": result.value if math.isfinite(result.value) else None,
                "status": result.status.name,
                "iterations": result.iterations,
            }
        fitted = replace(data.encoder, structure=loss.graph)
        model = GraphModel(
            fitted,
            loss.field,
            w,
            inference=self.options.inference,
            training=stored,
            n_threads=self.options.n_threads,
            seed=self.options.seed,
        )
        stored["auto"] = structure_choices(model)
        return model


def conditionals_of(solution: Solution, data: StructureData) -> Callable[[Ids], list[Floats]]:
    """Return a function from states of the lines with drawn labels to p(variable | the others of its line)."""
    assert data.drawn is not None
    rows = data.tables()
    lines = np.flatnonzero(np.isin(rows.source, data.drawn.rows))

    def conditionals(states: Ids) -> list[Floats]:
        table = rows.lines(lines, states)
        found: Any = pseudo_likelihood_of(solution.loss).on(table).at(solution.w)
        return list(found.conditionals)

    return conditionals


def in_order(solution: Solution) -> tuple[EdgeLoss, Floats]:
    """Return the loss and the weights of a solution with its edges in the order of their ids."""
    loss, w = solution.loss, solution.w
    order = np.argsort(loss.block_index, kind="stable")  # nodes, −1, stay in front
    return loss.with_active(np.sort(loss.active_ids)), w[order]


def concern_of_engine(inference: str | Engine) -> str | None:
    """Return a warning about learning edges by an approximate likelihood."""
    name = inference if isinstance(inference, str) else getattr(inference, "name", "")
    if name not in ("trw", "mean-field", "bp", "gibbs"):
        return None
    what = {"trw": "a bound", "mean-field": "a bound", "bp": "an approximation", "gibbs": "an estimate"}[name]
    return (
        f"loss='likelihood' by {name} is {what} that gets worse with every edge: the edges that it selects, and their "
        "weights, are often worse than with loss='pseudo-likelihood'. Use that, or "
        "inference='junction' where it is exact"
    )


def _loss_name(loss: EdgeLoss) -> str:
    """Return the loss that the edges were chosen by, which may not be the one that was requested."""
    return "pseudo-likelihood" if isinstance(loss, StructurePseudoLikelihood) else "likelihood"
