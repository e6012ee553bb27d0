"""Models of CRF++: read from text and binary files, written as text, damaged."""

import random
import struct
import time

import numpy as np
import pytest
from crfpp_cases import LABELS, NAMES, TEMPLATES, binary_model, starts_of, text_model, weights_of
from numpy.testing import assert_allclose

from crfkit import ChainCRF
from crfkit.convert import crfpp
from crfkit.convert.crfpp_model import read_crfpp_model
from crfkit.convert.kinds import CRFPP, CRFPP_TEXT, recognise
from crfkit.errors import CrfkitError, LimitError, ModelFileError, ParameterError

ROWS = [[("a", "n"), ("bé", "v"), ("a", "n"), ("zzz", "n")], [("bé", "v")]]


def score_by_hand(labels, rows, names, weights, templates=TEMPLATES):
    """The score of a labelling as CRF++ adds it up."""
    starts = dict(zip(names, starts_of(names)[0], strict=True))
    ids, L = [LABELS.index(label) for label in labels], len(LABELS)
    total = 0.0
    for t, (word, tag) in enumerate(rows):
        before = rows[t - 1][0] if t else "_B-1"
        for name in (f"U00:{before}", f"U01:{word}/{tag}"):
            if name in starts:
                total += weights[starts[name] + ids[t]]
        if t:
            for line in templates:
                name = {"B": "B", "B01:%x[0,1]": f"B01:{tag}"}.get(line.strip())
                if name in starts:
                    total += weights[starts[name] + ids[t - 1] * L + ids[t]]
    return total


@pytest.mark.parametrize("make", [text_model, binary_model])
def test_a_model_scores_as_crfpp_does(make):
    model = crfpp.read(make())
    weights = weights_of(starts_of(NAMES)[1])
    assert model.class_list == list(LABELS)
    assert model.vocabulary.n_features == 2
    data = model.encode(ROWS)
    labels, scores = model.inference.decode(data)
    for rows, ids, score in zip(ROWS, data.split(labels), scores, strict=True):
        assert score == pytest.approx(score_by_hand([LABELS[j] for j in ids], rows, NAMES, weights), abs=1e-9)


def test_both_formats_and_a_path_are_the_same_model(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(binary_model())
    models = [crfpp.read(binary_model()), crfpp.read(text_model()), crfpp.read(path, n_threads=1)]
    for model in models:
        assert_allclose(model.w, models[0].w, rtol=0, atol=1e-16)  # the text has 16 decimals
        assert model.vocabulary.attributes.to_list() == models[0].vocabulary.attributes.to_list()
        assert model.vocabulary.template == models[0].vocabulary.template
    assert recognise(binary_model()[:64]) == CRFPP
    assert recognise(text_model()[:64]) == CRFPP_TEXT


@pytest.mark.parametrize("make", [text_model, binary_model])
def test_blanks_at_the_ends_of_template_lines(make):
    blanks = [f"{line} \r" for line in TEMPLATES]
    names = [f"{name} \r" for name in NAMES]
    clean, dirty = crfpp.read(make()), crfpp.read(make(templates=blanks, names=names))
    assert dirty.vocabulary.template == clean.vocabulary.template
    assert dirty.vocabulary.attributes.to_list() == clean.vocabulary.attributes.to_list()
    assert np.array_equal(dirty.w, clean.w)
    with pytest.raises(ModelFileError, match="'U00:a' occurs twice"):
        crfpp.read(make(names=("U00:a", "U00:a ")))


def test_a_repeated_bare_b_counts_twice_as_in_crfpp():
    model = crfpp.read(text_model(templates=("U00:%x[-1,0]", "B", "B")))
    once = crfpp.read(text_model(templates=("U00:%x[-1,0]", "B")))
    block = model.field.layout["transition"]
    assert np.array_equal(model.w[block], 2 * once.w[block])
    assert model.vocabulary.template.text == "U00:%x[-1,0]\nB"


@pytest.mark.parametrize("make", [text_model, binary_model])
def test_other_encodings(make):
    names = ("B", "U01:日本/n")
    japanese = make(names=names, encoding="euc-jp")
    with pytest.raises(ModelFileError, match=r"is not utf-8 \(byte 5, 0xC6\).*--encoding euc-jp"):
        crfpp.read(japanese)
    assert crfpp.read(japanese, encoding="euc-jp").vocabulary.attributes.to_list() == ["U01:日本/n"]
    with pytest.raises(ParameterError, match="unknown encoding 'klingon'"):
        crfpp.read(japanese, encoding="klingon")


# --- writing


def trained(**options):
    X = [[("a", "n"), ("b", "v")], [("b", "v"), ("a", "n"), ("c", "n")], [("c", "v")]]
    y = [["N", "V"], ["V", "N", "N"], ["V"]]
    template = "# words\nU01:%x[0,0]\nU02:%x[-1,1]/%x[+1,1]\n\nB\nB02:%x[0,1]"
    return X, ChainCRF(template=template, n_threads=1, **options).fit(X, y).model_


@pytest.mark.parametrize("dense", [False, True])
def test_a_written_model_is_read_back_equal(tmp_path, dense):
    X, model = trained(all_possible_states=dense, all_possible_transitions=dense)
    crfpp.write(model, tmp_path / "model.txt")
    again = crfpp.read(tmp_path / "model.txt")
    assert again.class_list == model.class_list
    assert again.field.size >= model.field.size
    data, other = model.encode(X), again.encode(X)
    assert np.allclose(again.inference.node_marginals(other), model.inference.node_marginals(data), atol=1e-12, rtol=0)
    assert again.predict(X) == model.predict(X)
    weights = named_weights(model)
    theirs = named_weights(again)
    assert {name: w for name, w in theirs.items() if w or name in weights} == weights
    crfpp.write(again, tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "model.txt").read_bytes()


def named_weights(model):
    field, v = model.field, model.vocabulary
    state, pair = v.attributes.to_list(), v.pair_attributes.to_list()
    keys = [(state[a], int(j)) for a, j in zip(*field.state_ids(), strict=True)]
    keys += [("B", int(i), int(j)) for i, j in zip(*field.transition_ids(), strict=True)]
    keys += [(pair[a], int(i), int(j)) for a, i, j in zip(*field.pair_ids(), strict=True)]
    return dict(zip(keys, model.w.tolist(), strict=True))


def test_what_crfpp_has_not_is_refused(tmp_path):
    path = tmp_path / "model.txt"
    for options, why in [
        ({"order": 2}, "order 1"),
        ({"constraints": "observed"}, "constraints"),
        ({"label_classes": {"N": "x", "V": "y"}}, "classes of labels"),
    ]:
        with pytest.raises(ModelFileError, match=why):
            crfpp.write(trained(**options)[1], path)
    items = ChainCRF(n_threads=1).fit([[{"w": "a"}, {"w": "b"}]], [["N", "V"]]).model_
    with pytest.raises(ModelFileError, match="'items'"):
        crfpp.write(items, path)
    far = ChainCRF(template="U%x[-9,0]\nB", n_threads=1).fit([[("a",), ("b",)]], [["N", "V"]]).model_
    with pytest.raises(ModelFileError, match="looks -9 rows away"):
        crfpp.write(far, path)
    numbers = ChainCRF(template="U%x[0,0]\nB", n_threads=1).fit([[("a",), ("b",)]], [[1, 2]]).model_
    with pytest.raises(ModelFileError, match="label 1 is not a word"):
        crfpp.write(numbers, path)
    patterns = ChainCRF(template="u:%x[0,0]\nb", n_threads=1).fit([[("a",), ("b",)]], [["N", "V"]]).model_
    with pytest.raises(ModelFileError, match="in the syntax of wapiti"):
        crfpp.write(patterns, path)
    assert not path.exists()
    with pytest.raises(ModelFileError, match="cannot write"):
        crfpp.write(trained()[1], tmp_path / "nowhere" / "model.txt")


# --- damaged files


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "too short"),
        (text_model(version=205), "version 205"),
        (binary_model(version=205), "version 205"),
        (text_model().replace(b"maxid: 42", b"maxid: x"), "'maxid:'"),
        (text_model(weights=np.zeros(42)).replace(b"0.0", b"0_0.0"), "underscore"),
        (text_model().replace(b"\n0 B\n", b"\n0B\n"), "feature line '0B'"),
        (text_model().replace(b"0 B\n", b"1 B\n"), "do not make 42 weights"),
        (text_model()[:-4].rsplit(b"\n", 1)[0], "has 41"),
        (text_model().split(b"U00:_B-1")[0], "ends in the features"),
        (text_model(templates=("X",)), "'X' starts with neither U nor B"),
        (text_model(templates=("U%y[0,0]",)), "unknown macro '%y'"),
        (text_model(labels=("B", "B", "O")), "label is empty or occurs twice"),
        (text_model().replace(b"xsize: 2", b"xsize: 1"), "lines have 1 columns, but its template needs 2"),
        (text_model().replace(b"xsize: 2", b"xsize: 9999"), "lines have 9999 columns"),
        (binary_model() + b"x", "header needs"),
        (binary_model(weights=np.full(42, np.inf)), "not a finite number"),
    ],
)
def test_a_damaged_file_is_an_error_with_a_reason(data, why):
    with pytest.raises(ModelFileError, match=why):
        crfpp.read(data)


def test_a_trie_with_a_cycle_ends():
    data = bytearray(binary_model())
    size = struct.unpack_from("<I", data, 24)[0]
    trie = len(data) - 4 * starts_of(NAMES)[1] - size
    units = np.frombuffer(data, dtype="<i4", count=size // 4, offset=trie).reshape(-1, 2)
    inner = np.flatnonzero((units[:, 0] > 0) & (units[:, 1] > 0))
    for place in inner:
        copy = bytearray(data)
        struct.pack_into("<i", copy, trie + 8 * int(place), int(units[0, 0]))  # back to the root
        with pytest.raises(ModelFileError):
            read_crfpp_model(bytes(copy))


def test_a_trie_that_would_fill_the_memory_is_refused():
    """A chain of nodes, each with a value: n nodes would be names of n²/2 bytes."""
    n = 300_000
    units = np.zeros((n, 2), dtype="<i4")
    units[0, 0] = 1
    bases = np.arange(1, n - 6, 3)
    units[bases] = np.stack([np.full(len(bases), -5), bases], axis=1)
    units[bases + 2] = np.stack([bases + 3, bases], axis=1)
    labels, templates = b"A\0B\0", b"U%x[0,0]\0\0\0\0"
    header = struct.pack("<IidIII", 100, 0, 1.0, 0, 1, units.nbytes)
    header += struct.pack("<I", len(labels)) + labels + struct.pack("<I", len(templates)) + templates
    with pytest.raises(ModelFileError, match="too long for a file of this size"):
        read_crfpp_model(header + units.tobytes())


@pytest.mark.parametrize("make", [text_model, binary_model])
def test_flipped_and_truncated_bytes_never_crash(make):
    whole, rng = make(), random.Random(14)
    for _ in range(300):
        data = bytearray(whole)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        else:
            for _ in range(rng.choice([1, 1, 4])):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            model = crfpp.read(bytes(data))
            model.predict([[("a", "n", "x"), ("b", "v", "x")]])
        except CrfkitError:
            pass


def test_time_is_bounded():
    begin = time.process_time()
    templates = ["U"] * 40_000 + ["B"] * 40_000
    model = crfpp.read(text_model(templates=templates, names=["B"], labels=("A",), weights=[0.5]))
    assert model.w.tolist() == [20_000.0]
    assert time.process_time() - begin < 5


def test_the_record_names_the_tool():
    assert crfpp.read(text_model()).training == {"origin": "CRF++", "encoding": "utf-8"}


def test_too_many_labels():
    labels = [f"{k:x}" for k in range(20_000)]
    with pytest.raises(LimitError, match="20,000 labels and order 1 would take 20 GB"):
        crfpp.read(text_model(labels, ["U"], ["U"], np.zeros(20_000)))
