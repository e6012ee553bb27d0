"""crfkit.compat.sklearn_crfsuite: the estimator, with scikit-learn and in pickles."""

import os
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crfkit.compat import pycrfsuite
from crfkit.compat.sklearn_crfsuite import CRF, metrics, scorers
from crfkit.compat.sklearn_crfsuite._fileresource import FileResource
from crfkit.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer
from crfkit.errors import CrfkitError, DataError, ModelFileError, ParameterError

ALGORITHMS = ["lbfgs", "l2sgd", "pa", "ap", "arow"]


def corpus(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = rng.integers(6, size=rng.integers(1, 7))
        X.append([{"w": str(word), "odd": bool(word % 2)} for word in words])
        y.append(["odd" if word % 2 else "big" if word > 3 else "small" for word in words])
    return X, y


X, Y = corpus()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_algorithms_learn(algorithm):
    crf = CRF(algorithm, max_iterations=30).fit(X, Y)
    assert crf.score(X, Y) > 0.9
    marginals = crf.predict_marginals(X[:2])
    assert [len(rows) for rows in marginals] == [len(items) for items in X[:2]]
    assert set(marginals[0][0]) == set(crf.classes_)
    assert sum(marginals[0][0].values()) == pytest.approx(1.0, abs=1e-9)
    assert crf.predict_marginals_single(X[0]) == marginals[0]
    assert list(crf.predict(X)[3]) == crf.predict_single(X[3]) == crf.tagger_.tag(X[3])


def test_generators_and_item_sequences():
    crf = CRF().fit((iter(items) for items in X), iter(Y))
    again = CRF().fit([pycrfsuite.ItemSequence(items) for items in X], Y)
    assert crf.state_features_ == again.state_features_
    found = crf.predict(iter(items) for items in X)
    assert [list(row) for row in found] == [list(row) for row in crf.predict(X)]


def test_sequences_of_one_length_are_rows():
    crf = CRF().fit(X, Y)
    rows = crf.predict([items[:1] for items in X[:4]])
    assert rows.shape == (4, 1)
    assert crf.predict(X).shape == (len(X),)
    assert crf.predict([]).shape == (0,)


def test_few_sequences_are_tagged_like_many():
    crf = CRF().fit(X, Y)
    many = [*corpus(600, seed=3)[0], []]
    bulk, marginals = crf.predict(many), crf.predict_marginals(many)
    for start in range(0, len(many), 60):
        part = many[start : start + 60]
        assert [list(row) for row in crf.predict(part)] == [list(row) for row in bulk[start : start + 60]]
        for found, expected in zip(crf.predict_marginals(part), marginals[start : start + 60], strict=True):
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                assert one == pytest.approx(other, abs=1e-12)


def test_parameters_go_by_crfsuites_names(tmp_path):
    seen = {}

    class Recording(pycrfsuite.Trainer):
        def __init__(self, algorithm=None, params=None, verbose=True):
            seen.update(params)
            super().__init__(algorithm, params, verbose)

    CRF("pa", pa_type=2, c=0.5, all_possible_states=True, min_freq=0, trainer_cls=Recording, averaging=False).fit(X, Y)
    assert seen == {
        "type": 2,
        "c": 0.5,
        "feature.possible_states": True,
        "feature.minfreq": 0,
        "averaging": False,
    }
    with pytest.raises(ParameterError, match="unknown parameter of arow 'c1'"):
        CRF("arow", c1=0.1).fit(X, Y)


def test_a_base_trainer_will_do():
    class Quiet(pycrfsuite.BaseTrainer):
        pass

    crf = CRF(trainer_cls=Quiet, verbose=False).fit(X, Y)
    assert crf.training_log_ is None
    assert crf.score(X, Y) > 0.9


def test_before_it_is_fitted():
    crf = CRF()
    names = [
        "tagger_",
        "classes_",
        "size_",
        "num_attributes_",
        "attributes_",
        "state_features_",
        "transition_features_",
    ]
    assert [getattr(crf, name) for name in names] == [None] * 7
    for call in (crf.predict, crf.predict_marginals, crf.predict_single):
        with pytest.raises(NotFittedError, match="not fitted"):
            call(X)


def test_the_attributes_come_from_the_model():
    crf = CRF(c1=0.05).fit(X, Y, X_dev=X[:5], y_dev=Y[:5])
    assert crf.size_ == os.path.getsize(crf.modelfile.name)
    assert crf.num_attributes_ == len(crf.attributes_)
    assert {name for name, _ in crf.state_features_} == set(crf.attributes_)
    assert {label for pair in crf.transition_features_ for label in pair} <= set(crf.classes_)
    assert crf.training_log_.last_iteration["scores"]
    assert crf.training_log_.featgen_num_features >= len(crf.state_features_)


def test_dev_sets_go_together():
    for options in ({"X_dev": X}, {"y_dev": Y}):
        with pytest.raises(ValueError, match="Pass both"):
            CRF().fit(X, Y, **options)
    with pytest.raises(DataError, match="24 sequences but 23 label sequences"):
        CRF().fit(X, Y[:-1])


def test_named_model_files_stay(tmp_path):
    path = str(tmp_path / "named.crfsuite")
    crf = CRF(model_filename=path).fit(X, Y)
    expected = [list(row) for row in crf.predict(X)]
    copy = pickle.loads(pickle.dumps(crf))
    del crf
    assert [list(row) for row in CRF(model_filename=path).predict(X)] == expected
    assert [list(row) for row in copy.predict(X)] == expected
    with pytest.raises(OSError, match="cannot open the model") as caught:
        CRF(model_filename=str(tmp_path / "nothing")).predict(X)
    assert isinstance(caught.value, ModelFileError)


def test_temporary_files_are_deleted_unless_they_are_kept():
    crf, kept = CRF().fit(X, Y), CRF(keep_tempfiles=True).fit(X, Y)
    first = crf.modelfile.name
    crf.fit(X, Y)
    second, third = crf.modelfile.name, kept.modelfile.name
    assert not os.path.exists(first)
    assert os.path.exists(second)
    del crf, kept
    assert not os.path.exists(second)
    assert os.path.exists(third)
    os.unlink(third)


def test_pickle_joblib_and_clone(tmp_path):
    crf = CRF(c1=0.1, max_iterations=7).fit(X, Y)
    expected = crf.predict(X).tolist()
    joblib.dump(crf, tmp_path / "crf.joblib")
    for copy in (pickle.loads(pickle.dumps(crf)), joblib.load(tmp_path / "crf.joblib")):
        assert copy.predict(X).tolist() == expected
        assert copy.get_params() == crf.get_params()
        assert copy.training_log_.iterations == crf.training_log_.iterations
        assert copy.modelfile.name != crf.modelfile.name
    fresh = clone(crf)
    assert fresh.get_params() == crf.get_params()
    assert fresh.tagger_ is None
    assert repr(fresh) == "CRF(c1=0.1, max_iterations=7)"
    assert fresh._repr_html_()


def test_searches_and_cross_validation():
    scorer = metrics.flat_f1_score
    grid = GridSearchCV(CRF(max_iterations=20), {"c1": [0.0, 5.0], "algorithm": ["lbfgs"]}, cv=3).fit(X, Y)
    assert grid.best_params_["c1"] == 0.0
    search = RandomizedSearchCV(
        CRF(max_iterations=20), {"c2": [0.01, 1.0, 30.0]}, n_iter=2, cv=3, random_state=0, scoring=scorers.flat_accuracy
    ).fit(X, Y)
    assert search.best_score_ > 0.8
    predicted = cross_val_predict(CRF(max_iterations=20), X, Y, cv=3)
    assert [len(row) for row in predicted] == [len(row) for row in Y]
    assert scorer(Y, predicted, average="weighted") > 0.8
    assert cross_val_score(CRF(max_iterations=20), X, Y, cv=3, n_jobs=2).mean() > 0.8
    pipeline = make_pipeline(FunctionTransformer(), CRF(max_iterations=20)).fit(X, Y)
    assert len(pipeline.predict(X)) == len(X)


class Spelled(CRF):
    """A subclass that spells out the whole parameter list, as estimators must."""

    def __init__(
        self, algorithm="lbfgs", min_freq=None, all_possible_states=None, all_possible_transitions=None, c1=None,
        c2=None, max_iterations=None, num_memories=None, epsilon=None, period=None, delta=None, linesearch=None,
        max_linesearch=None, calibration_eta=None, calibration_rate=None, calibration_samples=None,
        calibration_candidates=None, calibration_max_trials=None, pa_type=None, c=None, error_sensitive=None,
        averaging=None, variance=None, gamma=None, verbose=False, model_filename=None, keep_tempfiles=False,
        trainer_cls=None, extra=5,
    ):  # fmt: skip
        super().__init__(
            algorithm, min_freq, all_possible_states, all_possible_transitions, c1, c2, max_iterations, num_memories,
            epsilon, period, delta, linesearch, max_linesearch, calibration_eta, calibration_rate, calibration_samples,
            calibration_candidates, calibration_max_trials, pa_type, c, error_sensitive, averaging, variance, gamma,
            verbose, model_filename, keep_tempfiles, trainer_cls,
        )  # fmt: skip
        self.extra = extra


def test_subclasses_that_spell_out_the_parameters():
    crf = clone(Spelled(c1=0.1, extra=7)).fit(X, Y)
    assert (crf.extra, crf.c1, crf.get_params()["extra"]) == (7, 0.1, 7)
    copy = pickle.loads(pickle.dumps(crf))
    assert (copy.extra, copy.predict(X).tolist()) == (7, crf.predict(X).tolist())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_verbose_training_prints_a_line_for_each_iteration(algorithm, capsys):
    CRF(algorithm, max_iterations=3, verbose=True).fit(X, Y, X[:3], Y[:3])
    printed = capsys.readouterr().out
    assert printed.count("Iter ") == 3
    assert "precision=" in printed
    assert "Label" in printed
    assert "Storing the model" in printed


def test_the_table_lines_up():
    from crfkit.compat.sklearn_crfsuite.trainer import _table

    lines = _table(["Label", "F1"], [["long label", "0.5"], ["x", "0.125"]])
    assert lines == ["Label          F1", "----------  -----", "long label    0.5", "x           0.125"]
    # what sklearn-crfsuite prints with tabulate
    lines = _table(["Label", "Precision", "Support"], [["B-LOC", "0.000", "17"]])
    assert lines[:2] == ["Label      Precision    Support", "-------  -----------  ---------"]
    assert lines[2] == "B-LOC          0.000         17"


def test_old_states_lack_parameters():
    """The state of version 0.3: no keep_tempfiles, and a file descriptor of another process."""
    crf = CRF(c1=0.2).fit(X, Y)
    state = crf.__getstate__()
    del state["keep_tempfiles"]
    modelfile = FileResource.__new__(FileResource)
    modelfile.__setstate__({**crf.modelfile.__getstate__(), "fd": 999})
    assert not hasattr(modelfile, "fd")
    old = CRF.__new__(CRF)
    old.__setstate__({**state, "modelfile": modelfile})
    assert old.predict(X).tolist() == crf.predict(X).tolist()
    assert old.keep_tempfiles is False
    assert clone(old).c1 == 0.2


def test_metrics():
    truth, found = [["a", "b"], ["a"], ["b"]], [["a", "a"], ["a"], ["b"]]
    assert metrics.sequence_accuracy_score(truth, found) == pytest.approx(2 / 3)
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.flat_accuracy_score(truth, found) == 0.75
    assert metrics.flat_fbeta_score(truth, found, beta=2, average="macro") > 0
    assert "precision" in metrics.flat_classification_report(truth, found, digits=3)
    for name in ("precision", "recall", "f1"):
        assert 0 < getattr(metrics, f"flat_{name}_score")(truth, found, average="macro") < 1
    with pytest.raises(CrfkitError, match="3 sequences of true labels, but 2"):
        metrics.sequence_accuracy_score(truth, found[:2])


def test_lines_do_without_an_iteration():
    trainer = LinePerIterationTrainer(verbose=False)
    trainer.append([], [])
    trainer.train("")
    assert trainer.logparser.last_iteration is None
