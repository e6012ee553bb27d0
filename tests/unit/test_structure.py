"""StructureLearner: what it finds, what it predicts, files, and bad input."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from structure_cases import f1, planted

from crfkit import GraphCRF, StructureLearner
from crfkit.errors import DataError, ModelFileError, ParameterError, StopTraining
from crfkit.files.tables import Table
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.losses.standardised import column_scales
from crfkit.structure.observations import Observations
from crfkit.structure.options import StructureOptions
from crfkit.structure.solve import EdgeSolver
from crfkit.structure.train import in_order


@pytest.fixture(scope="module")
def small():
    return planted(0)


@pytest.fixture(scope="module")
def learner(small):
    return StructureLearner().fit(small[0])


@pytest.mark.parametrize(("rule", "seed"), [("ebic", 0), ("ebic", 1), ("cv", 2)])
def test_planted_graphs_are_found(rule, seed):
    Y, true = planted(seed, p=20, n_edges=24, rows=2000)
    found = StructureLearner(edge_strength=rule, n_strengths=10, n_folds=3).fit(Y)
    assert f1(found.edges_, true) >= 0.9
    assert 0 < found.strength_ < found.strength_path_[0].strength
    assert all(point.score is not None for point in found.strength_path_)


def test_stability(small):
    Y, true = small
    found = StructureLearner(edge_strength="stability", n_subsamples=10).fit(Y)
    assert f1(found.edges_, true) >= 0.9
    assert {pair for pair, share in found.stability_.items() if share >= 0.75} == {e[:2] for e in found.edges_}


@pytest.mark.parametrize("loss", ["pl", "likelihood"])
@pytest.mark.parametrize("norm", ["inf", "2", "1"])
@pytest.mark.parametrize("K", [2, 3])
def test_all_methods_have_the_same_optimum(loss, norm, K):
    rng = np.random.default_rng(1)
    Y = rng.integers(0, K, (200, 4))
    Y[:, 1] = np.where(rng.random(200) < 0.6, Y[:, 0], Y[:, 1])
    Y[:, 3] = np.where(rng.random(200) < 0.5, Y[:, 2], Y[:, 3])
    values, supports = [], []
    for method in ("agpm", "full", "grafting-light", "grafting"):
        found = StructureLearner(method, loss, group_norm=norm, edge_strength=15.0, tolerance=1e-9).fit(Y)
        values.append(found.result_.value)
        supports.append({edge[:2] for edge in found.edges_ if abs(edge[2]) > 1e-4})
    assert supports[0] == supports[1] == supports[2] == supports[3] >= {(0, 1), (2, 3)}
    np.testing.assert_allclose(values, values[0], rtol=1e-6)


@pytest.mark.parametrize("method", ["newton", "grafting-light"])
@pytest.mark.parametrize("standardize", [True, False])
def test_optimality_of_edges_that_are_off(small, method, standardize):
    table = Observations.of(small[0], 2, ising=True)
    solver = EdgeSolver(StructureOptions(method=method, standardize=standardize))
    solution = solver.solve(solver.empty(StructurePseudoLikelihood(table)), 150.0)
    loss, w = in_order(solution.reduced())
    scales = column_scales(table) if standardize else np.ones(table.n_variables)
    assert loss.candidates(loss.at(w), "max", 0.0, scales)[1].max() <= 150.0 * (1 + 1e-3)
    edges = np.abs(loss.at(w).grad[loss.block_index >= 0]) / scales[loss.edges].prod(axis=1)
    assert edges == pytest.approx(150.0, rel=1e-2)


def test_critical_strength(small):
    with pytest.warns(UserWarning, match=r"no edge was selected.*the graph is empty"):
        none = StructureLearner(edge_strength=1e6).fit(small[0])
    assert none.edges_ == []
    assert none.graph_.number_of_nodes() == 8
    critical = none.model_.training["structure"]["critical_strength"]
    with pytest.warns(UserWarning, match="no edge"):
        StructureLearner(edge_strength=1.001 * critical).fit(small[0])
    assert len(StructureLearner(edge_strength=0.98 * critical).fit(small[0]).edges_) == 1


def test_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    a = X[:, 0] + 0.3 * rng.normal(size=600) > 0
    b = X[:, 1] + 0.3 * rng.normal(size=600) > 0
    c = a ^ (rng.random(600) < 0.1)
    d = X[:, 0] + 0.3 * rng.normal(size=600) > 0  # depends on a by way of X only
    Y = np.stack([a, b, c, d], axis=1).astype(int)
    found = StructureLearner().fit(Y, inputs=X)
    assert {edge[:2] for edge in found.edges_} == {(0, 2)}
    assert (0, 3) in {edge[:2] for edge in StructureLearner().fit(Y).edges_}
    assert (found.predict(X) == Y).mean() > 0.85
    assert found.predict_marginals(X)[0].shape == (600, 2)
    assert found.sample(3, inputs=X[:5]).shape == (3, 5, 4)
    assert found.log_likelihood(Y, inputs=X).shape == (600,)
    exact = StructureLearner("grafting-light", "likelihood", edge_strength=30.0, edge_features=False).fit(
        Y[:100], inputs=X[:100]
    )
    assert (0, 2) in {edge[:2] for edge in exact.edges_}


def test_more_labels_and_names():
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], 400)
    size = np.where(rng.random(400) < 0.8, np.where(colour == "red", 1, 0), rng.integers(0, 2, 400))
    other = rng.integers(0, 3, 400)
    table = Table(["colour", "size", "other"], [colour.astype(object), size, other], n_rows=400)
    found = StructureLearner().fit(table)
    assert [edge[:2] for edge in found.edges_] == [("colour", "size")]
    assert found.edges_[0][2] > 0
    assert list(found.graph_.nodes) == ["colour", "size", "other"]
    assert found.graph_.edges["colour", "size"]["weight"] == found.edges_[0][2]
    drawn = found.sample(5)
    assert drawn.shape == (5, 3)
    assert set(drawn[:, 0]) <= {"blue", "green", "red"}


def test_prediction(small, learner):
    Y, _ = small
    assert (learner.predict(Y) == Y).mean() > 0.6
    for i, p in enumerate(learner.predict_marginals(Y[:50])):
        others = np.array(Y[:50], dtype=object)
        others[:, i] = None
        data = learner.model_.encoder.encode(None, others)
        states = learner.model_.encoder.encode_labels(others, data, None)
        np.testing.assert_allclose(p, learner.model_.infer(data, states).nodes.reshape(50, 8, 2)[:, i], atol=1e-8)
    missing = np.array(Y[:5], dtype=object)
    missing[:, 3] = None
    filled = learner.complete(missing)
    assert (filled[:, 3] == learner.predict(Y[:5])[:, 3]).all()
    assert (np.delete(filled, 3, 1) == np.delete(Y[:5], 3, 1)).all()
    drawn = learner.sample(4000, random_state=1)
    assert np.abs(drawn.mean(axis=0) - [p[0, 1] for p in learner.predict_marginals()]).max() < 0.05
    assert np.abs(drawn.mean(axis=0) - Y.mean(axis=0)).max() < 0.07


def test_log_likelihood(small, learner, monkeypatch):
    from itertools import product

    Y, _ = small
    everything = np.array(list(product([0, 1], repeat=8)))
    assert np.exp(learner.log_likelihood(everything)).sum() == pytest.approx(1.0)
    assert learner.inference_status_ is InferenceStatus.EXACT
    exact = learner.log_likelihood(Y)
    for place in ("structure.estimator.prediction", "structure.scores"):
        monkeypatch.setattr(f"crfkit.{place}.default_engine", lambda *_: "trw")
    lower, upper = learner.log_likelihood_bounds(Y)
    assert (lower <= exact + 1e-6).all()
    assert (exact <= upper + 1e-6).all()
    named = clone(learner).set_params(inference="trw")
    named._set_model(learner.model_)
    with pytest.warns(UserWarning, match="lower bound"):
        assert named.score(Y) == pytest.approx(lower.mean())
    assert learner.score(Y) == pytest.approx(exact.mean(), abs=0.1)  # by particles
    assert learner.inference_status_ is InferenceStatus.SAMPLED
    assert 0 < learner.score_error_ < 0.05


def test_files(tmp_path, small, learner):
    path = tmp_path / "m.crf"
    learner.save(path)
    again = StructureLearner.load(path)
    assert again.edges_ == learner.edges_
    assert again.strength_path_ == learner.strength_path_
    assert again.score(small[0]) == learner.score(small[0])
    crf = GraphCRF.load(path)
    assert crf.log_likelihood(None, small[0][:3]) == pytest.approx(learner.log_likelihood(small[0][:3]))
    crf.fit(None, small[0])
    crf.save(path)
    with pytest.raises(ModelFileError, match="not a model of learnt structure"):
        StructureLearner.load(path)


def test_scikit_learn(learner):
    assert clone(learner).get_params() == learner.get_params()
    assert pickle.loads(pickle.dumps(learner)).edges_ == learner.edges_
    with pytest.raises(NotFittedError):
        StructureLearner().predict([[0, 1]])


def test_candidates_limit_the_graph(small):
    Y, _ = small
    found = StructureLearner(candidates=[(1, 0), (3, 2)], edge_strength=1.0).fit(Y)
    assert {edge[:2] for edge in found.edges_} <= {(0, 1), (2, 3)}
    with pytest.warns(UserWarning, match="no edge"):
        assert StructureLearner(candidates=[]).fit(Y).edges_ == []


# --- bad input


def test_constant_and_equal_columns(small):
    Y = np.hstack([small[0], np.ones((1000, 1), dtype=int), 1 - small[0][:, :1]])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = StructureLearner().fit(Y)
    messages = " ".join(str(w.message) for w in said)
    assert "column y8 is constant" in messages
    assert "y0 and y9" in messages
    assert found.classes_[8].tolist() == [0, 1]
    assert np.isfinite(found.model_.w).all()
    assert (0, 9) in {edge[:2] for edge in found.edges_}
    assert not any(8 in edge[:2] for edge in found.edges_)
    assert 1 < found.model_.w[8] < 10
    with pytest.warns(UserWarning, match="constant"), pytest.raises(ParameterError, match="node_strength > 0"):
        StructureLearner(node_strength=0).fit(Y[:, :9])
    with pytest.warns(UserWarning, match="constant|no edge"):
        words = StructureLearner(edge_strength=5.0).fit([["x", "a"], ["x", "b"], ["x", "a"], ["x", "b"]])
    assert words.classes_[0].tolist() == ["not x", "x"]


def test_data_that_cannot_be_used(small):
    Y = small[0]
    with_hole = Y.astype(float)
    with_hole[7, 2] = np.nan
    for bad, match in (
        (with_hole, "no label at row 7, column y2"),
        (np.arange(40).reshape(20, 2), "columns y0, y1: each of 20 rows has a different value, as in an identifier"),
        (Y[:0], "no rows"),
        (Y[:, :0], "no columns"),
        (Y[:, 0], "Y must be"),
    ):
        with pytest.raises(DataError, match=match):
            StructureLearner(missing="error").fit(bad)
    with pytest.raises(DataError, match="X has 3 rows"):
        StructureLearner().fit(Y, inputs=np.zeros((3, 2)))
    with pytest.raises(ParameterError, match="form='ising' is for two labels; column y0 has 3"):
        StructureLearner(form="ising").fit(np.array([[0, 1], [1, 0], [2, 1]] * 5))
    for candidates in ([("y0", "nose")], [(0, 99)], [(0, 0)], [(0, 1.5)]):
        with pytest.raises(DataError, match="candidates"):
            StructureLearner(candidates=candidates).fit(Y)
    with pytest.raises(ParameterError, match="pairs of columns"):
        StructureLearner(candidates=[(0, 1, 2)]).fit(Y)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "magic"},
        {"loss": "l"},
        {"group_norm": "3"},
        {"form": "potts"},
        {"inference": "magic"},
        {"edge_strength": "best"},
        {"edge_strength": -1.0},
        {"edge_strength": float("nan")},
        {"node_strength": -1.0},
        {"select_unit": 0},
        {"n_folds": 1},
        {"threshold": 2.0},
        {"n_threads": 0},
    ],
)
def test_options_out_of_range(options, small):
    with pytest.raises(ParameterError):
        StructureLearner(**options).fit(small[0])


def test_refused_inference_says_why():
    Y, _ = planted(2, p=30, n_edges=20, rows=60)
    with pytest.raises(ParameterError, match=r"inference is refused .*max_table.*grafting-light"):
        StructureLearner("agpm", "likelihood", "junction", edge_strength=0.01).fit(Y)
    with pytest.raises(ParameterError, match=r"inference is refused .*max_table.*a larger edge_strength"):
        StructureLearner("grafting", "likelihood", "junction", edge_strength=0.01, select_unit=400).fit(Y)


def test_mean_field_that_jumps_is_not_passed_over():
    rng = np.random.default_rng(1)
    Y = rng.integers(0, 2, (200, 5))
    for i, j in ((0, 1), (2, 4)):
        Y[:, j] = np.where(rng.random(200) < 0.7, Y[:, i], Y[:, j])
    with (
        pytest.warns(UserWarning, match="by mean-field is a bound"),
        pytest.warns(ConvergenceWarning, match="loss='pseudo-likelihood' needs no inference"),
    ):
        StructureLearner("grafting-light", "likelihood", "mean-field", edge_strength=10.0).fit(Y)


def test_methods_of_a_field_without_inputs_need_a_table(learner, small):
    with pytest.raises(DataError, match="table like Y"):
        learner.predict()
    hole = small[0][:2].astype(object)
    hole[1, 4] = None
    with pytest.raises(DataError, match="row 1, column y4"):
        learner.predict(hole)
    with pytest.raises(DataError, match="complete"):
        learner.log_likelihood(hole)


# --- progress, and its end


def test_callbacks_see_strengths_and_may_end_the_path(small):
    Y = small[0]
    seen = []

    def stop(iteration):
        seen.append(iteration.row.extra["strength"])
        if len(set(seen)) == 4:
            raise StopTraining

    learner = StructureLearner(edge_strength="path", n_strengths=10).fit(Y, callbacks=[stop])
    assert len(learner.strength_path_) == 3  # the fourth was not finished
    assert sorted(set(seen), reverse=True)[:3] == [point.strength for point in learner.strength_path_]
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("rule", ["path", "ebic", "cv", "stability", 5.0])
def test_ctrl_c_keeps_what_there_is(small, rule):
    Y = small[0]
    seen = set()

    def interrupt(iteration):
        seen.add(iteration.row.extra["strength"])
        if len(seen) == 4 or (rule == 5.0 and iteration.row.iteration == 2):
            raise KeyboardInterrupt

    learner = StructureLearner(edge_strength=rule, n_strengths=10, n_folds=2, n_subsamples=2)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(Y, callbacks=[interrupt])
    assert len(learner.strength_path_) == (0 if rule == 5.0 else 3)
    assert learner.predict(Y).shape == Y.shape

    def at_once(_):
        raise KeyboardInterrupt

    if rule != 5.0:
        other = StructureLearner(edge_strength=rule)
        with pytest.raises(KeyboardInterrupt):
            other.fit(Y, callbacks=[at_once])
        assert not hasattr(other, "model_")


def test_verbose(small, capsys):
    StructureLearner(n_strengths=5, verbose=1).fit(small[0])
    lines = capsys.readouterr().out.splitlines()
    assert lines.pop() == "weights by exact likelihood"
    assert 1 < len(lines) <= 5
    assert all(line.startswith("penalty λ ") for line in lines)
    StructureLearner(edge_strength=20.0, verbose=2).fit(small[0])
    assert "iteration    1" in capsys.readouterr().out
