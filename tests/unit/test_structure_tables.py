"""Tables as people have them: missing cells, numbers, ordered columns; what is said where nothing was found."""

import warnings

import numpy as np
import pandas as pd
import pytest
from structure_cases import f1, planted

from crfkit import StructureLearner
from crfkit.errors import DataError, ParameterError
from crfkit.files.tables import read_table
from crfkit.structure.encoding.drawn_labels import DrawnLabels
from crfkit.structure.encoding.unusual_columns import missing_codes


@pytest.fixture(scope="module")
def small():
    return planted(0)[0]


def test_cells_that_stand_for_missing_values(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\nyes,1,x\nNA,0,null\nno,NaN,y\nN/A,?,\n")
    table = read_table(path)
    assert [column.tolist() for column in table.values[::2]] == [["yes", None, "no", None], ["x", None, "y", None]]
    np.testing.assert_array_equal(table.values[1], [1, 0, np.nan, np.nan])
    other = read_table(path, na=["null", "?", "NaN"])
    assert other.values[0].tolist() == ["yes", "NA", "no", "N/A"]
    assert other.values[2].tolist() == ["x", None, "y", None]


def test_incomplete_rows_are_dropped_and_counted(small):
    Y = small.astype(object)
    rng = np.random.default_rng(0)
    holes = rng.random(Y.shape) < 0.01
    Y[holes] = None
    kept = ~holes.any(axis=1)
    message = rf"{np.count_nonzero(~kept)} of 1000 rows have missing labels and were dropped.*y\d \(\d+\)"
    with pytest.warns(UserWarning, match=message):
        found = StructureLearner(missing="drop").fit(Y)
    whole = StructureLearner().fit(small[kept])
    assert [e[:2] for e in found.edges_] == [e[:2] for e in whole.edges_]
    np.testing.assert_array_equal(found.model_.w, whole.model_.w)
    assert all(len(c) == 2 for c in found.classes_)
    X = rng.normal(size=(1000, 2))
    with pytest.warns(UserWarning, match="were dropped"):
        given = StructureLearner(edge_strength=50.0, missing="drop").fit(Y, inputs=X)
    np.testing.assert_array_equal(
        given.model_.w, StructureLearner(edge_strength=50.0).fit(small[kept], inputs=X[kept]).model_.w
    )
    X[5, 1] = np.nan
    with pytest.warns(UserWarning, match="rows have missing cells and were dropped"):
        StructureLearner(edge_strength=50.0, missing="drop").fit(small, inputs=X)
    with pytest.raises(DataError, match="X has no value in row 5"):
        StructureLearner(missing="error").fit(small, inputs=X)
    Y[:, 0] = None
    with pytest.raises(DataError, match=r"no row of Y has all labels.*y0 \(1000\)"):
        StructureLearner(missing="drop").fit(Y)
    with pytest.raises(ParameterError, match="unknown missing"):
        StructureLearner(missing="fill").fit(small)


@pytest.mark.parametrize("rate", [0.02, pytest.param(0.2, marks=pytest.mark.slow)])
def test_what_is_known_of_incomplete_rows_is_used(rate):
    """Of sixteen columns, listwise deletion loses 28 % of the rows at 2 % of missing cells, and 97 % at 20 %."""
    Y, true = planted(1, p=16, n_edges=18, rows=700)
    holes = Y.astype(object)
    holes[np.random.default_rng(2).random(Y.shape) < rate] = None
    with pytest.warns(UserWarning, match=r"of 11,200 labels are missing, in \d+ rows"):
        found = StructureLearner().fit(holes)
    assert f1(found.edges_, true) >= 0.94
    with pytest.warns(UserWarning, match="labels are missing"):
        assert StructureLearner().fit(holes).edges_ == found.edges_  # the draws depend on the seed alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            dropped = f1(StructureLearner(missing="drop").fit(holes).edges_, true)
        except DataError:
            dropped = 0.0
    assert dropped <= (f1(found.edges_, true) if rate < 0.1 else 0.5)
    weights = {edge[:2]: edge[2] for edge in StructureLearner().fit(Y).edges_}
    both = [(weight, weights[i, j]) for i, j, weight in found.edges_ if (i, j) in weights]
    assert np.abs(np.diff(both, axis=1)).mean() < 0.02 + 0.5 * rate


@pytest.mark.parametrize("form", ["full", "ordinal", "reference"])
def test_missing_labels_of_every_form(form):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 300)
    Y = np.column_stack(
        [first, np.where(rng.random(300) < 0.7, first, rng.integers(0, 3, 300)), rng.integers(0, 2, 300)]
    )
    Y = Y.astype(object)
    Y[rng.random(Y.shape) < 0.05] = None
    Y[7] = None
    X = rng.normal(size=(300, 2))
    X[3, 0] = np.nan
    with pytest.warns(UserWarning, match="dropped 1 row without any label"):
        found = StructureLearner(form=form).fit(Y)
    assert [edge[:2] for edge in found.edges_] == [(0, 1)]
    assert [labels.tolist() for labels in found.classes_] == [[0, 1, 2], [0, 1, 2], [0, 1]]
    with (
        pytest.warns(UserWarning, match="inputs are missing in 1 row; they are replaced by the means"),
        pytest.warns(UserWarning, match="labels are missing"),
    ):
        given = StructureLearner(form=form, edge_strength=30.0, edge_features=False).fit(Y, inputs=X)
    assert given.edges_[0][:2] == (0, 1)


def test_missing_labels_and_other_rules(small):
    Y = small[:400].astype(object)
    Y[np.random.default_rng(3).random(Y.shape) < 0.05] = None
    for options in ({"edge_strength": "cv", "n_strengths": 8}, {"edge_strength": "stability", "n_subsamples": 10}):
        with pytest.warns(UserWarning, match="labels are missing"):
            assert len(StructureLearner(**options).fit(Y).edges_) >= 5
    with pytest.warns(UserWarning, match="labels are missing"):
        path = StructureLearner().path(Y, n=4)
    assert len(path) == 4


def test_gibbs_draws_have_the_probabilities_of_the_field():
    """Two missing neighbours of a row: their joint shares are those of the field, given the label that is known."""
    J = np.array([0.8, -0.6])  # of 0 – 1 and 1 – 2
    states = np.array([[1, -1, -1]] * 3000)
    draws = DrawnLabels.by_shares(np.concatenate([states, [[0, 0, 0], [1, 1, 1]]]), seed=0, copies=5)

    def conditionals(y):
        s = 2.0 * y - 1.0
        slopes = np.stack([J[0] * s[:, 1], J[0] * s[:, 0] + J[1] * s[:, 2], J[1] * s[:, 1]], axis=1)
        return [np.stack([1 - q, q], axis=1) for q in (1.0 / (1.0 + np.exp(-2.0 * slopes))).T]

    found = draws.redrawn(conditionals, seed=1, sweeps=5).states
    assert (found[:, 0] == 1).all()
    spins = np.array([-1.0, 1.0])
    joint = np.exp(J[0] * spins[:, None] + J[1] * np.outer(spins, spins))
    shares = np.histogram2d(found[:, 1], found[:, 2], bins=2)[0] / len(found)
    np.testing.assert_allclose(shares, joint / joint.sum(), atol=0.02)


def test_numbers_are_refused_or_cut(small):
    rng = np.random.default_rng(0)
    income = np.round(np.exp(rng.normal(10, 1, 1000)), -2) * (1 + 2 * small[:, 0])
    Y = np.column_stack([small[:, :3], income])
    with pytest.raises(DataError, match=r"column y3 has \d+ different values.*bins=5 \(--bins 5\)"):
        StructureLearner().fit(Y)
    found = StructureLearner(bins=4).fit(Y)
    assert found.classes_[3].tolist()[0].startswith("1: < ")
    assert len(found.classes_[3]) == 4
    assert (0, 3) in {e[:2] for e in found.edges_}
    assert found.predict(Y[:5]).shape == (5, 4)
    assert np.isfinite(found.score(Y))
    holes = Y.astype(object)
    holes[:, 0] = None
    assert (found.complete(holes)[:, 0].astype(float) == Y[:, 0]).mean() > 0.6
    for bad in (1, 2.5, True):
        with pytest.raises(ParameterError, match="bins must be"):
            StructureLearner(bins=bad).fit(Y)


@pytest.fixture
def survey(small):
    """A table as people have them: an identifier, a name, an age, a rating and answers."""
    rng = np.random.default_rng(1)
    n = len(small)
    age = 20 + 30 * small[:, 0] + rng.integers(0, 30, n)
    rating = np.clip(2 + 3 * small[:, 0] + rng.integers(-1, 3, n), 1, 7)
    return pd.DataFrame(
        {
            "id": 7000 + rng.permutation(n),
            "name": [f"person {k}" for k in range(n)],
            "age": age,
            "rating": rating,
            **{f"q{k}": small[:, k] for k in range(3)},
        }
    )


@pytest.mark.parametrize("bins", [5, {"age": 5}, {2: 5}], ids=str)
def test_identifiers_are_left_out(survey, bins, tmp_path):
    with pytest.warns(
        UserWarning, match=r"columns id, name: each of 1000 rows has a different value.*left out"
    ) as said:
        found = StructureLearner(bins=bins, edge_strength=30.0, candidates=[("age", "rating"), ("rating", "q0")]).fit(
            survey
        )
    assert "bins={'id': 5}" in str(said[0].message)
    assert found.model_.encoder.variables == ["age", "rating", "q0", "q1", "q2"]
    assert len(found.classes_[0]) == 5
    assert found.classes_[1].tolist() == sorted(set(survey["rating"]))  # the steps of a scale are not cut
    assert found.predict(survey).shape == (1000, 5)
    assert np.isfinite(found.score(survey))
    found.save(tmp_path / "m.crf")
    assert StructureLearner.load(tmp_path / "m.crf").score(survey) == found.score(survey)


def test_a_number_that_looks_like_an_identifier_can_be_cut(survey):
    with pytest.warns(UserWarning, match="column name: each of 1000 rows"):
        found = StructureLearner(bins={"id": 3, "age": 4}, edge_strength=200.0).fit(survey)
    assert [len(labels) for labels in found.classes_[:2]] == [3, 4]


def test_bins_of_columns_that_cannot_be_cut(survey):
    for bins, match in (
        ({"height": 5}, "names the column 'height'; the columns are name, age"),
        ({"name": 5}, "names the column name, which does not hold numbers"),
        ({"age": 1}, "bins must be"),
        ({"age": None}, "bins must be"),
    ):
        with pytest.raises(ParameterError, match=match):
            StructureLearner(bins=bins).fit(survey.drop(columns="id"))


@pytest.mark.filterwarnings("ignore:1,000 of 3,000 labels are missing")
@pytest.mark.parametrize("bins", [3, {"empty": 3}])
def test_a_column_without_values_cannot_be_cut(survey, bins):
    with pytest.raises(DataError, match="column empty has no label in any row"):
        StructureLearner(bins=bins).fit(survey[["q0", "q1"]].assign(empty=np.nan))


@pytest.mark.filterwarnings(
    "ignore:column endless is constant", "ignore:no edge was selected", "ignore:the graph is empty"
)
def test_a_column_without_end_is_no_scale(survey):
    found = StructureLearner(bins=3, edge_strength=1000.0).fit(survey[["q0"]].assign(endless=np.inf))
    assert found.edges_ == []


def test_identifiers_in_arrays_are_refused(small):
    Y = np.column_stack([np.arange(1000), small[:, :3]])
    with pytest.raises(
        DataError, match=r"column y0: each of 1000 rows has a different value.*remove it.*bins=\{0: 5\}"
    ):
        StructureLearner().fit(Y)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 2, 3, 4, 5, 9], [9]),
        ([1.0, 2.0, 3.0, 99.0], [99]),
        ([-99, -9, 0, 1], [-99, -9]),
        ([0, 1, 88, 99], [88, 99]),
        (range(11), []),
        (range(0, 100, 9), []),
        ([-9, -1, 0, 1], []),
        ([98, 99], []),
        (["no", "yes"], []),
        (["-", "N.A.", "no", "yes"], ["-", "N.A."]),
    ],
    ids=str,
)
def test_codes_for_missing_answers(labels, expected):
    assert missing_codes(np.array(labels)) == expected


def test_codes_for_missing_answers_are_warned_of(survey):
    survey.loc[:11, "rating"] = 99
    with pytest.warns(UserWarning, match=r"99 in column rating \(12 rows\).*--na 99"):
        StructureLearner(bins={"age": 4}, edge_strength=200.0).fit(survey[["age", "rating", "q0"]])


def test_files_keep_the_groups_of_numbers(tmp_path, small):
    Y = np.column_stack([small[:, :2], np.random.default_rng(0).normal(size=1000) + 2 * small[:, 0]])
    found = StructureLearner(bins=3).fit(Y)
    found.save(tmp_path / "m.crf")
    assert StructureLearner.load(tmp_path / "m.crf").score(Y) == found.score(Y)


def test_inputs_of_any_scale_give_the_same_field():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    Y = (X @ [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]] + rng.normal(size=(400, 3)) > 0).astype(int)
    Y[:, 2] = np.where(rng.random(400) < 0.7, Y[:, 1], Y[:, 2])
    one = StructureLearner(edge_strength=10.0, tolerance=1e-9).fit(Y, inputs=X)
    other = StructureLearner(edge_strength=10.0, tolerance=1e-9).fit(Y, inputs=X * [1000.0, 0.01] + [5000.0, 3.0])
    assert {e[:2] for e in one.edges_} == {e[:2] for e in other.edges_}
    np.testing.assert_allclose(
        other.log_likelihood(Y, inputs=X * [1000.0, 0.01] + [5000.0, 3.0]), one.log_likelihood(Y, inputs=X), atol=1e-3
    )
    for key, value in one.node_weights_.items():
        if key[1] == "x0":
            assert other.node_weights_[key] * 1000 == pytest.approx(value, abs=1e-3)


# --- what is said


def test_an_empty_graph_names_the_best_edge():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (300, 4))
    Y[:, 3] = np.where(rng.random(300) < 0.08, Y[:, 1], Y[:, 3])
    with pytest.warns(UserWarning, match=r"best edge is y\d – y\d: it gains [\d.]+ .* price is [\d.]+; a smaller"):
        StructureLearner().fit(Y)


def test_approximate_likelihoods_say_what_they_are():
    Y, _ = planted(0, p=5, n_edges=4, rows=200)
    with pytest.warns(UserWarning, match="loss='likelihood' by trw is a bound"):
        StructureLearner(loss="likelihood", inference="trw", edge_strength=20.0).fit(Y)


def test_auto_is_exact_or_pseudo_likelihood():
    Y, _ = planted(0, p=30, n_edges=30, rows=300)
    with pytest.warns(UserWarning, match="chosen by pseudo-likelihood instead"):
        found = StructureLearner(loss="likelihood", edge_strength=40.0).fit(Y)
    plain = StructureLearner(edge_strength=40.0).fit(Y)
    np.testing.assert_allclose(found.model_.w, plain.model_.w)


class Frame:
    """What is used of a pandas data frame with ordered categories."""

    class Ordered:
        ordered = True
        categories = ("never", "sometimes", "often", "always")

    class Plain:
        ordered = False

    def __init__(self, values):
        self.values = values
        self.columns = ["how often", "other"]
        self.dtypes = [self.Ordered(), self.Plain()]

    def to_numpy(self):
        return self.values

    def __len__(self):
        return len(self.values)


def test_ordered_categories_keep_their_order(tmp_path):
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 500)
    other = np.where(level + rng.normal(size=500) > 1.5, "yes", "no")
    values = np.column_stack([np.array(Frame.Ordered.categories)[level], other]).astype(object)
    found = StructureLearner().fit(Frame(values))
    assert found.classes_[0].tolist() == list(Frame.Ordered.categories)
    assert [e[:2] for e in found.edges_] == [("how often", "other")]
    slopes = [found.edge_weights_[("how often", "other"), "intercept", (c, "yes")] for c in Frame.Ordered.categories]
    assert slopes == sorted(slopes)
    found.save(tmp_path / "m.crf")
    again = StructureLearner.load(tmp_path / "m.crf")
    assert again.edge_weights_ == found.edge_weights_
    assert (again.predict(Frame(values)) == found.predict(Frame(values))).all()
