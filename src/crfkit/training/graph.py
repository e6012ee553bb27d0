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
from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.encoders.tables import TableEncoder
from crfkit.errors import DataError, ParameterError
from crfkit.fields.graph import EDGE_FORMS, NODE_FORMS, GraphField
from crfkit.inference.engines import ENGINES, choose_engine
from crfkit.inference.junction import Junction
from crfkit.inference.marginals import Engine, InferenceStatus, Marginals
from crfkit.losses.composite import CompositeLikelihood
from crfkit.losses.contrastive import ContrastiveDivergence
from crfkit.losses.graph import GraphLikelihood
from crfkit.losses.graph_margin import GraphHinge, GraphSoftmaxMargin
from crfkit.losses.pseudo import PseudoLikelihood
from crfkit.models.graph import DECODERS, ITERATIVE, Encoder, GraphModel, cheap_engine, naming, ready_engine
from crfkit.names import check_name, full_name
from crfkit.penalties import L2, Blockwise
from crfkit.protocols import Capability, Kind, Loss, Penalty
from crfkit.result import Result, Status
from crfkit.solvers.parts.loop import Callback
from crfkit.training.options import SolverOptions
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
SECONDS = 2e-9  # of exact inference, for each row, edge and entry of the largest table, on one core
PATIENCE = 1.0  # seconds for an evaluation of the loss of a table; training takes some fifty
EDGE_FACTOR = 10.0  # how many times as strongly as nodes the edges of a table are penalised
START_TOLERANCE = 1e-2  # of iterative inference; solvers lower it as they get near the optimum
_INSTEAD_OF_EXACT = (
    "training uses 'trw', which is approximate. loss='pseudo-likelihood' is faster still and close to the likelihood "
    "where inputs say much; inference='junction' is exact whatever it takes; fewer edges (graph=…) make it cheap"
)
LossMaker = Callable[[GraphData, GraphField], Loss]


@dataclass(frozen=True, kw_only=True)
class GraphTraining:
    """How to train; the names are those of :class:`GraphCRF`."""

    inference: str | Engine = "auto"
    loss: str | LossMaker = "likelihood"
    node_form: str | None = None
    edge_form: str | None = None
    decode: str = "auto"
    sweeps: int | None = None
    standardize: bool = False
    edge_penalty: Penalty | None = None
    options: SolverOptions = field(default_factory=SolverOptions)

    announce: Callable[[str], None] | None = None  # is told what "auto" has chosen where that is no matter of course

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
        """(the model, how training went, its last inference or None if it needs none). Begins at the weights of `start`
        where that is a model of the same classes, features and forms."""
        rows = ROWS.get(self.loss, "all") if isinstance(self.loss, str) else "all"
        data = encoder.training_data(X, states, sample_weight, rows)
        if not data.graph_weights.any():
            raise ParameterError("every sample has weight 0")
        graph_field = encoder.field(self.node_form or encoder.node_form, self.edge_form or encoder.edge_form)
        if graph_field.size == 0:
            raise DataError("the field has no weights: there are no features")
        scales = FieldScales.of(data, encoder.intercept) if self.standardize and data.node_counts is None else None
        inputs = data
        if scales is not None:
            data = scales.apply(data)
        loss = self.make_loss(data, graph_field, encoder)
        w0 = np.zeros(graph_field.size)
        if start is not None and _signature(start.encoder, start.field) == _signature(encoder, graph_field):
            w0 = np.array(start.w) if scales is None else scales.from_inputs(graph_field, start.w)
        solver = self.options.make_solver()
        if solver.name == "auto" and Capability.SMOOTH not in loss.capabilities:  # a gradient without a value
            solver = replace(self.options, solver="adam").make_solver()
        with using_threads(count_threads(self.options.n_threads)), naming(encoder):
            result = solver.minimize(loss, self.make_penalty(solver, encoder), w0, callbacks)
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
        """That of the options, with one for the edges: the one given or, under L2 and for a table
        with inputs, a stronger one."""
        penalty, edges = self.options.make_penalty(solver), self.edge_penalty
        if edges is None:
            takes = solver.handles_smooth  # some solvers know L2 of all weights only
            blocks = takes is None or Kind.PARTS in takes
            inputs = isinstance(encoder, TableEncoder) and encoder.features is not None
            if not (blocks and isinstance(penalty, L2) and inputs):
                return penalty
            edges = L2(EDGE_FACTOR * penalty.strength)
        if isinstance(penalty, Blockwise):
            raise ParameterError("edge_penalty and a Blockwise penalty both say how edges are penalised; give one")
        return penalty if edges == penalty else Blockwise({"node": penalty, "edge": edges})

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
        if self.loss == "hinge":
            return GraphHinge(data, graph_field, n_threads)
        if self.loss.endswith("contrastive-divergence"):
            persistent = self.loss.startswith("persistent")
            return ContrastiveDivergence(data, graph_field, persistent=persistent, seed=seed, n_threads=n_threads)
        graph = data.graph.take([0])[0] if data.node_types is not None else data.graph  # rows of a table are alike
        inference = cheap_engine(self.inference, encoder, graph, graph_field.max_states)
        if inference == "auto":
            inference, note = choose_for_table(graph, graph_field.max_states, len(data))
            if note and self.announce is not None:
                self.announce(note)
        engine = ready_engine(inference, graph, graph_field.max_states, n_threads, seed, self.sweeps)
        named = isinstance(self.inference, str)  # an engine with options of its own is taken at its word
        start = START_TOLERANCE if named else None
        if self.loss == "softmax-margin":
            return GraphSoftmaxMargin(data, graph_field, engine, start_tolerance=start)
        return GraphLikelihood(data, graph_field, engine, start)

    def _chosen(self, loss: Any, encoder: Encoder) -> dict[str, str]:
        """What "auto" has become for a table, for prediction to do the same."""
        decided = self.inference == "auto" and isinstance(encoder, TableEncoder) and isinstance(loss, GraphLikelihood)
        return {"inference": loss.engine.name} if decided and loss.engine.name in ITERATIVE else {}


def concerns(result: Result, inference: InferenceStatus | None, unsettled: str | None = None) -> list[str]:
    """What a user should know about how training ended; nothing where all is well.

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
    """The inference at w, the end of training, the less settled where there are two; None if the loss needs none."""
    if not isinstance(loss, GraphLikelihood):
        return None
    last = loss.last
    if last is None or last.marginals is None or not np.array_equal(last.w, w):
        last = loss.at(w, last)
        _ = last.value
    runs = [run for run in (last.marginals, last.clamped) if run is not None]
    return next((run for run in runs if not run.status.settled), runs[0])


def choose_for_table(graph: Graph, n_states: int, rows: int) -> tuple[str, str]:
    """(the engine that "auto" is for a table of so many rows of one graph, what to tell the user or "").

    Exact inference where an evaluation of the loss is predicted to take at most :data:`PATIENCE` on one core.
    """
    name = choose_engine(graph, n_states)
    if name != "junction":
        tables = "" if name == "tree" else "exact inference needs tables that are too large"
        return name, tables and f"{tables}: {_INSTEAD_OF_EXACT}"
    seconds = SECONDS * rows * graph.n_edges * Junction().table_size(graph, n_states)
    if seconds <= PATIENCE:
        return name, ""
    why = f"exact inference would take about {seconds:.1f} s for each evaluation of the loss ({rows} rows)"
    return "trw", f"{why}: {_INSTEAD_OF_EXACT}"


def check_sweeps(sweeps: Any, inference: Any) -> None:
    """Raises unless `sweeps` is None or a limit that the engine has a use for."""
    if sweeps is None:
        return
    if isinstance(sweeps, bool) or not isinstance(sweeps, numbers.Integral) or sweeps < 1:
        raise ParameterError(f"sweeps must be None or an integer >= 1, not {sweeps!r}")
    if not isinstance(inference, str):
        raise ParameterError("sweeps is for an engine by name; give an engine of your own its max_iterations instead")
    if inference not in ("auto", *ITERATIVE):
        raise ParameterError(f"sweeps is for {', '.join(ITERATIVE)}; inference {inference!r} has no such limit")


def _signature(encoder: Encoder, graph_field: GraphField) -> tuple[Any, ...]:
    """What two models must share for the weights of one to mean the same in the other."""
    metadata, tensors = encoder.parts()
    arrays = [(name, array.tolist()) for name, array in sorted(tensors.items())]
    return graph_field.node_form, graph_field.edge_form, sorted(metadata.items(), key=lambda item: item[0]), arrays
