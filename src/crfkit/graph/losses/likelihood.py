"""The likelihood of a pairwise field under any inference engine.

    loss = Σ_g weight_g · (log Z_g − log Z_g restricted to the labels that are known)

Fully labelled, the second term is the score of the labels. With an approximate engine log Z is its approximation
(Bethe free energy, mean-field bound), which is what the gradient differentiates where the engine has converged.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats
from crfkit.errors import DataError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.basis import projected
from crfkit.graph.fields.field import GraphField
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.marginals import Engine, IterativeEngine, Marginals
from crfkit.protocols import Capability, Evaluation, LossOptions
from crfkit.protocols.field_loss import FieldLoss, LazyEvaluation


class GraphLikelihood(FieldLoss):
    """The negative log-likelihood of labelled graphs, as the engine computes it.

    >>> from crfkit.graph.graph import Graph
    >>> from crfkit.graph.fields.field import tied_field
    >>> from crfkit.graph.inference.engines import make_engine
    >>> data = GraphData.make(Graph.grid((2, 2)), labels=[0, 0, 1, -1])
    >>> loss = GraphLikelihood(data, tied_field(data, 2, "ising", "ising"), make_engine("junction"))
    >>> round(float(loss.at(np.zeros(loss.size)).value / np.log(2)), 12)  # three known labels
    3.0
    """

    capabilities = frozenset({Capability.SMOOTH, Capability.SUBSET, Capability.WARM})
    sums_over_unknown = held_out_strength = shardable = True
    rows = "counts"
    rounding: float = 2.0**-52
    trusted: float = math.inf  # the error of inference is not known: it is measured

    @classmethod
    def make(cls, data: GraphData, field: GraphField, options: LossOptions) -> GraphLikelihood:
        assert options.engine is not None
        return cls(data, field, options.engine(), start_tolerance=options.start_tolerance)

    @classmethod
    def example(cls) -> GraphLikelihood:
        from crfkit.graph.inference.junction import Junction
        from crfkit.graph.losses.examples import graph_example

        return cls(*graph_example(), Junction(n_threads=1))

    def __init__(
        self, data: GraphData, field: GraphField, engine: Engine, start_tolerance: float | None = None
    ) -> None:
        """`start_tolerance` is for engines with a tolerance: evaluations begin with this one, and solvers lower it to
        that of the engine as they get near the optimum (the capability "precision")."""
        field.check(data)
        if data.graph.n_nodes == 0:
            raise DataError("there are no nodes to learn from")
        self.data = data
        self.field = field
        self.engine = engine
        self.name = f"graph likelihood by {engine.name}"
        self.unsettled = 0  # evaluations whose inference had not converged
        self._partly = data.labels is not None and bool((data.labels < 0).any())
        self._observed = None if self._partly else field.observed_weights(data)
        self.last: GraphEvaluation | None = None  # the last that was computed
        if start_tolerance is not None and isinstance(engine, IterativeEngine):
            self.capabilities = self.capabilities | {Capability.PRECISION}
            self.finest = float(engine.tolerance)
            self.tolerance = max(self.finest, start_tolerance)

    def at(self, w: Floats, warm: Evaluation | None = None) -> GraphEvaluation:
        return GraphEvaluation(self, w, warm if isinstance(warm, GraphEvaluation) else None)

    def augmented(self, potentials: Potentials) -> Potentials:
        """The field whose log Z is in the loss; margin losses add costs to it."""
        return potentials

    def subset(self, ids: ArrayLike) -> GraphLikelihood:
        """The loss of some graphs only."""
        return GraphLikelihood(self.data.take(ids), self.field, self.engine)


class GraphEvaluation(LazyEvaluation):
    """A graph likelihood at w. Inference runs once, when value or gradient is first needed."""

    def __init__(self, loss: GraphLikelihood, w: Floats, warm: GraphEvaluation | None) -> None:
        super().__init__(loss, w)
        self._warm = warm
        self.marginals: Marginals | None = None
        self.clamped: Marginals | None = None  # given the labels that are known, where some are not

    def _evaluate(self) -> tuple[float, Floats]:
        loss, warm, self._warm = self._loss, self._warm, None
        loss.last = self
        data, field = loss.data, loss.field
        potentials = field.potentials(data, self.w)
        free = self.marginals = self._run(loss.augmented(potentials), warm.marginals if warm else None)
        value = float(data.graph_weights @ free.log_z)
        gradient = self._expected(free, potentials)
        if loss._observed is None:
            assert data.labels is not None
            fixed = self.clamped = self._run(potentials.clamp(data.labels), warm.clamped if warm else None)
            value -= float(data.graph_weights @ fixed.log_z)
            return value, gradient - self._expected(fixed, potentials)
        value -= float(self.w @ loss._observed)  # the score of the labels
        return value, gradient - loss._observed

    def _run(self, potentials: Potentials, warm: Marginals | None) -> Marginals:
        engine: Any = self._loss.engine
        if Capability.PRECISION in self._loss.capabilities:
            engine = replace(engine, tolerance=self._loss.tolerance)
        marginals: Marginals = engine.run(potentials, warm)
        if not marginals.status.settled:
            self._loss.unsettled += 1
        return marginals

    def _expected(self, marginals: Marginals, potentials: Potentials) -> Floats:
        """Return the gradient of Σ weight · log Z: expectations of what each weight multiplies."""
        data, field = self._loss.data, self._loss.field
        nodes = marginals.nodes * data.node_weights[:, None]
        if marginals.edge_sums is not None and data.edge_types is not None and field.shares_edges(data):
            sums = projected(marginals.edge_sums(data.graph_weights), potentials.basis)  # of the edges of one graph
            by_type = np.zeros((field.n_edge_types, len(potentials.basis)))
            np.add.at(by_type, data.edge_types[: len(sums)], sums)
            sum_of_edges: Floats = field.adjoint_of_sums(data, nodes, by_type)
            return sum_of_edges
        each: Floats = field.adjoint(data, nodes, marginals.moments(potentials.basis) * data.edge_weights[:, None])
        return each
