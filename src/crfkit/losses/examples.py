"""Small data for the examples of losses, which the laws of losses are tested with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crfkit.data.graph import Graph
from crfkit.data.graphs import GraphData
from crfkit.data.observations import Observations
from crfkit.data.sequences import SequenceData
from crfkit.fields.chain import ChainField
from crfkit.fields.graph import GraphField


def chain_example() -> tuple[SequenceData, ChainField]:
    """Return four sequences of three labels and five attributes, and the field of all their weights."""
    rng = np.random.default_rng(0)
    lengths = (3, 1, 4, 2)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    attributes = np.sort(rng.integers(0, 5, size=(sum(lengths), 2), dtype=np.int32), axis=1)
    offsets = np.arange(0, attributes.size + 1, 2)
    data = SequenceData(starts, offsets, attributes.ravel(), labels=rng.integers(0, 3, sum(lengths), np.int32))
    return data, ChainField.from_data(data, 3, 5, all_states=True, all_transitions=True)


def weak_chain_example() -> tuple[SequenceData, ChainField]:
    """Return the same with labels that are known in part, and weights of the positions."""
    data, field = chain_example()
    rng = np.random.default_rng(1)
    assert data.labels is not None
    targets = rng.random((data.n_positions, 3)) < 0.3
    targets[np.arange(data.n_positions), data.labels] = True
    weights = rng.choice([0.5, 1.0, 2.0], data.n_positions)
    return replace(data, labels=None, targets=targets, token_weights=weights), field


def graph_example() -> tuple[GraphData, GraphField]:
    """Return six labelled cycles of four nodes with two features, and the tied field of two labels."""
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph(4, np.array([(0, 1), (1, 2), (2, 3), (3, 0)], np.int32))] * 6)
    features = rng.normal(size=(graph.n_nodes, 2))
    labels = (features[:, 0] + rng.normal(size=graph.n_nodes) > 0).astype(np.int32)
    data = GraphData.make(graph, features, labels=labels)
    return data, GraphField(np.array([2], np.int32), data.node_features.shape[1], data.edge_features.shape[1])


def table_example() -> Observations:
    """Return forty rows of four variables with two states, of which the first two are often equal."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, size=(40, 4))
    rows[:, 1] = np.where(rng.random(40) < 0.7, rows[:, 0], rows[:, 1])
    return Observations.of(rows, [2] * 4)
