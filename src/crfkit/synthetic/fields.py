"""Samples of random pairwise fields."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from crfkit._checks import check_count
from crfkit.errors import ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import untied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.junction import Junction


@dataclass(frozen=True, eq=False)
class PairwiseTable:
    """Samples of a pairwise CRF on binary variables, each with its own features, and the field they are drawn from."""

    X: NDArray[np.float64]  # [samples, nodes, features]
    Y: NDArray[np.int32]  # [samples, nodes] 0 or 1
    edges: NDArray[np.int32]  # [E, 2] the true ones
    node_weights: NDArray[np.float64]  # [nodes, 1 + features] of [1, f_i], for state 0; none for state 1
    edge_weights: NDArray[np.float64]  # [E, 3, 1 + 2·features] of [1, f_i, f_j], for the states 00, 01, 10; none for 11

    def data(self, structure: Graph | None = None) -> GraphData:
        """Return the samples encoded for an untied field; every sample has the given edges, or all pairs of nodes."""
        n_samples, n, d = self.X.shape
        structure = Graph.complete(n) if structure is None else structure
        i, j = structure.edges.T
        ones = np.ones((n_samples, n, 1))
        edges = np.concatenate([ones[:, i], self.X[:, i], self.X[:, j]], axis=2)
        return GraphData(
            structure.repeat(n_samples),
            np.concatenate([ones, self.X], axis=2).reshape(n_samples * n, 1 + d),
            edges.reshape(n_samples * structure.n_edges, 1 + 2 * d),
            node_types=np.tile(np.arange(n, dtype=np.int32), n_samples),
            edge_types=np.tile(np.arange(structure.n_edges, dtype=np.int32), n_samples),
            labels=self.Y.ravel(),
        )

    def __getitem__(self, rows: slice) -> PairwiseTable:
        """Return some of the samples."""
        return PairwiseTable(self.X[rows], self.Y[rows], self.edges, self.node_weights, self.edge_weights)


def random_pairwise(
    n_nodes: int, n_features: int, n_samples: int, edge_probability: float = 0.5, seed: int = 0
) -> PairwiseTable:
    """Return a random pairwise CRF and exact samples of it, as in Xue & Zhang (2016), after Schmidt et al. (2008).

    Each pair of nodes is an edge with this probability; features and node weights are N(0, 1), the weights of an edge
    U(−b, b) with b ~ N(0, 1) for each edge. At most about 20 nodes: samples are drawn by exact inference.

    >>> table = random_pairwise(5, 2, 100)
    >>> table.X.shape, table.Y.shape, table.node_weights.shape, table.edge_weights.shape[1:]
    ((100, 5, 2), (100, 5), (5, 3), (3, 5))
    """
    check_count(n_nodes=n_nodes, n_samples=n_samples)
    check_count(0, n_features=n_features)
    if not 0 <= edge_probability <= 1:
        raise ParameterError(f"edge_probability must be between 0 and 1, not {edge_probability!r}")
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(n_nodes), 2)), dtype=np.int32).reshape(-1, 2)
    edges = pairs[rng.random(len(pairs)) < edge_probability]
    nodes = rng.normal(size=(n_nodes, 1 + n_features))
    bounds = rng.normal(size=(len(edges), 1, 1))
    weights = np.abs(bounds) * rng.uniform(-1, 1, size=(len(edges), 3, 1 + 2 * n_features))
    X = rng.normal(size=(n_samples, n_nodes, n_features))
    unlabelled = PairwiseTable(X, np.zeros((n_samples, n_nodes), dtype=np.int32), edges, nodes, weights)
    data = unlabelled.data(Graph(n_nodes, edges))
    field = untied_field(data, 2)
    w = np.concatenate([nodes.ravel(), weights.ravel()])
    Y = Junction().sample(field.potentials(data, w), 1, seed=seed)[0].reshape(n_samples, n_nodes)
    return PairwiseTable(X, Y, edges, nodes, weights)
