"""Constraints by name: what each scheme allows, and models that keep to it whatever the scores say."""

import itertools
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

from crfkit import ChainCRF, NoPenalty
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.constraints import SCHEMES, make_constraints
from crfkit.errors import DataError, ParameterError

PHRASES = ["B-A", "B-B", "I-A", "I-B", "O"]
ENDED = ["B-A", "B-B", "E-A", "E-B", "I-A", "I-B", "O", "S-A", "S-B"]
# what a whole labelling looks like, written with a space after each label
IOB2 = re.compile(r"(O |B-A (I-A )*|B-B (I-B )*)*")
IOBES = re.compile(r"(O |S-A |S-B |B-A (I-A )*E-A |B-B (I-B )*E-B )*")


def allows(constraints, classes, labels) -> bool:
    ids = [classes.index(label) for label in labels]
    start = constraints.allowed_start is None or constraints.allowed_start[ids[0]]
    end = constraints.allowed_end is None or constraints.allowed_end[ids[-1]]
    return bool(start and end and all(constraints.allowed[i, j] for i, j in itertools.pairwise(ids)))


def one_thread(**options):
    return ChainCRF(**{"n_threads": 1} | options)


# --- the masks


@pytest.mark.parametrize(("scheme", "classes", "form"), [("iob2", PHRASES, IOB2), ("iobes", ENDED, IOBES)])
def test_schemes_allow_whole_phrases_and_nothing_else(scheme, classes, form):
    constraints = make_constraints(scheme, classes)
    for length in (1, 2, 3, 4):
        for labels in itertools.product(classes, repeat=length) if length < 4 else SOME_LONG[scheme]:
            expected = form.fullmatch("".join(f"{label} " for label in labels)) is not None
            assert allows(constraints, classes, labels) is expected, labels


SOME_LONG = {
    scheme: [tuple(row) for row in np.random.default_rng(0).choice(classes, (500, 7))]
    for scheme, classes in (("iob2", PHRASES), ("iobes", ENDED))
}


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
def test_types_may_hold_dashes_and_tags_may_have_no_type(scheme):
    classes = ["B-a-b", "B-a-c", "I-a-b", "O", "B", "I"]
    allowed = make_constraints(scheme, classes).allowed

    def follows(first, second):
        return bool(allowed[classes.index(first), classes.index(second)])

    assert follows("B-a-b", "I-a-b")
    assert not follows("B-a-c", "I-a-b")
    assert not follows("O", "I")
    assert follows("B", "I")
    assert not follows("B", "I-a-b")


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
def test_labels_of_no_phrase_are_free(scheme):
    constraints = make_constraints(scheme, ["DET", "IN", "NOUN", "Ex", "B"])
    free = constraints.allowed[:4, :4]
    assert free.all()
    assert constraints.allowed_start[:4].all()
    assert constraints.allowed_end is None or constraints.allowed_end[:4].all()


def test_the_order_of_labels_does_not_matter():
    turned = ENDED[::-1]
    a, b = make_constraints("iobes", ENDED), make_constraints("iobes", turned)
    for labels in SOME_LONG["iobes"]:
        assert allows(a, ENDED, labels) == allows(b, turned, labels)


def test_observed_allows_what_occurs_and_nothing_else():
    rows = [[0, 1, 1, 2], [], [1], [0, 1], []]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    labels = np.array([label for row in rows for label in row])
    data = SequenceData(starts, np.zeros(len(labels) + 1), np.zeros(0), labels=labels)
    found = make_constraints("observed", list("abcd"), data)
    assert found.allowed_start.tolist() == [True, True, False, False]
    assert found.allowed_end.tolist() == [False, True, True, False]
    assert {tuple(pair) for pair in np.argwhere(found.allowed).tolist()} == {(0, 1), (1, 1), (1, 2)}
    with pytest.raises(ParameterError, match="labelled data"):
        make_constraints("observed", list("abcd"))
    with pytest.raises(ParameterError, match="labelled data"):
        make_constraints("observed", list("abcd"), replace(data, labels=None))


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_pairs_forbid_themselves_only(kind):
    found = make_constraints(kind([("a", "b"), ("c", "c")]), ["a", "b", "c"])
    assert {tuple(pair) for pair in np.argwhere(~found.allowed).tolist()} == {(0, 1), (2, 2)}
    assert found.allowed_start is None
    assert found.allowed_end is None
    assert make_constraints(kind([(1, 3)]), [1, 2, 3]).allowed.sum() == 8


def test_no_constraints():
    found = make_constraints(None, PHRASES)
    assert (found.allowed, found.allowed_start, found.allowed_end) == (None, None, None)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            "bio",
            r"unknown constraints 'bio' \(did you mean 'iob2'\?\); "
            r"expected one of iob1, iob2, ioe1, ioe2, iobes, bilou, observed",
        ),
        ("IOB2", r"unknown constraints 'IOB2'"),
        ("", r"unknown constraints ''"),
        ([("O",)], r"a pair .*not \('O',\)"),
        ([("O", "O", "O")], r"a pair"),
        (["OO"], r"a pair .*not 'OO'"),
        ([("O", "B-Z")], r"the label 'B-Z' .*does not occur"),
        ([(["O"], "O")], r"label"),
        (5, r"constraints"),
        (True, r"constraints"),
    ],
    ids=str,
)
def test_constraints_that_cannot_be(bad, message):
    with pytest.raises(ParameterError, match=message):
        make_constraints(bad, PHRASES)
    with pytest.raises(ParameterError, match=message):
        one_thread(constraints=bad).fit(X, Y)


# --- models


def corpus(scheme, n=12, seed=0):
    """Whole phrases; words that tell little."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = []
        for _ in range(rng.integers(1, 4)):
            kind, length = rng.choice(["A", "B"]), int(rng.integers(0, 4))
            inner = [f"I-{kind}"] * (length - 1)
            if scheme == "iobes" and length == 1:
                labels += [f"S-{kind}"]
            elif scheme == "iobes" and length:
                labels += [f"B-{kind}", *inner[1:], f"E-{kind}"]
            elif length:
                labels += [f"B-{kind}", *inner]
            labels += ["O"] * (length == 0)
        X.append([[f"w{rng.integers(4)}", label[:1] if rng.random() < 0.3 else "?"] for label in labels])
        y.append(labels)
    return X, y


X, Y = corpus("iob2")
NEW = [[[f"w{k % 4}"] for k in range(n)] for n in (2, 5, 9, 1, 0)]
FORMS = {"iob2": IOB2, "iobes": IOBES}


def well_formed(scheme, rows):
    return all(FORMS[scheme].fullmatch("".join(f"{label} " for label in row)) for row in rows)


def with_weights(crf, w):
    """The estimator with other weights in its model."""
    copy = one_thread()
    copy._set_model(replace(crf.model_, w=w))
    return copy


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
@pytest.mark.parametrize("order", [1, 2])
def test_predictions_keep_to_the_scheme_whatever_the_weights(scheme, order):
    rows, labels = corpus(scheme)
    crf = one_thread(constraints=scheme, order=order, all_possible_states=True, all_possible_transitions=True)
    crf.fit(rows, labels)
    rng = np.random.default_rng(0)
    broken = 0
    for size in (0.0, 1.0, 100.0):
        w = size * rng.normal(size=len(crf.coef_))
        wild = with_weights(crf, w)
        assert well_formed(scheme, wild.predict(NEW + rows))
        free = replace(
            crf.model_, field=replace(crf.model_.field, allowed=None, allowed_start=None, allowed_end=None), w=w
        )
        broken += not well_formed(scheme, free.labels_of(free.encode(NEW + rows)))
    assert broken > 0  # the scores did favour what is forbidden


def test_scores_that_want_the_forbidden_do_not_get_it():
    crf = one_thread(constraints=[("a", "b")], all_possible_states=True, all_possible_transitions=True)
    crf.fit([[["x"], ["y"]], [["y"], ["x"]], [["x"], ["x"]]], [["b", "a"], ["b", "a"], ["a", "a"]])
    wanted = {("x", "a"): 9.0, ("y", "b"): 9.0}
    w = np.zeros(len(crf.coef_))
    w[: len(crf.state_features_)] = [wanted.get(name, 0.0) for name in crf.state_features_]
    wild = with_weights(crf, w)
    assert wild.predict([[["x"], ["y"]]])[0] != ["a", "b"]
    edge = wild.predict_edge_marginals([[["x"], ["y"]]])[0]
    assert edge[1, 0, 1] == 0
    np.testing.assert_allclose(edge[1].sum(), 1.0)


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
def test_what_is_forbidden_has_no_probability(scheme):
    rows, labels = corpus(scheme)
    crf = one_thread(constraints=scheme).fit(rows, labels)
    field = crf.model_.field
    for node, edge in zip(crf.predict_marginals(NEW), crf.predict_edge_marginals(NEW), strict=True):
        assert (edge[1:][:, ~field.allowed] == 0).all()
        if len(node):
            assert (node[0][~field.allowed_start] == 0).all()
            np.testing.assert_allclose(node.sum(axis=1), 1.0)


def test_observed_transitions_only():
    y = [["a", "b", "c"], ["a", "b"], ["a", "c"]]
    rows = [[[f"w{t}"] for t in range(len(row))] for row in y]
    crf = one_thread(constraints="observed", all_possible_transitions=True).fit(rows, y)
    for row in with_weights(crf, 50 * np.random.default_rng(0).normal(size=len(crf.coef_))).predict(rows):
        assert row in y
    # a sequence that is longer than any labelling
    with pytest.raises(DataError, match="allow no labelling of sequence 1"):
        crf.predict([rows[0], [["w0"]] * 4])
    with pytest.raises(DataError, match="allow no labelling of sequence 0"):
        crf.predict_marginals([[["w0"]] * 4])


@pytest.mark.parametrize(
    ("constraints", "y", "where"),
    [
        ("iob2", [["O", "O"], ["O", "I-A"]], "sequence 1"),
        ("iob2", [["B-A", "O"], ["I-A", "I-A"]], "sequence 1"),
        ("iob2", [["B-B", "I-A"], ["B-A", "I-A"]], "sequence 0"),
        ("iobes", [["S-A", "O"], ["B-A", "O"]], "sequence 1"),
        ("iobes", [["S-A", "O"], ["O", "B-A"]], "sequence 1"),
        ("iobes", [["O", "S-A"], ["S-A", "E-A"]], "sequence 1"),
        ([("O", "B-A")], [["B-A", "O"], ["O", "B-A"]], "sequence 1"),
    ],
    ids=str,
)
@pytest.mark.parametrize("solver", ["auto", "averaged-perceptron"])
def test_training_data_that_break_the_constraints(constraints, y, where, solver):
    with pytest.raises(DataError, match=f"{where} .*constraints forbid"):
        one_thread(constraints=constraints, solver=solver).fit([[["x"], ["y"]], [["y"], ["x"]]], y)


@pytest.mark.parametrize("solver", ["lbfgs", "averaged-perceptron", "sgd"])
def test_every_learner_keeps_to_them(solver):
    crf = one_thread(constraints="iob2", solver=solver, penalty=NoPenalty() if solver[0] == "a" else None)
    crf.fit(X, Y)
    assert well_formed("iob2", crf.predict(NEW + X))
    hinge = one_thread(constraints="iob2", solver="sgd", loss="hinge").fit(X, Y)
    assert well_formed("iob2", hinge.predict(NEW + X))


def test_constraints_raise_the_likelihood():
    """The same weights are normalised over fewer labellings."""
    values = [one_thread(constraints=c).fit(X, Y).result_.value for c in (None, "iob2", "observed")]
    assert values[0] > values[1] > values[2]


def test_constraints_that_forbid_nothing_change_nothing():
    a, b = (one_thread(constraints=c).fit(X, Y) for c in (None, []))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


@pytest.mark.parametrize("constraints", ["iob2", "observed", [("O", "B-B")]], ids=str)
def test_files_and_pickles_keep_them(constraints, tmp_path):
    y = [["O" if label == "B-B" or label == "I-B" else label for label in row] for row in Y]
    y[0] = ["B-B"] * len(y[0])
    crf = one_thread(constraints=constraints).fit(X, y)
    crf.save(tmp_path / "m.crf")
    for again in (ChainCRF.load(tmp_path / "m.crf"), pickle.loads(pickle.dumps(crf))):
        for name in ("allowed", "allowed_start", "allowed_end"):
            before, after = getattr(crf.model_.field, name), getattr(again.model_.field, name)
            assert (before is None) == (after is None)
            assert before is None or (before == after).all()
        assert again.predict(X) == crf.predict(X)
        for a, b in zip(again.predict_marginals(X), crf.predict_marginals(X), strict=True):
            assert (a == b).all()


def test_constraints_grow_with_the_labels_of_batches():
    crf = one_thread(constraints="iob2", solver="averaged-perceptron")
    only_a = [n for n, row in enumerate(Y) if not any(label.endswith("-B") for label in row) and len(set(row)) > 1]
    assert only_a
    crf.partial_fit([X[n] for n in only_a], [Y[n] for n in only_a])
    assert "B-B" not in crf.classes_
    crf.partial_fit(X, Y)
    assert set(crf.classes_) == set(PHRASES)
    assert crf.model_.field.allowed.tolist() == make_constraints("iob2", sorted(PHRASES)).allowed.tolist()
    assert well_formed("iob2", crf.predict(NEW))
    with pytest.raises(ParameterError, match="name the constraints"):
        one_thread(constraints="observed", solver="sgd").partial_fit(X, Y)
    with pytest.raises(ParameterError, match=r"'I-B' .*does not occur"):
        one_thread(constraints=[("I-B", "O")], solver="sgd").partial_fit([X[n] for n in only_a], [Y[n] for n in only_a])
    named = one_thread(constraints=[("I-B", "O")], solver="sgd")
    named.partial_fit([X[n] for n in only_a], [Y[n] for n in only_a], classes=PHRASES)
    assert (~named.model_.field.allowed).sum() == 1


def test_the_schemes_that_are_documented():
    assert SCHEMES == ("iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou", "observed")
    assert all(f'"{scheme}"' in ChainCRF.__doc__ for scheme in SCHEMES)
