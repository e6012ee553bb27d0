"""Labels come back as they went in, from predictions, files and pickles; what a file cannot hold is refused by fit."""

import enum
import fractions
import json
import math
import pickle
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import ChainCRF, GraphCRF
from crfkit.errors import DataError, ModelFileError, ParameterError
from crfkit.labels import from_json, label_array, sort_labels, to_json

X = [[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]]]
LABELS = {
    "strings": ["x", "y", "z"],
    "strings with NUL at the end": ["x\0", "x", "\0"],
    "bytes": [b"x", b"\xff\0", b""],
    "tuples": [("x", 1), ("y", 2), ("z", 3)],
    "tuples of different lengths": [("x",), ("x", "y"), ()],
    "nested tuples with bytes, None and bools": [((b"x", None), True), ((b"x", None), False), (("y",),)],
    "integers": [3, -1, 2],
    "large integers": [2**63, -1, 2**70],
    "floats": [0.5, -1.5, 2.0],
    "booleans": [True, False, True],
    "numpy strings": [np.str_("x"), np.str_("y"), np.str_("z")],
    "numpy bytes": [np.bytes_(b"x"), np.bytes_(b"y"), np.bytes_(b"z")],
    "numpy integers": [np.int64(3), np.int64(-1), np.int64(2)],
    "small numpy integers": [np.uint8(3), np.uint8(255), np.uint8(2)],
    "numpy floats": [np.float32(0.1), np.float32(0.5), np.float32(2)],
    "numpy booleans": [np.True_, np.False_, np.True_],
    "strings of both sorts": ["x", np.str_("y"), "z"],
}


def identical(a, b) -> bool:
    if isinstance(a, tuple):
        return type(b) is tuple and len(a) == len(b) and all(map(identical, a, b))
    return type(a) is type(b) and a == b


def rows_of(labels):
    a, b, c = labels
    return [[a, b, c], [b, a, c]]


def one_thread(**options):
    return ChainCRF(**{"n_threads": 1, "solver": "lbfgs", "tolerance": 1e-3} | options)


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_come_back_as_they_went_in(labels, tmp_path):
    y = rows_of(labels)
    crf = one_thread().fit(X, y)
    crf.save(tmp_path / "m.crf")
    loaded = ChainCRF.load(tmp_path / "m.crf")
    for model in (crf, loaded, pickle.loads(pickle.dumps(crf)), ChainCRF.load(tmp_path / "m.crf")):
        for row, expected in zip(model.predict(X), y, strict=True):
            assert all(map(identical, row, expected)), (row, expected)
        assert set(model.classes_.tolist()) == set(labels)
        assert {label for pair in model.transition_features_ for label in pair} <= set(labels)
        assert model.score(X, y) == 1.0
    loaded.save(tmp_path / "again.crf")
    assert (tmp_path / "again.crf").read_bytes() == (tmp_path / "m.crf").read_bytes()


@pytest.mark.parametrize("name", ["tuples", "bytes", "numpy integers", "strings with NUL at the end"])
def test_batches_and_warm_starts_know_the_labels_again(name):
    y = rows_of(LABELS[name])
    crf = one_thread(solver="sgd").partial_fit(X[:1], y[:1], classes=LABELS[name]).partial_fit(X, y)
    assert len(crf.classes_) == 3
    assert all(identical(a, b) for a, b in zip(crf.classes_, sort_labels(LABELS[name]), strict=True))
    warm = one_thread(warm_start=True).fit(X, y)
    assert warm.fit(X, y, X_dev=X, y_dev=y).predict(X) == y


def test_arrays_give_python_values():
    for labels in (np.array([3, 1, 2]), np.array(["x", "y", "z"]), np.array([0.5, 1.5, 2.5])):
        crf = one_thread().fit(X, [labels, labels[[1, 0, 2]]])
        assert crf.predict(X)[0] == labels.tolist()
        assert type(crf.predict(X)[0][0]) is type(labels.tolist()[0])
        assert crf.classes_.dtype.kind == labels.dtype.kind


Colour = enum.Enum("Colour", ["RED", "BLUE", "GREEN"])
Text = enum.Enum("Text", {"RED": "red", "BLUE": "blue", "GREEN": "green"}, type=str)
Point = namedtuple("Point", ["x", "y"])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, True, 2], r"one type, not \['bool', 'int'\]: there are True \(bool\) and 1 \(int\)"),
        ([1, 1.0, 2], r"one type, not \['float', 'int'\]"),
        ([1, "1", 2], r"one type, not \['int', 'str'\]"),
        (["a", b"a", "b"], r"one type, not \['bytes', 'str'\]"),
        ([np.int64(1), np.True_, 2], r"one type, not \['bool', 'int'\]"),
        ([(1,), (True,), (2,)], r"the labels \(1,\) and \(True,\) are equal in Python"),
        ([frozenset({1}), frozenset("b"), frozenset("c")], r"one type, not \['int', 'str'\]"),  # sets of labels
        ([None, None, None], r"no label is known"),
        (list(Colour), r"is of type Colour, .*labels can be strings, bytes, integers.*; use its value"),
        (list(Text), r"is of type Text, .*; use its value"),
        ([Point(1, 2), Point(2, 1), Point(0, 0)], r"Point\(x=1, y=2\) is of type Point"),
        ([fractions.Fraction(1, k) for k in (1, 2, 3)], r"Fraction\(1, 1\) is of type Fraction"),
        ([("a", {1}), ("b", {2}), ("c", {3})], r"not hashable"),
        (
            [("a", frozenset({1})), ("b", 2), ("c", 3)],
            r"frozenset\(\{1\}\), in the label \('a', .*is of type frozenset",
        ),
        ([["a"], ["b"], ["c"]], r"the label \['a'\] is not hashable; labels can be strings"),
        ([math.nan, 1.0, 2.0], r"a label is NaN"),
        ([(math.nan,), (1.0,), (2.0,)], r"a label is NaN"),
        (["\ud800", "a", "b"], r"'\\ud800' is not valid Unicode"),
        ([1j, 2j, 3j], r"is of type complex"),
        ([np.datetime64(k, "s") for k in range(3)], r"is of type datetime64"),
        ([np.longdouble(k) for k in range(3)], r"is of type longdouble"),
    ],
    ids=str,
)
def test_what_a_file_cannot_hold_is_refused_by_fit(labels, message):
    with pytest.raises(DataError, match=message):
        one_thread().fit(X, rows_of(labels))


def test_batches_of_different_kinds():
    crf = one_thread(solver="sgd").partial_fit(X, rows_of([1, 2, 3]))
    with pytest.raises(ParameterError, match=r"of all batches must be of one type: .*\['bool', 'int'\]"):
        crf.partial_fit(X, rows_of([True, False, True]))


SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    st.binary(max_size=3),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
)


@settings(max_examples=200)
@given(label=st.recursive(SCALARS, lambda inner: st.lists(st.none() | inner, max_size=3).map(tuple), max_leaves=6))
def test_every_label_that_is_allowed_survives_a_file(label):
    assert sort_labels([label]) == [label]
    assert identical(from_json(json.loads(json.dumps(to_json(label)))), label)
    assert identical(label_array([label, label]).tolist()[0], label)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"type": "tuple"},
        {"type": "tuple", "value": "ab"},
        {"type": "os.system", "value": "true"},
        {"type": "numpy.int8", "value": 1000},
        {"type": "numpy.int8", "value": 0.5},
        {"type": "bytes", "value": "€"},
        {"type": 3, "value": 3},
        {"type": "numpy.object_", "value": 3},
        {"type": "numpy.floatx", "value": 3},
        {"type": "numpy.bool", "value": 3},
    ],
    ids=str,
)
def test_labels_of_damaged_files(value):
    with pytest.raises(ModelFileError, match="is neither a string nor a number"):
        from_json(value)


# --- graphs


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([True, 2, 2], r"holds True \(a boolean\) and 2 \(a number\); labels are strings or numbers, of one kind"),
        ([1, "1", 2], r"holds [12] .*and '1'"),
        ([b"a", b"b", b"a"], r"holds b'a'|holds \|S1"),
    ],
    ids=str,
)
def test_labels_of_graphs_are_of_one_kind(labels, message):
    features, edges = np.eye(3), [[0, 1], [1, 2]]
    with pytest.raises(DataError, match=message):
        GraphCRF().fit([(features, edges)] * 2, [labels] * 2)
    with pytest.raises(DataError, match=message):
        GraphCRF().fit(features, [[label, label] for label in labels])


def test_graphs_of_different_kinds():
    with pytest.raises(DataError, match="some graphs have numbers as labels, others have booleans"):
        GraphCRF().fit([(np.eye(2), [[0, 1]])] * 2, [[True, False], [1, 2]])


def test_unknown_labels_among_strings_stay_unknown():
    crf = GraphCRF().fit([(np.eye(3), [[0, 1], [1, 2]])] * 2, [["a", math.nan, "b"], ["b", None, "a"]])
    assert crf.classes_.tolist() == ["a", "b"]
