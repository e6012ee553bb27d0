"""Text features: the attributes of plain words, by the native encoder and by a slow twin; options; the model file."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_twin import expand

from crfkit import ChainCRF, TextFeatures
from crfkit.chain.encoding.sequences import learn
from crfkit.chain.encoding.vocabulary import Inputs
from crfkit.chain.model.model import ChainModel
from crfkit.errors import CrfkitError, DataError, ModelFileError, ParameterError
from crfkit.files.modelfile import Contents
from crfkit.text.presets import PRESETS

# letters of Latin, Greek, Cyrillic, Armenian, Arabic, Hebrew, Thai, Chinese, Japanese and Korean; marks, digits, others
LETTERS = st.one_of(
    st.characters(min_codepoint=0x21, max_codepoint=0x17F),
    st.characters(min_codepoint=0x386, max_codepoint=0x3CE, whitelist_categories=["L"]),
    st.characters(min_codepoint=0x400, max_codepoint=0x481),
    st.sampled_from("ǅǆΣςİıẞßŉՀայעבغاกข漢字かなカナ한글ᄀ𠀋𝐀𐐀𐐨٣Ⅷ²́̈ـ’“”—…€😀\u00a0\u200d\u3000|=[]<>"),
)
WORDS = st.one_of(
    st.text(LETTERS, min_size=1, max_size=6), st.sampled_from(["New", "york", "new", "YORK", "in", "<s>"])
)
RULES = (
    *(
        "word[0]",
        "word[-2]",
        "lower[1]",
        "prefix1[0]",
        "prefix3[-1]",
        "suffix2[0]",
        "lowerprefix2[1]",
        "lowersuffix4[0]",
    ),
    *(
        "shape1[0]",
        "shape2[-1]",
        "shape4[0]",
        "script[0]",
        "script[2]",
        "column1[-1]",
        "lower[-3..-1]",
        "suffix2[0..2]",
    ),
    *("lower[-1]|lower[0]", "shape1[-1]|word[0]|shape1[+1]", "column1[0]|lowersuffix3[0]", "gazetteer[0]"),
    *("script[-1]|script[0]|script[1]|word[2]", "gazetteer[-1..1]", "embedding[0]", "embedding[-1]", "column2[0]"),
)
X = [["In", "Rome"], ["Rome", "sleeps"], ["New", "York", "sleeps", "in", "Rome"]]
y = [["O", "B"], ["B", "O"], ["B", "I", "O", "O", "B"]]
FULL = TextFeatures(gazetteers={"LOC": ["New York", "Rome"]}, embeddings={"in": [1.0, 0.5], "rome": [0.0, -2.0]})


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.tuples(WORDS, st.sampled_from("ab"), WORDS), max_size=6), min_size=1, max_size=3),
    st.sets(st.sampled_from(RULES), min_size=1),
    st.booleans(),
)
def test_native_attributes_are_those_of_the_twin(sequences, rules, lower):
    lists = {"LOC": ["New York", "york", "york in new"], "Q": ["in"]}
    vectors = {"new": [0.5, 0.0], "York": [1.0, -1.0]}
    features = TextFeatures(lower=lower, rules=sorted(rules), gazetteers=lists, embeddings=vectors)
    for rows in sequences:
        native = features.native.expand(rows)
        assert [set(position) for position in native] == expand(sorted(rules), rows, lists, lower, vectors)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=1, max_size=5), min_size=1, max_size=4))
def test_encoders_see_the_same_attributes_again(sequences):
    """A trained vocabulary that is asked twice, from words it remembers and from new ones, gives the same ids."""
    labels = [["ab"[k % 2] for k in range(len(row))] for row in sequences]
    vocabulary = learn(sequences, labels, Inputs(text=FULL), min_frequency=1, least_labels=1).vocabulary
    names = vocabulary.attributes.to_list()
    for _ in range(2):
        data = vocabulary.encode(sequences)
        values = np.ones(len(data.attributes)) if data.values is None else data.values
        t = 0
        for row in sequences:
            for position in FULL.native.expand([[word] for word in row]):
                found = slice(data.offsets[t], data.offsets[t + 1])
                mine = sorted(zip([names[a] for a in data.attributes[found]], values[found].tolist(), strict=True))
                assert mine == sorted(position)
                t += 1


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_train_tag_save_and_load(preset, tmp_path):
    rows = [[(word, "P") for word in row] for row in X] if preset == "chunking" else X
    crf = ChainCRF(features=preset).fit(rows, y)
    assert crf.predict(rows) == y
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf")
    assert again.features == PRESETS[preset]
    assert again.predict(rows) == y
    np.testing.assert_array_equal(
        np.concatenate(again.predict_marginals(rows)), np.concatenate(crf.predict_marginals(rows))
    )
    assert [crf.model_.tagger.tag(row) for row in rows] == y


@pytest.mark.parametrize("hash_bits", [None, 12])
def test_models_keep_lists_and_vectors(tmp_path, hash_bits):
    crf = ChainCRF(features=FULL, hash_bits=hash_bits).fit(X, y)
    crf.save(tmp_path / "m.crf")
    again = ChainCRF.load(tmp_path / "m.crf")
    assert again.features == FULL
    assert again.hash_bits == hash_bits
    unseen = [["in", "new", "york", "and", "ROME"], []]
    np.testing.assert_array_equal(
        np.concatenate(again.predict_marginals(unseen)), np.concatenate(crf.predict_marginals(unseen))
    )
    assert pickle.loads(pickle.dumps(crf)).predict(unseen) == crf.predict(unseen)
    assert pickle.loads(pickle.dumps(FULL)) == FULL


def test_rules_of_another_version_are_taken_from_the_file():
    metadata, tensors = ChainCRF(features=TextFeatures(window=1)).fit(X, y).model_.parts()
    metadata["text_features"]["rules"] = metadata["text_features"]["rules"][:5]
    model = ChainModel.from_parts(Contents("chain", metadata, tensors))
    assert list(model.vocabulary.text.all_rules) == metadata["text_features"]["rules"]


def test_damaged_model_files_are_refused():
    """Whatever the metadata and the tensors say, loading raises ModelFileError or gives a model that tags."""
    metadata, tensors = ChainCRF(features=FULL).fit(X, y).model_.parts()
    tensors = {name: np.array(array) for name, array in tensors.items()}
    rng = np.random.default_rng(0)
    junk = (None, -1, 3, 10**9, True, "x", [], ["x"], ["lower[0]", 3], {}, {"a": 1}, 0.5)
    damaged = 0
    for _ in range(300):
        changed, arrays = json.loads(json.dumps(metadata)), dict(tensors)
        entry = changed["text_features"]
        what = rng.integers(4)
        if what == 0:
            entry[list(entry)[rng.integers(len(entry))]] = junk[rng.integers(len(junk))]
        elif what == 1:
            entry.pop(list(entry)[rng.integers(len(entry))])
        elif what == 2:
            changed["text_features" if rng.integers(2) else "hash_bits"] = junk[rng.integers(len(junk))]
        else:
            name = [n for n in arrays if n.startswith(("gazetteer", "embeddings"))][rng.integers(7)]
            array = arrays[name].copy()
            array[rng.integers(len(array))] = rng.integers(0, 255)
            arrays[name] = array[: rng.integers(len(array) + 1)] if rng.integers(2) else array
        try:
            ChainModel.from_parts(Contents("chain", changed, arrays)).predict(X)
        except ModelFileError:
            damaged += 1
    assert damaged > 100


def test_threads_share_a_model():
    from concurrent.futures import ThreadPoolExecutor

    crf = ChainCRF(features="ner", n_threads=1).fit(X, y)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == y for found in pool.map(lambda _: crf.predict(X), range(200)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": -1}, "window must be a whole number from 0 to 10, not -1"),
        ({"affixes": 2.5}, "affixes must be a whole number"),
        ({"lower": 1}, "lower must be True or False"),
        ({"columns": (0,)}, "column 0 is the word"),
        ({"columns": "pos"}, "columns must be numbers of columns"),
        ({"extra": "lower[0"}, "malformed distance in 'lower\\[0'"),
        ({"extra": "lowr[0]"}, "unknown part 'lowr'"),
        ({"extra": "prefix[0]"}, "needs a number"),
        ({"extra": "word[-1..0]|word[1]"}, "stands alone"),
        ({"extra": 3}, "extra must be rules"),
        ({"gazetteers": ["Rome"]}, "gazetteers must be a mapping"),
        ({"gazetteers": {"LOC": []}}, "gazetteer 'LOC' has no phrases"),
        ({"gazetteers": {"LOC": [3]}}, "phrase 0 is 3"),
        ({"gazetteers": {"LOC": "/nosuch/file"}}, "cannot read the gazetteer 'LOC'"),
        ({"embeddings": {"a": [1.0], "b": [1.0, 2.0]}}, "the vector of 'b' has 2 numbers"),
        ({"embeddings": {"a": [float("nan")]}}, "not finite"),
        ({"embeddings": 3}, "embeddings must be a mapping"),
        ({"embeddings": "/nosuch/file"}, "cannot read the embeddings"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(CrfkitError, match=message):
        TextFeatures(**options)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [["In", ["Rome"]]],
            "sequence 0, position 1: the token is a list of columns, but the tokens before are strings",
        ),
        ([["In"], [["Rome"], "a"]], "sequence 1, position 1: the token is a string, but the tokens before are lists"),
        ([["In", {"w": "Rome"}]], "sequence 0, position 1: with text features a token is a word or a list of columns"),
        ([["In", 3]], "sequence 0, position 1: a token must be a list of column strings, or a string, not int"),
        ([["In", "\ud800"]], "sequence 0, position 1: a string is not valid Unicode"),
    ],
)
def test_bad_tokens_are_named(given, message):
    crf = ChainCRF(features="ner").fit(X, y)
    with pytest.raises(DataError, match=message):
        crf.predict(given)
    assert crf.predict(X) == y


def test_missing_columns_are_named():
    crf = ChainCRF(features=TextFeatures(columns=(1,))).fit([[(word, "P") for word in row] for row in X], y)
    with pytest.raises(DataError, match="the features use column 1, but there is only 1 feature column"):
        crf.predict(X)


@pytest.mark.parametrize("items", [[["w=a"], "w=b"], [{"w": "a"}, "w=b"], [["w=a"], 3], [{"w": "a"}, 3]])
def test_items_of_other_types_are_named(items):
    with pytest.raises(DataError, match="sequence 1, position 1: an item must be a list of attribute"):
        ChainCRF().fit([[["w=a"], ["w=b"]], items], [["A", "B"]] * 2)


def test_features_and_template_exclude_each_other():
    with pytest.raises(ParameterError, match="cannot be combined"):
        ChainCRF(features="ner", template="U:%x[0,0]\nB").fit(X, y)
    with pytest.raises(ParameterError, match=r"unknown preset of features 'nre'.*ner"):
        ChainCRF(features="nre").fit(X, y)
    with pytest.raises(ParameterError, match="features must be TextFeatures or the name of a preset"):
        ChainCRF(features=3).fit(X, y)


def test_lists_and_vectors_are_read_from_files(tmp_path: Path):
    (tmp_path / "cities").write_text("Rome\n\nNew  York\n", encoding="utf-8")
    (tmp_path / "w2v").write_text("2 2\nrome 1 2\nin 0.5 -1 \n", encoding="utf-8")
    (tmp_path / "glove").write_text("rome 1 2\nin 0.5 -1\n", encoding="utf-8")
    found = TextFeatures(gazetteers={"LOC": tmp_path / "cities"}, embeddings=str(tmp_path / "w2v"))
    given_ = {"rome": [1, 2], "in": [0.5, -1]}
    assert found == TextFeatures(gazetteers={"LOC": ["Rome", ("New", "York")]}, embeddings=given_)
    assert replace(found, embeddings=tmp_path / "glove") == found
    (tmp_path / "bad").write_text("rome 1 2\nin 0.5 x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad:2: .*not a number"):
        TextFeatures(embeddings=tmp_path / "bad")


def test_hashed_models_keep_no_names(tmp_path):
    named, hashed = (ChainCRF(features="ner", hash_bits=bits).fit(X, y) for bits in (None, 16))
    assert hashed.predict(X) == named.predict(X) == y
    assert all(name.startswith("#") for name, _ in hashed.state_features_)
    hashed.save(tmp_path / "m.crf")
    assert b"sleeps" not in (tmp_path / "m.crf").read_bytes()
    few = ChainCRF(features="ner", hash_bits=4).fit(X, y)
    assert few.n_attributes_ <= 16


def test_hashing_needs_a_sensible_number_of_bits():
    for bits in (3, 29, 2.5, True):
        with pytest.raises(ParameterError, match="hash_bits must be a whole number from 4 to 28"):
            ChainCRF(hash_bits=bits).fit([[["a"], ["b"]]], [["A", "B"]])
    with pytest.raises(ParameterError, match="columns of matrices have no names"):
        ChainCRF(hash_bits=8).fit([np.eye(2)], [["A", "B"]])


def test_partial_fit_of_hashed_and_of_plain_text():
    for bits in (None, 10):
        crf = ChainCRF(features="ner", hash_bits=bits, solver="sgd")
        for row, labels in zip(X * 20, y * 20, strict=True):
            crf.partial_fit([row], [labels], classes=["O", "B", "I"])
        assert crf.predict(X) == y


def test_partial_fit_keeps_to_its_features():
    crf = ChainCRF(features="pos", solver="sgd").partial_fit(X[:1], y[:1])
    with pytest.raises(ParameterError, match="the text features differ from those of earlier batches"):
        crf.set_params(features="ner").partial_fit(X[1:], y[1:])


def test_encoders_forget_words_after_many():
    """An encoder of plain words remembers up to 2¹⁸ of them, then begins anew; nobody sees a difference."""
    rules = ["lower[0]", "lower[-1]|lower[0]", "gazetteer[0]", "embedding[0]"]
    features = TextFeatures(rules=rules, gazetteers={"LOC": ["Rome"]}, embeddings={"rome": [0.5]})
    vocabulary = ChainCRF(features=features).fit(X, y).model_.vocabulary
    expected = vocabulary.encode(X)
    for begin in range(0, 300_000, 10_000):
        vocabulary.encode([list(map(str, range(begin, begin + 10_000)))])
    found = vocabulary.encode(X)
    for name in ("offsets", "attributes", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
