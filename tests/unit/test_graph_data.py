"""Data on graphs: what is accepted, and the laws of joining, taking, tables and counts."""

import numpy as np
import pytest
from graph_data_cases import PATH, assert_same_graph, data, graph_sets, labelled, random_data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array, issparse

from crfkit.errors import DataError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field, untied_field
from crfkit.graph.graph import Graph

# --- GraphData: bad input


@pytest.mark.parametrize("kind", ["node", "edge"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.array, csr_array, coo_array], ids=["dense", "csr", "coo"])
def test_features_are_finite(kind, value, make):
    features = np.ones((PATH.n_nodes if kind == "node" else PATH.n_edges, 2))
    features[0] = 0
    features[1, 1] = value
    with pytest.raises(DataError, match=f"{kind} features: row 1, column 1 is {value}"):
        data(**{f"{kind}_features": make(features)})


@pytest.mark.parametrize("features", [[[np.inf], [-np.inf], [0]], [[1e308], [1e308], [0]]])
def test_large_and_infinite_features_do_not_warn(features):
    if np.isfinite(features).all():
        data(node_features=features)
    else:
        with pytest.raises(DataError):
            data(node_features=features)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node_features": np.ones((2, 1))}, "2 rows of node features for 3 nodes"),
        ({"edge_features": np.ones((3, 1))}, "3 rows of edge features for 2 edges"),
        ({"node_features": np.ones(3)}, "matrix"),
        ({"node_features": [["a"]] * 3}, "matrix of numbers"),
        ({"node_features": [[1], [1, 2], [3]]}, "matrix of numbers"),
        ({"node_rows": [0, 1]}, r"node_rows must have the shape \(3,\)"),
        ({"node_rows": [0, 1, 3]}, "node_rows must be numbers from 0 to 2"),
        ({"edge_rows": [0, -1]}, "edge_rows must be numbers from 0 to 1"),
        ({"node_types": [0, -1, 0]}, "node_types must be numbers from 0"),
        ({"edge_types": [0]}, r"edge_types must have the shape \(2,\)"),
        ({"labels": [0, 1]}, r"labels must have the shape \(3,\)"),
        ({"labels": [0, 1, -2]}, "node 2 has label -2"),
        ({"labels": [0.0, 1.0, 0.0]}, "labels must be whole numbers, not float64"),
        ({"labels": ["a", "b", "a"]}, "labels must be whole numbers"),
        ({"labels": [None, 0, 0]}, "labels must be whole numbers"),
        ({"weights": [1.0, 2.0]}, "2 weights for 1 graphs"),
        ({"weights": [-1.0]}, "graph 0 has weight -1"),
        ({"weights": [np.nan]}, "graph 0 has weight nan"),
        ({"node_counts": np.ones((3, 2))}, "go together"),
    ],
)
def test_bad_data(options, message):
    with pytest.raises(DataError, match=message):
        data(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"node_rows": [0.7, 1, 2]},
        {"node_types": [0.7, 1, 2]},
        {"node_types": ["a", "b", "c"]},
        {"node_types": np.array([2**32, 0, 0])},
        {"labels": [2**32, 0, 0]},
        {"weights": ["a"]},
        {"node_counts": np.ones((1, 1)), "edge_counts": np.ones((1, 1, 1))},
        {"node_features": coo_array(np.ones(3))},
    ],
    ids=["rows", "types", "names of types", "large types", "large labels", "words", "counts", "sparse vector"],
)
def test_more_bad_data(options):
    with pytest.raises(DataError):
        data(**options)


def test_empty_data():
    for graph in (Graph(0, []), Graph(0, [], [0], [0]), Graph(0, [], [0, 0, 0], [0, 0, 0])):
        made = GraphData.make(graph, np.empty((0, 2)), labels=np.empty(0, dtype=int))
        assert len(made) == graph.n_graphs
        assert made.graph_weights.shape == (graph.n_graphs,)
        field = tied_field(made, 2)
        field.check(made)
        potentials = field.potentials(made, np.ones(field.size))
        assert potentials.unary.shape == (0, 2)
        assert_array_equal(potentials.score(made.labels), np.zeros(graph.n_graphs))
        assert_array_equal(field.adjoint(made, np.zeros((0, 2)), np.zeros((0, 4))), np.zeros(field.size))


# --- GraphData: laws


def dense(features):
    return features.toarray() if issparse(features) else features


def assert_same_data(a, b):
    assert_same_graph(a.graph, b.graph)
    for kind in ("node", "edge"):
        rows = []
        for side in (a, b):
            features, chosen = dense(getattr(side, f"{kind}_features")), getattr(side, f"{kind}_rows")
            rows.append(features if chosen is None else features[chosen])
        assert_array_equal(*rows)
    for name in ("node_types", "edge_types", "labels", "weights", "node_counts", "edge_counts"):
        first, second = getattr(a, name), getattr(b, name)
        assert (first is None) == (second is None), name
        if first is not None:
            assert_array_equal(first, second)


@given(parts=graph_sets(), seed=st.integers(0, 99), sparse=st.booleans(), labels=st.booleans(), weights=st.booleans())
def test_take_undoes_join_of_data(parts, seed, sparse, labels, weights):
    rng = np.random.default_rng(seed)
    sets = [random_data(rng, [part], sparse, labels, weights) for part in parts]
    if not sets:
        with pytest.raises(DataError, match="no graphs"):
            GraphData.join(sets)
        return
    joined = GraphData.join(sets)
    for g, one in enumerate(sets):
        assert_same_data(joined.take([g]), one)
    ids = rng.integers(0, len(sets), size=4)
    assert_same_data(joined.take(ids), GraphData.join([sets[g] for g in ids]))


def test_join_of_sparse_and_dense_and_none():
    rng = np.random.default_rng(0)
    both = GraphData.join([random_data(rng, [PATH], sparse) for sparse in (False, True)])
    assert issparse(both.node_features)
    bare = GraphData.make(PATH)
    assert_same_data(GraphData.join([bare, bare]).take([1]), bare)
    own = GraphData.make(PATH, np.ones((3, 1)), np.ones((2, 1)), intercept=False)
    assert_same_data(GraphData.join([bare, own]).take([1]), own)
    weighted = GraphData.join([bare, GraphData.make(PATH, weights=[3.0])])
    assert weighted.weights.tolist() == [1.0, 3.0]
    assert weighted.node_weights.tolist() == [1.0] * 3 + [3.0] * 3
    assert weighted.edge_weights.tolist() == [1.0] * 2 + [3.0] * 2


@pytest.mark.parametrize("kind", ["node", "edge"])
def test_join_needs_the_same_features(kind):
    other = data(**{f"{kind}_features": np.ones((3 if kind == "node" else 2, 4))})
    with pytest.raises(DataError, match=f"graphs have 1 and 4 {kind} features"):
        GraphData.join([data(), other])


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"labels": [0, 1, 0]}, "labels"),
        ({"node_types": [0, 0, 1]}, "node_types"),
        ({"node_counts": np.ones((3, 2)), "edge_counts": np.ones((2, 2, 2))}, "node_counts"),
    ],
    ids=["labels", "types", "counts"],
)
def test_join_loses_nothing_silently(options, name):
    try:
        joined = GraphData.join([data(**options), data()])
    except DataError:
        return
    assert getattr(joined, name) is not None


def test_a_table_is_a_graph_per_row():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(4, 2)), rng.integers(-1, 3, size=(4, 3))
    table = GraphData.table(4, PATH, X, Y, weights=[1, 2, 3, 4])
    assert_same_graph(table.graph, PATH.repeat(4))
    ones = np.hstack([np.ones((4, 1)), X])
    assert_array_equal(table.node_features[table.node_rows], np.repeat(ones, 3, axis=0))
    assert_array_equal(table.edge_features[table.edge_rows], np.repeat(ones, 2, axis=0))
    assert_array_equal(table.labels.reshape(4, 3), Y)
    assert_array_equal(table.node_types, np.tile([0, 1, 2], 4))
    assert_array_equal(table.edge_types, np.tile([0, 1], 4))
    with pytest.raises(DataError, match="2 rows of features; expected 4"):
        GraphData.table(4, PATH, X[:2])
    with pytest.raises(DataError, match=r"shape \(4, 3\); got \(4, 2\)"):
        GraphData.table(4, PATH, X, Y[:, :2])


@given(seed=st.integers(0, 99), K=st.integers(2, 4), weighted=st.booleans())
def test_counts_say_what_the_table_says(seed, K, weighted):
    """The sufficient statistics, weight by weight."""
    Y = labelled(seed, K, 6)
    w = np.random.default_rng(seed).random(6) if weighted else None
    table, counts = GraphData.table(6, PATH, None, Y, w), GraphData.counts(PATH, Y, K, w)
    field = untied_field(table, K)
    assert_allclose(
        field.adjoint(counts, *field.observed(counts)), field.adjoint(table, *field.observed(table)), atol=1e-13
    )
    assert_allclose(counts.weights.sum(), table.graph_weights.sum())


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        ([[0, 1, 3]], "sample 0 has label 3 at node 2; states are 0 … 2"),
        ([[0, 1, 0], [0, -1, 0]], "sample 1 has label -1 at node 1"),
        ([[0, 1]], r"\[samples, 3\]; got shape \(1, 2\)"),
        ([[0.0, 1.0, 0.0]], "labels must be whole numbers"),
    ],
)
def test_bad_counts(Y, message):
    with pytest.raises(DataError, match=message):
        GraphData.counts(PATH, Y, 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_counts_of_labels_in_small_types(dtype):
    Y = labelled(K=20)
    assert_array_equal(
        GraphData.counts(PATH, Y.astype(dtype), 20).edge_counts, GraphData.counts(PATH, Y, 20).edge_counts
    )


@pytest.mark.parametrize("weights", [[1.0, 2.0], [-1.0] + [1.0] * 49, ["a"] * 50])
def test_bad_weights_of_counts(weights):
    with pytest.raises(DataError):
        GraphData.counts(PATH, labelled(), 3, weights)


def test_counts_of_no_variables():
    assert GraphData.counts(Graph(0, []), np.zeros((4, 0), dtype=int), 2).node_counts.shape == (0, 2)
