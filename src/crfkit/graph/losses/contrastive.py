"""Contrastive divergence (Hinton 2002): a gradient from short Gibbs chains, and no value.

    ∇ ≈ Σ_g weight_g · (statistics of y⁽ᵏ⁾ − statistics of y),    y⁽ᵏ⁾: the labels y after k Gibbs sweeps at w

For k → ∞ its expectation is the gradient of the negative log-likelihood; for small k it is no function's gradient at
all (Sutskever & Tieleman 2010). Persistent (Tieleman 2008): the chains continue from the last evaluation.
"""

from __future__ import annotations

import math

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.errors import DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.inference.gibbs import gibbs_sweeps
from crfkit.protocols import Capability, Evaluation, LossOptions
from crfkit.protocols.field_loss import FieldLoss, LazyEvaluation


class ContrastiveDivergence(FieldLoss):
    """The gradient of contrastive divergence on labelled graphs; for solvers that need no value ("adam").

    Every evaluation has random numbers of its own, named by the seed and the number of evaluations before it: a new
    loss with the same seed repeats them. On forests a sweep is an exact draw, so the gradient is unbiased.

    Parameters
    ----------
    n_sweeps : k.
    persistent : whether chains continue from evaluation to evaluation; otherwise they start at the labels each time
    seed : of the sweeps.

    >>> from crfkit.graph.graph import Graph
    >>> from crfkit.graph.fields.field import tied_field
    >>> from crfkit.penalties import L2
    >>> from crfkit.solvers import Adam
    >>> data = GraphData.make(Graph.grid((8, 8)), labels=np.arange(64) // 8 % 2)
    >>> loss = ContrastiveDivergence(data, tied_field(data, 2, "ising", "ising"))
    >>> result = Adam(max_iterations=5).minimize(loss, L2(1.0), np.zeros(loss.size))
    >>> result.objective
    'contrastive divergence (1 sweep) + L2(1), a gradient without a value'
    """

    capabilities = frozenset({Capability.GRADIENT})

    field: GraphField

    @classmethod
    def example(cls) -> ContrastiveDivergence:
        from crfkit.graph.losses.examples import graph_example

        return cls(*graph_example())

    @classmethod
    def make(cls, data: GraphData, field: GraphField, options: LossOptions) -> ContrastiveDivergence:
        persistent = options.name.startswith("persistent")
        return cls(data, field, persistent=persistent, seed=options.seed, n_threads=options.n_threads)

    def __init__(
        self,
        data: GraphData,
        field: GraphField,
        n_sweeps: int = 1,
        persistent: bool = False,
        seed: int = 0,
        n_threads: int | None = None,
    ) -> None:
        for name, value, least in (("n_sweeps", n_sweeps, 1), ("seed", seed, 0)):
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
                raise ParameterError(f"{name} must be an integer >= {least}, not {value!r}")
        field.check(data)
        if data.graph.n_nodes == 0:
            raise DataError("there are no nodes to learn from")
        if data.labels is None:
            raise DataError("contrastive divergence starts its chains at the labels, but the data have none")
        if (unknown := np.flatnonzero(data.labels < 0)).size:
            raise DataError(
                f"node {unknown[0]} has no label; contrastive divergence needs all labels: use the likelihood instead"
            )
        self.data = data
        self.field = field
        self.n_sweeps = n_sweeps
        self.persistent = persistent
        self.seed = seed
        self.n_threads = n_threads
        sweeps = f"{n_sweeps} sweep{'s' if n_sweeps > 1 else ''}"
        self.name = f"{'persistent ' if persistent else ''}contrastive divergence ({sweeps})"
        self._labels: Ids = data.labels
        self._chains: Ids = data.labels  # where the next evaluation's start
        self._evaluations = 0

    def at(self, w: Floats, warm: Evaluation | None = None) -> ContrastiveEvaluation:
        number, self._evaluations = self._evaluations, self._evaluations + 1
        return ContrastiveEvaluation(self, w, number)

    def _gradient(self, w: Floats, number: int) -> Floats:
        data, field, old = self.data, self.field, self._labels
        potentials = field.potentials(data, w)
        y = gibbs_sweeps(potentials, self._chains, self.n_sweeps, self.seed, number, n_threads=self.n_threads)
        if self.persistent:
            self._chains = y
        i, (a, b) = np.arange(data.graph.n_nodes), data.graph.edges.T
        nodes = np.zeros((data.graph.n_nodes, field.max_states))
        nodes[i, y] += data.node_weights
        nodes[i, old] -= data.node_weights
        change = field.edge_basis[:, y[a], y[b]] - field.edge_basis[:, old[a], old[b]]
        return field.adjoint(data, nodes, change.T * data.edge_weights[:, None])


class ContrastiveEvaluation(LazyEvaluation):
    """Contrastive divergence at w. The chains run once, when the gradient is first needed."""

    def __init__(self, loss: ContrastiveDivergence, w: Floats, number: int) -> None:
        super().__init__(loss, w)
        self._number = number

    @property
    def value(self) -> float:
        return math.nan  # there is none

    def _evaluate(self) -> tuple[float, Floats]:
        return math.nan, self._loss._gradient(self.w, self._number)
