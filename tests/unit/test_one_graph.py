"""One graph in place of a list, and functions of the edges of grids."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import optional

from crfkit import Graph, GraphCRF, GraphSample, GridCRF
from crfkit.errors import DataError

rng = np.random.default_rng(0)
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)]
FEATURES = rng.normal(size=(4, 2))
LABELS = np.array(["a", "b", "b", "a"])


@pytest.mark.parametrize(
    "one",
    [
        (FEATURES, EDGES),
        (FEATURES.tolist(), EDGES),
        (FEATURES, np.array(EDGES)),
        (FEATURES, Graph(4, np.array(EDGES))),
        GraphSample(FEATURES, EDGES),
        {"features": FEATURES, "edges": EDGES},
    ],
)
def test_one_graph_is_a_list_of_one(one):
    alone, listed = GraphCRF().fit(one, LABELS), GraphCRF().fit([(FEATURES, EDGES)], [LABELS])
    assert_array_equal(alone.coef_, listed.coef_)
    assert_array_equal(alone.predict(one), listed.predict([one])[0])
    assert_array_equal(alone.predict_marginals(one), listed.predict_marginals([one])[0])
    assert_array_equal(alone.predict_edge_marginals(one), listed.predict_edge_marginals([one])[0])
    assert alone.score(one, LABELS) == listed.score([one], [LABELS])
    assert_allclose(alone.log_likelihood(one, LABELS), listed.log_likelihood([one], [LABELS]))
    assert alone.sample(one, 3).shape == (3, 4)
    known = np.array([None, "b", None, None], dtype=object)
    assert alone.predict(one, observed=known)[1] == "b"


def test_labels_of_several_graphs_for_one_are_refused():
    with pytest.raises(DataError, match="X is one graph"):
        GraphCRF().fit((FEATURES, EDGES), [LABELS])


def test_networkx_labels_by_name():
    networkx = optional("networkx")
    graph = networkx.Graph(EDGES)
    for i, row in enumerate(FEATURES):
        graph.nodes[i]["features"] = row
    crf = GraphCRF().fit(graph, dict(enumerate(LABELS.tolist())))
    assert crf.predict(graph).shape == (4,)


def test_a_tuple_of_rows_is_still_a_table():
    X = ((0.0, 1.0), (1.0, 0.0))
    assert GraphCRF().fit(X, [["a", "c"], ["b", "d"]]).predict(X).tolist() == [["a", "c"], ["b", "d"]]


# --- edges of grids


def grid_case():
    truth = np.zeros((5, 6), dtype=int)
    truth[:, 3:] = 1
    return [(truth + rng.normal(0, 0.4, truth.shape))[..., None]], [truth]


def test_a_function_may_return_one_number_per_edge():
    X, Y = grid_case()
    flat = GridCRF(edge_features=lambda a, b: abs(a - b)[:, 0]).fit(X, Y)
    column = GridCRF(edge_features=lambda a, b: abs(a - b)).fit(X, Y)
    assert_array_equal(flat.coef_, column.coef_)
    assert_array_equal(flat.coef_, GridCRF().fit(X, Y).coef_)


@pytest.mark.parametrize(("neighbours", "shape"), [(4, (5, 6)), (8, (5, 6)), (6, (3, 4, 2))])
def test_a_function_may_see_the_steps(neighbours, shape):
    seen = []

    def steps(first, second, offsets):
        seen.append(offsets)
        return offsets[:, 0] != 0

    labels = np.indices(shape).sum(axis=0) % 2
    GridCRF(neighbours=neighbours, edge_features=steps).fit([rng.normal(size=(*shape, 1))], [labels])
    graph = Graph.grid(shape, neighbours)
    places = np.stack(np.unravel_index(np.arange(graph.n_nodes), shape), axis=1)
    assert_array_equal(seen[-1], places[graph.edges[:, 1]] - places[graph.edges[:, 0]])
