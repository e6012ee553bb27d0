"""Column files: the streaming native parser and `read_columns` agree with each other and with what was written."""

import gzip
import io
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import Template, _core, read_columns
from crfkit.chain.encoding.sequences import feed_columns, learn_file
from crfkit.errors import DataError

PLAIN = b"He PRP B-NP\nreckons VBZ B-VP\n\nIt PRP B-NP\n"
X = [[("He", "PRP"), ("reckons", "VBZ")], [("It", "PRP")]]
Y = [["B-NP", "B-VP"], ["B-NP"]]


def native(blob: bytes, width: int, labelled: bool = True, chunk: int | None = None):
    """(X, y) as the native parser sees them, fed in chunks; raises DataError as the library does."""
    template = Template("\n".join(f"U{c}:%x[0,{c}]" for c in range(width)))
    encoder = _core.Encoder(template.text, labelled=labelled)
    starts, words, labels = [0], [], []
    source = io.BytesIO(blob) if chunk is None else Chunks(blob, chunk)
    for _ in feed_columns(encoder, source):
        part = encoder.take()
        words += np.split(part[2], part[1][1:-1]) if len(part[1]) > 1 else []
        starts += (part[0][1:] + starts[-1]).tolist()
        labels += part[6].tolist() if labelled else []
    names = encoder.table(np.arange(encoder.sizes[0])).to_list()
    rows = [tuple(names[a].split(":", 1)[1] for a in position) for position in words]
    spans = list(itertools.pairwise(starts))
    y = [[encoder.label_names[j] for j in labels[a:b]] for a, b in spans] if labelled else []
    return [rows[a:b] for a, b in spans], y


class Chunks(io.RawIOBase):
    """A stream that gives out a few bytes at a time."""

    name = "stream"

    def __init__(self, blob, size):
        self._parts = iter([blob[k : k + size] for k in range(0, len(blob), size)])

    def read(self, _=-1):
        return next(self._parts, b"")


def parse_all(tmp_path, blob: bytes, width: int = 2, labelled: bool = True):
    """The common result of every way to read a file."""
    path = tmp_path / "x.txt"
    path.write_bytes(blob)
    result = read_columns(path, label=labelled)
    assert native(blob, width, labelled) == result
    for chunk in range(1, 8):
        assert native(blob, width, labelled, chunk) == result
    return result


# --- what is accepted


@pytest.mark.parametrize(
    "blob",
    [
        PLAIN,
        PLAIN.replace(b" ", b"\t"),
        PLAIN.replace(b" ", b" \t  "),
        PLAIN.replace(b"He PRP", b"He\tPRP"),
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n\n", b"\r\n\r\n"),
        PLAIN.rstrip(b"\n"),
        PLAIN.replace(b"\n", b" \n"),
        PLAIN.replace(b"\n", b" \r\n"),
        PLAIN.replace(b"He", b"\t He").replace(b"It", b"  It"),
        PLAIN.replace(b"\n\n", b"\n\n\n\n"),
        PLAIN.replace(b"\n\n", b"\n \t \n"),
        b"\n\n" + PLAIN + b"\n\n\n",
        b"\xef\xbb\xbf" + PLAIN,
        b"\xef\xbb\xbf\r\n" + PLAIN,
    ],
)
def test_layouts_that_mean_the_same(tmp_path, blob):
    assert parse_all(tmp_path, blob) == (X, Y)


def test_hash_is_an_ordinary_token(tmp_path):
    X, y = parse_all(tmp_path, b"# # O\n#1 x O\n\n# comment? no\n")
    assert X == [[("#", "#"), ("#1", "x")], [("#", "comment?")]]
    assert y == [["O", "O"], ["no"]]


def test_only_tabs_and_spaces_separate(tmp_path):
    blob = "a\u00a0b\u3000c d\x0be\x0c O\n".encode()
    assert parse_all(tmp_path, blob)[0] == [[("a\u00a0b\u3000c", "d\x0be\x0c")]]


def test_line_ends_of_other_kinds_are_text(tmp_path):
    blob = "a\u2028b\u0085c d O\nx\ry z O\n".encode()
    assert parse_all(tmp_path, blob)[0] == [[("a\u2028b\u0085c", "d"), ("x\ry", "z")]]


def test_one_carriage_return_belongs_to_the_line_end(tmp_path):
    assert parse_all(tmp_path, b"a b O\r\r\n")[1] == [["O\r"]]


def test_a_byte_order_mark_inside_is_text(tmp_path):
    assert parse_all(tmp_path, "a b O\n\ufeffa b O\n".encode())[0] == [[("a", "b"), ("\ufeffa", "b")]]


@pytest.mark.parametrize("text", ["naïve", "語", "🙂", "\U0010ffff", "\ud7ff\ue000", "\x00", "\x7f"])
def test_any_unicode_token(tmp_path, text):
    assert parse_all(tmp_path, f"{text} {text} {text}\n".encode()) == ([[(text, text)]], [[text]])


def test_without_labels_every_column_is_a_feature(tmp_path):
    assert parse_all(tmp_path, PLAIN, width=3, labelled=False)[0][1] == [("It", "PRP", "B-NP")]
    assert parse_all(tmp_path, b"one\n\ntwo\n", width=1, labelled=False)[0] == [[("one",)], [("two",)]]


@pytest.mark.parametrize("blob", [b"", b"\n", b" \n\t\n\r\n", b"\xef\xbb\xbf"])
def test_nothing_gives_nothing(tmp_path, blob):
    assert parse_all(tmp_path, blob) == ([], [])


def test_gzip(tmp_path):
    path = tmp_path / "x.txt.gz"
    path.write_bytes(gzip.compress(PLAIN))
    assert read_columns(path) == (X, Y)
    assert learn_file(path, Template("U%x[0,0]"), 1).data.lengths.tolist() == [2, 1]


def test_raw_lines_come_back_with_a_column_appended():
    encoder = _core.Encoder("U%x[0,0]", keep_lines=True)
    encoder.feed(b"\xef\xbb\xbfa b\r\nc  d \n\n\ne\tf\n\ng", end=False)
    assert encoder.lines_with(["1", "2", "3"]) == b"a b 1\nc  d  2\n\ne\tf\t3\n\n"
    assert encoder.lines_with([]) == b""
    with pytest.raises(_core.LineError):  # one column where the lines before have two
        encoder.feed(b"", end=True)
    encoder = _core.Encoder("U%x[0,0]", keep_lines=True)
    encoder.feed(b"g", end=True)
    with pytest.raises(ValueError, match="one string per line"):
        encoder.lines_with([])
    assert encoder.lines_with(["é"]) == "g\té\n\n".encode()


# --- what is refused: the message has the file and the line


def refused(tmp_path, blob: bytes, labelled: bool = True) -> DataError:
    """The error that all ways to read agree on."""
    path = tmp_path / "bad.txt"
    path.write_bytes(blob)
    with pytest.raises(DataError) as caught:
        read_columns(path, label=labelled)
    assert str(path) in str(caught.value)
    for chunk in (None, 1, 2, 3, 5, 7):
        with pytest.raises(DataError) as other:
            native(blob, 1, labelled, chunk)
        assert other.value.line == caught.value.line
    if labelled:
        with pytest.raises(DataError, match=f"bad.txt:{caught.value.line}: "):
            learn_file(path, Template("U%x[0,0]"), 1)
    return caught.value


@pytest.mark.parametrize(
    ("blob", "line"),
    [
        (b"a b\nc\n", 2),
        (b"a b\nc d e\n", 2),
        (b"a b\n\n\nc d\ne\n", 5),
        (b"a b\r\n\r\nc d e", 3),
        (b"\xef\xbb\xbfa b\nc", 2),
    ],
)
def test_ragged_columns(tmp_path, blob, line):
    error = refused(tmp_path, blob)
    assert error.line == line
    assert re.search(r"(1 column|3 columns), but the lines before have 2", str(error))


one_column = pytest.mark.parametrize(
    ("blob", "line"),
    [
        (start + end, line)
        for start, line in ((b"a\nb", 1), (b"\n\na", 3))
        for end in (b"", b"\n", b"\n\n", b"\r\n \r\n")
    ],
)


@one_column
def test_one_column_cannot_be_labelled(tmp_path, blob, line):
    path = tmp_path / "bad.txt"
    path.write_bytes(blob)
    with pytest.raises(DataError, match=rf"bad\.txt:{line}: 1 column"):
        learn_file(path, Template("U%x[0,0]"), 1)


@one_column
def test_one_column_cannot_be_read_as_labelled(tmp_path, blob, line):
    path = tmp_path / "bad.txt"
    path.write_bytes(blob)
    with pytest.raises(DataError, match="1 column") as caught:
        read_columns(path)
    assert Path(caught.value.path) == path
    assert caught.value.line == line


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff",
        b"\x80",
        b"\xc3",  # truncated
        b"\xe2\x82",
        b"\xf0\x9f\x99",
        b"\xc0\xaf",  # overlong
        b"\xc1\xbf",
        b"\xe0\x80\xaf",
        b"\xe0\x9f\xbf",
        b"\xf0\x80\x80\xaf",
        b"\xf0\x8f\xbf\xbf",
        b"\xed\xa0\x80",  # surrogates
        b"\xed\xbf\xbf",
        b"\xf4\x90\x80\x80",  # past U+10FFFF
        b"\xf8\x88\x80\x80\x80",
        "naïve".encode("latin-1"),
        "語".encode("utf-16-le"),
    ],
)
@pytest.mark.parametrize("before", [b"", b"1234567890123456"])
def test_invalid_utf8(tmp_path, bad, before):
    error = refused(tmp_path, b"fine O\n\n" + before + bad + b" O\n")
    assert error.line == 3
    assert f"not UTF-8 at byte {len(before) + 1 + (bad[:2] == b'na') * 2} of the line (0x" in str(error)
    assert "--encoding" in str(error)


def test_a_file_in_utf16(tmp_path):
    assert refused(tmp_path, "a b\n".encode("utf-16")).line == 1


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"missing\.txt: cannot read the file: No such file"):
        read_columns(tmp_path / "missing.txt")
    with pytest.raises(DataError, match="cannot read the file"):
        learn_file(tmp_path, Template("U"), 1)
    path = tmp_path / "x.gz"
    for blob in (PLAIN, gzip.compress(PLAIN)[:-9], gzip.compress(PLAIN)[:20] + b"garbage", b"\x1f\x8b"):
        path.write_bytes(blob)
        with pytest.raises(DataError, match=r"x\.gz: cannot read the file"):
            read_columns(path)


@pytest.mark.parametrize("blob", [b"", b"\n\n", b"  \r\n"])
def test_an_empty_file_cannot_be_learned_from(tmp_path, blob):
    path = tmp_path / "empty.txt"
    path.write_bytes(blob)
    with pytest.raises(DataError, match=r"empty\.txt: the file has no sequences"):
        learn_file(path, Template("U"), 1)


def test_a_single_label_cannot_be_learned_from(tmp_path):
    path = tmp_path / "same.txt"
    path.write_bytes(b"a O\nb O\n")
    with pytest.raises(DataError, match=r"same\.txt: .*'O'"):
        learn_file(path, Template("U"), 1)


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n\n"])
def test_a_template_that_names_a_missing_column(tmp_path, ending):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\na b" + ending)
    with pytest.raises(
        DataError, match=r"x\.txt:2: line 3 of the template names column 1, but there is only 1 feature column,"
    ):
        learn_file(path, Template("U%x[0,0]\n\nU%x[0,1]\nU%x[0,7]"), 1)


# --- any text


words = st.text(
    st.characters(blacklist_characters=" \t\n\r\ufeff", blacklist_categories=["Cs"]), min_size=1, max_size=4
)
separators = st.text(" \t", min_size=1, max_size=3)


@st.composite
def files(draw):
    """(bytes, X, y): random sequences, written in a random layout."""
    width = draw(st.integers(1, 3))
    row = st.lists(words, min_size=width + 1, max_size=width + 1)
    sequences = draw(st.lists(st.lists(row, min_size=1, max_size=3), max_size=4))
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    text = draw(st.sampled_from(["", "\ufeff", "\n", " \n\t\n"]))
    for sequence in sequences:
        for cells in sequence:
            text += draw(st.sampled_from(["", " "])) + draw(separators).join(cells) + eol
        text += draw(st.sampled_from([eol, eol + eol, " \t" + eol]))
    if draw(st.booleans()):
        text = text.rstrip(" \t\r\n")
    X = [[tuple(cells[:-1]) for cells in sequence] for sequence in sequences]
    return text.encode(), width, X, [[cells[-1] for cells in sequence] for sequence in sequences]


@settings(max_examples=60)
@given(file=files(), chunk=st.integers(1, 7))
def test_random_files_come_back(tmp_path_factory, file, chunk):
    blob, width, X, y = file
    path = tmp_path_factory.getbasetemp() / "random.txt"
    path.write_bytes(blob)
    assert read_columns(path) == (X, y)
    assert native(blob, width) == (X, y)
    assert native(blob, width, chunk=chunk) == (X, y)


atoms = st.sampled_from([b"a", b"b ", b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", "é".encode(), b"\xff", b"\xef\xbb\xbf"])


@settings(max_examples=200)
@given(blob=st.lists(atoms, max_size=14).map(b"".join), labelled=st.booleans(), chunk=st.integers(1, 7))
def test_both_parsers_agree_on_anything(tmp_path_factory, blob, labelled, chunk):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(blob)

    def outcome(parse):
        try:
            X, y = parse()
        except DataError as error:
            return error.line
        return [[row[0] for row in sequence] for sequence in X], y

    expected = outcome(lambda: read_columns(path, label=labelled))
    assert outcome(lambda: native(blob, 1, labelled)) == expected
    assert outcome(lambda: native(blob, 1, labelled, chunk)) == expected
