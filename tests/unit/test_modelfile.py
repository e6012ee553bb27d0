"""Model files: they come back as they were, and whatever was done to one, opening it never gives a wrong model."""

import errno
import json
import os
import random

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from numpy.testing import assert_array_equal

from crfkit import ChainCRF, ChainModel, Template, TextFeatures
from crfkit.errors import ModelFileError
from crfkit.files import modelfile

ROWS = [[("the", "D"), ("naïve", "A"), ("cat", "N")], [("a", "D"), ("dog", "N")], [("sleep", "V")]]
LABELS = [["DET", "ADJ", "NOUN"], ["DET", "NOUN"], ["VERB"]]
ITEMS = [[{"w": w, "t": 0.5, "n": {"t": t}} for w, t in row] for row in ROWS]
MATRICES = [np.eye(5)[: len(row)] for row in ROWS]
TEMPLATE = Template("U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nB\nB1:%x[0,1]")


def fitted(kind: str) -> tuple[ChainCRF, list]:
    if kind == "template":
        return ChainCRF(template=TEMPLATE, all_possible_states=True, all_possible_transitions=True, n_threads=1), ROWS
    if kind == "observed":
        return ChainCRF(template=TEMPLATE, n_threads=1), ROWS
    if kind == "text":
        words = TextFeatures(columns=(1,), gazetteers={"animals": ["cat", "a dog"]}, embeddings={"cat": [0.5, 1.0]})
        return ChainCRF(features=words, n_threads=1), ROWS
    if kind == "hashed":
        return ChainCRF(template=TEMPLATE, hash_bits=10, n_threads=1), ROWS
    return ChainCRF(n_threads=1), ITEMS if kind == "items" else MATRICES


KINDS = ("template", "observed", "items", "matrix", "text", "hashed")


@pytest.fixture(scope="module", params=KINDS)
def trained(request):
    crf, X = fitted(request.param)
    return crf.fit(X, LABELS).model_, X


@pytest.fixture(scope="module")
def model():
    crf, X = fitted("observed")
    return crf.fit(X, LABELS).model_


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.crf"


def behaviour(model: ChainModel, X=ROWS):
    """Everything that a user of the model can see."""
    data = model.encode(X)
    return (
        model.labels_of(data),
        model.inference.node_marginals(data).tolist(),
        model.class_list,
        model.w.tolist(),
        model.vocabulary.attributes.to_list(),
        model.vocabulary.pair_attributes.to_list(),
        model.vocabulary.template and model.vocabulary.template.text,
        model.vocabulary.text,
        model.vocabulary.hash_bits,
        dict(model.training),
    )


# --- as it was


def test_round_trip(trained, path):
    model, X = trained
    model.save(path)
    again = ChainModel.load(path)
    assert behaviour(again, X) == behaviour(model, X)
    assert again.field.layout == model.field.layout
    for name in ("state_ids", "transition_ids", "pair_ids"):
        for a, b in zip(getattr(again.field, name)(), getattr(model.field, name)(), strict=True):
            assert_array_equal(a, b)
    second = path.with_name("again.crf")
    again.save(second)
    assert second.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("labels", [[3, -1, 2, 10**12], [0.5, 1.5, -2.0, 3.25], [True, False, True, False]])
def test_labels_keep_their_type(path, labels):
    names = dict(zip(["DET", "ADJ", "NOUN", "VERB"], labels, strict=True))
    crf = ChainCRF(n_threads=1).fit(ITEMS, [[names[label] for label in row] for row in LABELS])
    crf.save(path)
    again = ChainCRF.load(path)
    assert again.classes_.tolist() == crf.classes_.tolist() == sorted(set(labels))
    assert [type(label) for label in again.predict_single(ITEMS[0])] == [type(labels[0])] * 3


def test_the_file_is_a_safetensors_container(model, path):
    model.save(path)
    with safetensors.safe_open(path, "numpy") as file:
        assert_array_equal(file.get_tensor("weights"), model.w)
        metadata = json.loads(file.metadata()["crfkit"][16:])  # behind its checksum
    assert metadata["version"] == modelfile.FORMAT_VERSION
    assert metadata["labels"] == model.class_list


def test_weights_are_mapped_and_read_only(model, path):
    model.save(path)
    again = ChainModel.load(path)
    assert not again.w.flags.owndata
    assert not again.w.flags.writeable


@pytest.mark.parametrize("padding", [1, 4])
def test_a_header_of_any_length_gives_aligned_tensors(trained, path, padding):
    model, X = trained
    model.save(path)
    blob = path.read_bytes()
    end = 8 + int.from_bytes(blob[:8], "little")
    header = blob[8:end] + padding * b" "
    path.write_bytes(len(header).to_bytes(8, "little") + header + blob[end:])
    assert all(array.flags.aligned for array in modelfile.read(path).tensors.values())
    assert ChainModel.load(path).predict(X) == model.predict(X)


def test_a_loaded_model_outlives_its_file(model, path):
    model.save(path)
    again = ChainModel.load(path)
    path.unlink()
    assert behaviour(again) == behaviour(model)


def test_a_model_can_be_saved_onto_the_file_it_was_loaded_from(model, path):
    model.save(path)
    again = ChainModel.load(path)
    again.save(path)
    assert behaviour(again) == behaviour(ChainModel.load(path)) == behaviour(model)


def test_attributes_with_any_bytes(path):
    names = ["", " ", "\n", "\x00", "語", "🙂" * 50, "x" * 5000, *(str(k) for k in range(200))]
    crf = ChainCRF(n_threads=1).fit([[[name] for name in names]], [[k % 3 for k in range(len(names))]])
    crf.save(path)
    again = ChainCRF.load(path)
    assert again.state_features_ == crf.state_features_
    assert {name for name, _ in again.state_features_} == set(names)


# --- not as it was


def refused(path, blob: bytes | None = None) -> str:
    if blob is not None:
        path.write_bytes(blob)
    with pytest.raises(ModelFileError) as caught:
        ChainModel.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_missing_and_unreadable(tmp_path, path):
    assert "No such file" in refused(path)
    assert "directory" in refused(tmp_path).lower()


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x00" * 7,
        b"\x00" * 8,
        b"\x00" * 1000,
        b"\xff" * 1000,
        b"lCRF" + b"\x00" * 100,
        b"\x64\x00\x00\x00" + b"CRF++ model, perhaps" * 20,
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + b"null",
        (20000).to_bytes(8, "little") + b"[" * 20000,
        (8).to_bytes(8, "little") + b"\xff" * 8,
    ],
    ids=lambda blob: str(blob[:12]),
)
def test_foreign_files(path, blob):
    assert "not a crfkit model" in refused(path, blob)


def test_safetensors_of_others(path):
    for metadata in (None, {"format": "pt"}, {"crfkit": "no json"}, {"crfkit": "[1]"}, {"crfkit": "{}"}):
        safetensors.numpy.save_file({"weights": np.zeros(3)}, path, metadata)
        refused(path)


def test_truncated_anywhere(model, path):
    model.save(path)
    blob = path.read_bytes()
    header = int.from_bytes(blob[:8], "little")
    cuts = [0, 1, 7, 8, 9, 8 + header // 2, 8 + header - 1, 8 + header, 8 + header + 1, len(blob) // 2, len(blob) - 8]
    for cut in [*cuts, len(blob) - 1, *random.Random(0).sample(range(len(blob)), 30)]:
        refused(path, blob[:cut])


@pytest.mark.parametrize("extra", [b"\x00", b"\n", b"x" * 8, b"\x00" * 4096])
def test_appended(model, path, extra):
    model.save(path)
    assert "bytes follow the last tensor" in refused(path, path.read_bytes() + extra)


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_byte_is_found_or_harmless(kind, path):
    crf, X = fitted(kind)
    model = crf.fit(X, LABELS).model_
    model.save(path)
    blob, expected = path.read_bytes(), behaviour(model, X)
    header = 8 + int.from_bytes(blob[:8], "little")
    rng = random.Random(1)
    # half of the changes in the header, where there is more to understand
    places = rng.sample(range(header), 60) + rng.sample(range(header, len(blob)), 60)
    wrong = []
    for at in places:
        byte = blob[at] ^ (1 << rng.randrange(8))
        path.write_bytes(blob[:at] + bytes([byte]) + blob[at + 1 :])
        try:
            found = ChainModel.load(path)
        except ModelFileError:
            continue
        if behaviour(found, X) != expected:
            wrong.append((blob[max(at - 20, 0) : at + 20], chr(byte)))
    assert not wrong, f"{len(wrong)} changes gave another model, such as {wrong[:3]}"


def test_label_names_are_protected(model, path):
    model.save(path)
    blob = path.read_bytes()
    assert b"NOUN" in blob
    refused(path, blob.replace(b"NOUN", b"NOUM"))


def test_the_template_is_protected(model, path):
    model.save(path)
    blob = path.read_bytes()
    assert b"%x[-1,1]" in blob
    refused(path, blob.replace(b"%x[-1,1]", b"%x[-2,1]"))


# --- whole and consistent containers whose contents do not belong together


def rewritten(path, model, metadata=None, tensors=None, kind="chain") -> str:
    """Saves the model with some parts replaced (None: removed) and right checksums; returns the refusal."""
    parts = model.parts()
    changed = [old | new for old, new in zip(parts, (metadata or {}, tensors or {}), strict=True)]
    modelfile.write(path, kind, changed[0], {k: v for k, v in changed[1].items() if v is not None})
    return refused(path)


def test_rewriting_without_a_change_is_accepted(model, path):
    modelfile.write(path, "chain", *model.parts())
    assert behaviour(ChainModel.load(path)) == behaviour(model)


@pytest.mark.parametrize("version", [0, 1, 3, 2.5, "2", None, [2]])
def test_versions(model, path, version):
    message = rewritten(path, model, {"version": version})
    assert "format" in message
    assert "Upgrade" in message


def test_other_kinds(model, path):
    assert "kind 'grid'" in rewritten(path, model, kind="grid")


@pytest.mark.parametrize(
    "labels",
    [
        None,
        "ABCD",
        {},
        [],
        ["DET"],
        ["ADJ", "DET", "NOUN"],
        ["ADJ", "DET", "NOUN", "NOUN"],
        ["ADJ", "DET", "NOUN", 4],
        [None] * 4,
        [[1], [2], [3], [4]],
        [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}],
    ],
    ids=str,
)
def test_labels_that_do_not_fit(model, path, labels):
    rewritten(path, model, {"labels": labels})


@pytest.mark.parametrize(
    "metadata",
    [
        {"template": 5},
        {"template": None},
        {"template": "U%x[0,0"},
        {"template": "nonsense"},
        {"inputs": "items"},
        {"inputs": "rows"},
        {"inputs": None},
        {"n_transition": 2},
        {"n_transition": None},
        {"n_transition": -1},
        {"n_transition": 10**30},
        {"n_features": "two"},
        {"n_features": -1},
        {"checksums": {}},
        {"checksums": None},
        {"checksums": {"weights": "0"}},
    ],
    ids=str,
)
def test_metadata_that_do_not_fit(model, path, metadata):
    rewritten(path, model, metadata)


def cases():
    """(tensor, change) pairs; each makes a model whose parts contradict each other."""
    yield "weights", lambda a: a[:-1]
    yield "weights", lambda a: np.append(a, 0.0)
    yield "weights", lambda a: np.full_like(a, np.nan)
    yield "weights", lambda a: np.where(np.arange(len(a)) == 1, np.inf, a)
    yield "weights", lambda a: a.astype(np.int64)
    yield "weights", lambda a: a.reshape(1, -1)
    yield "weights", lambda a: None
    for name in ("attributes", "pair_attributes"):
        yield f"{name}.offsets", lambda a: None
        yield f"{name}.offsets", lambda a: a[:0]
        yield f"{name}.offsets", lambda a: a[:-1]
        yield f"{name}.offsets", lambda a: a + np.uint64(1)
        yield f"{name}.offsets", lambda a: a[::-1].copy()
        yield f"{name}.offsets", lambda a: np.where(np.arange(len(a)) == 1, np.uint64(2**63), a)
        yield f"{name}.bytes", lambda a: a[:-1]
        yield f"{name}.bytes", lambda a: np.append(a, np.uint8(0))
        yield f"{name}.bytes", lambda a: a ^ np.uint8(1)
        yield f"{name}.slots", lambda a: a[:0]
        yield f"{name}.slots", lambda a: a[:-1]
        yield f"{name}.slots", lambda a: np.zeros_like(a)
        yield f"{name}.slots", lambda a: np.full_like(a, 2**64 - 1)
        yield f"{name}.slots", lambda a: np.where(a > 0, a + np.uint64(10**6), a)
        yield f"{name}.slots", lambda a: np.where(a > 0, a & ~np.uint64(0xFFFFFFFF), a)
        yield f"{name}.slots", lambda a: np.roll(a, 1)
    for name, limit in (("state_labels", 4), ("transition_codes", 16), ("pair_codes", 16)):
        yield f"field.{name}", lambda a: None
        yield f"field.{name}", lambda a: a[:-1]
        yield f"field.{name}", lambda a: np.append(a, a[-1:])
        yield f"field.{name}", lambda a: a - 1000
        yield f"field.{name}", lambda a, limit=limit: np.where(np.arange(len(a)) == len(a) - 1, limit, a)
        yield f"field.{name}", lambda a: a.astype(np.int64)
    yield "field.transition_codes", lambda a: a[::-1].copy()
    for name in ("state_offsets", "pair_offsets"):
        yield f"field.{name}", lambda a: None
        yield f"field.{name}", lambda a: a[:-1]
        yield f"field.{name}", lambda a: np.append(a, a[-1:])
        yield f"field.{name}", lambda a: a + 1
        yield f"field.{name}", lambda a: np.where(np.arange(len(a)) == 1, -5, a)
        yield f"field.{name}", lambda a: np.where(np.arange(len(a)) == 1, 2**40, a)


@pytest.mark.parametrize(("name", "change"), [pytest.param(n, f, id=f"{n}-{k}") for k, (n, f) in enumerate(cases())])
def test_tensors_that_do_not_fit(model, path, name, change):
    tensor = np.array(model.parts()[1][name])
    changed = change(tensor)
    rewritten(path, model, tensors={name: None if changed is None else np.ascontiguousarray(changed)})


def test_a_full_table_of_strings_cannot_hang(path):
    """Without an empty slot, looking up an unknown string would never end."""
    crf, X = fitted("items")
    model = crf.fit(X, LABELS).model_
    slots = np.array(model.parts()[1]["attributes.slots"])
    used = slots[slots > 0]
    rewritten(path, model, tensors={"attributes.slots": np.resize(used, len(slots))})


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32"},
        {"dtype": None},
        {"shape": [-1]},
        {"shape": [1e999]},
        {"shape": "x"},
        {"shape": [2**62, 4]},
        {"data_offsets": [0]},
        {"data_offsets": [8, 0]},
        {"data_offsets": [-8, 0]},
        {"data_offsets": [0, 10**18]},
        {"data_offsets": [0, 1e999]},
        {"data_offsets": None},
    ],
    ids=str,
)
def test_headers_that_contradict_the_file(model, path, entry):
    model.save(path)
    blob = path.read_bytes()
    length = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8 : 8 + length])
    header["weights"] |= entry
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    refused(path, len(text).to_bytes(8, "little") + text + blob[8 + length :])


# --- writing


def test_an_existing_file_is_replaced_whole(model, path):
    path.write_bytes(b"old")
    model.save(path)
    assert behaviour(ChainModel.load(path)) == behaviour(model)
    assert os.listdir(path.parent) == [path.name]
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_paths_that_cannot_be_written(model, tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "directory").mkdir()
    for bad in (tmp_path / "missing" / "m.crf", tmp_path / "file" / "m.crf", tmp_path / "directory"):
        with pytest.raises(ModelFileError, match="cannot write"):
            model.save(bad)
        with pytest.raises(ModelFileError, match="cannot write"):
            modelfile.check_writable(bad)
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]
    modelfile.check_writable(tmp_path / "fine.crf")
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]


def test_a_failure_in_the_middle_keeps_the_old_file(model, path, monkeypatch):
    model.save(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for target in ("os.replace", "os.fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(target, fail)
            with pytest.raises(ModelFileError, match="No space left"):
                model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_keeps_the_old_file(model, path):
    """A real failure to write: the process may not make files of this size."""
    resource = pytest.importorskip("resource")
    model.save(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
        with pytest.raises(ModelFileError, match="cannot write"):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_number_with_too_many_digits_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(ModelFileError, match=r"cannot write .*m\.crf: .*digits"):
        modelfile.write(tmp_path / "m.crf", "chain", {"labels": [10**5000]}, {})
    assert list(tmp_path.iterdir()) == []
