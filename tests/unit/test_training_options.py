"""What ChainCRF can do besides: development sets, order 2, classes of labels, margins, seeds; and files of all that."""

import itertools
import math
import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

from crfkit import L1, L2, ChainCRF, ChainModel, ElasticNet, NoPenalty, Template, evaluate
from crfkit.chain.encoding.sequences import learn
from crfkit.errors import CapabilityError, CrfkitError, DataError, DataWarning, ModelFileError, ParameterError
from crfkit.files import modelfile
from crfkit.losses import ChainLikelihood, SoftmaxMargin, StructuredHinge
from crfkit.result import Status
from crfkit.solvers import SGD, SOLVERS, GradientNorm

TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%x[0,1]\nB\nB1:%x[0,1]")
WORDS = {"the": "D", "cat": "N", "runs": "V", "fast": "A", "dog": "N"}
CLASSES = {"D": "closed", "N": "open", "V": "open"}
TIGHT = GradientNorm(1e-7)


def corpus(n=24, seed=0, noise=0.2):
    """Tokens (word, tag) whose label depends on the word, mostly."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        row = rng.choice(list(WORDS), rng.integers(2, 7)).tolist()
        X.append([(word, word[0].upper()) for word in row])
        y.append([WORDS[word] if rng.random() >= noise else rng.choice(list("DNVAO")).item() for word in row])
    return X, y


def items(rows):
    return [[{"w": word, "t": tag, "bias": 0.5} for word, tag in row] for row in rows]


ROWS, Y = corpus()
ITEMS = items(ROWS)
DEV_ROWS, Y_DEV = corpus(15, seed=1)
DEV = items(DEV_ROWS)
LABELS = sorted({label for row in Y for label in row})
L = len(LABELS)


def one_thread(**options):
    return ChainCRF(**{"n_threads": 1} | options)


# --- early stopping


def scores(crf, name="dev_accuracy"):
    return [row.extra[name] for row in crf.result_.trace]


@pytest.mark.parametrize("solver", ["lbfgs", "sgd", "averaged-perceptron", "auto"])
@pytest.mark.parametrize("patience", [1, 4])
def test_training_ends_when_the_development_score_no_longer_improves(solver, patience):
    seen = []
    crf = one_thread(solver=solver, tolerance=GradientNorm(0.0), max_iterations=60)
    crf.fit(ITEMS, Y, X_dev=DEV, y_dev=Y_DEV, patience=patience, callbacks=[lambda it: seen.append(it.w.copy())])
    found = scores(crf)
    best = int(np.argmax(found))
    assert crf.result_.status is Status.NO_IMPROVEMENT
    assert crf.model_.training["status"] == "NO_IMPROVEMENT"
    assert len(found) == best + patience + 1
    assert max(found[best:]) == found[best]
    # the weights are those of that row
    assert (crf.coef_ == seen[best]).all()
    assert (crf.result_.w == seen[best]).all()
    assert crf.result_.value == crf.result_.trace[best].value
    assert crf.result_.optimality == crf.result_.trace[best].optimality
    assert_allclose(crf.score(DEV, Y_DEV), found[best], rtol=1e-12)


def test_every_iteration_is_traced_and_seen():
    """The last one, too, with all that other callbacks say about it."""
    seen = []
    crf = one_thread(solver="lbfgs")
    crf.fit(
        ITEMS,
        Y,
        X_dev=DEV,
        y_dev=Y_DEV,
        patience=1,
        training_error=True,
        callbacks=[lambda it: seen.append(it.row.iteration) or {"mine": 1.0}],
    )
    assert crf.result_.status is Status.NO_IMPROVEMENT
    assert seen == [row.iteration for row in crf.result_.trace]
    assert {tuple(sorted(row.extra)) for row in crf.result_.trace} == {
        ("dev_accuracy", "mine", "sequence_error", "token_error")
    }


def test_patience_that_is_never_lost():
    crf = one_thread(solver="lbfgs").fit(ITEMS, Y, X_dev=DEV, y_dev=Y_DEV, patience=10**6)
    plain = one_thread(solver="lbfgs").fit(ITEMS, Y)
    assert crf.result_.status is Status.CONVERGED
    assert crf.result_.iterations == plain.result_.iterations
    assert [row.value for row in crf.result_.trace] == [row.value for row in plain.result_.trace]
    # still the best, not the last
    assert_allclose(crf.score(DEV, Y_DEV), max(scores(crf)), rtol=1e-12)


def test_the_score_is_f1_where_labels_are_those_of_phrases():
    rename = {"N": "B-X", "V": "I-X", "D": "B-Y", "A": "O", "O": "O"}
    y, y_dev = ([[rename[label] for label in row] for row in rows] for rows in (Y, Y_DEV))
    crf = one_thread().fit(ITEMS, y, X_dev=DEV, y_dev=y_dev, patience=3)
    assert all(set(row.extra) == {"dev_f1"} for row in crf.result_.trace)
    assert_allclose(evaluate(y_dev, crf.predict(DEV)).overall.f1, max(scores(crf, "dev_f1")), rtol=1e-12)


@pytest.mark.parametrize("kind", [int, float, bool, str])
def test_development_labels_of_any_type(kind):
    y, y_dev = ([[kind(LABELS.index(label)) for label in row] for row in rows] for rows in (Y, Y_DEV))
    crf = one_thread().fit(ITEMS, y, X_dev=DEV, y_dev=[np.array(row) for row in y_dev], patience=3)
    assert_allclose(crf.score(DEV, y_dev), max(scores(crf)), rtol=1e-12)


def test_development_labels_that_training_does_not_have_count_as_mistakes():
    y_dev = [["new" if t == 0 else label for t, label in enumerate(row)] for row in Y_DEV]
    with pytest.warns(
        DataWarning, match=r"^1 label of the development set \('new'; .*does not occur in the training set"
    ):
        crf = one_thread().fit(ITEMS, Y, X_dev=DEV, y_dev=y_dev, patience=2)
    assert "new" not in crf.classes_
    assert_allclose(crf.score(DEV, y_dev), max(scores(crf)), rtol=1e-12)
    assert max(scores(crf)) < 1 - len(y_dev) / sum(map(len, y_dev)) + 1e-12


def test_development_sets_of_other_inputs():
    matrices, dev = ([np.eye(6)[: len(row)] + 0.1 for row in rows] for rows in (Y, Y_DEV))
    for X, X_dev, options in ((matrices, dev, {}), (ROWS, DEV_ROWS, {"template": TEMPLATE})):
        crf = one_thread(**options).fit(X, Y, X_dev=iter(X_dev), y_dev=iter(Y_DEV), patience=2)
        assert_allclose(crf.score(X_dev, Y_DEV), max(scores(crf)), rtol=1e-12)


@pytest.mark.parametrize("options", [{"order": 2}, {"constraints": "observed"}, {"label_classes": CLASSES}], ids=str)
def test_development_scores_are_those_of_the_model(options):
    crf = one_thread(**options).fit(ITEMS, Y, X_dev=ITEMS, y_dev=Y, patience=3)
    assert_allclose(crf.score(ITEMS, Y), max(scores(crf)), rtol=1e-12)


def test_sparse_models_stop_early_too():
    crf = one_thread(penalty=L1(0.1)).fit(ITEMS, Y, X_dev=DEV, y_dev=Y_DEV, patience=2)
    assert (crf.coef_ != 0).all()
    assert_allclose(crf.score(DEV, Y_DEV), max(scores(crf)), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X_dev": DEV}, "go together"),
        ({"y_dev": Y_DEV}, "go together"),
        ({"X_dev": DEV, "y_dev": Y_DEV[:-1]}, "15 sequences but 14"),
        ({"X_dev": DEV[:-1], "y_dev": Y_DEV}, "14 sequences but 15"),
        ({"X_dev": DEV, "y_dev": [row[1:] for row in Y_DEV]}, "sequence 0 has"),
        ({"X_dev": DEV, "y_dev": Y_DEV, "patience": 0}, "patience"),
        ({"X_dev": DEV, "y_dev": Y_DEV, "patience": -3}, "patience"),
        ({"X_dev": DEV, "y_dev": Y_DEV, "patience": 1.5}, "patience"),
        ({"X_dev": DEV, "y_dev": Y_DEV, "patience": "2"}, "patience"),
        ({"X_dev": DEV, "y_dev": Y_DEV, "patience": None}, "patience"),
        ({"X_dev": [], "y_dev": []}, "no sequences"),
        ({"X_dev": [[]], "y_dev": [[]]}, "empty"),
        ({"X_dev": DEV, "y_dev": ["".join(row) for row in Y_DEV]}, "string"),
        ({"X_dev": DEV, "y_dev": 3}, "y_dev|label sequences"),
        ({"X_dev": "text", "y_dev": ["O"]}, "must be a list"),
        ({"X_dev": [np.eye(3)], "y_dev": [["O"] * 3]}, "sequence 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_development_sets_that_cannot_be_used(options, message):
    crf = one_thread()
    with pytest.raises(CrfkitError, match=message):
        crf.fit(ITEMS, Y, **options)
    assert not hasattr(crf, "model_")


# --- order 2


def triples(n=20):
    """Labels that the two before them decide: 0 0 1 1 0 0 1 1 …, from any place; attributes that say nothing."""
    cycle = ["a", "a", "b", "b"] * 5
    y = [cycle[k % 4 : k % 4 + 3 + k % 7] for k in range(n)]
    return [[["x"] for _ in row] for row in y], y


def test_order_two_knows_what_order_one_cannot():
    X, y = triples()
    one, two = (one_thread(order=order, penalty=L2(0.01), tolerance=TIGHT).fit(X, y) for order in (1, 2))
    assert two.result_.value < 0.6 * one.result_.value
    assert len(two.coef_) > len(one.coef_)
    assert set(two.transition_features_) == set(one.transition_features_)
    # given the first two labels, the rest follows: one mistake at most for each of the four places to begin
    edge = two.predict_edge_marginals([[["x"]] * 9])[0]
    assert edge.shape == (9, 2, 2)
    assert_allclose(edge[1:].sum(axis=(1, 2)), 1.0)


def test_order_two_is_never_worse_on_its_training_data():
    """It has all weights of order 1; without a penalty on the rest the likelihood can only rise."""
    rule = GradientNorm(1e-3)
    one, two = (one_thread(order=order, penalty=L2(0.01), tolerance=rule).fit(ITEMS, Y) for order in (1, 2))
    data = learn(ITEMS, Y, None, 1).data
    a, b = (ChainLikelihood(data, crf.model_.field, 1).at(crf.coef_).value for crf in (one, two))
    assert b < a


@pytest.mark.parametrize("all_transitions", [False, True])
def test_the_triples_that_have_weights(all_transitions):
    crf = one_thread(order=2, all_possible_transitions=all_transitions).fit(ITEMS, Y)
    seen = {row[t - 2 : t + 1] for row in map(tuple, Y) for t in range(2, len(row))}
    names = zip(*(part.tolist() for part in crf.model_.field.triple_ids()), strict=True)
    found = {tuple(LABELS[k] for k in name) for name in names}
    assert found == (set(itertools.product(LABELS, repeat=3)) if all_transitions else seen)


@pytest.mark.parametrize("order", [1, 2])
def test_an_order_may_be_any_integer_type(order, tmp_path):
    """As parameter searches hand them out."""
    crf = one_thread(order=np.int64(order)).fit(ITEMS, Y)
    crf.save(tmp_path / "m.crf")
    assert ChainCRF.load(tmp_path / "m.crf").order == order


# --- classes of labels


def test_label_classes_share_what_they_learn():
    """A word seen as one noun label only is taken for a noun in general."""
    y = [[f"{label}{k % 2}" if label == "N" else label for label in row] for k, row in enumerate(Y)]
    classes = {"N0": "N", "N1": "N"}
    crf = one_thread(label_classes=classes, penalty=L2(0.1)).fit(ITEMS, y)
    assert crf.model_.class_names == tuple(sorted(({label for row in y for label in row} - set(classes)) | {"N"}))
    assert crf.model_.field.n_class > 0
    plain = one_thread(penalty=L2(0.1)).fit(ITEMS, y)
    assert crf.result_.value < plain.result_.value


def test_a_class_for_each_label_is_two_weights_for_one():
    """w + w′ with two penalties of strength s is one weight with a penalty of strength s/2, of the state weights."""
    double = one_thread(label_classes={}, penalty=L2(1.0), tolerance=TIGHT, template="U0:%x[0,0]").fit(ROWS, Y)
    single = one_thread(penalty=L2(0.5), tolerance=TIGHT, template="U0:%x[0,0]").fit(ROWS, Y)
    assert_allclose(double.result_.value, single.result_.value, rtol=1e-9)
    for a, b in zip(double.predict_marginals(ROWS), single.predict_marginals(ROWS), strict=True):
        assert_allclose(a, b, atol=1e-6)


def test_labels_that_are_numbers_have_classes_too(tmp_path):
    y = [[LABELS.index(label) for label in row] for row in Y]
    crf = one_thread(label_classes={0: "low", 1: "low"}).fit(ITEMS, y)
    assert crf.model_.class_names == ("2", "3", "4", "low")
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf")
    assert again.predict(ITEMS) == crf.predict(ITEMS)
    assert again.model_.class_names == crf.model_.class_names


# --- margins and costs


COST = np.array([[abs(i - j) for j in range(L)] for i in range(L)], dtype=float)


def test_the_loss_is_the_one_that_was_asked_for():
    data = learn(ITEMS, Y, None, 1).data
    for name, kind, cost in (
        ("likelihood", ChainLikelihood, None),
        ("softmax-margin", SoftmaxMargin, None),
        ("softmax-margin", SoftmaxMargin, COST),
        ("hinge", StructuredHinge, None),
        ("hinge", StructuredHinge, COST),
    ):
        crf = one_thread(loss=name, cost=cost, solver="sgd", tolerance=1e-3).fit(ITEMS, Y)
        loss = kind(data, crf.model_.field, n_threads=1, **({} if name == "likelihood" else {"cost": cost}))
        assert_allclose(crf.result_.value, loss.at(crf.coef_).value + 0.5 * crf.coef_ @ crf.coef_, rtol=1e-12)
        assert crf.result_.objective == f"{kind.name} + L2(1)"
        assert crf.score(ITEMS, Y) > 0.6


def test_a_function_makes_the_loss():
    X, y = corpus()
    made = []

    def likelihood(data, field):
        made.append(ChainLikelihood(data, field))
        return made[-1]

    own, named = (ChainCRF(TEMPLATE, loss=loss, tolerance=TIGHT).fit(X, y) for loss in (likelihood, "likelihood"))
    assert_allclose(own.result_.w, named.result_.w, atol=1e-12)
    assert own.result_.objective == f"{made[0].name} + L2(1)"
    assert own.predict(X) == named.predict(X)
    with pytest.raises(ParameterError, match="the function `loss` returned 3; expected a loss"):
        ChainCRF(TEMPLATE, loss=lambda data, field: 3).fit(X, y)
    with pytest.raises(ParameterError, match="a function as loss takes no cost"):
        ChainCRF(TEMPLATE, loss=likelihood, cost=1 - np.eye(5)).fit(X, y)


def test_costs_are_in_the_order_of_the_sorted_labels():
    """A high cost of taking anything for O leaves fewer of them."""
    dear = np.ones((L, L)) - np.eye(L)
    dear[:, LABELS.index("O")] *= 50.0
    for name, solver in (("softmax-margin", "lbfgs"), ("hinge", "sgd")):
        counts = [
            sum(
                row.count("O")
                for row in one_thread(loss=name, cost=cost, solver=solver, tolerance=1e-3).fit(ITEMS, Y).predict(ITEMS)
            )
            for cost in (None, dear)
        ]
        assert counts[1] < counts[0] or counts == [0, 0]


def test_no_cost_is_the_likelihood():
    a = one_thread(loss="softmax-margin", cost=np.zeros((L, L)), solver="lbfgs", tolerance=TIGHT).fit(ITEMS, Y)
    b = one_thread(solver="lbfgs", tolerance=TIGHT).fit(ITEMS, Y)
    assert_allclose(a.coef_, b.coef_, atol=1e-5)


def test_costs_may_be_nested_lists_and_are_not_changed():
    cost = COST.tolist()
    crf = one_thread(loss="softmax-margin", cost=cost).fit(ITEMS, Y)
    assert cost == COST.tolist()
    assert crf.get_params()["cost"] is cost
    assert clone(crf).cost == cost


@pytest.mark.parametrize(
    "bad", [-COST, COST + 1, COST[:2, :2], COST[0], COST * math.nan, COST + np.inf, "text"], ids=range(7)
)
def test_costs_that_cannot_be(bad):
    for name, solver in (("softmax-margin", "auto"), ("hinge", "sgd")):
        with pytest.raises(ParameterError, match="cost"):
            one_thread(loss=name, cost=bad, solver=solver).fit(ITEMS, Y)


def test_a_cost_without_a_margin_and_corners_without_a_solver():
    with pytest.raises(ParameterError, match="likelihood has no cost"):
        one_thread(cost=COST).fit(ITEMS, Y)
    with pytest.raises(CapabilityError, match=r"auto needs smooth, which the structured hinge .*these can: sgd"):
        one_thread(loss="hinge").fit(ITEMS, Y)


# --- seeds


@pytest.mark.parametrize("solver", ["sgd", "averaged-perceptron", "smd"])
def test_seeds(solver):
    def learned(state):
        with pytest.warns(ConvergenceWarning):
            return one_thread(solver=solver, random_state=state, max_iterations=2, tolerance=0.0).fit(ITEMS, Y).coef_

    assert (learned(None) == learned(0)).all()
    assert (learned(5) == learned(np.int64(5))).all()
    assert (learned(5) != learned(6)).any()
    for make in (np.random.default_rng, np.random.RandomState):
        assert (learned(make(1)) == learned(make(1))).all()
        assert (learned(make(1)) != learned(make(2))).any()
        # a generator goes on from fit to fit
        state = make(1)
        assert (learned(state) != learned(state)).any()


def test_a_seed_does_not_matter_where_nothing_is_shuffled():
    a, b = (one_thread(solver="lbfgs", random_state=state).fit(ITEMS, Y).coef_ for state in (1, 2))
    assert (a == b).all()


# --- scikit-learn


MODELS = {
    "order 2": {"order": 2},
    "order 2, all": {"order": 2, "all_possible_transitions": True, "all_possible_states": True},
    "classes": {"label_classes": CLASSES},
    "classes, all": {"label_classes": CLASSES, "all_possible_states": True},
    "constraints": {"constraints": "observed"},
    "pairs": {"constraints": frozenset({("A", "Z")}), "label_classes": {"A": "x"}},
    "L1": {"penalty": L1(0.3)},
    "elastic net, order 2": {"penalty": ElasticNet(0.3, 0.1), "order": 2, "label_classes": CLASSES},
    "softmax margin": {"loss": "softmax-margin", "cost": COST},
    "hinge": {"loss": "hinge", "solver": "sgd", "tolerance": 1e-2},
    "perceptron": {"solver": "averaged-perceptron"},
    "template": {"template": TEMPLATE, "order": 2, "penalty": L1(0.1), "constraints": "observed"},
}


def inputs(kind):
    X, y = (ROWS if kind == "template" else ITEMS), Y
    if kind == "pairs":
        y = [["Z" if t == 0 else label for t, label in enumerate(row)] for row in y]
    return X, y


@cache
def trained(kind):
    return one_thread(**MODELS[kind]).fit(*inputs(kind))


def same_models(a, b, X):
    assert a.predict(X) == b.predict(X)
    assert (a.coef_ == b.coef_).all()
    assert a.state_features_ == b.state_features_
    assert a.transition_features_ == b.transition_features_
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.model_.class_names == b.model_.class_names
    assert a.model_.field.layout == b.model_.field.layout
    for name in ("predict_marginals", "predict_edge_marginals"):
        for p, q in zip(getattr(a, name)(X), getattr(b, name)(X), strict=True):
            assert (p == q).all()


every_model = pytest.mark.parametrize("kind", MODELS)


@every_model
def test_saved_and_loaded(kind, tmp_path):
    crf, (X, _) = trained(kind), inputs(kind)
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf", n_threads=1)
    same_models(again, crf, X)
    assert again.order == crf.order
    again.save(tmp_path / "again.crf")
    assert (tmp_path / "again.crf").read_bytes() == (tmp_path / "m.crf").read_bytes()


@every_model
def test_pickled_and_cloned(kind):
    crf, (X, y) = trained(kind), inputs(kind)
    same_models(pickle.loads(pickle.dumps(crf)), crf, X)
    copy = clone(crf)
    assert not hasattr(copy, "model_")
    same_models(copy.fit(X, y), crf, X)


def test_options_are_kept_as_they_were_given():
    for options in MODELS.values():
        crf = one_thread(**options)
        for name, value in options.items():
            assert crf.get_params()[name] is value


def test_a_search_over_solvers():
    names = ["lbfgs", "sgd", "averaged-perceptron", "passive-aggressive", "arow", "mira", SGD()]
    search = GridSearchCV(one_thread(tolerance=1e-2), {"solver": names}, cv=KFold(3), error_score="raise")
    search.fit(ITEMS, Y)
    assert (search.cv_results_["mean_test_score"] > 0.5).all()
    assert search.best_estimator_.predict(ITEMS)


def test_a_search_over_everything_else():
    grid = {
        "order": np.array([1, 2]),
        "penalty": [L1(0.1), L2(1.0)],
        "constraints": [None, [("V", "D")]],
        "loss": ["likelihood", "softmax-margin"],
    }
    y = [["O" if pair == ("V", "D") else pair[1] for pair in itertools.pairwise(["O", *row])] for row in Y]
    search = GridSearchCV(one_thread(), grid, cv=KFold(2), error_score="raise").fit(ITEMS, y)
    assert (search.cv_results_["mean_test_score"] > 0.4).all()


def test_a_default_penalty_for_every_solver():
    """L2(1), or none for those that take none; either way a fit without options succeeds."""
    for name in sorted(SOLVERS):
        if "online" in SOLVERS[name].needs or name in ("lbfgs", "owlqn", "auto"):
            crf = one_thread(solver=name, tolerance=1e-2).fit(ITEMS, Y)
            assert crf.result_.objective.endswith(("+ L2(1)", f"mistakes of {name}"))


# --- options that cannot be


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("loss", ["perceptron", "", None, 3]),
        ("order", [0, 3, "2", None, 1.5, 2.0]),
        ("constraints", ["bio", 5, [("A",)], [("A", "no such label")]]),
        ("label_classes", ["text", [("A", "x")], 3]),
        ("random_state", ["seed", 1.5, [1]]),
    ],
)
def test_parameters_out_of_range_are_refused(name, bad):
    for value in bad:
        with pytest.raises(ParameterError, match=name if name != "constraints" else "constraints|transition"):
            one_thread(**{name: value}).fit(ITEMS, Y)


@pytest.mark.parametrize("solver", ["auto", "sgd", "averaged-perceptron", "smd"])
def test_a_negative_seed_is_refused(solver):
    with pytest.raises(ParameterError, match=r"(random_state|seed) must be an integer >= 0, not -1"):
        one_thread(random_state=-1, solver=solver).fit(ITEMS, Y)


def test_penalties_that_a_solver_would_ignore_are_refused():
    for solver in ("averaged-perceptron", "arow"):
        with pytest.raises(CapabilityError, match=rf"{solver} does not support L2\(1\)"):
            one_thread(solver=solver, penalty=L2(1.0)).fit(ITEMS, Y)
        with pytest.raises(CapabilityError, match=r"L1\(1\)"):
            one_thread(solver=solver, penalty=L1(1.0)).fit(ITEMS, Y)
    with pytest.raises(CapabilityError, match=r"not smooth; these can: .*owlqn"):
        one_thread(solver="lbfgs", penalty=L1(1.0)).fit(ITEMS, Y)


# --- files that do not belong together


@pytest.fixture(scope="module")
def model():
    """With everything: order 2, masks, classes."""
    crf = one_thread(template=TEMPLATE, order=2, constraints="iobes", label_classes={"B-X": "X", "E-X": "X"})
    y = [[["S-Y", "O"], ["B-X", "E-X"]][len(row) % 2] + ["O"] * (len(row) - 2) for row in Y]
    return crf.fit(ROWS, y).model_


def test_the_model_that_is_damaged_here_is_whole(model, tmp_path):
    model.save(tmp_path / "m.crf")
    assert ChainModel.load(tmp_path / "m.crf").labels_of(model.encode(ROWS)) == model.labels_of(model.encode(ROWS))
    names = {name.partition(".")[2] for name in model.parts()[1] if name.startswith("field.")}
    assert names > {
        "triple_codes",
        "allowed",
        "allowed_start",
        "allowed_end",
        "label_classes",
        "class_offsets",
        "class_codes",
    }


def cases():
    """(tensor, change) pairs; each makes a model whose parts contradict each other."""
    yield "triple_codes", lambda a: None
    for name in ("allowed", "allowed_start", "allowed_end", "label_classes"):
        yield name, lambda a: a[:-1]
        yield name, lambda a: np.append(a, a[-1:])
        yield name, lambda a: a[:0]
        yield name, lambda a: a.astype(np.int64)
    yield "allowed", lambda a: a.reshape(4, -1)
    yield "label_classes", lambda a: None
    yield "label_classes", lambda a: a - 1
    yield "label_classes", lambda a: a + 1
    yield "label_classes", lambda a: np.where(a == 0, 2**30, a)
    for name in ("triple_codes", "class_codes"):
        yield name, lambda a: a[:-1]
        yield name, lambda a: np.append(a, a[-1:])
        yield name, lambda a: a - 1000
        yield name, lambda a: np.where(np.arange(len(a)) == len(a) - 1, 10**6, a)
        yield name, lambda a: a.astype(np.int64)
    yield "triple_codes", lambda a: a[::-1].copy()
    yield "class_codes", lambda a: None
    yield "class_offsets", lambda a: None
    yield "class_offsets", lambda a: a[:-1]
    yield "class_offsets", lambda a: a + 1
    yield "class_offsets", lambda a: np.where(np.arange(len(a)) == 1, -5, a)
    yield "class_offsets", lambda a: np.where(np.arange(len(a)) == 1, 2**40, a)


def rewritten(path, model, metadata=None, tensors=None):
    """Saves the model with some parts replaced (None: removed) and right checksums; it must be refused."""
    parts = [old | new for old, new in zip(model.parts(), (metadata or {}, tensors or {}), strict=True)]
    modelfile.write(path, "chain", parts[0], {k: v for k, v in parts[1].items() if v is not None})
    with pytest.raises(ModelFileError, match=str(path)):
        ChainModel.load(path)


@pytest.mark.parametrize(("name", "change"), [pytest.param(n, f, id=f"{n}-{k}") for k, (n, f) in enumerate(cases())])
def test_tensors_that_do_not_fit(model, tmp_path, name, change):
    changed = change(np.array(model.parts()[1][f"field.{name}"]))
    changed = None if changed is None else np.ascontiguousarray(changed)
    rewritten(tmp_path / "m.crf", model, tensors={f"field.{name}": changed})


@pytest.mark.parametrize(
    "metadata",
    [
        {"order": 1},
        {"order": 3},
        {"order": 0},
        {"order": None},
        {"order": "2"},
        {"order": 2.0},
        {"n_triple": 0},
        {"n_triple": -1},
        {"n_triple": None},
        {"n_triple": 10**30},
        {"class_names": []},
        {"class_names": None},
        {"class_names": ["X", "O", "S-Y", "more"]},
        {"class_names": [1, 2, 3]},
    ],
    ids=str,
)
def test_metadata_that_do_not_fit(model, tmp_path, metadata):
    rewritten(tmp_path / "m.crf", model, metadata)


def test_any_changed_byte_of_the_new_tensors_is_found(model, tmp_path):
    path = tmp_path / "m.crf"
    model.save(path)
    blob = path.read_bytes()
    start = 8 + int.from_bytes(blob[:8], "little")
    for at in np.random.default_rng(0).integers(start, len(blob), 60):
        path.write_bytes(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
        with pytest.raises(ModelFileError, match="altered or damaged"):
            ChainModel.load(path)


def test_data_errors_are_still_data_errors():
    with pytest.raises(DataError):
        one_thread(order=2, penalty=NoPenalty()).fit(ITEMS, Y[:-1])
