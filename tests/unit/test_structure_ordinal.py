"""StructureLearner on ratings: form="ordinal"."""

import warnings

import numpy as np
import pytest

from crfkit import GraphCRF, StructureLearner
from crfkit.errors import ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.tree import Tree
from crfkit.penalties import L2

COUPLINGS = np.array([0.9, -0.9, 0.9, 0.9, -0.9])


class Frame:
    """What is used of a pandas data frame whose first column has ordered categories."""

    class Kind:
        def __init__(self, categories=()):
            self.ordered, self.categories = bool(categories), categories

    def __init__(self, values, words):
        self.values, self.columns = values, ["a", "b", "c"]
        self.dtypes = [self.Kind(words), self.Kind(), self.Kind()]

    def to_numpy(self):
        return self.values

    def __len__(self):
        return len(self.values)


@pytest.fixture(scope="module")
def ratings():
    """400 rows of a chain of six items with 5 levels, 1 … 5, and uneven shares of the levels."""
    rng = np.random.default_rng(0)
    s = np.linspace(-1, 1, 5)
    chain = Graph(6, np.array([[i, i + 1] for i in range(5)]))
    field = Potentials.from_tables(chain, 0.3 * rng.normal(size=(6, 5)), COUPLINGS[:, None, None] * np.outer(s, s))
    return Tree().sample(field, 400, 0) + 1


@pytest.fixture(scope="module")
def learner(ratings):
    return StructureLearner(form="ordinal").fit(ratings)


def test_finds_a_chain_that_tables_miss(ratings, learner):
    found = {(i, j): weight for i, j, weight in learner.edges_}
    assert set(found) >= {(i, i + 1) for i in range(5)}
    assert len(found) <= 6  # of ten pairs that are not there, as few as among two-label columns: one in a hundred
    weights = np.array([found[i, i + 1] for i in range(5)])
    assert (np.sign(weights) == np.sign(COUPLINGS)).all()
    assert np.abs(weights - COUPLINGS).max() < 0.35
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tables = StructureLearner(form="full").fit(ratings)
    assert len(tables.edges_) < 5


def test_reports_one_signed_coupling(learner):
    assert learner.refit_["by"] == "exact likelihood"
    assert {record["kind"] for record in learner.edge_records_} == {"coupling"}
    i, j, weight = learner.edges_[-1]
    assert learner.weight_matrix_[i, j] == learner.weight_matrix_[j, i] == weight
    assert learner.edge_weights_[(i, j), "intercept", (5, 5)] == pytest.approx(weight)
    assert learner.edge_weights_[(i, j), "intercept", (1, 5)] == pytest.approx(-weight)
    name = f"y{i}", f"y{j}"
    assert learner.model_.edge_weights()[name, "intercept", "scores"] == pytest.approx(weight)
    assert len(learner.model_.edge_weights()) == len(learner.edges_)


def test_likelihood_matches_the_moments_of_scores(ratings, learner):
    """At the optimum of the likelihood the field has the shares of labels and the mean products of scores of the data,
    but for the traces of L2."""
    drawn = learner.sample(20000, random_state=1)
    drawn, given = (np.asarray(table, dtype=int) for table in (drawn, ratings))
    for i, j in ((0, 1), (2, 3)):
        products = [np.mean((Y[:, i] - 3) * (Y[:, j] - 3)) / 4 for Y in (drawn, given)]
        assert products[0] == pytest.approx(products[1], abs=0.02)
    for level in (1, 3, 5):
        assert np.mean(drawn == level) == pytest.approx(np.mean(given == level), abs=0.02)


def test_a_file_predicts_the_same(ratings, learner, tmp_path):
    learner.save(tmp_path / "model.crf")
    loaded = StructureLearner.load(tmp_path / "model.crf")
    assert loaded.edges_ == learner.edges_
    assert loaded.form == "ordinal"
    np.testing.assert_array_equal(loaded.predict(ratings[:50]), learner.predict(ratings[:50]))
    assert loaded.score(ratings) == pytest.approx(learner.score(ratings), rel=1e-12)
    # predictions are those of the field: p(y_0 | y_1) of a chain
    p = loaded.predict_marginals(ratings[:50])[0]
    biases = np.array([learner.node_weights_[0, "intercept", k] for k in range(1, 6)])
    s = np.linspace(-1, 1, 5)
    scores = biases + learner.weight_matrix_[0, 1] * np.outer(s[ratings[:50, 1] - 1], s)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p, expected, atol=1e-10)


@pytest.mark.parametrize("options", [{"edge_strength": "cv", "n_strengths": 8}, {"edge_strength": 60.0}])
@pytest.mark.parametrize("loss", ["pl", "likelihood"])
def test_other_rules_and_losses(ratings, options, loss):
    found = StructureLearner(form="ordinal", loss=loss, **options).fit(ratings[:, :4])
    assert {edge[:2] for edge in found.edges_} >= {(0, 1), (2, 3)}


def test_methods_have_the_same_optimum(ratings):
    options = {"form": "ordinal", "edge_strength": 60.0, "tolerance": 1e-8}
    found = [StructureLearner(method, **options).fit(ratings).weight_matrix_ for method in ("grafting-light", "full")]
    np.testing.assert_allclose(found[0], found[1], atol=2e-3)


def test_different_numbers_of_levels_with_inputs():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 1))
    latent = rng.normal(size=500)
    noise = rng.normal(size=(500, 3))
    Y = np.stack([latent + 0.7 * noise[:, 0] > 0, latent + 0.7 * noise[:, 1], x[:, 0] + noise[:, 2]], axis=1)
    Y[:, 1:] = np.round(np.clip(Y[:, 1:], -2, 2))
    Y[:, 2] = np.clip(Y[:, 2], -1, 2)
    learner = StructureLearner(form="ordinal", n_strengths=10).fit(Y.astype(int), inputs=x)
    assert [edge[:2] for edge in learner.edges_] == [(0, 1)]
    assert [len(labels) for labels in learner.classes_] == [2, 5, 4]
    assert learner.predict(x[:3]).shape == (3, 3)
    without = StructureLearner(form="ordinal").fit(Y.astype(int))
    assert dict.fromkeys(edge[:2] for edge in without.edges_) == {(0, 1): None}
    assert without.edges_[0][2] > 0


def test_independent_ratings_have_no_edges():
    Y = np.random.default_rng(2).integers(1, 8, size=(400, 10))
    with pytest.warns(UserWarning, match="no edge was selected"):
        assert StructureLearner(form="ordinal").fit(Y).edges_ == []


def test_an_empty_graph_of_numbers_mentions_the_form():
    rng = np.random.default_rng(3)
    Y = rng.integers(1, 6, size=(200, 3))
    with pytest.warns(UserWarning, match=r"form='ordinal' \(--form ordinal\) has one weight per edge"):
        StructureLearner().fit(Y)
    names = np.array(["never", "sometimes", "often", "always", "unknown"])[Y - 1]
    with pytest.warns(UserWarning, match="no edge was selected") as caught:
        StructureLearner().fit(names)
    assert "ordinal" not in str(caught[0].message)


def test_names_without_an_order_have_tables(ratings):
    """A nominal column has no scores; it used to block the form for all columns."""
    words = ("never", "rarely", "sometimes", "often", "always")
    values = ratings[:, :3].astype(object)
    values[:, 0] = np.array(words)[ratings[:, 0] - 1]
    values[:, 2] = np.where(ratings[:, 2] > 3, "y", "n")
    learner = StructureLearner(form="ordinal").fit(values)
    kinds = {(record["first"], record["second"]): record["kind"] for record in learner.edge_records_}
    assert kinds == {(0, 1): "table", (1, 2): "coupling"}
    named = {labels for ends, _, labels in learner.model_.edge_weights() if ends == ("y0", "y1")}
    assert named == {(word, "scores") for word in words}
    with pytest.raises(ParameterError, match=r"these have none: y0\. Number their labels"):
        StructureLearner(form="ordinal").fit(values[:, [0, 2]])
    ordered = StructureLearner(form="ordinal").fit(Frame(values, words))
    assert ordered.classes_[0].tolist() == list(words)
    assert {edge[:2]: np.sign(edge[2]) for edge in ordered.edges_} == {("a", "b"): 1.0, ("b", "c"): -1.0}


@pytest.fixture(scope="module")
def survey():
    """400 rows: a chain of eight ratings from 1 to 5, a region that depends on the last, and an independent one."""
    rng = np.random.default_rng(5)
    s = np.linspace(-1, 1, 5)
    chain = Graph(8, np.array([[i, i + 1] for i in range(7)]))
    tables = 1.0 * np.outer(s, s)[None] * np.array([1, -1, 1, 1, -1, 1, 1])[:, None, None]
    answers = Tree().sample(Potentials.from_tables(chain, 0.2 * rng.normal(size=(8, 5)), tables), 400, 1) + 1
    shares = np.exp(1.2 * np.outer(s[answers[:, 7] - 1], [1.0, -1.0, 0.5, -0.5]))
    regions = (rng.random((400, 1)) > np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    names = np.array(["north", "south", "east", "west"], dtype=object)
    return np.column_stack([answers.astype(object), names[regions], names[rng.integers(0, 4, 400)]])


def test_one_nominal_column_takes_nothing_from_the_ratings(survey, tmp_path):
    planted = {(i, i + 1) for i in range(8)}
    learner = StructureLearner(form="ordinal").fit(survey)
    found = {edge[:2] for edge in learner.edges_}
    assert planted <= found
    assert len(found) <= len(planted) + 2
    assert (6, 9) not in found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert len({edge[:2] for edge in StructureLearner(form="full").fit(survey).edges_} & planted) < 4
    learner.save(tmp_path / "m.crf")
    loaded = StructureLearner.load(tmp_path / "m.crf")
    assert loaded.score(survey) == pytest.approx(learner.score(survey), rel=1e-12)
    assert loaded.edges_ == learner.edges_
    np.testing.assert_array_equal(loaded.predict(survey[:9]), learner.predict(survey[:9]))


def test_scores_of_some_columns_are_checked_in_files(survey, tmp_path):
    StructureLearner(form="ordinal", edge_strength=60.0).fit(survey[:, 5:9]).save(tmp_path / "m.crf")
    contents = modelfile.read(tmp_path / "m.crf")
    assert contents.metadata["scored"] == [True, True, True, False]
    for bad in ([True], "x", [1, 2, 3, 4], [[True]] * 4, [False] * 4, None):
        modelfile.write(tmp_path / "bad.crf", "graph", {**contents.metadata, "scored": bad}, dict(contents.tensors))
        with pytest.raises(ModelFileError):
            StructureLearner.load(tmp_path / "bad.crf")


def test_groups_of_numbers_have_an_order():
    rng = np.random.default_rng(4)
    z = rng.normal(size=600)
    Y = np.stack([z, z + rng.normal(size=600), np.round(np.clip(rng.normal(size=600), -1, 1))], axis=1)
    learner = StructureLearner(form="ordinal", bins=4).fit(Y)
    assert [edge[:2] for edge in learner.edges_] == [(0, 1)]
    assert learner.edges_[0][2] > 0


def test_a_copy_counts_only_if_it_keeps_the_order(ratings):
    mixed = np.array([3, 1, 5, 2, 4])[ratings[:, 0] - 1]
    with pytest.warns(UserWarning, match="columns that are copies of each other"):
        learner = StructureLearner(form="ordinal").fit(np.column_stack([ratings[:, :3], 6 - ratings[:, 2], mixed]))
    found = {edge[:2]: edge[2] for edge in learner.edges_}
    assert found[2, 3] < -1
    assert {(0, 1), (1, 2)} <= set(found)


def test_a_known_graph_has_the_same_weights(ratings, learner):
    """GraphCRF with the edges that were found, at the optimum of the same likelihood but for traces of L2."""
    edges = [edge[:2] for edge in learner.edges_]
    crf = GraphCRF(graph=edges, edge_form="ordinal", penalty=L2(1e-3)).fit(None, ratings)
    named = {pair: weight for (pair, _, _), weight in crf.model_.edge_weights().items()}
    for i, j, weight in learner.edges_:
        assert named[f"y{i}", f"y{j}"] == pytest.approx(weight, abs=0.02)
