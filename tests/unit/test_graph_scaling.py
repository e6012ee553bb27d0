"""Standardised inputs, penalties of edges, and small things of tables, graphs and images."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

from crfkit import L2, GraphCRF, GridCRF
from crfkit.errors import ApproximationWarning, DataError, ParameterError
from crfkit.files.tables import read_table
from crfkit.graph.inference.engines import make_engine
from crfkit.penalties import Blockwise
from crfkit.solvers import GradientNorm

TIGHT = {"tolerance": GradientNorm(1e-6), "n_threads": 1}


def table(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    Y = (X @ rng.normal(size=(3, 3)) + rng.normal(size=(rows, 3)) + rng.normal(size=(rows, 1)) > 0).astype(int)
    return X, Y


UNITS, ORIGIN = np.array([1000.0, 1.0, 1e-3]), np.array([5e4, -2.0, 0.0])


@pytest.mark.parametrize("edge_features", [False, True])
def test_units_and_origins_of_features_do_not_matter(edge_features):
    X, Y = table()
    crf = GraphCRF(edge_features=edge_features, **TIGHT).fit(X, Y)
    other = GraphCRF(edge_features=edge_features, **TIGHT).fit(X * UNITS + ORIGIN, Y)
    np.testing.assert_allclose(other.log_likelihood(X * UNITS + ORIGIN, Y), crf.log_likelihood(X, Y), atol=1e-5)
    weights = crf.node_weights_
    for name, value in other.node_weights_.items():  # on the scale of the inputs
        if name[1] != "intercept":
            assert value * UNITS[int(name[1][1:])] == pytest.approx(weights[name], abs=1e-5)


def test_without_a_penalty_standardising_changes_nothing():
    X, Y = table(300)
    weak = {"penalty": L2(1e-9), "edge_penalty": L2(1e-9), "graph": "none", **TIGHT}
    plain = GraphCRF(standardize=False, **weak).fit(X, Y)
    np.testing.assert_allclose(GraphCRF(**weak).fit(X, Y).coef_, plain.coef_, atol=1e-4)


def test_sparse_inputs_are_scaled_and_not_centred():
    X, Y = table()
    X = np.where(X > 0.3, X, 0.0)
    crf = GraphCRF(**TIGHT).fit(csr_array(X), Y)
    other = GraphCRF(**TIGHT).fit(csr_array(X * UNITS), Y)
    np.testing.assert_allclose(other.log_likelihood(X * UNITS, Y), crf.log_likelihood(X, Y), atol=1e-5)
    assert csr_array(X).nnz < X.size


def test_images_and_graphs_are_standardised_too():
    rng = np.random.default_rng(0)
    truth = np.zeros((5, 5), dtype=int)
    truth[:, 2:] = 1
    X = [np.stack([truth + rng.normal(0, 0.5, truth.shape), rng.normal(size=truth.shape)], -1) for _ in range(4)]
    crf = GridCRF(**TIGHT).fit(X, [truth] * 4)
    moved = [x * [1e3, 1.0] + [7.0, -300.0] for x in X]
    other = GridCRF(**TIGHT).fit(moved, [truth] * 4)
    np.testing.assert_allclose(other.log_likelihood(moved, [truth] * 4), crf.log_likelihood(X, [truth] * 4), atol=1e-5)


def test_the_model_records_it_and_reads_inputs_as_they_are(tmp_path):
    X, Y = table()
    X = X * UNITS + ORIGIN
    crf = GraphCRF(n_threads=1).fit(X, Y)
    crf.save(tmp_path / "m.crf")
    loaded = GraphCRF.load(tmp_path / "m.crf")
    assert loaded.model_.training["standardised"] is True
    assert loaded.standardize is True
    np.testing.assert_allclose(loaded.log_likelihood(X, Y), crf.log_likelihood(X, Y))
    again = crf.set_params(warm_start=True).fit(X, Y)  # weights go back to the standardised scale first
    assert again.result_.iterations <= 11


def test_large_units_need_no_more_iterations():
    X, Y = table(200)
    crf = GraphCRF(n_threads=1).fit(X * UNITS + ORIGIN, Y)
    assert crf.result_.status.converged
    assert crf.result_.iterations < 60


def test_edges_with_features_are_penalised_more_strongly():
    X, Y = table()
    default = GraphCRF(penalty=L2(0.5), edge_features=True, **TIGHT).fit(X, Y)
    same = GraphCRF(penalty=Blockwise({"node": L2(0.5), "edge": L2(5.0)}), edge_features=True, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(default.coef_, same.coef_)
    own = GraphCRF(penalty=L2(0.5), edge_penalty=L2(0.5), edge_features=True, **TIGHT).fit(X, Y)
    assert np.abs(own.coef_[12:]).sum() > np.abs(default.coef_[12:]).sum()
    without = GraphCRF(penalty=L2(0.5), **TIGHT).fit(X, Y)
    np.testing.assert_allclose(without.coef_, GraphCRF(penalty=L2(0.5), edge_penalty=L2(0.5), **TIGHT).fit(X, Y).coef_)
    with pytest.raises(ParameterError, match="edge_penalty must be None or a penalty"):
        GraphCRF(edge_penalty=3.0).fit(X, Y)


def test_a_column_with_one_label_borrows_those_of_the_others():
    X, Y = table()
    Y[:, 1] = 0
    with pytest.warns(UserWarning, match="column y1 of Y has only the label 0 in the training set"):
        crf = GraphCRF(n_threads=1).fit(X, Y)
    assert crf.classes_[1].tolist() == [0, 1]
    assert (crf.predict(X)[:, 1] == 0).all()
    words = np.where(Y > 0, "a", "b").astype(object)
    words[:, 1] = "always"
    with pytest.raises(DataError, match=r"column y1 of Y has only the label 'always'.*leave the column out"):
        GraphCRF().fit(X, words)


def test_dicts_as_features_of_networkx_are_refused_in_words():
    graph = nx.path_graph(3)
    for node in graph:
        graph.nodes[node]["features"] = {"size": 1.0}
    with pytest.raises(DataError, match="graph 0: the features of its nodes are dicts; expected vectors of numbers"):
        GraphCRF().fit([graph], [[0, 1, 0]])


def test_booleans_of_arff(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation t\n@attribute a boolean\n@attribute b numeric\n@data\ntrue,1\nFalse,2\n{1 3}\n")
    assert [c.tolist() for c in read_table(path).values] == [[1, 0, 0], [1, 2, 3]]
    path.write_text("@relation t\n@attribute a boolean\n@data\nmaybe\n")
    with pytest.raises(DataError, match="expected true, false, 1 or 0"):
        read_table(path)


def test_messages_speak_of_images_and_rows():
    X, Y = table(5)
    with pytest.raises(ParameterError, match=r"^row \d"):
        GraphCRF(inference=make_engine("junction", max_table=2)).fit(X, Y)
    image, truth = np.zeros((4, 4, 1)), np.arange(16).reshape(4, 4) % 2
    with pytest.raises(ParameterError, match=r"^image \d"):
        GridCRF(inference=make_engine("junction", max_table=2)).fit([image], [truth])
    crf = GridCRF(n_threads=1).fit([truth[..., None] + 0.1 * np.ones((4, 4, 1))], [truth])
    with pytest.raises(DataError, match="image 0 has 2 features; expected 1"):
        crf.predict([np.zeros((4, 4, 2))])


def homophilous(n, seed):
    """A graph in which nine of ten neighbours agree, with noisy features."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) >= n // 2).astype(int)
    edges = set()
    while len(edges) < 4 * n:
        i, j = sorted(rng.integers(0, n, 2).tolist())
        if i != j and (labels[i] == labels[j]) == (rng.random() < 0.9):
            edges.add((i, j))
    features = (2.0 * labels - 1 + rng.normal(0, 1.45, n))[:, None]
    return (features, sorted(edges)), labels


def test_pseudo_likelihood_that_smooths_everything_away_warns():
    sample, labels = homophilous(400, 0)
    by_threshold = ((sample[0][:, 0] > 0) == labels).mean()
    with pytest.warns(ApproximationWarning, match=r"nodes alone predict 7\d.*edge_penalty=L2\(1600\)"):
        crf = GraphCRF(edge_form="potts", loss="pseudo-likelihood", n_threads=1).fit([sample], [labels])
    assert crf.score([sample], [labels]) < by_threshold - 0.1
    advised = crf.set_params(edge_penalty=L2(1600)).fit([sample], [labels])  # without a warning
    other, truth = homophilous(400, 1)
    assert advised.score([other], [truth]) > ((other[0][:, 0] > 0) == truth).mean() + 0.1


def test_pseudo_likelihood_that_predicts_well_does_not_warn():
    rng = np.random.default_rng(0)
    truth = np.zeros((8, 8), dtype=int)
    truth[:, 4:] = 1
    X = [(truth + rng.normal(0, 0.4, truth.shape))[..., None] for _ in range(3)]
    crf = GridCRF(loss="pseudo-likelihood", n_threads=1).fit(X, [truth] * 3)
    assert crf.score(X, [truth] * 3) > 0.9
