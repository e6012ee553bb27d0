"""From the options of a pairwise field to its training problem: data, field, loss, penalty and solver."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats, Ids, Samples
from crfkit.errors import DataError, ParameterError, option_error
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.tables import TableEncoder
from crfkit.graph.fields.field import EDGE_FORMS, NODE_FORMS, GraphField
from crfkit.graph.inference.defaults import EXACT_ENGINES, default_engine, explain_table_engine, instead_of_exact
from crfkit.graph.inference.engines import ENGINES
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.model import DECODERS, ITERATIVE, Encoder, GraphModel, ready_engine
from crfkit.graph.training.scaling import FieldScales
from crfkit.graph.training.strength import Strength, choose_strength
from crfkit.losses import LOSSES
from crfkit.names import check_name, full_name
from crfkit.penalties import L2, Blockwise
from crfkit.protocols import Kind, Loss, LossOptions, Penalty, Solver
from crfkit.training.defaults import default_solver
from crfkit.training.options import SolverOptions
from crfkit.training.placement import HERE, Placement
from crfkit.wording import Naming, in_python

EDGE_FACTOR = 10.0  # how many times as strongly as nodes the edges of a table are penalised if they have features
START_TOLERANCE = 1e-2  # of iterative inference; solvers lower it as they get near the optimum
LossMaker = Callable[[GraphData, GraphField], Loss]
LossChoice = str | LossMaker


@dataclass(frozen=True, eq=False)
class GraphProblem:
    """A training set with the field, loss, penalty and solver that the options name."""

    encoder: Encoder
    inputs: GraphData  # as they were given; the loss has standardised ones
    field: GraphField
    scales: FieldScales | None  # None where features are not standardised
    loss: Loss
    penalty: Penalty
    solver: Solver
    asked: Solver  # the solver of the options, which may be "auto"
    minimised: Loss  # the loss that the solver sees: the same, or a sum of parts of it elsewhere
    auto_loss: str | None = None  # what loss="auto" means
    strength: Strength | None = None  # of L2, if it was chosen on held-out rows

    def weights_of(self, start: GraphModel | None) -> Floats:
        """Return the weights of `start` if it is a model of the same classes, features and forms.

        Otherwise return those that the search for a strength ended with, or zeros.
        """
        if start is None or _signature(start.encoder, start.field) != _signature(self.encoder, self.field):
            return np.zeros(self.field.size) if self.strength is None else self.strength.weights.copy()
        return np.array(start.w) if self.scales is None else self.scales.from_inputs(self.field, start.w)


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """The options for training a pairwise field, named as in :class:`GraphCRF`."""

    inference: str | Engine = "auto"
    loss: LossChoice = "auto"
    node_form: str | None = None
    edge_form: str | None = None
    decode: str = "auto"
    sweeps: int | None = None
    standardize: bool = False
    edge_penalty: Penalty | None = None
    options: SolverOptions = field(default_factory=SolverOptions)

    announce: Callable[[str], None] | None = None  # is called with notes about surprising choices
    naming: Naming = in_python  # how messages write options
    placement: Placement = HERE

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", full_name(self.loss))

    def check(self) -> None:
        """Raise ParameterError if an option is out of range."""
        self.options.check()
        check_sweeps(self.sweeps, self.inference)
        edges = self.edge_penalty
        if edges is not None and (isinstance(edges, type) or not isinstance(edges, Penalty)):
            raise ParameterError(f"edge_penalty must be None or a penalty such as L2(10.0), not {edges!r}")
        for what, value, names in (
            ("inference", self.inference, ("auto", *ENGINES)),
            ("loss", self.loss, ("auto", *LOSSES.options("graph"))),
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

    def make_problem(
        self, encoder: Encoder, X: Samples, states: Ids, sample_weight: ArrayLike | None = None
    ) -> GraphProblem:
        """Return data, field, loss, penalty and solver for a training set."""
        if self.loss == "auto":
            chosen = self._default_loss(encoder, states)
            problem = replace(self, loss=chosen).make_problem(encoder, X, states, sample_weight)
            return replace(problem, auto_loss=chosen)
        rows = LOSSES.by_option("graph", self.loss).rows if isinstance(self.loss, str) else "all"
        inputs = encoder.training_data(X, states, sample_weight, rows)
        if not inputs.graph_weights.any():
            raise ParameterError("every sample has weight 0; at least one needs a positive weight")
        graph_field = encoder.field(self.node_form or encoder.node_form, self.edge_form or encoder.edge_form)
        if graph_field.size == 0:
            raise DataError("the field has no weights, because there are no features and no intercept")
        scales = FieldScales.of(inputs, encoder.intercept) if self.standardize and inputs.node_counts is None else None
        data = inputs if scales is None else scales.apply(inputs)
        loss = self.make_loss(data, graph_field, encoder)
        solver = asked = self.options.make_solver()
        penalty, strength = self.make_penalty(solver, encoder), None
        if isinstance(encoder, TableEncoder) and self._chooses_strength(encoder, penalty):
            exact = isinstance(loss, GraphLikelihood) and loss.engine.name in EXACT_ENGINES
            strength = choose_strength(
                data, graph_field, encoder, self.options, likelihood=exact, blocks=_takes_blocks(solver)
            )
        if strength is not None:
            penalty = strength.penalty
        if solver.name == "auto" and default_solver(loss, penalty) == "adam":  # a gradient without a value
            solver = replace(self.options, solver="adam").make_solver()
        minimised = self.placement.graph_loss(loss)
        return GraphProblem(
            encoder, inputs, graph_field, scales, loss, penalty, solver, asked, minimised, strength=strength
        )

    def _default_loss(self, encoder: Encoder, states: Ids) -> str:
        """Return the name of the loss that "auto" chooses; announce a likelihood that would be too slow."""
        if not isinstance(encoder, TableEncoder) or self.inference != "auto":
            return "likelihood"
        rows = 1 if encoder.features is None else len(states)
        why = explain_table_engine(encoder.structure, encoder.n_states, rows)
        if not why or (states < 0).any():  # the pseudo-likelihood needs all labels
            return "likelihood"
        if self.announce is not None:
            used = self.naming("loss", "pseudo-likelihood")
            self.announce(f"{why}: training uses {used}. {instead_of_exact(self.naming)}")
        return "pseudo-likelihood"

    def _chooses_strength(self, encoder: TableEncoder, penalty: Penalty) -> bool:
        """Return whether the strength of L2 is chosen on held-out rows: nobody gave one, and there are inputs."""
        asked = self.options.penalty is not None or self.edge_penalty is not None
        suits = isinstance(self.loss, str) and LOSSES.by_option("graph", self.loss).held_out_strength
        return suits and not asked and encoder.has_inputs and isinstance(penalty, (L2, Blockwise))

    def make_penalty(self, solver: Solver, encoder: Encoder) -> Penalty:
        """Return the penalty of the options, with another one for edges if one was given.

        Edges of a table that have the features of the row get a stronger L2 by default.
        """
        penalty, edges = self.options.make_penalty(solver), self.edge_penalty
        if edges is None:
            features = isinstance(encoder, TableEncoder) and encoder.edges_differ
            if not (_takes_blocks(solver) and isinstance(penalty, L2) and features):
                return penalty
            edges = L2(EDGE_FACTOR * penalty.strength)
        if isinstance(penalty, Blockwise):
            raise ParameterError("edge_penalty and a Blockwise penalty both penalise edges; give only one of them")
        return penalty if edges == penalty else Blockwise({"node": penalty, "edge": edges})

    def make_loss(self, data: GraphData, graph_field: GraphField, encoder: Encoder) -> Loss:
        """Return the loss that the options name."""
        if not isinstance(self.loss, str):
            made = self.loss(data, graph_field)
            if not isinstance(made, Loss):
                raise ParameterError(f"the function `loss` returned {made!r}; expected a loss (crfkit.protocols.Loss)")
            return made
        options = LossOptions(
            name=self.loss,
            n_threads=self.options.n_threads,
            seed=self.options.seed,
            engine=lambda: self._engine(data, graph_field, encoder),
            # an engine with options of its own keeps its tolerance
            start_tolerance=START_TOLERANCE if isinstance(self.inference, str) else None,
        )
        return LOSSES.by_option("graph", self.loss).make(data, graph_field, options)

    def _engine(self, data: GraphData, graph_field: GraphField, encoder: Encoder) -> Engine:
        """Return the engine of training; announce an approximate one that was not requested."""
        graph = data.graph.take([0])[0] if data.node_types is not None else data.graph  # rows of a table are alike
        inference, K = self.inference, graph_field.max_states
        if inference == "auto" and isinstance(encoder, TableEncoder):
            states = K if encoder.edges_differ else encoder.n_states
            inference = default_engine(graph, states, "table", len(data))
            if (why := explain_table_engine(graph, states, len(data))) and self.announce is not None:
                used = f"{self.naming('inference', 'trw')}, which is approximate"
                self.announce(f"{why}: training uses {used}. {instead_of_exact(self.naming)}")
        elif inference == "auto":
            inference = default_engine(graph, K, "samples")
        n_threads, seed = self.options.n_threads, self.options.seed
        return ready_engine(inference, graph, graph_field.max_states, n_threads, seed, self.sweeps)

    def _auto_engine(self, loss: Loss, encoder: Encoder) -> str | None:
        """Return what "auto" was for a table, if it was an approximation, so that prediction does the same."""
        decided = self.inference == "auto" and isinstance(encoder, TableEncoder) and isinstance(loss, GraphLikelihood)
        return loss.engine.name if decided and loss.engine.name in ITERATIVE else None


def _takes_blocks(solver: Solver) -> bool:
    """Return whether a solver allows nodes and edges different penalties; some know L2 of all weights only."""
    takes = solver.handles_smooth
    return takes is None or Kind.PARTS in takes


def check_sweeps(sweeps: object, inference: str | Engine) -> None:
    """Raise ParameterError unless `sweeps` is None or a limit that the engine can use."""
    if sweeps is None:
        return
    if isinstance(sweeps, bool) or not isinstance(sweeps, numbers.Integral) or sweeps < 1:
        raise option_error("sweeps", f" must be None or an integer >= 1, not {sweeps!r}")
    if not isinstance(inference, str):
        raise ParameterError("sweeps is for an engine by name; give an engine of your own its max_iterations instead")
    if inference not in ("auto", *ITERATIVE):
        raise ParameterError(f"sweeps is for {', '.join(ITERATIVE)}; inference {inference!r} has no such limit")


def _signature(encoder: Encoder, graph_field: GraphField) -> tuple[object, ...]:
    """Return what two models must share for the weights of one to mean the same in the other."""
    metadata, tensors = encoder.parts()
    arrays = [(name, array.tolist()) for name, array in sorted(tensors.items())]
    return graph_field.node_form, graph_field.edge_form, sorted(metadata.items(), key=lambda item: item[0]), arrays
