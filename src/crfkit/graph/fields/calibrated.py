"""A field whose nodes have the probabilities of another model: one temperature, a bias per state.

U_i(k) = β · log q_i(k) + b_k,    h_i = [1, log q_i(1) … log q_i(K)]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfkit._types import Floats
from crfkit.graph.fields.field import GraphField


@dataclass(frozen=True, eq=False)
class CalibratedField(GraphField):
    """Node weights are β and b_1 … b_K; edges are those of a :class:`GraphField`.

    >>> field = CalibratedField(np.array([3]), 4, 2, edge_form="potts")
    >>> field.n_node_weights, field.size
    (4, 6)
    >>> field.unpack(np.array([2.0, 0.1, 0.2, 0.3, 1.0, -1.0]))[0][0].tolist()
    [[0.1, 2.0, 0.0, 0.0], [0.2, 0.0, 2.0, 0.0], [0.3, 0.0, 0.0, 2.0]]
    """

    @property
    def n_node_weights(self) -> int:
        return 1 + self.max_states

    def unpack(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (node weights [1, K, 1 + K] with the temperature on the diagonal, edge weights [1, B, g])."""
        K = self.max_states
        nodes = np.zeros((1, K, 1 + K))
        nodes[0, :, 0] = w[1 : 1 + K]
        nodes[0, np.arange(K), 1 + np.arange(K)] = w[0]
        return nodes, w[self.layout["edge"]].reshape(1, len(self.edge_basis), self.n_edge_features)

    def pack(self, nodes: Floats, edges: Floats) -> Floats:
        """Return the transpose of unpack."""
        places = np.arange(self.max_states)
        return np.concatenate([[nodes[0, places, 1 + places].sum()], nodes[0, :, 0], edges[0].ravel()])
