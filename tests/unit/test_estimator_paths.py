"""The `path` of estimators: every point is the model of a fit of its own, and warm starts save evaluations."""

import numpy as np
import pytest

from crfkit import L1, L2, ChainCRF, GraphCRF, GridCRF, PathPoint, StructureLearner
from crfkit.errors import ParameterError, StopTraining
from crfkit.solvers import GradientNorm
from crfkit.training.path import follow

TIGHT = GradientNorm(1e-7)


def sequences(seed=0, n=40):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        states = rng.integers(3, size=rng.integers(2, 7))
        X.append([[f"w={s if rng.random() < 0.7 else rng.integers(3)}", f"r={rng.integers(8)}"] for s in states])
        y.append(["ABC"[s] for s in states])
    return X, y


def table(seed=0, n=300, p=5):
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, p), dtype=int)
    Y[:, 0] = rng.random(n) < 0.5
    for j in range(1, p):
        Y[:, j] = np.where(rng.random(n) < 0.75, Y[:, j - 1], rng.random(n) < 0.5)
    return Y


# --- chains


@pytest.mark.parametrize("solver", ["auto", "owlqn", "grafting-light"])
def test_every_point_of_a_chain_is_a_fit_of_its_own(solver):
    X, y = sequences()
    crf = ChainCRF(penalty=L1(), solver=solver, tolerance=TIGHT, n_threads=1)
    path = crf.path(X, y, n=5, ratio=0.05)
    assert path[0].nonzeros == 0
    assert [point.strength for point in path] == sorted((point.strength for point in path), reverse=True)
    assert not hasattr(crf, "model_")  # the estimator does not change
    for point in path[1:]:
        alone = ChainCRF(penalty=L1(point.strength), solver=solver, tolerance=TIGHT, n_threads=1).fit(X, y)
        assert point.value == pytest.approx(alone.result_.value, rel=1e-7)
        assert point.result.objective == alone.result_.objective
        ours = ChainCRF()
        ours._set_model(point.model)
        assert ours.state_features_ == pytest.approx(alone.state_features_, abs=1e-4)
        assert ours.transition_features_ == pytest.approx(alone.transition_features_, abs=1e-4)
        assert point.model.predict(X) == alone.predict(X)


def test_warm_starts_of_a_chain_save_evaluations():
    X, y = sequences(1)
    crf = ChainCRF(penalty=L1(), solver="owlqn", tolerance=TIGHT, n_threads=1)
    path = crf.path(X, y, n=10, ratio=0.02)
    warm = sum(point.result.evaluations for point in path)
    cold = 0
    for point in path:
        alone = ChainCRF(penalty=L1(point.strength), solver="owlqn", tolerance=TIGHT, n_threads=1)
        cold += alone.fit(X, y).result_.evaluations
    assert warm < 0.85 * cold


def test_the_score_of_a_point_is_that_of_its_model_on_the_development_set():
    X, y = sequences(2)
    X_dev, y_dev = sequences(3, 15)
    path = ChainCRF(penalty=L2(), n_threads=1).path(X, y, [10.0, 0.1, 1.0], X_dev=X_dev, y_dev=y_dev)
    assert [point.strength for point in path] == [10.0, 1.0, 0.1]
    for point in path:
        crf = ChainCRF()
        crf._set_model(point.model)
        assert point.score == pytest.approx(crf.score(X_dev, y_dev))
    assert path[0].model.training["solver"] == "auto"
    assert path[0].model.training["auto"] == {"solver": "lbfgs"}


def test_a_model_of_a_path_is_saved_and_loaded(tmp_path):
    X, y = sequences(2)
    point = ChainCRF(penalty=L1(), n_threads=1).path(X, y, [0.5])[0]
    point.model.save(tmp_path / "m.crf")
    assert ChainCRF.load(tmp_path / "m.crf").predict(X) == point.model.predict(X)


def test_paths_that_cannot_be_made_say_what_to_do():
    X, y = sequences(0, 10)
    with pytest.raises(ParameterError, match=r"no strength of L2\(1\) makes all weights zero: give the strengths.*L1"):
        ChainCRF().path(X, y)
    with pytest.raises(ParameterError, match="X_dev and y_dev go together"):
        ChainCRF().path(X, y, [1.0], X_dev=X)
    with pytest.raises(ParameterError, match="a path needs a penalty that has a strength"):
        ChainCRF(solver="averaged-perceptron").path(X, y, [1.0])


def test_a_callback_ends_a_path(capsys):
    X, y = sequences(0, 10)
    seen = []

    def stop(point):
        seen.append(point)
        raise StopTraining

    assert list(ChainCRF(penalty=L1()).path(X, y, callback=stop)) == seen
    assert len(seen) == 1
    ChainCRF(penalty=L1(), verbose=1).path(X, y, [2.0])
    assert "penalty λ 2  weights " in capsys.readouterr().out


# --- structure


def test_every_point_of_a_structure_is_a_fit_of_its_own():
    Y = table()
    path = StructureLearner(tolerance=1e-8).path(Y, n=5, ratio=0.1)
    assert path[0].n_edges == 0
    assert path[-1].n_edges >= 4
    for point in path[1:]:
        alone = StructureLearner(edge_strength=point.strength, tolerance=1e-8).fit(Y)
        assert point.n_edges == len(alone.edges_)
        assert point.value == pytest.approx(alone.result_.value, rel=1e-6)
        assert point.model.edge_weights().keys() == alone.model_.edge_weights().keys()
        np.testing.assert_allclose(point.model.w, alone.model_.w, atol=1e-4)
        assert point.model.training["structure"]["strength"] == point.strength


def test_warm_starts_of_a_structure_save_evaluations():
    Y = table(1)
    path = StructureLearner("full", tolerance=1e-7).path(Y, n=8, ratio=0.05)
    warm = sum(point.result.evaluations for point in path)
    strengths = [point.strength for point in path]
    cold = sum(StructureLearner("full", tolerance=1e-7).path(Y, [s])[0].result.evaluations for s in strengths)
    assert warm < 0.9 * cold


def test_strengths_of_a_structure():
    Y = table(2)
    learner = StructureLearner(n_strengths=3)
    assert len(learner.path(Y)) == 3
    assert [point.strength for point in learner.path(Y, [5.0, 20.0])] == [20.0, 5.0]
    for options, message in ((([-1.0],), "strengths must be finite"), (([],), "strengths is empty")):
        with pytest.raises(ParameterError, match=message):
            learner.path(Y, *options)
    with pytest.raises(ParameterError, match="ratio must be between 0 and 1"):
        learner.path(Y, ratio=2.0)


def test_inputs_are_a_keyword():
    rng = np.random.default_rng(0)
    Y, X = table(3), rng.normal(size=(300, 1))
    learner = StructureLearner(edge_strength=30.0, edge_features=False)
    expected = learner.fit(Y, inputs=X)
    weights, score = expected.model_.w.copy(), expected.score(Y, inputs=X)
    with pytest.warns(FutureWarning, match="write inputs=… instead of X"):
        learner.fit(Y, X)
    assert np.array_equal(learner.model_.w, weights)
    with pytest.warns(FutureWarning, match="inputs=…"):
        assert learner.score(Y, X) == score
    with pytest.raises(ParameterError, match="inputs were given twice"):
        learner.fit(Y, X, inputs=X)
    path = learner.path(Y, [30.0], inputs=X)
    np.testing.assert_allclose(path[0].model.w, weights, atol=1e-3)


# --- the generator and its points


def test_points_of_files_have_numbers_only(tmp_path):
    learner = StructureLearner(edge_strength="path", n_strengths=4).fit(table(4))
    learner.save(tmp_path / "m.crf")
    loaded = StructureLearner.load(tmp_path / "m.crf")
    assert loaded.strength_path_ == learner.strength_path_
    assert all(isinstance(point, PathPoint) for point in loaded.strength_path_)
    assert np.isfinite(loaded.strength_path_[0].value)
    for name in ("w", "model"):
        with pytest.raises(ParameterError, match="this point"):
            getattr(loaded.strength_path_[0], name)


def test_each_strength_starts_from_what_the_last_one_left():
    seen = []

    def solve(strength, before):
        seen.append((strength, before))
        return PathPoint(strength), strength

    points = list(follow([3, 2, 1], None, solve))
    assert [point.strength for point in points] == [3.0, 2.0, 1.0]
    assert seen == [(3.0, None), (2.0, 3.0), (1.0, 2.0)]


# --- graphs and images


def outputs(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = (X @ rng.normal(size=(2, 3)) + 0.7 * rng.normal(size=(n, 3)) > 0).astype(int)
    return X, Y


def images(seed=0, n=3):
    rng = np.random.default_rng(seed)
    X = list(rng.normal(size=(n, 6, 7, 2)))
    return X, [(x[..., 0] + 0.5 * rng.normal(size=x.shape[:2]) > 0).astype(int) for x in X]


@pytest.mark.parametrize("penalty", [L1(), L2()], ids=lambda p: p.name)
@pytest.mark.parametrize("kind", [GraphCRF, GridCRF])
def test_every_point_of_a_graph_is_a_fit_of_its_own(kind, penalty):
    X, Y = outputs() if kind is GraphCRF else images()
    crf = kind(penalty=penalty, tolerance=TIGHT, n_threads=1)
    strengths = [20.0, 2.0, 0.5] if isinstance(penalty, L2) else None
    path = crf.path(X, Y, strengths, n=4, ratio=0.05, X_dev=X, Y_dev=Y)
    assert not hasattr(crf, "model_")
    if strengths is None:
        assert path[0].nonzeros == 0
    for point in path[1:]:
        alone = kind(penalty=penalty.at(point.strength), tolerance=TIGHT, n_threads=1).fit(X, Y)
        assert point.value == pytest.approx(alone.result_.value, rel=1e-7)
        assert point.result.objective == alone.result_.objective
        np.testing.assert_allclose(point.model.w, alone.coef_, atol=1e-4)
        assert point.score == pytest.approx(alone.score(X, Y))
        assert point.model.training["auto"] == alone.model_.training["auto"]


def test_warm_starts_of_a_graph_save_evaluations():
    X, Y = outputs(1)
    path = GraphCRF(penalty=L1(), tolerance=TIGHT, n_threads=1).path(X, Y, n=8, ratio=0.02)
    cold = 0
    for point in path:
        alone = GraphCRF(penalty=L1(point.strength), tolerance=TIGHT, n_threads=1)
        cold += alone.fit(X, Y).result_.evaluations
    assert sum(point.result.evaluations for point in path) < cold


def test_an_edge_penalty_stays_as_it_is():
    X, Y = outputs(2)
    crf = GraphCRF(penalty=L2(), edge_penalty=L2(5.0), tolerance=TIGHT, n_threads=1)
    found = crf.path(X, Y, [3.0])[0]
    assert found.result.objective.endswith("node L2(3), edge L2(5)")
