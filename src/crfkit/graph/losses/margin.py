"""Margin losses of labelled graphs, with a cost for each wrong node.

softmax margin   Σ_g weight_g · (log Σ_y exp(score(y) + cost(y_g, y)) − score(y_g))      (Gimpel & Smith 2010)
hinge            Σ_g weight_g · (max_y (score(y) + cost(y_g, y)) − score(y_g))           (Taskar et al. 2003)

cost(y_g, y) = Σ_i cost[y_gi, y_i] is added to the unary potentials, so that any engine computes the first and any
decoder the second. Nodes whose label is not known have no cost.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats
from crfkit.errors import DataError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.decoding import Decoding, decode
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.losses.labelled import LabelledLoss
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.protocols import Capability, Evaluation
from crfkit.protocols.field_loss import LazyEvaluation
from crfkit.training.costs import cost_matrix


def node_costs(data: GraphData, cost: Floats) -> Floats:
    """[n, K] the cost of each state of each node; 0 where its label is not known."""
    if data.labels is None:
        raise DataError("margin losses need the labels themselves: the data have none")
    known = data.labels >= 0
    costs: Floats = np.where(known[:, None], cost[np.maximum(data.labels, 0)], 0.0)
    return costs


class GraphSoftmaxMargin(GraphLikelihood):
    """Likelihood in a field where wrong states score higher by their cost: a smooth margin. `cost` None: Hamming.

    >>> from crfkit.graph.graph import Graph
    >>> from crfkit.graph.fields.field import tied_field
    >>> from crfkit.graph.inference.engines import make_engine
    >>> data = GraphData.make(Graph.path(2), labels=[0, 1])
    >>> loss = GraphSoftmaxMargin(data, tied_field(data, 2), make_engine("tree"))
    >>> round(float(loss.at(np.zeros(loss.size)).value / np.log(1 + np.e)), 12)
    2.0
    """

    takes_cost = True
    sums_over_unknown = held_out_strength = False
    rows = "all"

    def __init__(
        self,
        data: GraphData,
        field: GraphField,
        engine: Engine,
        cost: ArrayLike | None = None,
        start_tolerance: float | None = None,
    ) -> None:
        super().__init__(data, field, engine, start_tolerance)
        self.cost = cost_matrix(cost, field.max_states)
        self.name = f"softmax margin by {engine.name}"
        self._costs = node_costs(data, self.cost)

    def augmented(self, potentials: Potentials) -> Potentials:
        return replace(potentials, unary=potentials.unary + self._costs)

    def subset(self, ids: ArrayLike) -> GraphSoftmaxMargin:
        """The loss of some graphs only."""
        return GraphSoftmaxMargin(self.data.take(ids), self.field, self.engine, self.cost)


class GraphHinge(LabelledLoss):
    """The margin loss of structured support vector machines; not smooth. `cost` None: Hamming.

    Its subgradient needs the best labelling in the field with costs, by `decode`. Where that is not proved to be the
    best (`decoding.optimal` of an evaluation), value and subgradient are those of the labelling found: a lower bound.

    >>> from crfkit.graph.graph import Graph
    >>> from crfkit.graph.fields.field import tied_field
    >>> data = GraphData.make(Graph.path(3), labels=[0, 1, 1])
    >>> GraphHinge(data, tied_field(data, 2)).at(np.zeros(6)).value  # three wrong nodes are best
    3.0
    """

    name = "structured hinge"
    takes_cost = True
    capabilities = frozenset({Capability.GRADIENT, Capability.SUBSET})

    def __init__(
        self,
        data: GraphData,
        field: GraphField,
        n_threads: int | None = None,
        cost: ArrayLike | None = None,
        decoder: str = "auto",
    ) -> None:
        super().__init__(data, field, n_threads)
        self.cost = cost_matrix(cost, field.max_states)
        self.decoder = decoder
        self._costs = node_costs(data, self.cost)

    def at(self, w: Floats, warm: Evaluation | None = None) -> HingeEvaluation:
        return HingeEvaluation(self, w)

    def subset(self, ids: ArrayLike) -> GraphHinge:
        """The loss of some graphs only."""
        return GraphHinge(self.data.take(ids), self.field, self.n_threads, self.cost, self.decoder)


class HingeEvaluation(LazyEvaluation):
    """A structured hinge at w: value and a subgradient."""

    decoding: Decoding | None = None

    def _evaluate(self) -> tuple[float, Floats]:
        loss = self._loss
        data, field = loss.data, loss.field
        potentials = field.potentials(data, self.w)
        worst = replace(potentials, unary=potentials.unary + loss._costs)
        found = self.decoding = decode(worst, loss.decoder, loss.n_threads)
        # A decoder that is not exact may lose to the labels themselves, whose margin is 0.
        margins = worst.score(found.labels) - potentials.score(loss.labels)
        violated = margins > 0
        value = float(data.graph_weights @ np.maximum(margins, 0.0))
        labels = np.where(np.repeat(violated, np.diff(data.graph.node_offsets)), found.labels, loss.labels)
        nodes, edges = field.observed(replace(data, labels=labels.astype(np.int32)))
        true_nodes, true_edges = field.observed(data)
        return value, field.adjoint(data, nodes - true_nodes, edges - true_edges)
