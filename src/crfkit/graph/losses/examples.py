"""Small data for the examples of graph losses, which the laws of losses are tested with."""

from __future__ import annotations

import numpy as np

from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.graph import Graph


def graph_example() -> tuple[GraphData, GraphField]:
    """Return six labelled cycles of four nodes with two features, and the tied field of two labels."""
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph(4, np.array([(0, 1), (1, 2), (2, 3), (3, 0)], np.int32))] * 6)
    features = rng.normal(size=(graph.n_nodes, 2))
    labels = (features[:, 0] + rng.normal(size=graph.n_nodes) > 0).astype(np.int32)
    data = GraphData.make(graph, features, labels=labels)
    return data, GraphField(np.array([2], np.int32), data.node_features.shape[1], data.edge_features.shape[1])
