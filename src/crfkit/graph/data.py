"""Encoded graphs: structure, features, labels; many graphs as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from crfkit._checks import check_features, mark_checked, unmasked, weights_of, whole_numbers
from crfkit._types import Array, Features, Floats, Ids, Ints, Samples
from crfkit.errors import DataError
from crfkit.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class GraphData:
    """Graphs with features and, for training, labels.

    Node i has the feature row ``node_rows[i]`` (None: row i) and the type ``node_types[i]`` (None: all 0): fields
    have a set of weights per type, so one type is a tied field and a type per variable an untied one. Edges alike.
    Labels are state numbers, −1 where not known. Where only counts are known (fields without inputs), ``node_counts``
    and ``edge_counts`` stand in place of labels: one graph then stands for ``weights[0]`` samples.

    >>> data = GraphData.make(Graph.path(3), [[0.1], [0.7], [0.2]], labels=[0, 1, -1])
    >>> data.node_features.tolist()  # an intercept and the feature
    [[1.0, 0.1], [1.0, 0.7], [1.0, 0.2]]
    >>> len(GraphData.table(5, Graph.complete(3), Y=np.zeros((5, 3), dtype=int)))
    5
    """

    graph: Graph
    node_features: Features  # [R, d]
    edge_features: Features  # [S, g]
    node_rows: Ids | None = None  # [n]
    edge_rows: Ids | None = None  # [E]
    node_types: Ids | None = None  # [n]
    edge_types: Ids | None = None  # [E]
    labels: Ids | None = None  # [n]
    weights: Floats | None = None  # [G]
    node_counts: Floats | None = None  # [n, K]
    edge_counts: Floats | None = None  # [E, K, K]

    def __post_init__(self) -> None:
        graph = self.graph
        for kind, count in (("node", graph.n_nodes), ("edge", graph.n_edges)):
            features = check_features(getattr(self, f"{kind}_features"), f"{kind} features")
            self._set(f"{kind}_features", features)
            rows = self._ids(f"{kind}_rows", count, features.shape[0])
            if rows is None and features.shape[0] != count:
                raise DataError(f"{features.shape[0]} rows of {kind} features for {count} {kind}s")
            self._ids(f"{kind}_types", count, None)
        if self.labels is not None:
            labels = whole_numbers(self.labels, "labels", (graph.n_nodes,))
            if (bad := np.flatnonzero(labels < -1)).size:
                raise DataError(f"node {bad[0]} has label {labels[bad[0]]}; states are numbered from 0, −1 is unknown")
            self._set("labels", labels)
        if self.weights is not None:
            self._set("weights", weights_of(self.weights, "graph", graph.n_graphs))
        self._check_counts()

    def _check_counts(self) -> None:
        if (self.node_counts is None) != (self.edge_counts is None):
            raise DataError("node_counts and edge_counts go together: give both or neither")
        if self.node_counts is None or self.edge_counts is None:
            return
        nodes = np.asarray(unmasked(self.node_counts, "node counts"), dtype=np.float64)
        edges = np.asarray(unmasked(self.edge_counts, "edge counts"), dtype=np.float64)
        K = nodes.shape[1] if nodes.ndim == 2 else 0
        if nodes.shape != (self.graph.n_nodes, K) or edges.shape != (self.graph.n_edges, K, K):
            raise DataError(
                f"counts have the shapes {nodes.shape} and {edges.shape}; expected (nodes, states) and "
                "(edges, states, states)"
            )
        self._set("node_counts", nodes)
        self._set("edge_counts", edges)

    def _set(self, name: str, array: Array) -> None:
        object.__setattr__(self, name, array)

    def _ids(self, name: str, count: int, end: int | None) -> Ids | None:
        given = getattr(self, name)
        if given is None:
            return None
        ids = whole_numbers(given, name, (count,))
        if count and (ids.min() < 0 or (end is not None and ids.max() >= end)):
            raise DataError(f"{name} must be numbers from 0{'' if end is None else f' to {end - 1}'}")
        self._set(name, ids)
        return ids

    # --- builders

    @classmethod
    def make(
        cls,
        graph: Graph,
        node_features: Features = None,
        edge_features: Features = None,
        labels: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        intercept: bool = True,
    ) -> GraphData:
        """Return data with features per node and per edge; `intercept` adds a first column of ones (None: no other)."""
        nodes, node_rows = with_intercept(node_features, graph.n_nodes, intercept, "node features")
        edges, edge_rows = with_intercept(edge_features, graph.n_edges, intercept, "edge features")
        return cls(graph, nodes, edges, node_rows, edge_rows, labels=labels, weights=weights)  # type: ignore[arg-type]

    @classmethod
    def table(
        cls,
        n_samples: int,
        structure: Graph,
        X: Samples = None,
        Y: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        intercept: bool = True,
        own: Floats | None = None,
    ) -> GraphData:
        """Return a table of `n_samples` rows: every row is a copy of `structure`, a type per variable and per edge.

        X [samples, features] is shared by all nodes and edges of a row; Y [samples, variables] are states, −1 unknown.
        With features of its `own` [samples, variables, d] node i has [1, x, f_i], an edge [1, x, f_i, f_j].
        """
        n, E = structure.n_nodes, structure.n_edges
        features, rows = with_intercept(X, n_samples, intercept, "features")
        row = np.zeros(n_samples, dtype=np.int32) if rows is not None else np.arange(n_samples, dtype=np.int32)
        labels = None
        if Y is not None:
            labels = whole_numbers(Y, "labels", (n_samples, n)).ravel()
        nodes: Features = features
        edges: Features = features
        node_rows: Ids | None = np.repeat(row, n)
        edge_rows: Ids | None = np.repeat(row, E)
        if own is not None:
            i, j = structure.edges.T
            x: Floats = features if isinstance(features, np.ndarray) else features.toarray()
            d = own.shape[2]
            nodes = np.hstack([x[node_rows], own.reshape(-1, d)])
            edges = np.hstack([x[edge_rows], own[:, i].reshape(-1, d), own[:, j].reshape(-1, d)])
            node_rows = edge_rows = None
        return cls(
            structure.repeat(n_samples),
            nodes,
            edges,
            node_rows,
            edge_rows,
            np.tile(np.arange(n, dtype=np.int32), n_samples),
            np.tile(np.arange(E, dtype=np.int32), n_samples),
            labels,
            weights,  # type: ignore[arg-type]
        )

    @classmethod
    def counts(cls, structure: Graph, Y: ArrayLike, n_states: int, weights: ArrayLike | None = None) -> GraphData:
        """Return a table without inputs, as its sufficient statistics: one graph that stands for all rows of Y."""
        labels = whole_numbers(Y, "labels", dtype=np.int64)
        n, E, K = structure.n_nodes, structure.n_edges, n_states
        if labels.ndim != 2 or labels.shape[1] != n:
            raise DataError(f"the labels must be state numbers [samples, {n}]; got shape {labels.shape}")
        if labels.size and (labels.min() < 0 or labels.max() >= K):
            s, i = np.argwhere((labels < 0) | (labels >= K))[0]
            raise DataError(f"sample {s} has label {labels[s, i]} at node {i}; states are 0 … {K - 1}")
        w = np.ones(len(labels)) if weights is None else weights_of(weights, "sample", len(labels))
        singles = [np.bincount(labels[:, i], weights=w, minlength=K) for i in range(n)]
        pairs = [np.bincount(labels[:, i] * K + labels[:, j], weights=w, minlength=K * K) for i, j in structure.edges]
        one = np.ones((1, 1))
        return cls(
            structure,
            one,
            one,
            np.zeros(n, np.int32),
            np.zeros(E, np.int32),
            np.arange(n, dtype=np.int32),
            np.arange(E, dtype=np.int32),
            weights=np.array([w.sum()]),
            node_counts=np.array(singles, dtype=np.float64).reshape(n, K),
            edge_counts=np.array(pairs, dtype=np.float64).reshape(E, K, K),
        )

    @classmethod
    def join(cls, parts: Sequence[GraphData]) -> GraphData:
        """Return data sets of graphs, with features per node and edge, joined into one."""
        from scipy.sparse import csr_array, issparse, vstack

        if not parts:
            raise DataError("no graphs")
        if any(part.node_counts is not None for part in parts):
            raise DataError("counts cannot be joined: give the rows themselves")
        for part in parts[1:]:
            for kind in ("node", "edge"):
                a, b = getattr(parts[0], f"{kind}_features").shape[1], getattr(part, f"{kind}_features").shape[1]
                if a != b:
                    raise DataError(f"graphs have {a} and {b} {kind} features; expected the same number")

        def stacked(kind: str) -> tuple[Features, Array | None]:
            matrices = [getattr(part, f"{kind}_features") for part in parts]
            shape_rows = [getattr(part, f"{kind}_rows") for part in parts]
            if any(map(issparse, matrices)):
                stack = mark_checked(csr_array(vstack(matrices, format="csr")))
            else:
                stack = np.concatenate(matrices)
            if all(rows is None for rows in shape_rows):
                return stack, None
            starts = np.cumsum([0, *(m.shape[0] for m in matrices)])
            rows = [
                (np.arange(m.shape[0]) if r is None else r) + start
                for m, r, start in zip(matrices, shape_rows, starts, strict=False)
            ]
            return stack, np.concatenate(rows)

        def joined(name: str) -> Array | None:
            arrays = [getattr(part, name) for part in parts]
            missing = [g for g, array in enumerate(arrays) if array is None]
            if len(missing) == len(parts):
                return None
            if missing:
                raise DataError(f"part {missing[0]} has no {name}, others have")
            return np.concatenate(arrays)

        (nodes, node_rows), (edges, edge_rows) = stacked("node"), stacked("edge")
        weights = None
        if any(part.weights is not None for part in parts):
            weights = np.concatenate([np.ones(p.graph.n_graphs) if p.weights is None else p.weights for p in parts])
        return cls(
            Graph.join(part.graph for part in parts),
            nodes,
            edges,
            node_rows,
            edge_rows,
            joined("node_types"),
            joined("edge_types"),
            joined("labels"),
            weights,
        )

    def take(self, ids: ArrayLike) -> GraphData:
        """Return some of the graphs."""
        graph, nodes, edges = self.graph.take(ids)

        def part(kind: str, chosen: Ints) -> tuple[Features, Array | None]:
            features, rows = getattr(self, f"{kind}_features"), getattr(self, f"{kind}_rows")
            return (features[chosen], None) if rows is None else (features, rows[chosen])

        def at(name: str, chosen: Ints) -> Array | None:
            array = getattr(self, name)
            return None if array is None else array[chosen]

        (node_features, node_rows), (edge_features, edge_rows) = part("node", nodes), part("edge", edges)
        return GraphData(
            graph,
            node_features,
            edge_features,
            node_rows,
            edge_rows,
            at("node_types", nodes),
            at("edge_types", edges),
            at("labels", nodes),
            at("weights", np.atleast_1d(np.asarray(ids, dtype=np.int64))),
            at("node_counts", nodes),
            at("edge_counts", edges),
        )

    def blocks(self, n_edges: int) -> list[GraphData]:
        """Return the graphs in order, in sets of about `n_edges` edges, with at least one graph each."""
        ends = np.arange(0, self.graph.n_edges, max(1, n_edges))[1:]
        cuts = np.unique([0, *np.searchsorted(self.graph.edge_offsets, ends), len(self)])
        return [self] if len(cuts) < 3 else [self.take(np.arange(a, b)) for a, b in pairwise(cuts.tolist())]

    def __len__(self) -> int:
        return self.graph.n_graphs

    @cached_property
    def graph_weights(self) -> Floats:
        """Return an array [G]."""
        return np.ones(self.graph.n_graphs) if self.weights is None else self.weights

    @cached_property
    def node_weights(self) -> Floats:
        """Return an array [n]: the weight of each node's graph."""
        return np.repeat(self.graph_weights, np.diff(self.graph.node_offsets))

    @cached_property
    def edge_weights(self) -> Floats:
        """Return an array [E]: the weight of each edge's graph."""
        return np.repeat(self.graph_weights, np.diff(self.graph.edge_offsets))


def with_intercept(features: Features, count: int, intercept: bool, what: str) -> tuple[Features, Array | None]:
    """Return (the features with a column of ones before them, rows): without features one row of a one serves all."""
    from scipy.sparse import csr_array, hstack, issparse

    if features is None:
        return np.ones((1, 1)), np.zeros(count, dtype=np.int32)
    features = check_features(features, what)
    if features.shape[0] != count:
        raise DataError(f"{features.shape[0]} rows of {what}; expected {count}")
    if not intercept:
        return features, None
    ones = np.ones((features.shape[0], 1))
    if issparse(features):
        columns: list[Features] = [csr_array(ones), features]
        return mark_checked(csr_array(hstack(columns, format="csr"))), None
    return np.hstack([ones, features]), None
