"""Composite likelihood of edges: every pair of neighbours given all other labels (Lindsay 1988).

loss = Σ_{(i,j)} weight · −log p(y_i, y_j | all other labels) + Σ_{i without edges} weight · −log p(y_i)

A pair's distribution is over K² states and depends on the neighbours of i and of j other than each other. On a graph
of one edge this is the likelihood; a node counts once for each of its edges. Exact and convex, without inference;
closer to the likelihood than the pseudo-likelihood where neighbours depend strongly on each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from numpy.typing import ArrayLike

from crfkit import _core
from crfkit.data.graphs import GraphData
from crfkit.data.sequences import Floats
from crfkit.fields.graph import GraphField
from crfkit.inference.chain import count_threads
from crfkit.losses.pseudo import known_labels
from crfkit.protocols import Evaluation


class CompositeLikelihood:
    """The negative log-composite likelihood of the edges of fully labelled graphs.

    >>> import numpy as np
    >>> from crfkit.data.graph import Graph
    >>> from crfkit.fields.graph import tied_field
    >>> data = GraphData.make(Graph.grid((2, 2)), labels=np.array([0, 0, 1, 1]))
    >>> loss = CompositeLikelihood(data, tied_field(data, 2, "ising", "ising"))
    >>> round(float(loss.at(np.zeros(loss.size)).value / np.log(4)), 12)  # four edges
    4.0
    """

    name = "composite likelihood"
    capabilities = frozenset({"smooth", "subset"})

    def __init__(self, data: GraphData, field: GraphField, n_threads: int | None = None) -> None:
        self.labels = known_labels(data, field, self.name)
        self.data = data
        self.field = field
        self.n_threads = n_threads

    @property
    def size(self) -> int:
        return self.field.size

    @property
    def layout(self) -> Mapping[str, slice]:
        return self.field.layout

    def at(self, w: Floats, warm: Evaluation | None = None) -> CompositeEvaluation:
        return CompositeEvaluation(self, w)

    def subset(self, ids: ArrayLike) -> CompositeLikelihood:
        """The loss of some graphs only."""
        return CompositeLikelihood(self.data.take(ids), self.field, self.n_threads)


class CompositeEvaluation:
    """A composite likelihood at w; value and gradient are computed together when either is first asked for."""

    def __init__(self, loss: CompositeLikelihood, w: Floats) -> None:
        self.w = w
        self._loss = loss

    @cached_property
    def _both(self) -> tuple[float, Floats]:
        loss = self._loss
        potentials = loss.field.potentials(loss.data, self.w)
        value, nodes, edges = _core.composite_value(
            loss.data.graph.native,
            potentials.unary,
            potentials.coefficients,
            potentials.basis,
            loss.labels,
            loss.data.node_weights,
            count_threads(loss.n_threads),
        )
        return value, loss.field.adjoint(loss.data, nodes, edges)

    @property
    def value(self) -> float:
        return self._both[0]

    @property
    def grad(self) -> Floats:
        return self._both[1]

    def hessp(self, v: Floats) -> Floats:
        raise NotImplementedError(f"the {self._loss.name} has no hessp")

    def hess_diag(self) -> Floats:
        raise NotImplementedError(f"the {self._loss.name} has no hess_diag")
