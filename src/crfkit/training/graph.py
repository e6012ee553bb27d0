"""Training of pairwise fields: the options of GraphCRF, GridCRF and `crfkit graph train`, without scikit-learn."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._threads import count_threads, using_threads
from crfkit._types import Floats, Ids
from crfkit.data.graphs import GraphData
from crfkit.encoders.tables import TableEncoder
from crfkit.errors import DataError, ParameterError
from crfkit.fields.graph import EDGE_FORMS, NODE_FORMS, GraphField
from crfkit.inference.defaults import default_engine, explain_table_engine
from crfkit.inference.engines import ENGINES
from crfkit.inference.marginals import Engine, InferenceStatus, Marginals
from crfkit.losses.composite import CompositeLikelihood
from crfkit.losses.contrastive import ContrastiveDivergence
from crfkit.losses.graph import GraphLikelihood
from crfkit.losses.graph_margin import GraphHinge, GraphSoftmaxMargin
from crfkit.losses.pseudo import PseudoLikelihood
from crfkit.models.graph import DECODERS, ITERATIVE, Encoder, GraphModel, naming, ready_engine
from crfkit.names import check_name, full_name
from crfkit.penalties import L2, Blockwise
from crfkit.protocols import Kind, Loss, Penalty
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Callback
from crfkit.training.defaults import default_solver
from crfkit.training.options import SolverOptions
from crfkit.training.record import graph_choices
from crfkit.training.scaling import FieldScales
from crfkit.training.smoothing import over_smoothed

LOSSES = (
    "likelihood",
    "pseudo-likelihood",
    "composite",
    "contrastive-divergence",
    "persistent-contrastive-divergence",
    "softmax-margin",
    "hinge",
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
EDGE_FACTOR = 10.0  # how many times as strongly as nodes the edges of a table are penalised
START_TOLERANCE = 1e-2  # of iterative inference; solvers lower it as they get near the optimum
LossMaker = Callable[[GraphData, GraphField], Loss]


@dataclass(frozen=True, kw_only=True)
class GraphTraining:
    """How to train a pairwise field; the names are those of :class:`GraphCRF`."""

    inference: str | Engine = "auto"
    loss: str | LossMaker = "likelihood"
    node_form: str | None = None
    edge_form: str | None = None
    decode: str = "auto"
    sweeps: int | None = None
    standardize: bool = False
    edge_penalty: Penalty | None = None
    options: SolverOptions = field(default_factory=SolverOptions)

    announce: Callable[[str], None] | None = None  # is called with notes about surprising choices

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", full_name(self.loss))

    def check(self) -> None:
        """Raise ParameterError where an option is out of range."""
        self.options.check()
        check_sweeps(self.sweeps, self.inference)
        edges = self.edge_penalty
        if edges is not None and (isinstance(edges, type) or not isinstance(edges, Penalty)):
            raise ParameterError(f"edge_penalty must be None or a penalty such as L2(10.0), not {edges!r}")
        for what, value, names in (
            ("inference", self.inference, ("auto", *ENGINES)),
            ("loss", self.loss, LOSSES),
            ("decoder", self.decode, DECODERS),
            ("node form", self.node_form, NODE_FORMS),
            ("edge form", self.edge_form, EDGE_FORMS),
        ):
            if isinstance(value, str):
                check_name(what, value, names)
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
    ) -> tuple[GraphModel, Result, Marginals | None]:
        """Return the model, how training went, and its last inference (None if the loss needs none).

        Training begins at the weights of `start` if that is a model of the same classes, features and forms.
        """
        rows = ROWS.get(self.loss, "all") if isinstance(self.loss, str) else "all"
        data = encoder.training_data(X, states, sample_weight, rows)
        if not data.graph_weights.any():
            raise ParameterError("every sample has weight 0; at least one needs a positive weight")
        graph_field = encoder.field(self.node_form or encoder.node_form, self.edge_form or encoder.edge_form)
        if graph_field.size == 0:
            raise DataError("the field has no weights, because there are no features and no intercept")
        scales = FieldScales.of(data, encoder.intercept) if self.standardize and data.node_counts is None else None
        inputs = data
        if scales is not None:
            data = scales.apply(data)
        loss = self.make_loss(data, graph_field, encoder)
        w0 = np.zeros(graph_field.size)
        if start is not None and _signature(start.encoder, start.field) == _signature(encoder, graph_field):
            w0 = np.array(start.w) if scales is None else scales.from_inputs(graph_field, start.w)
        solver = self.options.make_solver()
        penalty, asked = self.make_penalty(solver, encoder), solver
        if solver.name == "auto" and default_solver(loss, penalty) == "adam":  # a gradient without a value
            solver = replace(self.options, solver="adam").make_solver()
        with using_threads(count_threads(self.options.n_threads)), naming(encoder):
            result = solver.minimize(loss, penalty, w0, callbacks)
        record = {
            "standardised": scales is not None,
            "objective": result.objective,
            "value": result.value if math.isfinite(result.value) else None,
            "status": result.status.name,
            "iterations": result.iterations,
            "solver": solver.name,
            **self._chosen(loss, encoder),
        }
        threads, seed = self.options.n_threads, self.options.seed
        w = result.w if scales is None else scales.to_inputs(graph_field, result.w)
        model = GraphModel(encoder, graph_field, w, self.inference, self.decode, record, threads, seed)
        record["auto"] = graph_choices(model, inputs, asked, loss, penalty, result)
        if result.status is Status.INTERRUPTED:
            return model, result, None
        try:
            if (
                self.loss in ("pseudo-likelihood", "composite")
                and self.announce is not None
                and not isinstance(encoder, TableEncoder)
            ):
                note = over_smoothed(model, inputs, states if inputs.labels is None else inputs.labels)
                if note:
                    self.announce(note)
            return model, result, last_inference(loss, result.w)
        except KeyboardInterrupt:
            return model, replace(result, status=Status.INTERRUPTED), None

    def make_penalty(self, solver: Any, encoder: Encoder) -> Penalty:
        """Return the penalty of the options, with another one for edges if one was given.

        Edges of a table with inputs get a stronger L2 by default.
        """
        penalty, edges = self.options.make_penalty(solver), self.edge_penalty
        if edges is None:
            takes = solver.handles_smooth  # some solvers know L2 of all weights only
            blocks = takes is None or Kind.PARTS in takes
            inputs = isinstance(encoder, TableEncoder) and encoder.features is not None
            if not (blocks and isinstance(penalty, L2) and inputs):
                return penalty
            edges = L2(EDGE_FACTOR * penalty.strength)
        if isinstance(penalty, Blockwise):
            raise ParameterError(
                "edge_penalty and a Blockwise penalty both say how edges are penalised; give only one of them"
            )
        return penalty if edges == penalty else Blockwise({"node": penalty, "edge": edges})

    def make_loss(self, data: GraphData, graph_field: GraphField, encoder: Encoder) -> Any:
        """Return the loss that the options name."""
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
        if self.loss == "hinge":
            return GraphHinge(data, graph_field, n_threads)
        if self.loss.endswith("contrastive-divergence"):
            persistent = self.loss.startswith("persistent")
            return ContrastiveDivergence(data, graph_field, persistent=persistent, seed=seed, n_threads=n_threads)
        graph = data.graph.take([0])[0] if data.node_types is not None else data.graph  # rows of a table are alike
        inference, K = self.inference, graph_field.max_states
        if inference == "auto" and isinstance(encoder, TableEncoder):
            inference = default_engine(graph, K, "table", len(data))
            if (note := explain_table_engine(graph, K, len(data))) and self.announce is not None:
                self.announce(note)
        elif inference == "auto":
            inference = default_engine(graph, K, "samples")
        engine = ready_engine(inference, graph, graph_field.max_states, n_threads, seed, self.sweeps)
        named = isinstance(self.inference, str)  # an engine with options of its own is taken at its word
        start = START_TOLERANCE if named else None
        if self.loss == "softmax-margin":
            return GraphSoftmaxMargin(data, graph_field, engine, start_tolerance=start)
        return GraphLikelihood(data, graph_field, engine, start)

    def _chosen(self, loss: Any, encoder: Encoder) -> dict[str, str]:
        """Return what "auto" was for a table, so that prediction does the same."""
        decided = self.inference == "auto" and isinstance(encoder, TableEncoder) and isinstance(loss, GraphLikelihood)
        return {"inference": loss.engine.name} if decided and loss.engine.name in ITERATIVE else {}


def concerns(result: Result, inference: InferenceStatus | None, unsettled: str | None = None) -> list[str]:
    """Return what a user should know about how training ended; nothing if all is well.

    `unsettled` explains an inference that had not converged.
    """
    said = []
    instead = INSTEAD.split(", ")[1] if " by trw" in result.objective else INSTEAD  # trw is not the way out of trw
    approximate = inference not in (None, InferenceStatus.EXACT)
    ended = result.status.converged or result.status is Status.STOPPED_BY_CALLBACK
    usual = result.status is Status.MAX_ITERATIONS and math.isnan(result.value)  # of losses without a value
    if result.status is Status.LINE_SEARCH_FAILED and approximate:
        said.append(f"{JUMPS}. {instead}")
    elif not ended and not usual:
        said.append(str(result.status))
    if approximate and result.value < 0:
        said.append(f"{IMPOSSIBLE}. {instead}")
    if unsettled is not None:
        said.append(f"at the end of training {unsettled}")
    return said


def last_inference(loss: Any, w: Floats) -> Marginals | None:
    """Return the inference at the end of training, the less settled if there are two; None if the loss needs none."""
    if not isinstance(loss, GraphLikelihood):
        return None
    last = loss.last
    if last is None or last.marginals is None or not np.array_equal(last.w, w):
        last = loss.at(w, last)
        _ = last.value
    runs = [run for run in (last.marginals, last.clamped) if run is not None]
    return next((run for run in runs if not run.status.settled), runs[0])


def check_sweeps(sweeps: Any, inference: Any) -> None:
    """Raise ParameterError unless `sweeps` is None or a limit that the engine can use."""
    if sweeps is None:
        return
    if isinstance(sweeps, bool) or not isinstance(sweeps, numbers.Integral) or sweeps < 1:
        raise ParameterError(f"sweeps must be None or an integer >= 1, not {sweeps!r}")
    if not isinstance(inference, str):
        raise ParameterError("sweeps is for an engine by name; give an engine of your own its max_iterations instead")
    if inference not in ("auto", *ITERATIVE):
        raise ParameterError(f"sweeps is for {', '.join(ITERATIVE)}; inference {inference!r} has no such limit")


def _signature(encoder: Encoder, graph_field: GraphField) -> tuple[Any, ...]:
    """Return what two models must share for the weights of one to mean the same in the other."""
    metadata, tensors = encoder.parts()
    arrays = [(name, array.tolist()) for name, array in sorted(tensors.items())]
    return graph_field.node_form, graph_field.edge_form, sorted(metadata.items(), key=lambda item: item[0]), arrays
