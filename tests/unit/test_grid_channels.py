"""GridCRF with different features of nodes and edges: the field that GraphCRF learns from both given apart."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit import L2, GraphCRF, GridCRF
from crfkit.errors import DataError, ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.graph.graph import Graph

OPTIONS = {"penalty": L2(1.0), "inference": "junction", "tolerance": 1e-8}


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 2, (4, 5)).cumsum(axis=1) // 2 % 2 for _ in range(4)]
    return [
        np.concatenate([y[..., None], 1 - y[..., None], y[..., None]], -1) + rng.normal(size=(4, 5, 3)) for y in Y
    ], Y


def last_two(a, b):
    return np.abs(a - b)[:, 1:]


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize(("edges", "of_edges"), [(last_two, [1, 2]), ("difference", [0, 1, 2])])
def test_nodes_and_edges_have_features_of_their_own(images, edges, of_edges, standardize):
    X, Y = images
    crf = GridCRF(node_features=[2, 0], edge_features=edges, standardize=standardize, **OPTIONS).fit(X, Y)
    graph = Graph.grid((4, 5), 4)
    i, j = graph.edges.T
    flat = [x.reshape(20, 3) for x in X]
    samples = [(x[:, [2, 0]], graph.edges, np.abs(x[i] - x[j])[:, of_edges]) for x in flat]
    by_hand = GraphCRF(node_form="full", edge_form="potts", standardize=standardize, **OPTIONS)
    by_hand.fit(samples, [y.ravel() for y in Y])
    np.testing.assert_allclose(crf.coef_, by_hand.coef_, atol=1e-5)
    assert {name for name, _ in crf.node_weights_} == {"intercept", "x2", "x0"}


def test_all_channels_in_order_are_the_default(images):
    a, b = (GridCRF(node_features=chosen, **OPTIONS).fit(*images) for chosen in (None, range(3)))
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_a_file_remembers_the_channels(images, tmp_path):
    X, Y = images
    crf = GridCRF(node_features=np.array([1]), **OPTIONS).fit(X, Y)
    crf.save(tmp_path / "g.crf")
    loaded = GridCRF.load(tmp_path / "g.crf")
    assert loaded.node_features == (1,)
    np.testing.assert_array_equal(loaded.predict_marginals(X)[0], crf.predict_marginals(X)[0])
    with pytest.raises(DataError, match="image 0 has 2 features; expected 3"):
        loaded.predict([x[..., :2] for x in X])
    metadata, tensors = crf.model_.parts()
    for change in ({"node_channels": [3]}, {"node_channels": [0, 1]}, {"n_channels": 1}, {"n_channels": "3"}):
        modelfile.write(tmp_path / "bad.crf", "graph", {**metadata, **change}, tensors)
        with pytest.raises(ModelFileError):
            GridCRF.load(tmp_path / "bad.crf")


@pytest.mark.parametrize("chosen", [[], [3], [-1], [0, 0], [0.5], "x0", 1])
def test_channels_out_of_range(images, chosen):
    with pytest.raises(ParameterError, match="node_features must be"):
        GridCRF(node_features=chosen, **OPTIONS).fit(*images)
