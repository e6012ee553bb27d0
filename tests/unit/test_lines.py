"""Lines of text files: every kind of end, limits, and time that grows with their length."""

import gzip
import os
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit import ChainCRF, Template, _core, read_columns, read_crfsuite, read_table
from crfkit.chain.encoding.sequences import learn_file
from crfkit.compat.crfpp.lines import column_file
from crfkit.compat.wapiti.data import read_batches, read_whole
from crfkit.errors import DataError, LimitError
from crfkit.files import limits, lines
from crfkit.files.columns import ColumnFile
from crfkit.files.mask_colours import read_colours
from crfkit.files.tagged import read_tagged, rewrite_column
from crfkit.text.embeddings import Embeddings
from crfkit.text.gazetteers import phrases_of

TEMPLATE = "U:%x[0,0]\nB\n"


class Blocks:
    """A stream that gives these blocks."""

    def __init__(self, *blocks):
        self._blocks = iter(blocks)

    def read(self, size):
        return next(self._blocks, b"")


def cut(blob, size):
    return [blob[k : k + size] for k in range(0, len(blob), size)]


# --- line ends

texts = st.text(alphabet="ab\r\n", max_size=12).map(str.encode)


@given(texts, st.integers(1, 5))
def test_line_feeds_replace_carriage_returns_where_there_are_no_others(blob, size):
    found = b"".join(lines.with_newlines(cut(blob, size), "f"))
    assert found == (blob if b"\n" in blob else blob.replace(b"\r", b"\n"))


@given(texts, st.integers(1, 5))
def test_a_file_that_begins_with_carriage_returns_may_go_on_otherwise(blob, size):
    start = b"x\r" * lines.BEGINNING
    found = b"".join(lines.with_newlines([start, *cut(blob, size)], "f"))
    assert found == (start + blob).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


@given(texts, st.integers(1, 5))
def test_lines_together_are_the_text(blob, size):
    assert b"".join(lines.whole_lines(cut(blob, size))) == blob
    found = list(lines.lines_with_ends(cut(blob, size)))
    assert b"".join(found) == blob
    assert found == (blob.splitlines(keepends=True) if b"\n" not in blob else [*lines._split(blob)])
    assert list(lines.each_line(cut(blob, size))) == blob.removesuffix(b"\n").split(b"\n")[: None if blob else 0]


def conllu(rows):
    return "".join("\t".join([str(k), word, "_", label, *"______"]) + "\n" for k, (word, label) in enumerate(rows, 1))


MAC = {
    "columns": "a x O\nb y P\n\nc x O\n",
    "conllu": f"# one\n{conllu([('a', 'O'), ('b', 'P')])}\n{conllu([('c', 'O')])}\n",
    "crfsuite": "O\tw=a\nP\tw=b\tn:2\n\nO\tw=c\n",
}


@pytest.mark.parametrize("format", MAC)
@pytest.mark.parametrize("packed", [False, True])
def test_carriage_returns_alone_end_lines(tmp_path, format, packed):
    unix, mac = tmp_path / "unix.txt", tmp_path / ("mac.txt.gz" if packed else "mac.txt")
    unix.write_bytes(MAC[format].encode())
    mac.write_bytes((gzip.compress if packed else bytes)(MAC[format].replace("\n", "\r").encode()))
    read = read_crfsuite if format == "crfsuite" else read_columns
    assert read(mac) == read(unix)
    if format != "crfsuite":
        found, expected = (learn_file(path, Template("U:%x[0,1]\nB\n"), 1) for path in (mac, unix))
        assert found.vocabulary.attributes.to_list() == expected.vocabulary.attributes.to_list()
        assert found.data.starts.tolist() == expected.data.starts.tolist() == [0, 2, 3]


def test_lines_are_counted_in_files_with_carriage_returns(tmp_path):
    (tmp_path / "x").write_bytes(b"a x O\rb y P\r\rc O\r")
    for read in (read_columns, lambda path: learn_file(path, Template(TEMPLATE), 1)):
        with pytest.raises(DataError, match=r"x:4: 2 columns, but the lines before have 3"):
            read(tmp_path / "x")
    (tmp_path / "y").write_bytes("a x O\rb y P\r\rc ü O\r".encode("latin-1"))
    with pytest.raises(DataError, match=r"y:4: not UTF-8 at byte 3 of the line"):
        read_columns(tmp_path / "y")
    with pytest.raises(DataError, match=r"y:4: not ascii at byte 16 of the file"):
        read_columns(tmp_path / "y", encoding="ascii")


def test_utf_16_without_its_mark():
    with pytest.raises(DataError, match=r"not utf-16: .*BOM; name another encoding"):
        read_columns(ColumnFile(Blocks(b"abcd"), "utf-16"))


def test_a_line_end_between_two_blocks():
    assert read_columns(Blocks(b"a x O\r", b"\nb y P\r", b"\n"))[0] == [[("a", "x"), ("b", "y")]]
    assert read_columns(Blocks(b"a x O\r", b"b y P\r", b"\rc z Q"))[1] == [["O", "P"], ["Q"]]


def test_other_readers_of_lines_that_end_with_carriage_returns(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"New York\rRome\r")
    assert list(phrases_of("cities", path)) == ["New York", "Rome"]
    path.write_bytes(b"a 1 2\rb 3 4\r")
    assert Embeddings.read(path).words.to_list() == ["a", "b"]
    path.write_bytes(b"a,b\r1,2\r3,4\r")
    assert read_table(path).to_numpy().tolist() == [[1, 2], [3, 4]]
    path.write_bytes(b"a O P\rb O O\r\rc P P")
    assert list(read_tagged(path)) == [[["O", "O"], ["P", "O"]], [["P"], ["P"]]]
    assert b"".join(rewrite_column(path, -1, lambda y, _: ["X" for _ in y])) == b"a O X\rb O X\r\rc P X"
    model = ChainCRF(Template(TEMPLATE)).fit([[("a",), ("b",)]], [["O", "P"]]).model_
    path.write_bytes(b"a\rb\r")
    assert b"".join(model.tag_columns(path)).split() == [b"a", b"O", b"b", b"P"]


# --- limits


def streams(path):
    """(reader of a path, whether it reads packed files) for all readers of text."""
    return {
        "columns": lambda: read_columns(path),
        "encoder": lambda: learn_file(path, Template(TEMPLATE), 1),
        "crfsuite": lambda: read_crfsuite(path),
        "conllu": lambda: read_columns(ColumnFile(path, format="conllu")),
        "text": lambda: list(ColumnFile(path, format="text").chunks(labelled=False)),
        "utf-16": lambda: read_columns(ColumnFile(path, "utf-16-le")),
        "tagged": lambda: list(read_tagged(path)),
        "table": lambda: read_table(path),
        "template": lambda: Template.read(path),
        "gazetteer": lambda: phrases_of("g", path),
        "embeddings": lambda: Embeddings.read(path),
        "crf++": lambda: learn_file(column_file(path, str(path), "utf-8"), Template(TEMPLATE), 1),
        "wapiti": lambda: list(read_batches(gzip.open(path))),
        "wapiti, whole": lambda: read_whole(gzip.open(path)),
    }


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """A line of 3 GB in a file of a few megabytes; members of a gzip file follow each other."""
    path = tmp_path_factory.mktemp("bomb") / "line.gz"
    path.write_bytes(gzip.compress(b"a" * 20_000_000) * 150)
    return path


@pytest.mark.parametrize("name", streams(None))
def test_a_long_line_is_refused_before_it_is_held(bomb, name):
    begin = time.process_time()
    with pytest.raises(LimitError, match=r"line\.gz: .* 1\d,\d{3},\d{3} bytes or more.*CRFKIT_LIMITS=line="):
        streams(bomb)[name]()
    assert time.process_time() - begin < 2


def test_endless_files_end():
    for read in ("columns", "encoder", "crfsuite", "table", "template", "gazetteer", "embeddings"):
        with pytest.raises(LimitError, match="/dev/zero"):
            streams("/dev/zero")[read]()
    with pytest.raises(LimitError):
        read_colours("/dev/zero")


@given(texts.map(lambda blob: blob * 3), st.integers(1, 9), st.integers(1, 6), st.booleans())
def test_the_limit_is_that_of_the_longest_line(blob, size, most, returns):
    longest = max(map(len, (blob.replace(b"\r", b"\n") if returns else blob).split(b"\n")))
    with limits.raised(line=most):
        if longest > most:
            with pytest.raises(LimitError):
                list(lines.checked_lines(cut(blob, size), "f", returns))
        else:
            assert b"".join(lines.checked_lines(cut(blob, size), "f", returns)) == blob


def test_returns_in_a_file_with_line_feeds_end_no_line():
    with limits.raised(line=10), pytest.raises(LimitError):
        list(lines.with_newlines([b"a\n", b"bbbbbbbb\r", b"cccccccc\r"], "f"))


# --- time


def seconds(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


def test_a_line_is_looked_at_once():
    """6 MB in 12,000 blocks: 0.05 s; looking at the whole line with every block takes more than 3 s."""
    blob = b"b" * 6_000_000 + b" x O\n"
    blocks = cut(blob, 500)

    def native():
        encoder = _core.Encoder("U:%x[0,1]\nB\n", labelled=True)
        for block in blocks:
            encoder.feed(block)
        encoder.feed(b"", end=True)

    assert seconds(native) < 3
    assert seconds(lambda: read_columns(Blocks(*blocks))) < 3
    assert seconds(lambda: read_crfsuite(Blocks(*blocks))) < 3
    assert seconds(lambda: list(ColumnFile(Blocks(*blocks), format="words").chunks(labelled=False))) < 3
    assert seconds(lambda: list(read_batches(Blocks(*blocks)))) < 3
    assert seconds(lambda: list(lines.lines_with_ends(blocks))) < 3


def test_comments_are_looked_at_once():
    comments = [b"# " + b"c" * 998 + b"\n"] * 6_000
    file = ColumnFile(Blocks(*comments, b"a x O\n"))
    assert seconds(lambda: list(file.chunks(labelled=True))) < 3


# --- files that are none


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "secret").write_text("a")
    (tmp_path / "secret").chmod(0)
    reasons = {"loop": "Too many levels of symbolic links", ".": "Is a directory", "missing": "No such file"}
    if os.getuid() != 0:
        reasons["secret"] = "Permission denied"
    for name, reason in reasons.items():
        for kind, read in streams(tmp_path / name).items():
            if not kind.startswith("wapiti"):
                with pytest.raises(DataError, match=f"cannot read .*{reason}") as caught:
                    read()
                assert str(tmp_path) in str(caught.value)


def test_a_stream_that_fails_is_named():
    class Broken:
        name = "pipe"

        def read(self, size):
            raise OSError(5, "Input/output error")

    with pytest.raises(DataError, match="pipe: cannot read the file: Input/output error"):
        read_columns(Broken())


# --- numbers


def test_more_attributes_than_ids():
    encoder = _core.Encoder(most=3)
    encoder.add_items([["a", "b"], ["c", "a"]])
    with pytest.raises(DataError, match="sequence 1, position 1: more than 3 different attributes, which is the limit"):
        encoder.add_items([["a"], ["d"]])
    encoder = _core.Encoder("U:%x[0,0]\nB\n", labelled=True, most=2)
    with pytest.raises(_core.LineError) as caught:
        encoder.feed(b"a O\n\nb O\n\na O\nc O\n\n")
    assert caught.value.args[0] == 5
    assert "more than 2 different attributes" in caught.value.args[1]
    encoder = _core.Encoder("U:%x[0,0]\nB\n", most=1)
    with pytest.raises(DataError, match="more than 1 different"):
        encoder.add_rows([["a"], ["b"]])


def test_positions_and_offsets_have_64_bits():
    encoder = _core.Encoder("U:%x[0,0]\nB%x[0,0]\n", labelled=True)
    encoder.feed(b"a O\n", end=True)
    starts, offsets, ids, _, pair_offsets, pair_ids, labels = encoder.take()
    assert {array.dtype for array in (starts, offsets, pair_offsets)} == {np.dtype(np.int64)}
    assert {array.dtype for array in (ids, pair_ids, labels)} == {np.dtype(np.int32)}


def test_a_template_that_repeats_a_long_cell():
    rows = [["x" * 10_000_000]]
    encoder = _core.Encoder("U:" + "%x[0,0]" * 1000 + "\nB\n")
    with pytest.raises(DataError, match="the template makes attributes of more than 134 million bytes"):
        encoder.add_rows(rows)
    encoder = _core.Encoder("u:" + "%X[0,0]" * 30 + "\nb\n", syntax="wapiti")
    with pytest.raises(DataError, match="134 million"):
        encoder.add_rows(rows)


def test_a_pattern_with_very_many_parts():
    with pytest.raises(DataError, match="more than 1000 parts"):
        Template('u:%t[0,0,"' + "a*" * 5000 + '"]\nb\n', syntax="wapiti")
