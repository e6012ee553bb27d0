"""Composite likelihood of edges: every pair of neighbours given all other labels (Lindsay 1988).

loss = Σ_{(i,j)} weight · −log p(y_i, y_j | all other labels) + Σ_{i without edges} weight · −log p(y_i)

A pair's distribution is over K² states and depends on the neighbours of i and of j other than each other. On a graph
of one edge this is the likelihood; a node counts once for each of its edges. Exact and convex, without inference;
closer to the likelihood than the pseudo-likelihood where neighbours depend strongly on each other.
"""

from __future__ import annotations

from crfkit import _core
from crfkit._types import Floats
from crfkit.graph.losses.labelled import LabelledLoss
from crfkit.protocols import Capability, Evaluation
from crfkit.protocols.field_loss import LazyEvaluation


class CompositeLikelihood(LabelledLoss):
    """The negative log-composite likelihood of the edges of fully labelled graphs.

    >>> import numpy as np
    >>> from crfkit import Graph, GraphData
    >>> from crfkit.graph.fields.field import tied_field
    >>> data = GraphData.make(Graph.grid((2, 2)), labels=np.array([0, 0, 1, 1]))
    >>> loss = CompositeLikelihood(data, tied_field(data, 2, "ising", "ising"))
    >>> round(float(loss.at(np.zeros(loss.size)).value / np.log(4)), 12)  # four edges
    4.0
    """

    name = "composite likelihood"
    sees_neighbours = held_out_strength = True
    rows = "distinct"
    capabilities = frozenset({Capability.SMOOTH, Capability.SUBSET})

    def at(self, w: Floats, warm: Evaluation | None = None) -> CompositeEvaluation:
        return CompositeEvaluation(self, w)


class CompositeEvaluation(LazyEvaluation):
    """A composite likelihood at w; value and gradient are computed together when either is first needed."""

    def _evaluate(self) -> tuple[float, Floats]:
        loss = self._loss
        value, nodes, edges = _core.composite_value(*loss.native_arrays(self.w))
        return value, loss.field.adjoint(loss.data, nodes, edges)
