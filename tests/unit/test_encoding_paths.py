"""Every way to encode the same sequences gives the same data: on one thread or two, remembered or not, one or many."""

import random
from itertools import pairwise

import numpy as np
import pytest

from crfkit import ChainCRF, Template, _core
from crfkit.chain.encoding.vocabulary import Inputs
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


def names_of(entry):
    return entry if not isinstance(entry, dict) else [k if v == 0.5 else f"{k}:{v}" for k, v in entry.items()]


def test_threads_give_the_same_numbers_in_order_of_first_occurrence():
    encoders = [Inputs().encoder() for _ in range(4)]
    for encoder, n_threads in zip(encoders, (1, 2, 5), strict=False):
        encoder.add_all_items(SEQUENCES, n_threads)
    for sequence in SEQUENCES:
        encoders[-1].add_items(sequence)
    expected = list(dict.fromkeys(name for x in SEQUENCES for entry in x for name in names_of(entry)))
    assert all(encoder.table(np.arange(encoder.sizes[0])).to_list() == expected for encoder in encoders)
    one, *others = map(taken, encoders)
    assert all(other == one for other in others)


@pytest.mark.parametrize("hash_bits", [None, 6])
def test_threads_look_up_the_same_numbers(hash_bits):
    learning = Inputs(hash_bits=hash_bits).encoder()
    learning.add_all_items(SEQUENCES[:1000], 3)
    table = learning.table(np.arange(learning.sizes[0])[::2])
    found = []
    for n_threads in (1, 3):
        encoder = Inputs(hash_bits=hash_bits).encoder(table, table)
        encoder.add_all_items(SEQUENCES, n_threads)
        found.append(taken(encoder))
    assert found[0] == found[1]


@pytest.mark.parametrize("valued", [False, True])
def test_threads_renumber_alike(valued):
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 5, 200))])
    ids, values = rng.integers(0, 30, offsets[-1], dtype=np.int32), rng.random(offsets[-1])
    rank = np.where(rng.random(30) < 0.3, -1, rng.permutation(30)).astype(np.int32)
    expected = [
        sorted((rank[i], v if valued else 1.0) for i, v in zip(ids[a:b], values[a:b], strict=True) if rank[i] >= 0)
        for a, b in pairwise(offsets)
    ]
    for n_threads in (1, 2, 7):
        at, new, weights = offsets.copy(), ids.copy(), values.copy() if valued else None
        n = _core.renumber(at, new, weights, rank, n_threads)
        pairs = list(zip(new[:n], weights[:n] if valued else np.ones(n), strict=True))
        got = [pairs[a:b] for a, b in pairwise(at)]
        assert [sorted(row) for row in got] == expected
        assert [[i for i, _ in row] for row in got] == [[i for i, _ in row] for row in expected]


def test_labels_are_numbered_as_they_occur():
    rows = [["b", "a", "b"], (), ("日本", "naïve", "a")]
    names, ids, lengths = _core.number_labels(rows)
    assert names == ["b", "a", "日本", "naïve"]
    assert [names[i] for i in ids] == [label for row in rows for label in row]
    assert lengths.tolist() == [3, 0, 3]
    for other in ([["a", 1]], [["a", None]], [{"a"}], ["a"], [np.array(["a"])], [["\ud800"]], [[np.str_("a")]]):
        assert _core.number_labels(other) is None


def slow_hash(text):
    """The hash that tables of model files are built with."""
    mask, k1, k2 = 2**64 - 1, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03

    def fold(a, b):
        return (a * b & mask) ^ (a * b >> 64)

    state = k2 ^ (len(text) * k1 & mask)
    whole = len(text) // 8 * 8
    for k in range(0, whole, 8):
        state = fold(state ^ int.from_bytes(text[k : k + 8], "little"), k1)
    return fold(state ^ int.from_bytes(text[whole:], "little"), k2 ^ (state >> 32))


def test_hashes_of_texts_of_all_lengths():
    text = bytes(RANDOM.randrange(256) for _ in range(40))
    for n in range(41):
        assert _core.checksum(np.frombuffer(text[:n], dtype=np.uint8)) == slow_hash(text[:n])


def test_a_second_thread_ends_where_code_of_the_caller_runs():
    X = [*SEQUENCES[:300]]
    for k in (7, 150, 299):
        X[k] = [iter([f"only {k}", "w1"]), {"n": np.float32(2.0)}]
    Y = [[["only 7", "w1"], {"n": 2.0}] if k == 7 else x for k, x in enumerate(X)]
    Y[150], Y[299] = [["only 150", "w1"], {"n": 2.0}], [["only 299", "w1"], {"n": 2.0}]
    one, two = Inputs().encoder(), Inputs().encoder()
    one.add_all_items(X, n_threads=2)
    two.add_all_items(Y)
    assert taken(one) == taken(two)


def test_what_is_refused_is_named_with_a_second_thread_too():
    for wrong in ([["a", 3]], [{"a": float("nan")}], [["\ud800"]], 5):
        encoder = Inputs().encoder()
        with pytest.raises(_core.BadInput if wrong != 5 else DataError):
            encoder.add_all_items([*SEQUENCES[:300], wrong], n_threads=2)
    encoder = _core.Encoder(most=3)
    with pytest.raises(_core.BadInput, match="sequence 301, position 1: more than 3 different"):
        encoder.add_all_items([*([[["a"], ["b"]]] * 300), [["a"]], [["c"], ["d"]], [["e"]]], n_threads=2)


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
    monkeypatch.setattr("crfkit.chain.model.tagging.BLOCK", 100)
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
