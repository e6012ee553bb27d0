"""Training of pairwise fields: the options of GraphCRF, GridCRF and `crfkit graph train`, without scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit.arrays import using_threads
from crfkit.data.graphs import GraphData
from crfkit.data.sequences import Floats, Ids
from crfkit.errors import DataError, ParameterError
from crfkit.estimators.graph_model import DECODERS, Encoder, GraphModel, cheap_engine, ready_engine
from crfkit.estimators.solver_options import SolverOptions
from crfkit.fields.graph import EDGE_FORMS, NODE_FORMS, GraphField
from crfkit.inference.chain import count_threads
from crfkit.inference.engines import ENGINES
from crfkit.inference.marginals import Engine, InferenceStatus
from crfkit.losses.composite import CompositeLikelihood
from crfkit.losses.contrastive import ContrastiveDivergence
from crfkit.losses.graph import GraphLikelihood
from crfkit.losses.pseudo import PseudoLikelihood
from crfkit.protocols import Loss
from crfkit.result import Result, Status
from crfkit.solvers.loop import Callback

LOSSES = (
    "likelihood",
    "pseudo-likelihood",
    "composite",
    "contrastive-divergence",
    "persistent-contrastive-divergence",
)
ROWS = {"likelihood": "counts", "pseudo-likelihood": "distinct", "composite": "distinct"}  # what is enough for it
JUMPS = (
    "not converged: no step along the search direction decreases the objective; approximate inference jumps from one "
    "fixed point to another"
)
IMPOSSIBLE = (
    "the labels have a probability above one, which says that approximate inference is far off for these weights: do "
    "not trust them"
)
INSTEAD = "inference 'trw' is steadier, the loss 'pseudo-likelihood' needs no inference"
LossMaker = Callable[[GraphData, GraphField], Loss]


@dataclass(frozen=True)
class GraphTraining:
    """How to train; the names are those of :class:`GraphCRF`."""

    inference: str | Engine = "auto"
    loss: str | LossMaker = "likelihood"
    node_form: str | None = None
    edge_form: str | None = None
    decode: str = "auto"
    options: SolverOptions = field(default_factory=SolverOptions)

    def check(self) -> None:
        """Raises ParameterError where an option is out of range."""
        self.options.check()
        for what, value, names in (
            ("inference", self.inference, ("auto", *ENGINES)),
            ("loss", self.loss, LOSSES),
            ("decode", self.decode, DECODERS),
            ("node form", self.node_form, (None, *NODE_FORMS)),
            ("edge form", self.edge_form, (None, *EDGE_FORMS)),
        ):
            if isinstance(value, str) and value not in names:
                raise ParameterError(f"unknown {what} {value!r}; one of {', '.join(n for n in names if n)}")
        if not isinstance(self.inference, str) and (
            isinstance(self.inference, type) or not hasattr(self.inference, "run")
        ):
            raise ParameterError(f"inference must be a name or an engine, not {self.inference!r}")
        if not isinstance(self.loss, str) and not callable(self.loss):
            raise ParameterError(f"loss must be a name or a function of data and field, not {self.loss!r}")

    def run(
        self,
        encoder: Encoder,
        X: Any,
        states: Ids,
        sample_weight: ArrayLike | None = None,
        callbacks: Sequence[Callback] = (),
        start: GraphModel | None = None,
    ) -> tuple[GraphModel, Result, InferenceStatus | None]:
        """(the model, how training went, how far its last inference can be trusted). Begins at the weights of `start`
        where that is a model of the same classes, features and forms."""
        rows = ROWS.get(self.loss, "all") if isinstance(self.loss, str) else "all"
        data = encoder.training_data(X, states, sample_weight, rows)
        if not data.graph_weights.any():
            raise ParameterError("every sample has weight 0")
        graph_field = encoder.field(self.node_form or encoder.node_form, self.edge_form or encoder.edge_form)
        if graph_field.size == 0:
            raise DataError("the field has no weights: there are no features")
        loss = self.make_loss(data, graph_field, encoder)
        w0 = np.zeros(graph_field.size)
        if start is not None and _signature(start.encoder, start.field) == _signature(encoder, graph_field):
            w0 = np.array(start.w)
        solver = self.options.make_solver()
        if solver.name == "auto" and "smooth" not in loss.capabilities:  # a gradient without a value
            solver = replace(self.options, solver="adam").make_solver()
        with using_threads(count_threads(self.options.n_threads)):
            result = solver.minimize(loss, self.options.make_penalty(solver), w0, callbacks)
        record = {
            "objective": result.objective,
            "value": result.value if math.isfinite(result.value) else None,
            "status": result.status.name,
            "iterations": result.iterations,
            "solver": solver.name,
        }
        threads, seed = self.options.n_threads, self.options.seed
        model = GraphModel(encoder, graph_field, result.w, self.inference, self.decode, record, threads, seed)
        if result.status is Status.INTERRUPTED:
            return model, result, None
        try:
            return model, result, last_status(loss, result.w)
        except KeyboardInterrupt:
            return model, replace(result, status=Status.INTERRUPTED), None

    def make_loss(self, data: GraphData, graph_field: GraphField, encoder: Encoder) -> Any:
        n_threads, seed = self.options.n_threads, self.options.seed
        if not isinstance(self.loss, str):
            made = self.loss(data, graph_field)
            if not isinstance(made, Loss):
                raise ParameterError(f"the function `loss` returned {made!r}; expected a loss (crfkit.protocols.Loss)")
            return made
        if self.loss == "pseudo-likelihood":
            return PseudoLikelihood(data, graph_field, n_threads)
        if self.loss == "composite":
            return CompositeLikelihood(data, graph_field, n_threads)
        if self.loss != "likelihood":
            persistent = self.loss.startswith("persistent")
            return ContrastiveDivergence(data, graph_field, persistent=persistent, seed=seed, n_threads=n_threads)
        graph = data.graph.take([0])[0] if data.node_types is not None else data.graph  # rows of a table are alike
        inference = cheap_engine(self.inference, encoder, graph, graph_field.max_states)
        engine = ready_engine(inference, graph, graph_field.max_states, n_threads, seed)
        return GraphLikelihood(data, graph_field, engine)


def concerns(result: Result, inference: InferenceStatus | None) -> list[str]:
    """What a user should know about how training ended; nothing where all is well."""
    said = []
    approximate = inference not in (None, InferenceStatus.EXACT)
    ended = result.status.converged or result.status is Status.STOPPED_BY_CALLBACK
    usual = result.status is Status.MAX_ITERATIONS and math.isnan(result.value)  # of losses without a value
    if result.status is Status.LINE_SEARCH_FAILED and approximate:
        said.append(f"{JUMPS}. {INSTEAD}")
    elif not ended and not usual:
        said.append(str(result.status))
    if approximate and result.value < 0:
        said.append(f"{IMPOSSIBLE}. {INSTEAD}")
    if inference is not None and not inference.settled:
        said.append(f"inference at the end of training has {inference}")
    return said


def last_status(loss: Any, w: Floats) -> InferenceStatus | None:
    """Of the inference at w, the end of training; None for losses that need no inference."""
    if not isinstance(loss, GraphLikelihood):
        return None
    if loss.engine.bound == "exact":
        return InferenceStatus.EXACT
    evaluation = loss.at(w)
    _ = evaluation.value
    runs = [run for run in (evaluation.marginals, evaluation.clamped) if run is not None]
    return next((run.status for run in runs if not run.status.settled), runs[0].status)


def _signature(encoder: Encoder, graph_field: GraphField) -> tuple[Any, ...]:
    """What two models must share for the weights of one to mean the same in the other."""
    metadata, tensors = encoder.parts()
    arrays = [(name, array.tolist()) for name, array in sorted(tensors.items())]
    return graph_field.node_form, graph_field.edge_form, sorted(metadata.items(), key=lambda item: item[0]), arrays
