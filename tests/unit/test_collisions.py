"""Strings that were chosen to collide cost what others cost, in training, in model files and in CRFsuite's."""

import time

import numpy as np
import pytest
from collisions import colliding, lookup3, with_lookup3

from crfkit import ChainCRF, _core
from crfkit.errors import DataError, ModelFileError
from crfkit.text.gazetteers import phrases_of

N = 40_000


@pytest.fixture(scope="module")
def names():
    return colliding(N)


def table_of(names):
    encoder = _core.Encoder(loose=True)
    encoder.add_items([[name] for name in names])
    return encoder.table(np.arange(len(names)))


def test_they_do_collide():
    """Slots of a table without a key have the upper half of the hash in their own upper half."""
    few = table_of(colliding(200))
    assert len(few.slots) == 512
    assert len({slot >> 32 for slot in few.slots.tolist() if slot}) == 1


def test_time_does_not_grow_with_their_square(names):
    begin = time.process_time()
    table = table_of(names)
    _core.StringTable(table.offsets, table.bytes, table.slots)  # a table of a model file is checked
    again = _core.Encoder(attributes=table, loose=True)
    again.add_items([[name] for name in names])
    assert time.process_time() - begin < 1.5  # 0.05 s; without a key 4 s, and 25 times as long for 200,000
    assert again.take()[2].tolist() == list(range(N))


def test_ids_are_those_of_first_occurrence(names):
    encoder = _core.Encoder(loose=True)
    mixed = [name for k in range(2000) for name in (names[k], b"word %d" % k, names[k // 2])]
    for start in range(0, len(mixed), 50):  # the key changes amid a batch
        encoder.add_items([mixed[start : start + 50]])
    numbers = {name: k for k, name in enumerate(dict.fromkeys(mixed))}
    assert encoder.take()[2].tolist() == [numbers[name] for name in mixed]


def test_tables_are_the_same_whenever_they_are_built(names):
    first, second = table_of(names[:3000]), table_of(names[:3000])
    assert first.slots.tolist() == second.slots.tolist()
    assert len(first.slots) == 8192 + 2  # with its key
    changed = table_of([*names[:2999], b"x"])
    assert changed.slots[-2:].tolist() != first.slots[-2:].tolist()  # the key depends on the strings
    assert len(table_of([b"%d" % k for k in range(3000)]).slots) == 8192  # ordinary strings need none


def test_part_of_such_a_table(names):
    table = table_of(names[:3000])
    few = table.take(np.arange(0, 3000, 100))
    assert len(few.slots) == 64  # without a key
    assert few.find_all(table).tolist() == [k // 100 if k % 100 == 0 else -1 for k in range(3000)]
    assert table.find_all(few).tolist() == list(range(0, 3000, 100))


def text_names(n):
    """Those of n colliding strings that are UTF-8."""
    return [text for name in colliding(n) if (text := name.decode("utf-8", "ignore")).encode() == name]


def test_a_model_of_colliding_attributes(tmp_path):
    words = text_names(130_000)
    assert len(words) > 1100
    X, y = [[[word] for word in words]], [["A" if k % 3 else "B" for k in range(len(words))]]
    crf = ChainCRF(max_iterations=20).fit(X, y)
    assert len(crf.model_.vocabulary.attributes.slots).bit_count() > 1  # a power of two, and the key
    crf.save(tmp_path / "m.crf")
    loaded = ChainCRF.load(tmp_path / "m.crf")
    assert loaded.predict(X) == crf.predict(X)


def test_a_crafted_table_is_refused():
    """A file may come with slots that were filled without regard to the limit."""
    names = colliding(2000)
    table = table_of([b"%016d" % k for k in range(2000)])
    slots = np.zeros(4096, dtype=np.uint64)
    tag = int(max(table_of(names[:10]).slots.tolist())) >> 32
    slots[:2000] = np.arange(1, 2001, dtype=np.uint64) | np.uint64(tag << 32)
    with pytest.raises(ValueError, match="too many of its strings collide"):
        _core.StringTable(table.offsets, np.frombuffer(b"".join(names), dtype=np.uint8), slots)
    table = table_of(names)
    for wrong in (table.slots[:-1], table.slots[:-2], np.append(table.slots[:-1], np.uint64(7))):
        with pytest.raises(ValueError, match=r"slots|is not found|collide"):
            _core.StringTable(table.offsets, table.bytes, np.ascontiguousarray(wrong))


def test_phrases_whose_words_are_numbered_by_a_stranger():
    phrases = phrases_of("g", [f"w{k} w{(k * 7919) % 20_000}" for k in range(20_000)])
    rules = _core.TextRules(["gazetteer[0]"], [("g", phrases.table)], False)
    assert rules.expand([["w3"], [f"w{3 * 7919 % 20_000}"]]) == [
        [("gazetteer[0]=g:B", 1.0)],
        [("gazetteer[0]=g:I", 1.0)],
    ]


# --- CRFsuite's files, whose hash has no key


def crfsuite_file(attributes):
    data = np.frombuffer(b"".join(attributes), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, attributes)]).astype(np.uint64)
    n = len(attributes)
    return _core.write_crfsuite(
        ["A", "B"],
        _core.StringTable.from_bytes(offsets, data),
        np.arange(n + 1, dtype=np.int64),
        np.zeros(n, dtype=np.int32),
        np.zeros(0, dtype=np.int32),
        np.ones(n),
    )


def test_attributes_that_collide_in_the_format_are_refused():
    hashes = [7 + 256 * 800 * k for k in range(400)]  # one table of 800 buckets, and 400 strings at one of them
    assert len(crfsuite_file(with_lookup3(hashes))) > 400 * 40
    with pytest.raises(_core.BadModel, match="too many attributes collide in the hash tables of CRFsuite's format"):
        crfsuite_file(with_lookup3([7 + 256 * 2600 * k for k in range(1300)]))


def test_a_table_without_an_empty_bucket():
    known, unknown = [name for k in range(5000) if lookup3(name := b"w%d" % k) % 256 == 7][:2]
    attributes = [known, *with_lookup3([7 + 256 * k for k in range(1, 1798, 3)])]
    file = bytearray(crfsuite_file(attributes))
    tagger = _core.Tagger.open_crfsuite(bytes(file))
    assert tagger.tag([[known], [unknown]]) == ["A", "A"]
    database = int.from_bytes(file[36:40], "little")
    table, size = np.frombuffer(file, "<u4", 2, database + 24 + 8 * 7).tolist()
    assert size == 1200
    buckets = np.frombuffer(file, "<u4", 2 * size, database + table).reshape(-1, 2).copy()
    buckets[buckets[:, 1] == 0] = [7 + 256 * 999_999, buckets[:, 1].max()]
    file[database + table : database + table + 8 * size] = buckets.tobytes()
    tagger = _core.Tagger.open_crfsuite(bytes(file))
    with pytest.raises(_core.BadModel, match="too many of the strings of a hash table collide"):
        tagger.tag([[unknown]])


def test_parts_of_a_crfsuite_file_are_checked():
    table = _core.StringTable.from_strings(["a", "b"])
    none, ones = np.zeros(0, dtype=np.int32), np.ones(2)
    for offsets, labels in ([(0, 2, 2), (0, 2)], [(0, 3, 2), (0, 0)], [(0, -1, 2), (0, 0)], [(0, 1, 2), (0, -1)]):
        arrays = np.array(offsets, dtype=np.int64), np.array(labels, dtype=np.int32)
        with pytest.raises(ValueError, match=r"a state is of no label|must ascend"):
            _core.write_crfsuite(["A", "B"], table, *arrays, none, ones)


def test_errors_are_of_crfkit():
    assert issubclass(_core.BadInput, DataError)
    assert not issubclass(DataError, ModelFileError)
