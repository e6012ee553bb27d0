"""ChainCRF as a scikit-learn estimator."""

import itertools
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crfkit import L2, ChainCRF, NoPenalty, Template, read_columns
from crfkit.chain.encoding.sequences import learn
from crfkit.errors import DataError, ParameterError, StopTraining, TemplateError
from crfkit.losses import ChainLikelihood
from crfkit.result import Status
from crfkit.solvers import LBFGS, GradientNorm, SuccessiveChanges

TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%x[0,1]\nB\nB1:%x[0,1]")


def corpus(n: int = 30, seed: int = 0) -> tuple[list, list]:
    """Tokens (word, tag) whose label depends on the word and on the label before it."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words, labels = [], []
        for _ in range(rng.integers(1, 7)):
            word = rng.choice(["the", "cat", "runs", "fast", "x"])
            noun = word == "cat" or (word == "x" and labels and labels[-1] == "D")
            label = {"the": "D", "runs": "V", "fast": "A"}.get(word, "N" if noun else "O")
            words.append((word, word[0].upper()))
            labels.append(label if rng.random() > 0.1 else "O")
        X.append(words)
        y.append(labels)
    return X, y


ROWS, Y = corpus()
ITEMS = [[{"w": word, "t": tag, "bias": 0.5} for word, tag in row] for row in ROWS]


def one_thread(**options) -> ChainCRF:
    return ChainCRF(**({"n_threads": 1} | options))


@pytest.fixture(scope="module")
def crf():
    return one_thread().fit(ITEMS, Y)


# --- scikit-learn's conventions


def test_parameters_come_back():
    crf = ChainCRF(penalty=L2(0.1), min_frequency=2, max_iterations=7)
    parameters = crf.get_params(deep=False)
    assert crf.get_params() == parameters | {"penalty__strength": 0.1}
    assert list(parameters) == sorted(
        [
            "cluster",
            "device",
            "template",
            "penalty",
            "solver",
            "min_frequency",
            "all_possible_states",
            "all_possible_transitions",
            "tolerance",
            "max_iterations",
            "n_threads",
            "random_state",
            "verbose",
            "loss",
            "cost",
            "order",
            "constraints",
            "label_classes",
            "warm_start",
            "class_weight",
            "features",
            "hash_bits",
            "precision",
        ]
    )
    assert parameters["penalty"] == L2(0.1)
    assert crf.set_params(min_frequency=3, penalty=NoPenalty()) is crf
    assert crf.get_params()["min_frequency"] == 3
    assert "min_frequency=3" in repr(crf)
    with pytest.raises(ValueError, match="nonsense"):
        crf.set_params(nonsense=1)


@pytest.mark.parametrize(
    "crf",
    [
        ChainCRF(),
        ChainCRF(template=TEMPLATE, penalty=L2(0.5), tolerance=GradientNorm(1e-3)),
        ChainCRF(template="U%x[0,0]\nB", solver=LBFGS(memory=3)),
    ],
)
def test_clones_are_equal_and_not_fitted(crf):
    copy = clone(crf)
    assert copy.get_params() == crf.get_params()
    assert not hasattr(copy, "model_")
    assert not hasattr(clone(one_thread().fit(ITEMS, Y)), "model_")


def test_fit_returns_itself_and_does_not_touch_parameters():
    crf = one_thread(template="U%x[0,0]\nB")
    before = crf.get_params()
    assert crf.fit(ROWS, Y) is crf
    assert crf.get_params() == before
    assert all(crf.get_params()[name] is value for name, value in before.items())


def test_pickling(crf):
    for unfitted in (ChainCRF(), ChainCRF(template=TEMPLATE)):
        assert pickle.loads(pickle.dumps(unfitted)).get_params() == unfitted.get_params()
    again = pickle.loads(pickle.dumps(crf))
    assert again.predict(ITEMS) == crf.predict(ITEMS)
    assert (again.coef_ == crf.coef_).all()
    assert again.state_features_ == crf.state_features_
    assert again.result_.trace == crf.result_.trace
    assert again.classes_.tolist() == crf.classes_.tolist()


def test_in_a_pipeline():
    to_items = FunctionTransformer(lambda X: [[{"w": word} for word, _ in row] for row in X])
    pipeline = make_pipeline(to_items, one_thread()).fit(ROWS, Y)
    plain = one_thread().fit([[{"w": word} for word, _ in row] for row in ROWS], Y)
    assert pipeline.predict(ROWS) == plain.predict([[{"w": word} for word, _ in row] for row in ROWS])
    assert pipeline.score(ROWS, Y) > 0.7
    weighted = make_pipeline(to_items, one_thread()).fit(ROWS, Y, chaincrf__sample_weight=np.ones(len(Y)))
    assert (weighted[-1].coef_ == plain.coef_).all()


def test_cross_validation_over_penalties():
    scores = cross_val_score(one_thread(), ITEMS, Y, cv=3)
    assert scores.shape == (3,)
    assert (scores > 0.5).all()
    penalties = [L2(0.1), L2(10.0), L2(1000.0)]
    search = GridSearchCV(one_thread(), {"penalty": penalties}, cv=KFold(3)).fit(ITEMS, Y)
    assert search.best_params_["penalty"] == penalties[np.argmax(search.cv_results_["mean_test_score"])]
    assert search.predict(ITEMS[:1])[0] == search.best_estimator_.predict_single(ITEMS[0])


def test_not_fitted():
    for use in (
        lambda crf: crf.predict(ITEMS),
        lambda crf: crf.predict_single(ITEMS[0]),
        lambda crf: crf.predict_marginals(ITEMS),
        lambda crf: crf.score(ITEMS, Y),
        lambda crf: crf.save("nowhere.crf"),
        lambda crf: crf.coef_,
        lambda crf: crf.state_features_,
        lambda crf: crf.n_attributes_,
    ):
        with pytest.raises(NotFittedError):
            use(ChainCRF())


# --- parameters


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("min_frequency", [0, -1, 1.5, "1", None]),
        ("max_iterations", [0, -1, 2.5, "many"]),
        ("n_threads", [0, -2, 1.5, "2"]),
        ("tolerance", [-1e-5, math.nan, "tight", None, object()]),
        ("penalty", [1.0, "l2", L2]),
        ("solver", ["newtonian", "", None, 3]),
        ("template", [3]),
    ],
)
def test_parameters_out_of_range_are_refused(name, bad):
    for value in bad:
        with pytest.raises(ParameterError, match=name):
            one_thread(**{name: value}).fit(ITEMS, Y)


def test_templates_that_cannot_be_used(tmp_path):
    with pytest.raises(TemplateError, match="cannot read"):
        one_thread(template=tmp_path / "missing").fit(ROWS, Y)
    with pytest.raises(TemplateError):
        one_thread(template="U%x[0,0\n").fit(ROWS, Y)
    with pytest.raises(DataError, match="names column 5"):
        one_thread(template="U%x[0,5]\n").fit(ROWS, Y)
    with pytest.raises(ParameterError, match="needs a template"):
        one_thread().fit_file(tmp_path / "any")


def test_nothing_left_to_learn():
    with pytest.raises(ParameterError, match="min_frequency"):
        one_thread(template="U%x[0,0]\n", min_frequency=10**6).fit(ROWS, Y)


# --- training


def test_the_objective_is_what_was_minimised():
    crf = one_thread(template=TEMPLATE, penalty=L2(0.7), tolerance=GradientNorm(1e-6)).fit(ROWS, Y)
    data = learn(ROWS, Y, TEMPLATE, 1)
    loss = ChainLikelihood(data.data, crf.model_.field, 1).at(crf.coef_)
    assert_allclose(crf.result_.value, loss.value + 0.35 * crf.coef_ @ crf.coef_, rtol=1e-12)
    assert np.linalg.norm(loss.grad + 0.7 * crf.coef_) <= 1e-6 * max(1, np.linalg.norm(crf.coef_))
    assert crf.result_.status is Status.CONVERGED
    assert crf.model_.training["status"] == "CONVERGED"


@pytest.mark.parametrize("all_states", [False, True])
@pytest.mark.parametrize("all_transitions", [False, True])
def test_parameter_sets(all_states, all_transitions):
    crf = one_thread(template=TEMPLATE, all_possible_states=all_states, all_possible_transitions=all_transitions).fit(
        ROWS, Y
    )
    L = len(crf.classes_)
    tokens = [(x, y) for row, labels in zip(ROWS, Y, strict=True) for x, y in zip(row, labels, strict=True)]
    seen = {(f"U0:{word}", label) for (word, _), label in tokens}
    found = {key for key in crf.state_features_ if key[0].startswith("U0:")}
    assert found == ({(a, label) for a, _ in seen for label in crf.classes_} if all_states else seen)
    steps = {pair for labels in Y for pair in itertools.pairwise(labels)}
    assert set(crf.transition_features_) == (
        {(a, b) for a in crf.classes_ for b in crf.classes_} if all_transitions else steps
    )
    assert len(crf.coef_) == crf.model_.field.size
    assert len(crf.state_features_) == (crf.n_attributes_ * L if all_states else crf.model_.field.n_state)


def test_transitions_only_where_the_template_asks_for_them():
    with_b = one_thread(template="U%x[0,0]\nB\n").fit(ROWS, Y)
    without = one_thread(template="U%x[0,0]\n").fit(ROWS, Y)
    assert with_b.transition_features_
    assert without.transition_features_ == {}


def test_features_by_name_are_the_weights(crf):
    w = crf.coef_
    assert list(crf.state_features_.values()) + list(crf.transition_features_.values()) == w.tolist()
    assert crf.state_features_[("w:the", "D")] > crf.state_features_[("w:the", "O")]
    assert crf.transition_features_
    assert len({name for name, _ in crf.state_features_}) == crf.n_attributes_


def test_min_frequency():
    crf = one_thread(min_frequency=3).fit([[["a", "rare"], ["a"], ["a"]]], [["x", "y", "x"]])
    assert crf.n_attributes_ == 1


def test_sample_weights_are_repetitions():
    counts = np.arange(len(ITEMS)) % 3
    tight = {"tolerance": GradientNorm(1e-9), "all_possible_states": True, "all_possible_transitions": True}
    weighted = one_thread(**tight).fit(ITEMS, Y, sample_weight=counts)
    again = [n for n, count in enumerate(counts) for _ in range(count)]
    repeated = one_thread(**tight).fit([ITEMS[n] for n in again], [Y[n] for n in again])
    assert weighted.classes_.tolist() == repeated.classes_.tolist()
    for key, value in repeated.state_features_.items():
        assert_allclose(weighted.state_features_[key], value, atol=1e-6)
    ones = one_thread().fit(ITEMS, Y, sample_weight=[1.0] * len(Y))
    assert (ones.coef_ == one_thread().fit(ITEMS, Y).coef_).all()


@pytest.mark.parametrize("bad", [[1.0], [[1.0] * 30], [-1.0] * 30, [math.nan] * 30, [math.inf] * 30, [0.0] * 30])
def test_sample_weights_that_cannot_be(bad):
    with pytest.raises((DataError, ParameterError), match="weight"):
        one_thread().fit(ITEMS, Y, sample_weight=bad)


def test_what_was_given_is_not_changed():
    weights = np.ones(len(Y))
    X, y = pickle.loads(pickle.dumps((ITEMS, Y)))
    one_thread().fit(X, y, sample_weight=weights)
    assert (X, y) == (ITEMS, Y)
    assert weights.flags.writeable


def test_threads_do_not_change_the_optimum():
    a, b = (one_thread(n_threads=n, tolerance=GradientNorm(1e-8)).fit(ITEMS, Y) for n in (1, 2))
    assert_allclose(a.coef_, b.coef_, atol=1e-6)
    assert (one_thread(n_threads=2).fit(ITEMS, Y).coef_ == one_thread(n_threads=2).fit(ITEMS, Y).coef_).all()


def test_files_and_lists_give_the_same_weights(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(
        "\n\n".join(
            "\n".join(f"{word}\t{tag}\t{label}" for (word, tag), label in zip(row, labels, strict=True))
            for row, labels in zip(ROWS, Y, strict=True)
        )
    )
    assert read_columns(path) == (ROWS, Y)
    for options in ({}, {"min_frequency": 2}, {"all_possible_states": True, "all_possible_transitions": True}):
        a = one_thread(template=TEMPLATE, **options).fit(ROWS, Y)
        b = one_thread(template=TEMPLATE, **options).fit_file(path)
        with path.open("rb") as stream:
            c = one_thread(template=TEMPLATE, **options).fit_file(stream)
        for other in (b, c):
            assert (other.coef_ == a.coef_).all()
            assert other.state_features_ == a.state_features_
            assert other.classes_.tolist() == a.classes_.tolist()
            assert other.predict(ROWS) == a.predict(ROWS)


def test_iterators_are_enough():
    a = one_thread().fit(iter(ITEMS), iter(Y))
    assert a.predict(iter(ITEMS)) == one_thread().fit(ITEMS, Y).predict(ITEMS)


# --- ways to end


@pytest.mark.parametrize(
    ("name", "hint"), [("c2", r"L2.from_crfsuite\(1.0\)"), ("algorithm", "solver="), ("C", "crfpp")]
)
def test_options_of_other_packages(name, hint):
    with pytest.raises(TypeError, match=f"no option '{name}'; write .*{hint}"):
        ChainCRF(**{name: 1.0})


def test_too_few_iterations_warn():
    crf = one_thread(max_iterations=2, tolerance=0.0)
    with pytest.warns(ConvergenceWarning, match="max_iterations"):
        crf.fit(ITEMS, Y)
    assert crf.result_.status is Status.MAX_ITERATIONS
    assert crf.result_.iterations == 2
    assert crf.predict(ITEMS)


def test_ctrl_c_keeps_the_model():
    def callback(iteration):
        if iteration.row.iteration == 4:
            raise KeyboardInterrupt

    crf = one_thread()
    with pytest.raises(KeyboardInterrupt):
        crf.fit(ITEMS, Y, callbacks=[callback])
    assert crf.result_.status is Status.INTERRUPTED
    assert crf.model_.training["status"] == "INTERRUPTED"
    with pytest.warns(ConvergenceWarning):
        four = one_thread(max_iterations=4, tolerance=0.0).fit(ITEMS, Y)
    assert (crf.coef_ == four.coef_).all()
    assert crf.predict(ITEMS) == four.predict(ITEMS)


def test_a_callback_may_stop_training():
    def callback(iteration):
        if iteration.row.iteration == 3:
            raise StopTraining

    crf = one_thread().fit(ITEMS, Y, callbacks=[callback])
    assert crf.result_.status is Status.STOPPED_BY_CALLBACK
    assert crf.result_.iterations == 3


def test_training_error_is_traced():
    crf = one_thread().fit(ITEMS, Y, training_error=True)
    predicted = crf.predict(ITEMS)
    wrong = [sum(a != b for a, b in zip(p, g, strict=True)) for p, g in zip(predicted, Y, strict=True)]
    last = crf.result_.trace[-1].extra
    assert_allclose(last["token_error"], sum(wrong) / sum(map(len, Y)))
    assert_allclose(last["sequence_error"], sum(w > 0 for w in wrong) / len(Y))
    assert_allclose(crf.score(ITEMS, Y), 1 - last["token_error"])


def test_verbose_prints_a_line_per_iteration(capsys):
    crf = one_thread(verbose=1).fit(ITEMS, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(crf.result_.trace)
    one_thread().fit(ITEMS, Y)
    assert capsys.readouterr().out == ""


def test_stopping_rules_can_be_given():
    loose = one_thread(tolerance=SuccessiveChanges(0.5)).fit(ITEMS, Y)
    tight = one_thread(tolerance=GradientNorm(1e-8)).fit(ITEMS, Y)
    assert loose.result_.iterations < tight.result_.iterations
    assert tight.result_.value <= loose.result_.value


# --- prediction


def test_predictions_have_the_shape_of_the_input(crf):
    X = [ITEMS[0], [], ITEMS[1], []]
    assert [len(row) for row in crf.predict(X)] == [len(x) for x in X]
    assert [m.shape for m in crf.predict_marginals(X)] == [(len(x), len(crf.classes_)) for x in X]
    assert [m.shape for m in crf.predict_edge_marginals(X)] == [(len(x), *[len(crf.classes_)] * 2) for x in X]
    assert crf.predict([]) == crf.predict_marginals([]) == []
    assert crf.predict_single([]) == []
    assert crf.predict_single(ITEMS[0]) == crf.predict([ITEMS[0]])[0]
    assert all(type(label) is str for label in crf.predict_single(ITEMS[0]))


def test_marginals_are_probabilities_and_agree_with_the_field(crf):
    for item, node, edge in zip(ITEMS, crf.predict_marginals(ITEMS), crf.predict_edge_marginals(ITEMS), strict=True):
        assert_allclose(node.sum(axis=1), 1.0)
        assert_allclose(edge[1:].sum(axis=1), node[1:], atol=1e-12)
        assert (edge[0] == 0).all()
        assert len(node) == len(item)


def test_unknown_attributes_do_not_matter(crf):
    known = [[{"w": "the"}, {"w": "cat"}]]
    more = [[{"w": "the", "new": 3.0}, {"w": "cat", "other": "x"}]]
    assert crf.predict(known) == crf.predict(more)
    assert_allclose(crf.predict_marginals(known)[0], crf.predict_marginals(more)[0])
    nothing = crf.predict_marginals([[{"unheard": "of"}]])[0]
    assert_allclose(nothing, 1 / len(crf.classes_))


def test_score(crf):
    predicted = crf.predict(ITEMS)
    assert crf.score(ITEMS, predicted) == 1.0
    assert crf.score([], []) == 0.0
    flipped = [["?"] * len(row) for row in predicted]
    assert crf.score(ITEMS, flipped) == 0.0
    weights = np.zeros(len(Y))
    weights[0] = 2.0
    first = np.mean([a == b for a, b in zip(predicted[0], Y[0], strict=True)])
    assert_allclose(crf.score(ITEMS, Y, sample_weight=weights), first)
    with pytest.raises(ParameterError, match="every position"):
        crf.score(ITEMS, Y[:-1])
    with pytest.raises(ParameterError, match="every position"):
        crf.score(ITEMS[:1], [[*Y[0], "O"]])


@pytest.mark.parametrize("kind", [int, float, bool])
def test_labels_come_back_in_their_type(kind):
    names = {"N": 1, "O": 0, "D": 1, "V": 0, "A": 1} if kind is bool else {"N": 7, "O": 0, "D": -2, "V": 3, "A": 9}
    y = [[kind(names[label]) for label in row] for row in Y]
    crf = one_thread().fit(ITEMS, y)
    predicted = crf.predict(ITEMS)
    assert {type(label) for row in predicted for label in row} == {kind}
    assert {label for row in predicted for label in row} <= set(crf.classes_.tolist())
    assert crf.score(ITEMS, y) > 0.7
    assert crf.score(ITEMS, [np.array(row) for row in y]) == crf.score(ITEMS, y)


def test_matrices_and_dicts_of_the_same_data_give_the_same_model():
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(len(row), 4)) for row in Y]
    dicts = [[{f"x{j}": v for j, v in enumerate(row)} for row in matrix] for matrix in matrices]
    a, b = (one_thread(tolerance=GradientNorm(1e-8)).fit(X, Y) for X in (matrices, dicts))
    assert a.predict(matrices) == b.predict(dicts)
    for key, value in a.state_features_.items():
        assert_allclose(b.state_features_[key], value, atol=1e-6)


# --- files


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_saved_and_loaded(tmp_path, template):
    X = ITEMS if template is None else ROWS
    crf = one_thread(template=template, min_frequency=2, all_possible_transitions=True).fit(X, Y)
    path = tmp_path / "m.crf"
    crf.save(path)
    again = ChainCRF.load(path, n_threads=1)
    assert again.predict(X) == crf.predict(X)
    for a, b in zip(again.predict_marginals(X), crf.predict_marginals(X), strict=True):
        assert (a == b).all()
    assert again.state_features_ == crf.state_features_
    assert again.transition_features_ == crf.transition_features_
    assert again.classes_.tolist() == crf.classes_.tolist()
    for name in ("min_frequency", "all_possible_states", "all_possible_transitions"):
        assert getattr(again, name) == getattr(crf, name)
    assert (again.template is None) == (template is None)
    assert pickle.loads(pickle.dumps(again)).predict(X) == crf.predict(X)
    again.fit(X, Y)  # its options are enough to train again
    assert again.state_features_.keys() == crf.state_features_.keys()


def test_the_command_line_needs_no_scikit_learn():
    source = Path(__file__).parents[2] / "src" / "crfkit"
    for module in (
        "chain/model/model.py",
        "files/modelfile.py",
        "metrics/__init__.py",
        "chain/inference.py",
        "__init__.py",
    ):
        assert "import sklearn" not in (source / module).read_text()
        assert "from sklearn" not in (source / module).read_text()
