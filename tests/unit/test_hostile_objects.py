"""Objects whose reading runs code of the caller's: it may change what it is part of, or use the same tagger."""

import gc
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import ChainCRF, Graph, StructureLearner, _core
from crfkit.compat.pycrfsuite import ItemSequence
from crfkit.convert import crfsuite
from crfkit.errors import DataError, ParameterError

X = [[{"w": "the", "n": 0.5}, {"w": "cat", "n": 1.5}], [{"w": "a", "n": 0.1}, {"w": "dog"}, {"w": "barks", "n": 2.0}]]
Y = [["D", "N"], ["D", "N", "V"]]
ROWS = [[("the", "D"), ("cat", "N")], [("a", "D"), ("dog", "N"), ("barks", "V")]]


@pytest.fixture(scope="module")
def crf():
    return ChainCRF().fit(X, Y)


@pytest.fixture(params=["model", "file"])
def tagger(crf, request):
    if request.param == "model":
        return crf.model_.tagger
    return _core.Tagger.open_crfsuite(crfsuite.to_bytes(crf.model_))


def name(k):
    """A text that nobody else holds."""
    return f"attribute {k} with a name of its own" + "é" * (k % 2)


class Number:
    """A number that does something when it is asked for."""

    def __init__(self, action, value=1.0):
        self.action, self.value = action, value

    def __float__(self):
        self.action()
        return self.value


class Names(list):
    """A list that does something when it is read."""

    action = None

    def __iter__(self):
        self.action()
        return iter(["x", "y"])


def changed_while_read():
    """Yield (sequence, the same in plain objects)."""
    many = {name(k): float(k) for k in range(20)}
    for own in (True, False):
        item = dict(many)
        sequence = [item, ["b"]]
        item["z"] = Number(item.clear if own else sequence.clear)
        yield sequence, [{**many, "z": 1.0}, ["b"]]
    outer = {"a": {name(1): 1.0}}
    outer["a"]["b"] = Number(outer.clear)
    outer["a"]["c"] = 2.0
    yield [outer], [{"a": {name(1): 1.0, "b": 1.0, "c": 2.0}}]
    names = Names()
    item = {name(1): 1.0, "l": names, name(2): 3.0}
    names.action = item.clear
    yield [item], [{name(1): 1.0, "l": ["x", "y"], name(2): 3.0}]
    names = Names()
    sequence = [[name(1)], names, [name(2)]]
    names.action = sequence.clear
    yield sequence, [[name(1)], ["x", "y"], [name(2)]]


@pytest.mark.parametrize("k", range(5))
def test_what_counts_is_what_was_given(k, tagger):
    given, plain = list(changed_while_read())[k]
    assert ItemSequence(given).items() == ItemSequence(plain).items()
    given, plain = list(changed_while_read())[k]
    assert tagger.tag(given) == tagger.tag(plain)


def test_a_dict_that_grows_ends():
    item = {}

    def grow():
        item[name(len(item))] = Number(grow)

    item["first"] = Number(grow)
    assert ItemSequence([item]).items() == [{"first": 1.0}]


def test_rows_that_change():
    crf = ChainCRF(template="U00:%x[0,0]\nB\nB01:%x[0,0]").fit(ROWS, Y)
    rows, names = [[name(k), name(k + 1)] for k in range(8)], Names()
    names.action = rows.clear
    rows.insert(4, names)
    assert len(crf.model_.tagger.tag(rows)) == 9
    rows, names = [[name(k), name(k + 1)] for k in range(8)], Names()
    names.action = rows[0].clear
    rows.insert(4, names)
    with pytest.raises(_core.BadInput, match="position 1: 2 columns, but the tokens before have 0"):
        crf.model_.tagger.tag(rows)


@pytest.mark.parametrize("n", [0, 1, 50, 5000])
def test_a_number_that_uses_the_same_tagger(n, tagger):
    plain = [{"w": "the", "outer": {"n": 0.5}, "n": 0.5}, {"w": "cat", "n": 1.5}]
    expected, log_z = tagger.tag(plain), tagger.log_partition
    number = Number(lambda: tagger.tag([{"w": "dog", "outer": {"k": name(3)}}] * n), 0.5)
    assert tagger.tag([{"w": "the", "outer": {"n": number}, "n": number}, {"w": "cat", "n": 1.5}]) == expected
    assert tagger.length == 2
    assert tagger.log_partition == log_z


def test_threads_with_one_tagger(tagger):
    expected = {k: tagger.tag(x) for k, x in enumerate(X)}
    wrong = []

    def work(k):
        for _ in range(300):
            x = (({"w": w, **({"n": Fraction(n)} if n else {})} for w, n in [(d["w"], d.get("n"))]) for d in X[k])
            try:
                if tagger.tag(next(item) for item in x) != expected[k]:
                    wrong.append(k)
                tagger.tag((f"w:{d['w']}" for _ in "1") for d in X[k])
            except Exception as error:
                wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_labels_cannot_be_taken_away(crf, tagger):
    expected = tagger.tag(X[0])
    tagger.labels.clear()
    assert tagger.tag(X[0]) == expected
    names = list(crf.model_.class_list)
    own = _core.Tagger(crf.model_.vocabulary.encoder(), crf.model_.inference.decoder, names, False)
    names.clear()
    assert own.tag(X[0]) == expected


def test_errors_of_the_caller_are_passed_on(tagger):
    def features():
        yield {"w": "the"}
        raise KeyError("no such column")

    def interrupt():
        raise KeyboardInterrupt

    for sequence in (features(), [{"w": "a"}, features()]):
        with pytest.raises(KeyError, match="no such column"):
            tagger.tag(sequence)
        assert tagger.length == 0
    with pytest.raises(KeyboardInterrupt):
        tagger.tag([{"n": Number(interrupt)}])


class Unprintable:
    def __repr__(self):
        return "\ud800"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({Unprintable(): 1.0}, r"the key \\ud800 is not a string"),
        ({"n": 10**400}, "'n' is a whole number that is too large for a float"),
        ({"n": 1j}, "'n' is a complex; expected"),
        ({"n": np.zeros(3)}, "'n' is a numpy.ndarray; expected"),
        ({"n": Number(lambda: None, float("nan"))}, "'n' is nan"),
        ({"n": Number(lambda: None, "text")}, "'n' is a Number; expected"),
        ({"\ud800": 1.0}, "lone surrogate"),
    ],
)
def test_what_is_no_value_is_named(item, reason, tagger):
    with pytest.raises(_core.BadInput, match=f"sequence 0, position 1: .*{reason}"):
        tagger.tag([["w"], item])


def test_numbers_of_other_types(tagger):
    tagger.set([{"n": 0.5, "w:the": 1}])
    expected = tagger.marginals()
    for number in (np.float32(0.5), Fraction(1, 2), np.array(0.5)):
        tagger.set([{"n": number, "w:the": np.int64(1)}])
        assert_allclose(tagger.marginals(), expected, rtol=0)


def test_dicts_that_contain_themselves(tagger):
    item = {"n": Number(lambda: None)}
    item["again"] = item
    with pytest.raises(ValueError, match="contains itself"):
        tagger.tag([item])


def test_none_is_no_sequence(crf, tagger):
    for call in (tagger.tag, tagger.set, ItemSequence, lambda x: crf.predict([x])):
        with pytest.raises(ValueError, match="a sequence must be a list of items, not NoneType"):
            call(None)


class Naming(type):
    """A class whose name does something when it is asked for."""

    action = None

    @property
    def __name__(cls):
        cls.action()
        return "strange"


def test_types_whose_names_free_what_is_read():
    for make in (
        lambda strange: [{name(1): 1.0, name(2): strange()}],
        lambda strange: [{name(1): [name(2), strange()]}],
        lambda strange: [[name(1), strange()]],
        lambda strange: [[name(1)], strange()],
    ):
        Strange = Naming("Strange", (), {})
        sequence = make(Strange)
        Strange.action = lambda sequence=sequence: (sequence.clear(), gc.collect(), [name(k) for k in range(99)])
        with pytest.raises(DataError, match="strange"):
            ItemSequence(sequence)


def test_garbage_that_frees_what_is_read(tagger):
    """Making a list of a set may run the garbage collector, whose finalisers are code of the caller's."""

    class Garbage:
        def __init__(self, action):
            self.me, self.action = self, action

        def __del__(self):
            self.action()

    thresholds = gc.get_threshold()
    try:
        for members in ({name(1)}, frozenset({name(1)})):
            for _ in range(20):
                item = {name(k): float(k) for k in range(5)}
                sequence = [item, members]
                item["set"] = members
                gc.set_threshold(1, 1, 1)
                Garbage(lambda item=item, sequence=sequence: (item.clear(), sequence.clear()))
                found = ItemSequence(sequence).items()
                gc.set_threshold(*thresholds)
                assert all(set(position) <= {*map(name, range(5)), f"set:{name(1)}"} for position in found)
    finally:
        gc.set_threshold(*thresholds)


def test_a_class_that_learns_to_be_read(tagger):
    """What cannot be iterated when it is looked at first can be when its turn comes."""

    class Late:
        pass

    def learn():
        Late.__iter__ = lambda self: iter([name(1)])

    with pytest.raises(DataError, match="not Late"):
        tagger.tag([Late(), {"n": Number(learn)}])
    assert tagger.length == 0


def test_sets_of_names_are_lists_of_names():
    assert ItemSequence([{"a"}, frozenset("b"), {"k": {"c"}}]).items() == [{"a": 1.0}, {"b": 1.0}, {"k:c": 1.0}]
    with pytest.raises(DataError, match="position 0: an attribute in a list must be a string, not int"):
        ItemSequence([{1}])


# --- numbers that are none, graphs that no machine holds


class Unspeakable:
    def __repr__(self):
        raise IndexError("nothing to show")


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": nested(100_000)},
        {"max_iterations": nested(100_000)},
        {"penalty": Unspeakable()},
        {"n_threads": Unspeakable()},
    ],
)
def test_options_that_cannot_be_printed(options):
    with pytest.raises(ParameterError, match=r"not an object of type .* that cannot be printed"):
        ChainCRF(**options).fit(X, Y)


def test_labels_that_cannot_be_printed():
    labels = np.array([[0, 1], [1, Unspeakable()]], dtype=object)
    with pytest.raises(DataError, match="holds 1 and an object of type Unspeakable that cannot be printed"):
        StructureLearner().fit(labels)


def test_weights_that_are_no_numbers():
    with pytest.raises(DataError, match="sample_weight must be numbers"):
        ChainCRF().fit(X, Y, sample_weight=["x", 1.0])


@pytest.mark.parametrize(
    "build", [lambda: Graph.grid((100_000, 100_000)), lambda: Graph.complete(200_000), lambda: Graph.path(10**12)]
)
def test_graphs_that_are_too_large(build):
    with pytest.raises(ParameterError, match="possible"):
        build()


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_a_complete_graph_has_the_edges_of_the_upper_triangle(n):
    assert Graph.complete(n).edges.tolist() == [[i, j] for i in range(n) for j in range(i + 1, n)]
