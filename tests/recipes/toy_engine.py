"""Inference that lets every node decide for itself: the first step of mean field, and a lower bound on log Z."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.marginals import InferenceStatus, Marginals


@dataclass(frozen=True)
class ToyEngine:
    """``q_i ∝ exp(U_i)``, and E_q[score] + entropy of q, which is at most log Z whatever q is."""

    n_threads: int | None = None

    name = "toy"
    bound = "lower"

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        graph, unary = potentials.graph, potentials.unary
        top = unary.max(axis=1, keepdims=True)
        q = np.exp(unary - top)
        log_z_alone = np.log(q.sum(axis=1)) + top[:, 0]  # of each node: E[unary] + entropy
        q /= q.sum(axis=1, keepdims=True)
        i, j = graph.edges.T
        pairs = q[i][:, :, None] * q[j][:, None, :]
        expected = np.where(pairs > 0, pairs * np.where(pairs > 0, potentials.tables, 0.0), 0.0).sum(axis=(1, 2))
        log_z = np.zeros(graph.n_graphs)
        for g in range(graph.n_graphs):
            log_z[g] += log_z_alone[slice(*graph.node_offsets[g : g + 2])].sum()
            log_z[g] += expected[slice(*graph.edge_offsets[g : g + 2])].sum()
        return Marginals(log_z, q, lambda: pairs, InferenceStatus.CONVERGED, method=self.name)
