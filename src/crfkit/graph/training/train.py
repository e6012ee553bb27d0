"""Training of pairwise fields: the options of GraphCRF, GridCRF and `crfkit graph train`, without scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads, using_threads
from crfkit._types import Entries, Floats, Ids, Samples
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.inference.marginals import InferenceStatus, Marginals
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.model import Encoder, GraphModel, naming
from crfkit.graph.training.problem import GraphOptions, GraphProblem
from crfkit.graph.training.record import graph_choices
from crfkit.graph.training.smoothing import over_smoothed
from crfkit.protocols import Capability, Loss, Penalty
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Callback
from crfkit.training.path import PathOptions, PathPoint, gathered
from crfkit.wording import Naming, in_python

NOT_CONVERGING = (
    "not converged: no step along the search direction decreases the objective; approximate inference jumps from one "
    "fixed point to another"
)
IMPOSSIBLE = (
    "the labels have a probability above one, so approximate inference is far off for these weights: do not trust them"
)
ALTERNATIVES = "inference 'trw' is steadier, the loss 'pseudo-likelihood' needs no inference"


class GraphFit(NamedTuple):
    """A trained pairwise field, and how training went."""

    model: GraphModel
    result: Result
    inference: Marginals | None  # the last inference of training; None if the loss needs none

    @property
    def status(self) -> InferenceStatus | None:
        """Return how far the last inference can be trusted."""
        return None if self.inference is None else self.inference.status

    def concerns(self, naming: Naming = in_python) -> list[str]:
        """Return what a user should know about how training ended, with options written as `naming` writes them."""
        last, damping = self.inference, naming is in_python  # which the command line cannot add
        unsettled = last.explain(naming("sweeps"), damping) if last is not None and last.matters else None
        return concerns(self.result, self.status, unsettled, naming)


@dataclass(frozen=True, kw_only=True)
class GraphTraining(GraphOptions):
    """Trains pairwise fields; the options are as in :class:`GraphCRF`."""

    def run(
        self,
        encoder: Encoder,
        X: Samples,
        states: Ids,
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        start: GraphModel | None = None,
    ) -> GraphFit:
        """Train, from the weights of `start` if that is a model of the same classes, features and forms."""
        problem = self.make_problem(encoder, X, states, sample_weight)
        with using_threads(count_threads(self.options.n_threads)), naming(encoder):
            result = self.placement.minimise(
                problem.solver, problem.minimised, problem.penalty, problem.weights_of(start), callbacks, None
            )
        model, inputs = self._model(problem, problem.penalty, result), problem.inputs
        if result.status is Status.INTERRUPTED:
            return GraphFit(model, result, None)
        try:
            if problem.loss.sees_neighbours and self.announce is not None and not isinstance(encoder, TableEncoder):
                note = over_smoothed(model, inputs, states if inputs.labels is None else inputs.labels)
                if note:
                    self.announce(note)
            if problem.minimised is not problem.loss and Capability.PRECISION in problem.loss.capabilities:
                problem.loss.tolerance = problem.minimised.tolerance  # as precise as the parts were at the end
            return GraphFit(model, result, last_inference(problem.loss, result.w))
        except KeyboardInterrupt:
            return GraphFit(model, replace(result, status=Status.INTERRUPTED), None)

    def path(
        self,
        encoder: Encoder,
        X: Samples,
        states: Ids,
        options: PathOptions,
        sample_weight: ArrayLike | None = None,
        judge: Callable[[GraphModel], float] | None = None,
    ) -> tuple[PathPoint[GraphModel], ...]:
        """Return a point with a model for every strength of the penalty; `judge` gives the score of a model."""
        base = self.options.make_penalty(self.options.make_solver())
        given = replace(self, options=replace(self.options, penalty=base))
        problem = given.make_problem(encoder, X, states, sample_weight)

        def at(strength: float) -> Penalty:
            scaled = replace(self, options=replace(self.options, penalty=base.at(strength)))
            return scaled.make_penalty(problem.solver, encoder)

        def make(_: Loss, penalty: Penalty, result: Result) -> GraphModel:
            return self._model(problem, penalty, result)

        with using_threads(count_threads(self.options.n_threads)), naming(encoder):
            path = options.minimise(problem.minimised, base, problem.solver, make=make, judge=judge, at=at)
            return tuple(gathered(path)[0])

    def _model(self, problem: GraphProblem, penalty: Penalty, result: Result) -> GraphModel:
        """Return the model of a result, with a record of how it was made."""
        encoder, graph_field, scales = problem.encoder, problem.field, problem.scales
        auto_engine = self._auto_engine(problem.loss, encoder)
        record: Entries = {
            "standardised": scales is not None,
            "objective": result.objective,
            "value": result.value if math.isfinite(result.value) else None,
            "status": result.status.name,
            "iterations": result.iterations,
            "solver": problem.solver.name,
            **({} if auto_engine is None else {"inference": auto_engine}),
        }
        model = GraphModel(
            encoder,
            graph_field,
            result.w if scales is None else scales.to_inputs(graph_field, result.w),
            inference=self.inference,
            decode=self.decode,
            training=record,
            n_threads=self.options.n_threads,
            seed=self.options.seed,
            auto_engine=auto_engine,
        )
        record["auto"] = graph_choices(model, problem.inputs, problem.asked, problem.loss, penalty, result)
        if problem.strength is not None:
            record["auto"]["penalty"] = str(problem.strength)
        if problem.auto_loss is not None:
            record["auto"]["loss"] = problem.auto_loss
        return model


def concerns(
    result: Result, inference: InferenceStatus | None, unsettled: str | None = None, naming: Naming = in_python
) -> list[str]:
    """Return what a user should know about how training ended; nothing if all is well.

    `unsettled` explains an inference that had not converged.
    """
    said = []
    instead = (
        ALTERNATIVES.split(", ")[1] if " by trw" in result.objective else ALTERNATIVES
    )  # trw is not the way out of trw
    approximate = inference not in (None, InferenceStatus.EXACT)
    ended = result.status.converged or result.status is Status.STOPPED_BY_CALLBACK
    usual = result.status is Status.MAX_ITERATIONS and math.isnan(result.value)  # of losses without a value
    if result.status is Status.LINE_SEARCH_FAILED and approximate:
        said.append(f"{NOT_CONVERGING}. {instead}")
    elif not ended and not usual:
        said.append(result.status.text(naming))
    if approximate and result.value < 0:
        said.append(f"{IMPOSSIBLE}. {instead}")
    if unsettled is not None:
        said.append(f"at the end of training {unsettled}")
    return said


def last_inference(loss: Loss, w: Floats) -> Marginals | None:
    """Return the inference at the end of training, the less settled if there are two; None if the loss needs none."""
    if not isinstance(loss, GraphLikelihood):
        return None
    last = loss.last
    if last is None or last.marginals is None or not np.array_equal(last.w, w):
        last = loss.at(w, last)
        _ = last.value
    runs = [run for run in (last.marginals, last.clamped) if run is not None]
    return next((run for run in runs if not run.status.settled), runs[0])
