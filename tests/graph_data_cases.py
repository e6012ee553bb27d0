"""Small graphs and data on them, for the tests of the graph containers."""

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from crfkit.graph.data import GraphData
from crfkit.graph.graph import Graph

PATH = Graph.path(3)


def random_graph(rng, n, density=0.5):
    pairs = [(i, j)[:: rng.choice((-1, 1))] for i in range(n) for j in range(i) if rng.random() < density]
    return Graph(n, np.array(pairs, dtype=np.int32).reshape(-1, 2))


@st.composite
def graph_sets(draw, max_graphs=4):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [random_graph(rng, n) for n in draw(st.lists(st.integers(0, 5), max_size=max_graphs))]


def assert_same_graph(a, b):
    assert a.n_nodes == b.n_nodes
    for name in ("edges", "node_offsets", "edge_offsets"):
        assert_array_equal(getattr(a, name), getattr(b, name))
        assert getattr(a, name).dtype == getattr(b, name).dtype


def data(graph=PATH, **options):
    return GraphData(graph, **{"node_features": np.ones((3, 1)), "edge_features": np.ones((2, 1)), **options})


def random_data(rng, parts, sparse=False, labels=True, weights=True):
    graph = Graph.join(parts)
    make = csr_array if sparse else np.asarray
    return GraphData.make(
        graph,
        make(rng.normal(size=(graph.n_nodes, 2)) * (rng.random((graph.n_nodes, 2)) < 0.7)),
        make(rng.normal(size=(graph.n_edges, 3))),
        labels=rng.integers(-1, 2, size=graph.n_nodes) if labels else None,
        weights=rng.random(graph.n_graphs) if weights else None,
    )


def labelled(seed=0, K=3, n_samples=50):
    return np.random.default_rng(seed).integers(0, K, size=(n_samples, 3))
