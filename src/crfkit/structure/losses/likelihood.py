"""Likelihood of a table whose graph is to be learned: inference on the graph of active edges only.

Without inputs the data enter as counts, and inference runs once for any number of rows. The gradient by an inactive
edge is Σ_n c_n x_n (p(y_i, y_j) − observed). Where inference is exact, p(y_i, y_j) is the true marginal of the
pair; under belief propagation and mean field the product of both node marginals is the exact derivative of what they
compute. (Under tree-reweighted inference it is that for given edge probabilities, which change with the graph.)
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Entries, Floats
from crfkit.graph.data import GraphData
from crfkit.graph.graph import Graph
from crfkit.graph.inference.defaults import default_engine
from crfkit.graph.inference.junction import Junction
from crfkit.graph.inference.marginals import Engine
from crfkit.graph.losses.likelihood import GraphEvaluation, GraphLikelihood
from crfkit.protocols import Capability, Evaluation
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.observations import Observations


class StructureLikelihood(EdgeLoss):
    """The negative log-likelihood of a table, given its active edges, as the engine computes it.

    >>> from crfkit.structure.observations import Observations
    >>> table = Observations.of([[0, 0, 1], [1, 1, 0], [1, 1, 1]], [2, 2, 2], ising=True)
    >>> loss = StructureLikelihood(table, engine=Junction())
    >>> ids, scores = loss.candidates(loss.at(np.zeros(loss.size)))
    >>> ids.tolist(), scores.round(12).tolist()
    ([1, 2, 5], [3.0, 1.0, 1.0])
    """

    def __init__(
        self,
        table: Observations,
        pairs: ArrayLike | None = None,
        active: ArrayLike = (),
        engine: Engine | None = None,
    ) -> None:
        super().__init__(table, pairs, active)
        self.engine: Engine = Junction() if engine is None else engine
        self.name = f"likelihood by {self.engine.name}"
        self.capabilities = frozenset({Capability.SMOOTH, Capability.WARM, Capability.CANDIDATES})

    def _options(self) -> Entries:
        return {"engine": self.engine}

    @cached_property
    def data(self) -> GraphData:
        """Counts, or a graph for every row where there are inputs."""
        table, graph = self.table, self.graph
        if table.has_inputs:
            data = GraphData.table(
                len(table.states),
                graph,
                table.features,
                table.states,
                table.weights,
                intercept=False,
                own=table.own,
            )
            if table.edge_inputs:
                return data
            return replace(data, edge_features=np.ones((1, 1)), edge_rows=np.zeros(data.graph.n_edges, dtype=np.int32))
        p, E, K = graph.n_nodes, graph.n_edges, int(table.n_states.max())
        counts = table.pair_counts[0]
        nodes, edges, one = np.zeros((p, K)), np.zeros((E, K, K)), np.ones((1, 1))
        nodes[np.arange(K) < table.n_states[:, None]] = np.diag(counts)
        if int(table.n_states.min()) == K:
            tables = counts.reshape(p, K, p, K)
            edges[:] = tables[self.edges[:, 0], :, self.edges[:, 1], :]
        else:
            for e, (i, j) in enumerate(self.edges):
                edges[e, : table.n_states[i], : table.n_states[j]] = counts[self._block(i), self._block(j)]
        ids = np.arange(max(p, E), dtype=np.int32)
        rows = np.zeros_like(ids)
        total = np.array([table.total])
        return GraphData(
            graph,
            node_features=one,
            edge_features=one,
            node_rows=rows[:p],
            edge_rows=rows[:E],
            node_types=ids[:p],
            edge_types=ids[:E],
            weights=total,
            node_counts=nodes,
            edge_counts=edges,
        )

    def _block(self, i: int) -> slice:
        start = int(self.table.state_starts[i])
        return slice(start, start + int(self.table.n_states[i]))

    @cached_property
    def likelihood(self) -> GraphLikelihood:
        """Return the same loss, of a graph that is known."""
        return GraphLikelihood(self.data, self.field, self.engine)

    def at(self, w: Floats, warm: Evaluation | None = None) -> GraphEvaluation:
        same = isinstance(warm, GraphEvaluation) and warm._loss is self.likelihood
        return self.likelihood.at(w, warm if same else None)

    @property
    def unsettled(self) -> int:
        """Evaluations whose inference had not converged."""
        return self.likelihood.unsettled

    # --- candidates

    def _pair_gradient(self, evaluation: GraphEvaluation) -> Floats:
        table, exact = self.table, self.engine.bound == "exact"
        _ = evaluation.value
        if table.ordinal:
            B = table.score_map.T.toarray()
            means = (
                B.T @ self._exact_pairs(evaluation.w) @ B if exact else self._products(self._beliefs(evaluation) @ B)
            )
            return means - table.spin_products
        if not table.ising:
            expected = self._exact_pairs(evaluation.w) if exact else self._products(self._beliefs(evaluation))
            difference: Floats = expected - table.pair_counts
            return difference * table.weighted_pairs if table.reference else difference
        if not exact:
            Q = self._beliefs(evaluation)
            return self._products(Q[:, 1::2] - Q[:, ::2]) - table.spin_products
        p = table.n_variables
        tables = self._exact_pairs(evaluation.w).reshape(-1, p, 2, p, 2)
        agree = tables[:, :, 0, :, 0] + tables[:, :, 1, :, 1] - tables[:, :, 0, :, 1] - tables[:, :, 1, :, 0]
        return agree - table.spin_products  # of E[s_i s_j]

    def _beliefs(self, evaluation: GraphEvaluation) -> Floats:
        """Return [m or 1, ΣK] marginals of nodes."""
        assert evaluation.marginals is not None
        table = self.table
        used = np.arange(int(table.n_states.max())) < table.n_states[:, None]
        return evaluation.marginals.nodes.reshape(-1, *used.shape)[:, used]

    def _products(self, means: Floats) -> Floats:
        """Return [F, S, S] Σ_n c_n x_n q_i q_j of means [m or 1, S]; right for inactive edges."""
        table = self.table
        if not table.has_inputs:
            return table.total * np.outer(means[0], means[0])[None]
        return table.pair_products(means)

    def _exact_pairs(self, w: Floats) -> Floats:
        """Return [F, ΣK, ΣK] Σ_n c_n x_n p(y_i = a, y_j = b); right above the diagonal, for inactive edges."""
        table = self.table
        p, K = table.n_variables, int(table.n_states.max())
        potentials = self.field.potentials(self.data, w)
        rows = np.arange(len(self.data))  # one graph where there are no inputs
        out = np.zeros_like(table.pair_counts)
        engine = Junction(max_table=1 << 26)
        for i in np.flatnonzero(self._inactive.any(axis=1)).tolist():
            others = np.flatnonzero(self._inactive[i])
            pairs = np.stack(np.broadcast_arrays(rows[:, None] * p + i, rows[:, None] * p + others), axis=-1)
            found = engine.pair_marginals(potentials, pairs.reshape(-1, 2)).reshape(len(rows), len(others), K, K)
            if table.has_inputs:
                weighted = table.weights[:, None, None] * table.pair_features(i, others)
                sums = np.einsum("mjf,mjab->fjab", weighted, found)
            else:
                sums = found * table.total
            for j, block in zip(others.tolist(), np.moveaxis(sums, 1, 0), strict=True):
                out[:, self._block(i), self._block(j)] = block[:, : table.n_states[i], : table.n_states[j]]
        return out


def learning_engine(table: Observations, pairs: ArrayLike | None = None) -> str:
    """Return what "auto" is for a graph that grows: exact if all candidates together allow that, otherwise "trw".

    One engine for all graphs, so there is one objective. StructureLearner uses the pseudo-likelihood instead of
    "trw", which finds clearly worse graphs.
    """
    p = table.n_variables
    graph = Graph.complete(p) if pairs is None else Graph(p, np.asarray(pairs, dtype=np.int32).reshape(-1, 2))
    return default_engine(graph, int(table.n_states.max()), "structure")
