"""CRFsuite's model files: read, written, tagged with where they lie, and refused when they are damaged."""

import bz2
import gzip
import lzma
import pickle
import struct
import time
import zlib
from contextlib import suppress

import numpy as np
import pycrfsuite
import pytest
import sklearn_crfsuite
from numpy.testing import assert_allclose

from crfkit import ChainCRF, _core
from crfkit.chain.model.model import ChainModel
from crfkit.convert import crfsuite, load, save
from crfkit.convert.pickled import find_model
from crfkit.convert.sources import read_bytes
from crfkit.errors import ModelFileError, ParameterError

WORDS = ["the", "a", "cat", "dog", "sleeps", "barks", "big", "red", "house", "Zürich", "東京", "runs", "slow", "fast"]


def sentences(seed, n):
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = random.choice(WORDS, size=random.integers(1, 8)).tolist()
        X.append(
            [{"w": w, "len": len(w) / 5, "p": {"c": w[0]}, "prev=" + words[i - 1]: True} for i, w in enumerate(words)]
        )
        y.append([f"L{(WORDS.index(w) + int(random.integers(3) == 0)) % 5}" for w in words])
    return X, y


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """A model that CRFsuite trained."""
    path = tmp_path_factory.mktemp("crfsuite") / "model.crfsuite"
    trainer = pycrfsuite.Trainer("lbfgs", {"max_iterations": 30}, verbose=False)
    for x, labels in zip(*sentences(0, 80), strict=True):
        trainer.append(x, labels)
    trainer.train(str(path))
    return path


@pytest.fixture(scope="module")
def peer(model_file):
    tagger = pycrfsuite.Tagger()
    tagger.open(str(model_file))
    return tagger


def test_reading_and_writing_gives_the_same_bytes(model_file):
    assert crfsuite.to_bytes(crfsuite.read(model_file)) == model_file.read_bytes()


def test_tags_marginals_and_probabilities_are_those_of_crfsuite(model_file, peer):
    model, lazy = load(model_file), _core.Tagger.open_crfsuite(model_file.read_bytes())
    assert model.class_list == peer.labels() == lazy.labels
    X, _ = sentences(1, 60)
    X.append([{"unknown": 1.0}])
    for x, labels, marginals in zip(X, model.predict(X), model.predict_marginals(X), strict=True):
        peer.set(x)
        lazy.set(x)
        assert labels == peer.tag() == lazy.viterbi()
        expected = [[peer.marginal(name, t) for name in model.class_list] for t in range(len(x))]
        assert_allclose(marginals, expected, rtol=1e-6, atol=1e-9)
        assert_allclose(lazy.marginals(), expected, rtol=1e-6, atol=1e-9)
        score = lazy.score([model.class_list.index(name) for name in labels])
        assert_allclose(np.exp(score - lazy.log_partition), peer.probability(labels), rtol=1e-6)


def test_crfsuite_reads_what_crfkit_writes(tmp_path):
    X, y = sentences(2, 60)
    for options in ({}, {"all_possible_states": True, "all_possible_transitions": True}):
        crf = ChainCRF(**options).fit(X, y)
        save(crf.model_, tmp_path / "m.crfsuite", "crfsuite")
        tagger = pycrfsuite.Tagger()
        tagger.open(str(tmp_path / "m.crfsuite"))
        assert [tagger.tag(x) for x in X] == crf.predict(X)
        again = ChainCRF.load(tmp_path / "m.crfsuite")
        assert again.predict(X) == crf.predict(X)
        assert again.state_features_ == {k: v for k, v in crf.state_features_.items() if v != 0.0}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_estimator_of_sklearn_crfsuite(tmp_path, protocol):
    X, y = sentences(6, 30)
    crf = sklearn_crfsuite.CRF(max_iterations=10).fit(X, y)
    (tmp_path / "crf.pkl").write_bytes(pickle.dumps(crf, protocol=protocol))
    assert load(tmp_path / "crf.pkl").predict(X) == [list(labels) for labels in crf.predict(X)]


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_a_search_through_a_pickle_is_one_pass(model_file, protocol):
    """Before, every object of an old pickle was read by a tokeniser written in Python: 0.3 s per megabyte."""
    model = model_file.read_bytes()
    numbers = list(range(300_000)) + [float(k) for k in range(100_000)]
    claims = [(b"lCRF" + (2**31 - 1).to_bytes(4, "little") + b"FOMC" + bytes(36)) * 20_000]  # claims to be large models
    for content in ([numbers, model], [claims, numbers]):
        data = np.frombuffer(b"\x80\x02" * (protocol < 2) + pickle.dumps(content, protocol=protocol), dtype=np.uint8)
        begin = time.process_time()
        assert find_model(data) == (model if model in content else None)
        assert time.process_time() - begin < 0.5


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_unpickled(model_file, tmp_path, protocol):
    class Explosive:
        def __reduce__(self):
            return (exec, ("raise SystemExit('unpickled')",))

    path = tmp_path / "crf.pkl"
    path.write_bytes(pickle.dumps({"a": Explosive(), "model": model_file.read_bytes()}, protocol=protocol))
    assert load(path).class_list == load(model_file).class_list
    path.write_bytes(pickle.dumps({"a": Explosive()}, protocol=protocol))
    with pytest.raises(ModelFileError, match="not a model that crfkit knows"):
        load(path)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"order": 2}, "order 2"),
        ({"constraints": "observed"}, "constraints"),
        ({"label_classes": {"L0": "c"}}, "class"),
    ],
)
def test_what_the_format_cannot_hold_is_said(options, reason, tmp_path):
    crf = ChainCRF(**options).fit(*sentences(3, 20))
    with pytest.raises(ModelFileError, match=reason):
        save(crf.model_, tmp_path / "m.crfsuite", "crfsuite")
    assert not (tmp_path / "m.crfsuite").exists()


def test_a_zero_byte_does_not_fit(tmp_path):
    crf = ChainCRF().fit([[["a\0b"], ["c"]]], [["X", "Y"]])
    with pytest.raises(ModelFileError, match="zero byte"):
        save(crf.model_, tmp_path / "m.crfsuite", "crfsuite")


# --- damaged files


def use(contents: bytes) -> None:
    """Read all of a model, and tag with it where it lies; whatever is wrong must come as one of our errors."""
    x = [{"w": word, "len": 1.0, "p": {"c": word[0]}} for word in WORDS]
    with suppress(ModelFileError):
        model = crfsuite.read(contents)
        assert np.isfinite(model.w).all()
        model.predict([x])
    with suppress(_core.BadModel):
        _core.Tagger.open_crfsuite(contents).tag(x)


def test_truncated_files(model_file):
    contents = model_file.read_bytes()
    for size in [*range(60), *range(60, len(contents), max(1, len(contents) // 97))]:
        with pytest.raises(ModelFileError):
            crfsuite.read(contents[:size])
        with pytest.raises(_core.BadModel):
            _core.Tagger.open_crfsuite(contents[:size])
        use(contents[:4] + struct.pack("<I", size) + contents[8:size])  # with a header that agrees
    with pytest.raises(ModelFileError, match="bytes"):
        crfsuite.read(contents + b"\0")


def test_flipped_bits_and_hostile_numbers(model_file):
    contents = bytearray(model_file.read_bytes())
    random = np.random.default_rng(0)
    structural = [*range(48), *range(48, 120), *range(len(contents) - 400, len(contents))]
    for k in range(2000):
        damaged = bytearray(contents)
        at = int(random.choice(structural)) if k % 2 else int(random.integers(len(contents)))
        if k % 3:
            damaged[at] ^= 1 << int(random.integers(8))
        else:
            word = int(random.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, len(contents), len(contents) - 4]))
            at = min(at // 4 * 4, len(contents) - 4)
            damaged[at : at + 4] = struct.pack("<I", word)
        use(bytes(damaged))


def overlapping(n, of_labels):
    """A file of n strings that all end at the same byte, each as long as what is left of the records."""

    def database(begin, n):
        records = 24 + 2048
        end = records + 8 * n + 1
        table, ids = end, end + 8 * n
        words = [word for i in range(n) for word in (i, end - records - 8 * i - 8)]
        tables = struct.pack("<II", table, n) + bytes(2040)
        contents = tables + struct.pack(f"<{2 * n}I", *words) + b"\0"
        contents += b"".join(struct.pack("<II", 0, records + 8 * i) for i in range(n))
        contents += b"".join(struct.pack("<I", records + 8 * i) for i in range(n))
        return struct.pack("<4sIIIII", b"CQDB", 24 + len(contents), 0, 0x62445371, n, ids) + contents

    sizes = (n, 1) if of_labels else (1, n)
    chunks = [struct.pack("<4sII", b"FEAT", 12, 0), *(database(0, size) for size in sizes)]
    for name, size in zip((b"LFRF", b"AFRF"), sizes, strict=True):
        chunks.append(struct.pack("<4sII", name, 12 + 4 * size, size) + bytes(4 * size))
    offsets = 48 + np.cumsum([0, *map(len, chunks)])
    head = struct.pack("<4sI4sI3I", b"lCRF", int(offsets[-1]), b"FOMC", 100, 0, 0, 0)
    return head + struct.pack("<5I", *offsets[:5].tolist()) + b"".join(chunks)


@pytest.mark.parametrize("of_labels", [True, False])
def test_records_that_overlap_do_not_fill_the_memory(of_labels):
    n = 2048 if of_labels else 20_000  # 1.6 GB of strings in a file of 500 KB
    with pytest.raises(ModelFileError, match="its strings together are longer than their database"):
        crfsuite.read(overlapping(n, of_labels))
    if of_labels:
        with pytest.raises(_core.BadModel, match="its strings together are longer than their database"):
            _core.Tagger.open_crfsuite(overlapping(n, of_labels))
    assert crfsuite.read(overlapping(1, of_labels)).class_list == [""]


@pytest.mark.parametrize(("label", "reason"), [(b"L0", "a label occurs twice"), (b"L\xff", "a label is not UTF-8")])
def test_labels_that_are_no_names(model_file, label, reason):
    contents = model_file.read_bytes()
    assert contents.count(b"L1\0") == 1
    damaged = contents.replace(b"L1\0", label + b"\0")
    with pytest.raises(_core.BadModel, match=reason):
        _core.Tagger.open_crfsuite(damaged)
    with pytest.raises(ModelFileError, match="label"):
        crfsuite.read(damaged)


@pytest.mark.parametrize(("n", "reason"), [(46341, "more than 46340 labels"), (20_000, "labels, too many for a file")])
def test_too_many_labels(n, reason):
    contents = overlapping(n, of_labels=True)
    with pytest.raises(ModelFileError, match=reason):
        crfsuite.read(contents)
    with pytest.raises(_core.BadModel, match=reason):
        _core.Tagger.open_crfsuite(contents)


def test_bytes_that_may_change_are_copied(model_file):
    contents = bytearray(model_file.read_bytes())
    expected = crfsuite.read(model_file).class_list
    assert crfsuite.read(contents).class_list == crfsuite.read(memoryview(contents)).class_list == expected
    view = read_bytes(contents)
    contents[:4] = b"\0\0\0\0"
    assert view[:4].tobytes() == b"lCRF"


@pytest.mark.parametrize("encoding", ["klingon", "rot13", "utf-8\0"])
def test_unknown_encodings(model_file, encoding):
    for read in (crfsuite.read, load):
        with pytest.raises(ParameterError, match="unknown encoding"):
            read(model_file, encoding=encoding)


def test_unknown_versions_and_types(model_file):
    contents = model_file.read_bytes()
    with pytest.raises(ModelFileError, match="version 101"):
        crfsuite.read(contents[:12] + struct.pack("<I", 101) + contents[16:])
    with pytest.raises(ModelFileError, match="type 'SEMI'"):
        crfsuite.read(contents[:8] + b"SEMI" + contents[12:])


def test_errors_name_the_file(model_file, tmp_path):
    path = tmp_path / "broken.crfsuite"
    path.write_bytes(model_file.read_bytes()[:500])
    with pytest.raises(ModelFileError, match=r"broken\.crfsuite"):
        load(path)
    (tmp_path / "text").write_text("no model at all, but some text that is long enough")
    with pytest.raises(ModelFileError, match="not a model that crfkit knows"):
        ChainCRF.load(tmp_path / "text")
    with pytest.raises(ModelFileError, match="cannot read"):
        load(tmp_path / "missing")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ModelFileError, match="empty: the file is empty"):
        load(tmp_path / "empty")


@pytest.mark.parametrize(
    ("pack", "reason"),
    [
        (gzip.compress, "compressed file.*; unpack it first"),
        (bz2.compress, "compressed file.*; unpack it first"),
        (lzma.compress, "compressed file.*; unpack it first"),
        (zlib.compress, r"compressed file.*crfkit\.compat\.install\(\) and open it with joblib\.load"),
        (lambda contents: pickle.dumps(contents[:200]), "a pickle in which there is no whole CRFsuite model"),
    ],
)
def test_a_model_in_a_wrapping_is_told_from_other_files(model_file, tmp_path, pack, reason):
    path = tmp_path / "packed"
    path.write_bytes(pack(model_file.read_bytes()))
    with pytest.raises(ModelFileError, match=reason):
        load(path)


def test_own_models_are_loaded_as_before(tmp_path):
    crf = ChainCRF().fit(*sentences(4, 20))
    crf.model_.save(tmp_path / "m.crf")
    X, _ = sentences(5, 5)
    assert load(tmp_path / "m.crf").predict(X) == ChainModel.load(tmp_path / "m.crf").predict(X) == crf.predict(X)
