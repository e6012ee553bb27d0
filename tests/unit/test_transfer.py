"""Weights that are carried over by name: warm starts, batch by batch, and without those that are zero."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from crfkit import L1, L2, ChainCRF, ElasticNet, NoPenalty, Template
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.losses.likelihood import ChainLoss
from crfkit.chain.training.transfer import pruned, transfer
from crfkit.errors import CrfkitError, DataError, ParameterError, StopTraining
from crfkit.result import Status
from crfkit.solvers import SGD, SOLVERS, GradientNorm

TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%x[0,1]\nB\nB1:%x[0,1]")
WORDS = {"the": "D", "cat": "N", "runs": "V", "fast": "A", "dog": "N"}
CLASSES = {"D": "closed", "N": "open", "V": "open"}
ONLINE = sorted(name for name, solver in SOLVERS.items() if "online" in solver.needs)
LEARNERS = [name for name in ONLINE if not SOLVERS[name].handles_smooth]  # from mistakes
TIGHT = GradientNorm(1e-6)


def corpus(n=24, seed=0, noise=0.1, words=tuple(WORDS)):
    """Tokens (word, tag) whose label depends on the word, mostly."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        row = rng.choice(words, rng.integers(2, 7)).tolist()
        X.append([(word, word[0].upper()) for word in row])
        y.append([WORDS[word] if rng.random() >= noise else "O" for word in row])
    return X, y


ROWS, Y = corpus()
ITEMS = [[{"w": word, "t": tag, "bias": 0.5} for word, tag in row] for row in ROWS]
LABELS = sorted({label for row in Y for label in row})
KINDS = {
    "items": {},
    "template": {"template": TEMPLATE},
    "everything": {"template": TEMPLATE, "all_possible_states": True, "all_possible_transitions": True},
    "order 2": {"order": 2},
    "classes": {"label_classes": CLASSES},
    "constraints": {"constraints": [("D", "D")]},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def data_of(kind, rows=ROWS, y=Y):
    """X and y that suit this kind of model."""
    X = (
        rows
        if "template" in KINDS[kind]
        else [[{"w": word, "t": tag, "bias": 0.5} for word, tag in row] for row in rows]
    )
    if kind == "constraints":
        y = [["O" if pair == ("D", "D") else pair[1] for pair in itertools.pairwise(["O", *row])] for row in y]
        y = [["O" if "D" in row[:t] and label == "D" else label for t, label in enumerate(row)] for row in y]
    return X, y


def one_thread(**options):
    return ChainCRF(**{"n_threads": 1} | options)


def named(crf) -> dict:
    """All weights by name."""
    model, field = crf.model_, crf.model_.field
    attributes, pairs = model.vocabulary.attributes.to_list(), model.vocabulary.pair_attributes.to_list()
    labels, classes = model.class_list, model.class_names
    tables = {
        "state": (attributes, labels),
        "transition": (labels, labels),
        "pair": (pairs, labels, labels),
        "triple": (labels, labels, labels),
        "class": (attributes, classes),
    }
    found = {}
    for block, names in tables.items():
        columns = getattr(field, f"{block}_ids")()
        w = model.w[field.layout[block]].tolist()
        for k, x in enumerate(w):
            found[(block, *(table[column[k]] for table, column in zip(names, columns, strict=True)))] = x
    return found


def start_of(crf, X, y):
    """The weights that the next fit begins with, by name."""

    def stop(iteration):
        raise StopTraining

    return named(crf.fit(X, y, callbacks=[stop]))


def carried(before, after):
    """What the weights of `after` should be: those of the same name, and zero."""
    return {name: before.get(name, 0.0) for name in after}


# --- warm starts


@every_kind
@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_from_the_optimum_there_is_little_to_do(kind, solver):
    X, y = data_of(kind)
    crf = one_thread(warm_start=True, solver=solver, tolerance=TIGHT, **KINDS[kind]).fit(X, y)
    first, before = crf.result_, named(crf)
    crf.fit(X, y)
    assert crf.result_.iterations <= 2 < first.iterations
    assert crf.result_.status is Status.CONVERGED
    for name, x in named(crf).items():
        assert_allclose(x, before[name], atol=1e-5)
    assert clone(crf).fit(X, y).result_.iterations == first.iterations


def test_from_the_optimum_there_is_little_to_do_with_much_data():
    """Where the default solver begins with stochastic epochs."""
    rows, y = corpus(220, seed=5)
    crf = one_thread(warm_start=True, tolerance=TIGHT, template="U0:%x[0,0]\nB").fit(rows, y)
    value = crf.result_.value
    crf.fit(rows, y)
    assert crf.result_.iterations <= 2
    assert_allclose(crf.result_.value, value, rtol=1e-9)


def test_without_warm_start_every_fit_begins_at_zero():
    crf = one_thread(tolerance=TIGHT).fit(ITEMS, Y)
    assert set(start_of(crf, ITEMS, Y).values()) == {0.0}
    assert set(start_of(one_thread(warm_start=True), ITEMS, Y).values()) == {0.0}


@every_kind
def test_weights_go_by_name_when_the_data_change(kind):
    """New attributes, others gone, a new label that sorts before the others, another gone."""
    crf = one_thread(warm_start=True, solver="lbfgs", **KINDS[kind])
    before = named(crf.fit(*data_of(kind)))
    rows, y = corpus(30, seed=7, words=("the", "cat", "dog", "runs"))
    rows = [[*row, ("zebra", "Z")] for row in rows]
    y = [["AA" if label == "V" else label for label in row] + ["N"] for row in y]
    after = start_of(crf, *data_of(kind, rows, y))
    assert after == carried(before, after)
    assert sum(x != 0 for x in after.values()) > 10
    kept = {name for name in before if name in after}
    assert {name[0] for name in kept} == {name[0] for name in before}


def test_weights_go_by_name_when_labels_are_renumbered():
    crf = one_thread(warm_start=True, tolerance=TIGHT, solver="lbfgs")
    before = named(crf.fit(ITEMS, Y))
    # "0" sorts first: every other label gets another number
    extra = [[{"w": "zero"}]], [["0"]]
    after = start_of(crf, ITEMS + extra[0], Y + extra[1])
    assert after == carried(before, after)
    assert after.keys() > before.keys()
    crf.fit(ITEMS + extra[0], Y + extra[1])
    cold = one_thread(tolerance=TIGHT, solver="lbfgs").fit(ITEMS + extra[0], Y + extra[1])
    assert_allclose(crf.result_.value, cold.result_.value, rtol=1e-9)


@pytest.mark.parametrize(
    "classes",
    [
        {"D": "a", "N": "open", "V": "open"},  # as many classes, of other names
        {"D": "closed", "N": "open", "V": "open", "A": "open"},  # fewer
        {"N": "open"},  # more
    ],
    ids=str,
)
def test_weights_of_label_classes_go_by_name(classes):
    crf = one_thread(warm_start=True, label_classes=CLASSES, all_possible_states=True)
    before = named(crf.fit(ITEMS, Y))
    after = start_of(crf.set_params(label_classes=classes), ITEMS, Y)
    assert after == carried(before, after)
    assert any(x for name, x in after.items() if name[0] == "class")


def test_a_warm_start_may_come_from_another_kind_of_model():
    crf = one_thread(warm_start=True, solver="lbfgs")
    before = named(crf.fit(ITEMS, Y))
    crf.set_params(order=2, all_possible_transitions=True, penalty=L2(0.1))
    after = start_of(crf, ITEMS, Y)
    assert after == carried(before, after)
    assert len(after) > len(before)


def test_a_loaded_model_is_a_warm_start(tmp_path):
    crf = one_thread(tolerance=TIGHT).fit(ITEMS, Y)
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf", n_threads=1).set_params(warm_start=True, tolerance=TIGHT)
    assert again.fit(ITEMS, Y).result_.iterations <= 2
    assert_allclose(again.coef_, crf.coef_, atol=1e-5)


def test_a_sparse_model_is_a_warm_start():
    crf = one_thread(warm_start=True, penalty=L1(0.5), tolerance=GradientNorm(1e-5)).fit(ITEMS, Y)
    before, value = named(crf), crf.result_.value
    after = start_of(crf, ITEMS, Y)
    assert after == {name: x for name, x in before.items() if x}
    crf.fit(ITEMS, Y)
    assert crf.result_.iterations <= 2
    assert_allclose(crf.result_.value, value, rtol=1e-9)


def test_transfer_to_the_same_field_is_the_identity():
    for kind, options in KINDS.items():
        X, y = data_of(kind)
        crf = one_thread(**options).fit(X, y)
        corpus = learn(X, y, crf._training().make_template(), 1)
        w = transfer(crf.model_, corpus.vocabulary, corpus.classes.tolist(), crf.model_.field)
        assert (w == crf.coef_).all(), kind


# --- batch by batch


def batches(X, y, k=4):
    return [(X[i::k], y[i::k]) for i in range(k)]


def epoch_in_order(name, crf, X, y):
    """(weights, average) of one pass over the sequences as they come, straight through the loss, by name."""
    training = crf._training()
    known = learn(X, y, crf._training().make_template(), 1)
    field, _ = training.make_field(known.data, known.vocabulary, known.classes.tolist())
    online = training.make_loss(known.data, field).online()
    online.start(np.zeros(field.size))
    order, solver = np.arange(len(known.data)), SOLVERS[name]()
    solver.update(online, order)
    w = online.average() if solver.averaged else online.weights()
    one = one_thread()
    one._set_model(replace(crf.model_, vocabulary=known.vocabulary, classes=known.classes, field=field, w=w))
    return named(one)


@pytest.mark.parametrize("name", LEARNERS)
def test_batches_of_one_sequence_are_an_epoch(name):
    """All pairs have weights, so that nothing depends on when a name is first seen."""
    everything = {"all_possible_states": True, "all_possible_transitions": True}
    crf = one_thread(solver=name, **everything)
    several = [n for n, row in enumerate(Y) if len(set(row)) > 1]
    X, y = [ITEMS[n] for n in several], [Y[n] for n in several]
    for x, row in zip(X, y, strict=True):
        crf.partial_fit([x], [row], classes=LABELS)
    expected, found = epoch_in_order(name, crf, X, y), named(crf)
    assert found.keys() == expected.keys()
    for key, x in expected.items():
        assert_allclose(found[key], x, atol=1e-9, err_msg=str(key))


@pytest.mark.parametrize("name", ONLINE)
def test_four_batches_are_nearly_an_epoch(name):
    rows, y = corpus(80, seed=3)
    X = [[{"w": word} for word, _ in row] for row in rows]
    crf = one_thread(solver=name)
    for part in batches(X, y):
        crf.partial_fit(*part, classes=LABELS)
        assert crf.result_.iterations == 1
    with pytest.warns(ConvergenceWarning):
        whole = one_thread(solver=name, max_iterations=1, tolerance=0.0).fit(X, y)
    assert abs(crf.score(X, y) - whole.score(X, y)) < 0.05
    assert named(crf).keys() == named(whole).keys()
    a, b = (np.array([one[key] for key in sorted(named(whole))]) for one in (named(crf), named(whole)))
    # AROW's first epochs in different orders have cosines from 0.59 to 0.75 on these data, the others' are above 0.8
    likeness = 0.55 if name == "arow" else 0.8
    assert a @ b > likeness * np.linalg.norm(a) * np.linalg.norm(b)


@pytest.mark.parametrize("name", ["sgd", "asgd"])
def test_many_small_batches_learn_as_much_as_an_epoch(name):
    """The penalty of the whole is not applied anew in full with every batch."""
    rows, y = corpus(80, seed=3)
    X = [[{"w": word} for word, _ in row] for row in rows]
    crf = one_thread(solver=name, all_possible_states=True)
    for k in range(0, 80, 4):
        crf.partial_fit(X[k : k + 4], y[k : k + 4], classes=LABELS)
    with pytest.warns(ConvergenceWarning):
        whole = one_thread(solver=name, max_iterations=1, tolerance=0.0, all_possible_states=True).fit(X, y)
    corpus_ = learn(X, y, None, 1)

    def loss(one):
        w = transfer(one.model_, corpus_.vocabulary, corpus_.classes.tolist(), whole.model_.field)
        return one._training().make_loss(corpus_.data, whole.model_.field).at(w).value

    start = one_thread()._training().make_loss(corpus_.data, whole.model_.field).at(np.zeros(len(whole.coef_))).value
    assert start - loss(crf) > 0.8 * (start - loss(whole))


@pytest.mark.parametrize("name", ONLINE)
@every_kind
def test_vocabulary_and_labels_grow(name, kind):
    X, y = data_of(kind)
    crf = one_thread(solver=name, **KINDS[kind] | {"constraints": None})
    first = [n for n, row in enumerate(y) if set(row) <= {"D", "N"} and len(set(row)) > 1] or [0]
    seen = [label for n in first for label in y[n]]
    crf.partial_fit([X[n] for n in first], [y[n] for n in first])
    assert crf.classes_.tolist() == sorted(set(seen))
    before = named(crf)
    assert {label for row in crf.predict(X) for label in row} <= set(seen)
    for part in batches(X, y, 3):
        crf.partial_fit(*part)
        assert named(crf).keys() >= before.keys()
        before = named(crf)
        assert [len(row) for row in crf.predict(X)] == [len(row) for row in y]
        assert_allclose(np.concatenate(crf.predict_marginals(X)).sum(axis=1), 1.0)
    assert crf.classes_.tolist() == sorted({label for row in y for label in row})
    assert crf.score(X, y) > 0.6
    # all names that one fit would have
    whole = one_thread(solver=name, max_iterations=1, tolerance=0.0, **KINDS[kind] | {"constraints": None})
    with pytest.warns(ConvergenceWarning):
        whole.fit(X, y)
    assert named(crf).keys() == named(whole).keys()


@every_kind
def test_what_a_batch_does_not_touch_stays(kind):
    """The perceptron changes weights of a batch's own names only; those of others stay, if not for the average."""
    options = KINDS[kind] | {"constraints": None, "all_possible_states": False, "all_possible_transitions": False}
    crf = one_thread(solver="arow", **options)
    X, y = data_of(kind)
    crf.partial_fit(X, y)
    before = named(crf)
    new = [[("bird", "B"), ("bird", "B")]], [["N", "V"]]
    crf.partial_fit(*data_of(kind, *new))
    after = named(crf)
    own = ("bird", "bird", "B", "bias")
    for key, x in before.items():
        if key[0] in ("state", "class", "pair") and not any(part in str(key[1]) for part in own):
            assert after[key] == x, key


def test_classes_are_known_from_the_start():
    crf = one_thread(solver="sgd", all_possible_transitions=True)
    crf.partial_fit(ITEMS[:1], [["N", *["V"] * (len(Y[0]) - 1)]], classes=["X", "N", "V", "A"])
    assert crf.classes_.tolist() == ["A", "N", "V", "X"]
    assert len(crf.transition_features_) == 16
    assert crf.predict_marginals(ITEMS[:1])[0].shape == (len(ITEMS[0]), 4)
    with pytest.raises(CrfkitError, match="one type"):
        crf.partial_fit(ITEMS[:1], [[1, *[2] * (len(Y[0]) - 1)]])
    with pytest.raises(CrfkitError, match="one type"):
        one_thread(solver="sgd").partial_fit(ITEMS, Y, classes=[1, 2])


def test_a_batch_may_have_one_label_if_others_are_known():
    """Streams are like that: sentence after sentence without an entity."""
    crf = one_thread(solver="averaged-perceptron")
    crf.partial_fit([[["a"], ["b"]]], [["O", "O"]], classes=["B", "O"])
    crf.partial_fit([[["a"], ["b"]]], [["O", "B"]])
    crf.partial_fit([[["c"]]], [["O"]])
    assert crf.classes_.tolist() == ["B", "O"]
    assert crf.predict([[["a"], ["b"]]]) == [["O", "B"]]


@pytest.mark.parametrize("name", ["lbfgs", "auto", "tron", "smd", "owlqn"])
def test_solvers_that_are_not_online_are_refused(name):
    with pytest.raises(ParameterError, match=rf"online solver \(.*sgd.*\), not '{name}'"):
        one_thread(solver=name).partial_fit(ITEMS, Y)


@pytest.mark.parametrize(
    "options", [{"solver": "sgd", "max_iterations": 5}, {"solver": SGD()}], ids=["limit", "instance"]
)
def test_a_batch_is_one_epoch_whatever_the_limit(options):
    assert one_thread(**options).partial_fit(ITEMS, Y).result_.iterations == 1


@pytest.mark.parametrize("name", ["sgd", "averaged-perceptron"])
def test_batches_go_on_from_a_fit(name, tmp_path):
    """From the current weights, however they came about."""
    crf = one_thread(solver=name).fit(ITEMS, Y)
    crf.save(tmp_path / "m.crf")
    loaded = ChainCRF.load(tmp_path / "m.crf", n_threads=1).set_params(solver=name)
    before = named(crf)
    for one in (crf, loaded):
        one.partial_fit([[{"w": "bird"}, {"w": "sings"}]], [["N", "V"]])
        assert named(one).keys() >= before.keys()
        assert one.score(ITEMS, Y) > 0.7


def test_a_fit_forgets_the_batches_before_it():
    crf = one_thread(solver="sgd").partial_fit([[["other"], ["words"]]], [["Q", "R"]])
    crf.fit(ITEMS, Y)
    assert crf.classes_.tolist() == LABELS
    crf.partial_fit(ITEMS, Y)
    assert crf.classes_.tolist() == LABELS


def test_batches_of_matrices():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(len(row), 3)) for row in Y]
    X = [np.hstack([x, [[1 + LABELS.index(label)] for label in row]]) for x, row in zip(X, Y, strict=True)]
    crf = one_thread(solver="averaged-perceptron")
    dicts = one_thread(solver="averaged-perceptron")
    for part in range(3):
        crf.partial_fit(X[part::3], Y[part::3], classes=LABELS)
        same = [[{f"x{j}": v for j, v in enumerate(row)} for row in x] for x in X[part::3]]
        dicts.partial_fit(same, Y[part::3], classes=LABELS)
        assert [len(row) for row in crf.predict(X)] == [len(row) for row in Y]
    assert crf.predict(X) == dicts.predict([[{f"x{j}": v for j, v in enumerate(row)} for row in x] for x in X])
    assert crf.n_attributes_ == 4


def test_batches_of_another_kind_are_refused():
    X = [np.ones((len(row), 3)) for row in Y]
    crf = one_thread(solver="sgd").partial_fit(X, Y)
    with pytest.raises(DataError, match=r"column|matri"):
        crf.partial_fit([np.ones((len(row), 5)) for row in Y], Y)
    with pytest.raises(DataError, match=r"matri|list"):
        crf.partial_fit(ITEMS, Y)
    assert crf.predict(X)


def test_a_batch_that_cannot_be_used_changes_nothing():
    crf = one_thread(solver="sgd").partial_fit(ITEMS, Y)
    before = named(crf)
    for X, y in (([], []), (ITEMS, Y[:-1]), ([[]], [[]]), ("abc", Y)):
        with pytest.raises(DataError):
            crf.partial_fit(X, y)
    with pytest.raises((DataError, ParameterError), match="weight"):
        crf.partial_fit(ITEMS, Y, sample_weight=[-1.0] * len(Y))
    assert named(crf) == before


def test_weights_of_sequences_in_batches():
    everything = {"all_possible_states": True, "all_possible_transitions": True, "solver": "averaged-perceptron"}
    keep = np.arange(len(Y)) % 2
    a = one_thread(**everything).partial_fit(ITEMS, Y, sample_weight=keep)
    b = one_thread(**everything).partial_fit(ITEMS, Y)
    assert named(a) != named(b)
    assert a.score(ITEMS, Y, sample_weight=keep) > 0.6


def test_batches_can_be_repeated_and_pickled():
    def learn_all(crf):
        for part in batches(ITEMS, Y):
            crf.partial_fit(*part)
            crf = pickle.loads(pickle.dumps(crf))
        return named(crf)

    for name in ONLINE:
        assert learn_all(one_thread(solver=name, random_state=3)) == learn_all(one_thread(solver=name, random_state=3))
        straight = one_thread(solver=name, random_state=3)
        for part in batches(ITEMS, Y):
            straight.partial_fit(*part)
        assert named(straight) == learn_all(one_thread(solver=name, random_state=3))


def test_a_batch_that_diverges_says_so():
    crf = one_thread(solver=SGD(step_size=1e300, max_iterations=1), penalty=NoPenalty())
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="step size"):
            crf.partial_fit(ITEMS, Y)
        assert np.isfinite(crf.coef_).all()


def test_ctrl_c_in_a_batch_is_not_swallowed(monkeypatch):
    crf = one_thread(solver="sgd").partial_fit(ITEMS, Y)
    before, calls, inner = named(crf), [], ChainLoss.at

    def at(self, w, warm=None):
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return inner(self, w, warm)

    monkeypatch.setattr(ChainLoss, "at", at)
    with pytest.raises(KeyboardInterrupt):
        crf.partial_fit(ITEMS, Y)
    assert named(crf) == before


def test_saved_after_batches(tmp_path):
    crf = one_thread(solver="averaged-perceptron", template=TEMPLATE)
    for part in batches(ROWS, Y):
        crf.partial_fit(*part)
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf", n_threads=1)
    assert again.predict(ROWS) == crf.predict(ROWS)
    assert named(again) == named(crf)


# --- without the zeros

SPARSE = [L1(0.5), ElasticNet(0.5, 0.1)]


@pytest.mark.parametrize("penalty", SPARSE, ids=lambda penalty: penalty.name)
@every_kind
def test_sparse_models_hold_no_zeros_and_are_the_same_models(kind, penalty, tmp_path):
    X, y = data_of(kind)
    crf = one_thread(penalty=penalty, **KINDS[kind]).fit(X, y)
    w = crf.result_.w  # with its zeros
    assert (w == 0).any()
    assert (crf.coef_ != 0).all()
    assert len(crf.coef_) == (w != 0).sum() == crf.model_.field.size
    corpus = learn(X, y, crf._training().make_template(), 1)
    field, names = crf._training().make_field(corpus.data, corpus.vocabulary, corpus.classes.tolist())
    full = replace(crf.model_, vocabulary=corpus.vocabulary, field=field, w=w, class_names=names)
    new = [[*row, *row][:9] for row in X]
    for name in ("node_marginals", "edge_marginals", "log_partition"):
        for rows in (X, new):
            data = [model.encode(rows) for model in (full, crf.model_)]
            a, b = (getattr(m.inference, name)(d) for m, d in zip((full, crf.model_), data, strict=True))
            assert_allclose(a, b, atol=1e-12)
    assert crf.predict(new) == full.labels_of(full.encode(new))
    whole = one_thread()
    whole._set_model(full)
    assert named(crf) == {name: x for name, x in named(whole).items() if x != 0}
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf", n_threads=1)
    assert named(again) == named(crf)
    assert again.predict(new) == crf.predict(new)
    assert named(pickle.loads(pickle.dumps(crf))) == named(crf)


def test_sparse_files_are_small(tmp_path):
    X, y = data_of("everything")
    for name, penalty in (("l1", L1(0.5)), ("l2", L2(0.5))):
        one_thread(penalty=penalty, **KINDS["everything"]).fit(X, y).save(tmp_path / name)
    assert (tmp_path / "l1").stat().st_size < 0.7 * (tmp_path / "l2").stat().st_size


@every_kind
def test_pruning_twice_and_pruning_nothing(kind):
    X, y = data_of(kind)
    crf = one_thread(**KINDS[kind], penalty=L2(0.1)).fit(X, y)
    assert (crf.coef_ != 0).all()
    for _ in range(2):
        same = one_thread()
        same._set_model(pruned(crf.model_))
        assert named(same) == named(crf)
        assert same.predict(X) == crf.predict(X)
        crf = same


def test_a_penalty_that_leaves_nothing(tmp_path):
    """Every labelling is as probable as any other; the file can still be read."""
    for kind in ("items", "template", "order 2"):
        X, y = data_of(kind)
        crf = one_thread(penalty=L1(1e4), **KINDS[kind]).fit(X, y)
        assert len(crf.coef_) == crf.n_attributes_ == 0
        crf.save(tmp_path / "m.crf")
        again = ChainCRF.load(tmp_path / "m.crf", n_threads=1)
        assert [len(row) for row in again.predict(X)] == [len(row) for row in y]
        assert_allclose(np.concatenate(again.predict_marginals(X)), 1 / len(crf.classes_))
        assert pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)


def test_stochastic_gradients_prune_too():
    crf = one_thread(penalty=L1(0.5), solver="sgd", tolerance=1e-2).fit(ITEMS, Y)
    assert 0 < len(crf.coef_) < len(crf.result_.w)
    assert (crf.coef_ != 0).all()


def test_smooth_penalties_leave_the_parameter_set_alone():
    """Even if a weight happens to be zero."""
    crf = one_thread(all_possible_states=True).fit(ITEMS, Y)
    assert len(crf.coef_) == len(crf.result_.w)
