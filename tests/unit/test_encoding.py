"""Inputs of every form become the same encoded data; what cannot be encoded is refused with its place."""

import math
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from optional import optional

from crfkit import Template
from crfkit.chain.data import SequenceData
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.fields.field import ChainField
from crfkit.errors import DataError


def decoded(corpus, data=None):
    """Per sequence and position, the sorted (attribute, value) pairs."""
    data, names = data or corpus.data, corpus.vocabulary.attributes.to_list()
    ids = data.attributes.tolist()
    values = [1.0] * len(ids) if data.values is None else data.values.tolist()
    positions = [
        sorted((names[ids[k]], values[k]) for k in range(a, b))
        for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)
    ]
    return [positions[a:b] for a, b in zip(data.starts[:-1], data.starts[1:], strict=True)]


def encode(X, **options):
    """Learns X with two labels that do not matter here."""
    y = [[k % 2 for k in range(len(x) if hasattr(x, "__len__") else x.shape[0])] for x in X]
    return learn([*X, [[], []]], [*y, [0, 1]], None, options.get("min_frequency", 1))


def items_of(item):
    return dict(decoded(encode([[item]]))[0][0])


# --- lists and dicts


def test_lists_of_strings():
    corpus = encode([[["a", "b"], ["c"]], [["b", "b"]], []])
    assert decoded(corpus)[:3] == [[[("a", 1.0), ("b", 1.0)], [("c", 1.0)]], [[("b", 1.0), ("b", 1.0)]], []]
    assert corpus.data.values is None


def test_any_iterable_of_strings_is_an_item():
    for item in (["a", "b"], ("a", "b"), {"a", "b"}, iter(["a", "b"]), np.array(["a", "b"])):
        assert items_of(item) == {"a": 1.0, "b": 1.0}


KINDS = [
    {"w": "the"},
    {"w": ""},
    {"": "x"},
    {"cap": True, "low": False},
    {"x": 0.5, "y": -2, "z": 0, "one": 1, "big": 1e300},
    {"w": "naïve", "語": "🙂", "a:b": "c:d"},
    {"nested": {"w": "the", "x": 2.0, "cap": True}},
    {"deep": {"er": {"est": {"w": "x", "v": 0.25}}}},
    {"list": ["a", "b"], "set": {"c"}, "empty": [], "none": {}},
    {"mixed": {"list": ["a"], "w": "b"}},
    {"np": np.float32(0.5), "int": np.int64(3), "bool": np.bool_(True)},
    {},
]


@pytest.mark.parametrize("item", KINDS, ids=str)
def test_dicts_are_read_as_crfsuite_reads_them(item):
    pycrfsuite = optional("pycrfsuite")
    assert items_of(item) == pycrfsuite.ItemSequence([item]).items()[0]


scalars = st.one_of(st.text("ab:é", max_size=3), st.booleans(), st.integers(-5, 5), st.floats(-5, 5))
values = st.recursive(
    scalars, lambda inner: st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, max_size=3), max_leaves=6
)


@given(item=st.dictionaries(st.text("wcn", min_size=1, max_size=3), values, max_size=4))
def test_random_dicts_are_read_as_crfsuite_reads_them(item):
    pycrfsuite = optional("pycrfsuite")
    found = decoded(encode([[item]]))[0][0]
    expected = pycrfsuite.ItemSequence([item]).items()[0]
    # CRFsuite's view is a dict, so of attributes with the same name it shows the last
    assert {name for name, _ in found} == set(expected)
    assert set(expected.items()) <= set(found)


def test_values_start_in_the_middle_of_the_data():
    corpus = encode([[["a"], {"b": 1.0}, {"a": 0.5}, ["b"]]])
    assert decoded(corpus)[0] == [[("a", 1.0)], [("b", 1.0)], [("a", 0.5)], [("b", 1.0)]]


# --- matrices


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [float, np.float32, int, bool])
def test_matrices_equal_dicts(make, dtype):
    rng = np.random.default_rng(0)
    dense = [(rng.integers(-2, 3, (n, 6)) * (rng.random((n, 6)) < 0.5)).astype(dtype) for n in (3, 0, 1, 5)]
    dicts = [[{f"x{j}": float(v) for j, v in enumerate(row) if v} for row in matrix] for matrix in dense]
    y = [["a", "b", "c"], [], ["b"], ["a", "a", "c", "b", "a"]]
    a = learn([make(matrix) for matrix in dense], y, None, 1)
    b = learn(dicts, y, None, 1)
    assert decoded(a) == decoded(b)
    assert a.data.labels.tolist() == b.data.labels.tolist()
    assert a.classes.tolist() == b.classes.tolist() == ["a", "b", "c"]
    sizes = [
        ChainField.from_data(c.data, 3, len(c.vocabulary.attributes), all_states=False, all_transitions=False).size
        for c in (a, b)
    ]
    assert sizes[0] == sizes[1]
    # and again when looked up instead of learned
    assert decoded(a, a.vocabulary.encode([make(matrix) for matrix in dense])) == decoded(a)


def test_a_three_dimensional_array_is_a_list_of_matrices():
    X = np.arange(12.0).reshape(2, 3, 2)
    corpus = learn(X, np.array([[0, 1, 0], [1, 1, 0]]), None, 1)
    assert decoded(corpus)[0] == [[("x1", 1.0)], [("x0", 2.0), ("x1", 3.0)], [("x0", 4.0), ("x1", 5.0)]]


def test_matrices_that_cannot_be():
    good, y = np.ones((2, 3)), [[0, 1], [0, 1]]
    with pytest.raises(DataError, match="sequence 1 has 4 features; expected 3"):
        learn([good, np.ones((2, 4))], y, None, 1)
    with pytest.raises(DataError, match=r"sequence 1 has shape \(2,\)"):
        learn([good, np.ones(2)], y, None, 1)
    with pytest.raises(DataError, match="sequence 1 is list"):
        learn([good, [["a"], ["b"]]], y, None, 1)
    with pytest.raises(DataError, match="must be a string"):
        learn([[["a"], ["b"]], good], y, None, 1)
    vocabulary = learn([good, good], y, None, 1).vocabulary
    with pytest.raises(DataError, match="has 2 features; expected 3"):
        vocabulary.encode([np.ones((1, 2))])
    with pytest.raises(DataError, match="list"):
        vocabulary.encode([[["x0"]]])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix])
def test_matrices_must_be_finite(make, bad):
    matrix = np.ones((3, 2))
    matrix[2, 1] = bad
    with pytest.raises(DataError, match=f"sequence 1, position 2: feature 1 is {bad}"):
        learn([np.ones((1, 2)), make(matrix)], [[0], [0, 1, 0]], None, 1)


# --- templates


def test_rows_for_a_template():
    template = Template("U%x[0,0]\nU%x[0,1]\nB1:%x[0,1]\nB")
    corpus = learn([[("a", "b"), ["c", "d"]]], [["x", "y"]], template, 1)
    assert decoded(corpus)[0] == [[("Ua", 1.0), ("Ub", 1.0)], [("Uc", 1.0), ("Ud", 1.0)]]
    assert corpus.data.pair_offsets.tolist() == [0, 0, 1]
    assert corpus.vocabulary.pair_attributes.to_list() == ["B1:d"]
    one = learn([["a", "b"]], [["x", "y"]], Template("U%x[0,0]"), 1)
    assert decoded(one)[0] == [[("Ua", 1.0)], [("Ub", 1.0)]]


def test_rows_that_cannot_be():
    template = Template("U%x[0,0]\n\nU%x[0,2]")
    for X, message in (
        ([[("a", "b")]], "sequence 0, position 0: line 3 of the template names column 2, but there are only 2"),
        ([[("a", "b", "c"), ("a", "b")]], "sequence 0, position 1: 2 column"),
        ([[("a", "b", 3)]], "sequence 0, position 0: column 2 is int, not str"),
        ([[{"w": "a"}]], "sequence 0, position 0"),
        ([[7]], "sequence 0, position 0: a token must be a list of column strings, or a string, not int"),
        (["abc"], "not the str 'abc'"),
        ([5], "must be a list of tokens, not int"),
    ):
        with pytest.raises(DataError, match=message):
            learn(X, [["x"] * len(x) if hasattr(x, "__len__") else ["x"] for x in X], template, 1)


# --- frequency cut, unknown attributes, order


def test_min_frequency_counts_occurrences():
    X = [[["a", "b"], ["a", "c"], ["a", "b", "d", "d"]]]
    y = [["x", "y", "x"]]
    for cut, kept in ((1, "abcd"), (2, "abd"), (3, "a"), (4, "")):
        corpus = learn(X, y, None, cut)
        assert sorted(corpus.vocabulary.attributes.to_list()) == list(kept)
        assert [[name for name, _ in p] for p in decoded(corpus)[0]] == [
            sorted(name for name in p if name in kept) for p in X[0]
        ]


def test_min_frequency_keeps_values_with_their_attributes():
    corpus = learn([[{"a": 2.0, "rare": 3.0}, {"a": 4.0}]], [["x", "y"]], None, 2)
    assert decoded(corpus)[0] == [[("a", 2.0)], [("a", 4.0)]]


def test_min_frequency_cuts_pair_attributes_too():
    template = Template("U%x[0,0]\nB:%x[0,0]")
    corpus = learn([["a", "b", "b", "c"]], [["x", "y", "x", "y"]], template, 2)
    assert corpus.vocabulary.attributes.to_list() == ["Ub"]
    assert corpus.vocabulary.pair_attributes.to_list() == ["B:b"]
    assert corpus.data.pair_offsets.tolist() == [0, 0, 1, 2, 2]


def test_unknown_attributes_are_dropped():
    corpus = encode([[["a", "b"], ["b"]]])
    data = corpus.vocabulary.encode([[["z", "b", "y"], {"a": 0.5, "q": 9.0}, []], []])
    assert decoded(corpus, data) == [[[("b", 1.0)], [("a", 0.5)], []], []]
    assert data.labels is None


def test_frequent_attributes_come_first_within_the_wide_and_the_narrow():
    X = [[["often", f"once{k}", *(["pair"] if k < 2 else [])] for k in range(6)]]
    corpus = learn(X, [["x", "y"] * 3], None, 1)
    assert corpus.vocabulary.attributes.to_list() == ["often", "pair", *(f"once{k}" for k in range(6))]


@given(st.lists(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=4), min_size=1, max_size=5))
def test_learning_and_looking_up_agree(X):
    corpus = encode(X)
    data = corpus.vocabulary.encode([*X, [[], []]])
    assert decoded(corpus, data) == decoded(corpus)
    assert decoded(corpus)[:-1] == [[sorted((name, 1.0) for name in item) for item in x] for x in X]
    for t in range(data.n_positions):
        ids = data.attributes[data.offsets[t] : data.offsets[t + 1]]
        assert (np.diff(ids) >= 0).all()


# --- items that cannot be


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"w": None}, "'w' is a NoneType; expected"),
        ({"w": object()}, "'w' is a object"),
        ({"w": b"\xff"}, "bytes that are not UTF-8"),
        ({"w": 1j}, "'w' is a complex"),
        ({"w": [1, 2]}, "'w' holds a int"),
        ({"w": {"v": None}}, "'w:v' is a NoneType"),
        ({"w": 10**400}, "'w' is"),
        ({3: "x"}, "the key 3 is not a string"),
        ({"w": {3: "x"}}, "the key 3 is not a string"),
        ({"w": math.nan}, "'w' is nan; feature values must be finite"),
        ({"n": {"w": -math.inf}}, "'n:w' is -inf"),
        ([3], "must be a string, not int"),
        ([("a", 1.0)], "must be a string, not tuple; use a dict"),
        ("word", "not the str 'word'"),
        (b"word", "not the bytes"),
        (3, "must be a list of attribute strings or a dict, not int"),
        (None, "not NoneType"),
        (["\ud800"], "not valid Unicode"),
        ({"\ud800": 1.0}, "not valid Unicode"),
    ],
)
def test_items_that_cannot_be_encoded_are_named(item, message):
    with pytest.raises(DataError, match="sequence 1, position 1: ") as caught:
        learn([[["a"]], [["b"], item]], [["x"], ["x", "y"]], None, 1)
    assert message in str(caught.value)


@pytest.mark.parametrize("item", ["{}; item['self'] = item", "{'w': {'v': None}}"])
def test_refusing_nested_dicts_leaves_the_interpreter_as_it_was(item):
    """In a process of its own: a depth counter that is not set back would end this one."""
    script = f"""
from crfkit.chain.encoding.sequences import learn
item = {item}
for _ in range(1100):
    try:
        learn([[item, item]], [["x", "y"]], None, 1)
    except ValueError:
        pass
    else:
        raise SystemExit("accepted")
def depth(n):
    return n and depth(n - 1)
depth(500)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-300:]


@pytest.mark.parametrize("X", [[3], [None], ["text"], [[["a"]], 3.5]])
def test_sequences_that_are_not_lists(X):
    with pytest.raises(DataError, match="sequence"):
        learn(X, [["x"]] * len(X), None, 1)


@pytest.mark.parametrize("X", [None, 3])
def test_x_that_is_not_a_list(X):
    with pytest.raises(DataError, match="X must be a list of sequences"):
        learn(X, [["x", "y"]], None, 1)
    with pytest.raises(DataError, match="X must be a list of sequences"):
        encode([[["a"]]]).vocabulary.encode(X)


TOKENS = [{"word": "the", "tag": "DT"}, {"the", "DT"}, frozenset({"the"})]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: type(token).__name__)
def test_with_a_template_tokens_are_columns(token):
    """The keys of a dict were once taken for the columns."""
    template = Template("U%x[0,0]\nB")
    message = (
        r"sequence 1, position 1: with a template a token is a list of columns, not a \w+, .*leave the template out"
    )
    with pytest.raises(DataError, match=message):
        learn([[["a"], ["b"]], [["a"], token]], [["x", "y"]] * 2, template, 1)
    corpus = learn([[["a"], ["b"]]], [["x", "y"]], template, 1)
    with pytest.raises(DataError, match=message):
        corpus.vocabulary.encode([[["a"]], (["a"], token)])


# --- labels


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["x", "y", "x"]], "sequence 0 has 2 items but 3 labels"),
        ([["x"]], "sequence 0 has 2 items but 1 labels"),
        ([], "1 sequences but 0 label sequences"),
        ([["x", "y"], ["x"]], "1 sequences but 2 label sequences"),
        (["xy"], "the labels are the string 'xy'; expected a list"),
        ([["x", 1]], r"labels must be of one type, not \['int', 'str'\]"),
        ([["x", None]], "labels must be of one type"),
        ([[math.nan, 1.0]], "a label is NaN"),
        ([["x", "x"]], "every position has the label 'x'; at least two"),
        ([[1, 1]], "every position has the label 1; at least two"),
        (None, "label"),
        ([None], "label"),
        ([3], "label"),
    ],
)
def test_labels_that_cannot_be(y, message):
    with pytest.raises(DataError, match=message):
        learn([[["a"], ["b"]]], y, None, 1)


def test_nothing_to_learn_from():
    with pytest.raises(DataError, match="no sequences"):
        learn([], [], None, 1)
    with pytest.raises(DataError, match="all sequences are empty"):
        learn([[], []], [[], []], None, 1)


@pytest.mark.parametrize(
    "names", [["b", "a", "c"], [3, -1, 2], [1.5, 0.5, 2.5], [True, False, True], ["é", "Z", "a"]], ids=str
)
def test_labels_are_sorted_and_keep_their_type(names):
    for y in ([names], [np.array(names)], [tuple(names)], iter([iter(names)])):
        corpus = learn([[["a"]] * 3], y, None, 1)
        assert corpus.classes.tolist() == sorted(set(names))
        assert [type(label) for label in corpus.classes.tolist()] == [type(names[0])] * len(set(names))
        assert [corpus.classes[j].item() for j in corpus.data.labels] == names


# --- what was given stays as it was


def test_inputs_are_not_changed():
    unsorted = scipy.sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), (2, 3))
    dense = np.array([[1.0, 0.0, 2.0]])
    kept = unsorted.indices.copy(), unsorted.data.copy(), dense.copy()
    learn([unsorted, dense], [[0, 1], [1]], None, 1)
    assert unsorted.indices.tolist() == kept[0].tolist()
    assert unsorted.data.tolist() == kept[1].tolist()
    assert (dense == kept[2]).all()
    for array in (unsorted.data, unsorted.indices, dense):
        assert array.flags.writeable


def test_encoded_data_do_not_freeze_the_callers_arrays():
    weights, labels = np.array([1.0]), np.array([0, 1], dtype=np.int32)
    data = SequenceData([0, 2], [0, 1, 2], [0, 0], labels=labels).with_weights(weights)
    assert not data.weights.flags.writeable
    assert weights.flags.writeable
    assert labels.flags.writeable


# --- the container


@pytest.mark.parametrize(
    "parts",
    [
        {"starts": [0, 3]},
        {"starts": [1, 2]},
        {"starts": [0, 2, 1, 2]},
        {"starts": []},
        {"offsets": [0, 1, 3]},
        {"offsets": [0, 2, 1]},
        {"values": [1.0]},
        {"values": [1.0, math.nan]},
        {"labels": [0]},
        {"labels": [0, 1, 0]},
        {"weights": [1.0, 1.0]},
        {"weights": [-1.0]},
        {"weights": [math.inf]},
        {"pair_offsets": [0, 0, 0]},
        {"pair_attributes": []},
        {"pair_offsets": [0, 0], "pair_attributes": []},
        {"pair_offsets": [0, 0, 1], "pair_attributes": []},
    ],
    ids=str,
)
def test_arrays_that_contradict_each_other_are_refused(parts):
    good = {"starts": [0, 2], "offsets": [0, 1, 2], "attributes": [0, 1]}
    SequenceData(**good)
    with pytest.raises(DataError):
        SequenceData(**(good | parts))


def test_split_gives_each_sequence_its_rows():
    data = SequenceData([0, 2, 2, 3], [0, 0, 0, 0], [])
    parts = [part.tolist() for part in data.split(np.array([5, 6, 7]))]
    assert parts == [[5, 6], [], [7]]
    assert list(chain.from_iterable(parts)) == [5, 6, 7]
    assert len(data) == 3
    assert data.lengths.tolist() == [2, 0, 1]
