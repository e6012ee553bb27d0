"""Every way to encode the same sequences gives the same data: on one thread or two, remembered or not, one or many."""

import random

import numpy as np
import pytest

from crfkit import ChainCRF, Template, _core
from crfkit.encoders.vocabulary import Inputs
from crfkit.errors import DataError

RANDOM = random.Random(0)
WORDS = [f"w{k}" for k in range(40)] + ["naïve", "日本", "", "a" * 70]


def item():
    names = [RANDOM.choice(WORDS) for _ in range(RANDOM.randrange(6))]
    return RANDOM.choice(
        [lambda: names, lambda: tuple(names), lambda: dict.fromkeys(names, "x"), lambda: dict.fromkeys(names, 0.5)]
    )()


SEQUENCES = [[item() for _ in range(RANDOM.randrange(5))] for _ in range(3000)]


def taken(encoder):
    return [None if array is None else array.tolist() for array in encoder.take()]


def test_a_second_thread_gives_the_same_numbers():
    one, two, each = (Inputs().encoder() for _ in range(3))
    one.add_all_items(SEQUENCES)
    two.add_all_items(SEQUENCES, overlap=True)
    for sequence in SEQUENCES:
        each.add_items(sequence)
    assert taken(one) == taken(two) == taken(each)
    order = np.arange(one.sizes[0])
    assert one.table(order).to_list() == two.table(order).to_list() == each.table(order).to_list()


def test_a_second_thread_ends_where_code_of_the_caller_runs():
    X = [*SEQUENCES[:300]]
    for k in (7, 150, 299):
        X[k] = [iter([f"only {k}", "w1"]), {"n": np.float32(2.0)}]
    Y = [[["only 7", "w1"], {"n": 2.0}] if k == 7 else x for k, x in enumerate(X)]
    Y[150], Y[299] = [["only 150", "w1"], {"n": 2.0}], [["only 299", "w1"], {"n": 2.0}]
    one, two = Inputs().encoder(), Inputs().encoder()
    one.add_all_items(X, overlap=True)
    two.add_all_items(Y)
    assert taken(one) == taken(two)


def test_what_is_refused_is_named_with_a_second_thread_too():
    for wrong in ([["a", 3]], [{"a": float("nan")}], [["\ud800"]], 5):
        encoder = Inputs().encoder()
        with pytest.raises(_core.BadInput if wrong != 5 else DataError):
            encoder.add_all_items([*SEQUENCES[:300], wrong], overlap=True)
    encoder = _core.Encoder(most=3)
    with pytest.raises(_core.BadInput, match="sequence 301, position 1: more than 3 different"):
        encoder.add_all_items([*([[["a"], ["b"]]] * 300), [["a"]], [["c"], ["d"]], [["e"]]], overlap=True)


def test_templates_remember_what_cells_give():
    template = Template("U0:%x[0,0]\nU1:%x[-2,0]/%x[0,1]\nU2:%x[-1,0]/%x[0,0]/%x[1,1]\nU3:%x[0,0]%x[1,0]%x[2,0]%x[3,0]"
                        "\nU4:fixed\nU5:%x[70,0]\nB0:%x[0,1]\nB")  # fmt: skip
    rows = [[(RANDOM.choice("abc"), RANDOM.choice("xy")) for _ in range(n % 6)] for n in range(60)]
    encoder = Inputs(template).encoder()
    for sequence in rows:
        encoder.add_rows(sequence)
    starts, offsets, ids, _, pair_offsets, pair_ids, _ = encoder.take()
    n, n_pairs = encoder.sizes
    names = encoder.table(np.arange(n)).to_list()
    pair_names = encoder.table(np.arange(n_pairs), pairs=True).to_list()
    expected = [found for sequence in rows for found in template.expand([list(row) for row in sequence])]
    at_start = set(starts[:-1].tolist())
    for t, (unigrams, bigrams) in enumerate(expected):
        assert [names[i] for i in ids[offsets[t] : offsets[t + 1]]] == unigrams
        pairs = [pair_names[i] for i in pair_ids[pair_offsets[t] : pair_offsets[t + 1]]]
        assert pairs == ([] if t in at_start else bigrams)


def test_one_sequence_is_tagged_as_many_are(tmp_path):
    X = [[[RANDOM.choice("abcdef"), RANDOM.choice("xy")] for _ in range(1 + n % 7)] for n in range(400)]
    y = [[f"L{ord(item[0]) % 3}" for item in x] for x in X]
    model = ChainCRF(max_iterations=5, tolerance=1e9).fit(X, y).model_
    assert [model.predict([x])[0] for x in X[:20]] == model.predict(X)[:20]
    with pytest.raises(DataError, match="sequence 0, position 1: an attribute in a list must be a string"):
        model.predict([[["a"], [3]]])
    assert model.predict([X[0]]) == model.predict(X)[:1]


def test_files_are_tagged_alike_on_one_thread_and_on_two(tmp_path, monkeypatch):
    monkeypatch.setattr("crfkit.models.chain_tagging.BLOCK", 100)
    X = [[(RANDOM.choice("abcdef"), RANDOM.choice("xy")) for _ in range(1 + n % 7)] for n in range(100)]
    y = [[f"L{ord(row[0]) % 3}" for row in x] for x in X]
    model = ChainCRF(Template("U0:%x[0,0]\nU1:%x[-1,1]\nB"), max_iterations=5, tolerance=1e9).fit(X, y).model_
    path = tmp_path / "data.txt"
    path.write_text("".join("".join(f"{a} {b}\n" for a, b in x) + "\n" for x in X))
    path_wrong = tmp_path / "wrong.txt"
    path_wrong.write_text(path.read_text() + "a x more\n\n")
    outputs = []
    for n in (1, 2):
        object.__setattr__(model, "n_threads", n)
        model.__dict__.pop("inference", None)
        outputs.append(b"".join(model.tag_columns(path)))
        with pytest.raises(DataError, match=r"3 columns, but the lines before have 2") as error:
            list(model.tag_columns(path_wrong))
        assert error.value.line == path.read_text().count("\n") + 1
    assert outputs[0] == outputs[1]
    labels = [line.split()[-1].decode() for line in outputs[0].split(b"\n") if line]
    assert labels == [label for row in model.predict(X) for label in row]
