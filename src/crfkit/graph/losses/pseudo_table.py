"""The pseudo-likelihood of tables, in the core from weights to gradient."""

from __future__ import annotations

import numpy as np

from crfkit import _core
from crfkit._types import Features, Floats, Ids
from crfkit.graph.data import GraphData
from crfkit.graph.fields.basis import native_basis
from crfkit.graph.fields.field import GraphField


def pseudo_table(data: GraphData, field: GraphField, labels: Ids) -> _core.PseudoTable | None:
    """None unless all graphs are copies of one, with weights for each of its nodes and edges and dense features."""
    N = len(data)
    n, E = field.n_types, field.n_edge_types
    graph = data.graph
    if graph.n_nodes != N * n or graph.n_edges != N * E:
        return None
    edges = graph.edges.reshape(N, E, 2)
    shift = n * np.arange(N)[:, None, None]
    for given, count in ((data.node_types, n), (data.edge_types, E)):
        if count and (given is None or not np.array_equal(given, np.tile(np.arange(count), N))):
            return None
    if not np.array_equal(graph.node_offsets, n * np.arange(N + 1)) or not np.array_equal(edges, edges[:1] + shift):
        return None
    bank = _Bank()
    node_columns = bank.add(data.node_features, data.node_rows, N, n)
    edge_columns = bank.add(data.edge_features, data.edge_rows, N, E)
    if node_columns is None or edge_columns is None:
        return None
    return _core.PseudoTable(
        field.n_states.astype(np.int32),
        labels.reshape(N, n).astype(np.int32),
        data.graph_weights,
        np.array(bank.columns).reshape(len(bank.columns), N),
        node_columns,
        field.node_basis,
        field.node_active,
        np.ascontiguousarray(edges[0], dtype=np.int32),
        edge_columns,
        native_basis(field.edge_basis),
        field.edge_active,
    )


class _Bank:
    """Columns of features [N]. Equal ones are kept once: features of an edge are often those of its nodes."""

    def __init__(self) -> None:
        self.columns: list[Floats] = []
        self._known: dict[bytes, int] = {}

    def add(self, features: Features, rows: Ids | None, N: int, T: int) -> Ids | None:
        """[T, d] the columns of the features of each type; None if a node (edge) shares its row with another's."""
        if not isinstance(features, np.ndarray):
            return None
        d = features.shape[1]
        if rows is None:
            columns = np.ascontiguousarray(features.reshape(N, T, d).transpose(1, 2, 0), dtype=np.float64)
            return np.array([self._place(column) for column in columns.reshape(T * d, N)], np.int32).reshape(T, d)
        rows = rows.reshape(N, T)
        if T and (rows != rows[:, :1]).any():
            return None
        columns = np.ascontiguousarray(features[rows[:, 0] if T else np.zeros(N, np.int32)].T, dtype=np.float64)
        shared = np.array([self._place(column) for column in columns], dtype=np.int32)
        return np.tile(shared, (T, 1))

    def _place(self, column: Floats) -> int:
        place = self._known.setdefault(column.tobytes(), len(self.columns))
        if place == len(self.columns):
            self.columns.append(column)
        return place
