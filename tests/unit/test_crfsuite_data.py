"""CRFsuite's data files: labels, attributes, values, escapes, weights, and lines that are malformed."""

import gzip
import io
import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crfkit import ChainCRF, read_crfsuite
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import ColumnFile, read_columns
from crfkit.files.crfsuite_data import crfsuite_blocks


def parsed(text, **options):
    return read_crfsuite(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


@pytest.mark.parametrize(
    ("line", "label", "item"),
    [
        ("B", "B", []),
        ("B\tw=a\tb", "B", ["w=a", "b"]),
        ("B\t\tw=a\t\tb\t", "B", ["w=a", "b"]),
        ("\tB\tw=a", "B", ["w=a"]),
        ("B\tw=a b c", "B", ["w=a b c"]),
        ("B\tx:2.5\tb", "B", {"x": 2.5, "b": 1.0}),
        ("B\tx:1\tb", "B", ["x", "b"]),
        ("B\tx:\tb", "B", ["x", "b"]),  # no value is 1
        ("B\tx:-1e-3", "B", {"x": -0.001}),
        ("B\tx:0", "B", {"x": 0.0}),
        ("B\ta\ta", "B", ["a", "a"]),
        ("B\ta\ta\tx:1", "B", {"a": 2.0, "x": 1.0}),
        (r"B\:1" + "\t" + r"t=12\:30", "B:1", ["t=12:30"]),
        (r"B" + "\t" + r"a\\b", "B", ["a\\b"]),
        (r"B" + "\t" + r"a\\:3", "B", {"a\\": 3.0}),
        (r"B" + "\t" + r"a\\\:3", "B", ["a\\:3"]),
        (r"B" + "\t" + r"a\b" + "\t" + "c\\", "B", ["a\\b", "c\\"]),  # other backslashes are themselves
        (r"B" + "\t" + r"\::2", "B", {":": 2.0}),
    ],
)
def test_a_line(line, label, item):
    assert parsed(line) == ([[item]], [[label]], [1.0])
    assert parsed(f"{line}\r\n\r\n") == ([[item]], [[label]], [1.0])


def test_sequences_and_weights():
    text = "\n\nA\ta\nB\tb\n\n \t\n@weight:0.5\nA\ta\n\nA\ta\n@weight:3\tB\tb\n\n@weight:9\n\nA\n"
    assert parsed(text) == (
        [[["a"], ["b"]], [["a"]], [["a"], ["b"]], [[]]],
        [["A", "B"], ["A"], ["A", "B"], ["A"]],
        [1.0, 0.5, 3.0, 1.0],
    )
    assert parsed("") == ([], [], [])


def test_files(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress("\ufeffÄ\tß\n".encode()))
    assert read_crfsuite(path) == ([[["ß"]]], [["Ä"]], [1.0])
    assert read_crfsuite(ColumnFile(path)) == ([[["ß"]]], [["Ä"]], [1.0])
    assert parsed("Ä\tß\n".encode("latin-1"), encoding="latin-1") == ([[["ß"]]], [["Ä"]], [1.0])
    with pytest.raises(DataError, match=r"nosuch: cannot read the file"):
        read_crfsuite(tmp_path / "nosuch")
    with pytest.raises(DataError, match="attributes, not columns"):
        read_columns(path, format="crfsuite")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("A\ta:x\n", 1, "'a:x' has a value that is not a number; write \\\\: for a colon"),
        ("A\n\nB\tw=http://x.org\n", 3, "'w=http://x.org' has a value that is not a number"),
        ("A\ta:1:2\n", 1, "'a:1:2' has two values"),
        ("A\t:2\n", 1, "no name before its colon"),
        ("A\ta:inf\n", 1, "not finite"),
        ("A\ta:nan\n", 1, "not finite"),
        ("A:1\ta\n", 1, "the label 'A:1' has a value"),
        ("@nosuch:1\n", 1, "unknown declaration '@nosuch'"),
        ("A\n@weight:x\n", 2, "must be a number >= 0, not 'x'"),
        ("@weight\n", 1, "must be a number >= 0, not ''"),
        ("@weight:-1\n", 1, "must be a number >= 0, not '-1'"),
        ("@weight:nan\n", 1, "must be a number >= 0, not 'nan'"),
        ("A\t\0\\:\n", 1, "control character"),
        (b"A\tb\n\xc3\xa4\t\xe4\n", 2, r"not UTF-8 at byte 4 of the line \(0xE4\); name the encoding"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, text, line, why):
    path = tmp_path / "x"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError, match=f"x:{line}: .*{why}"):
        read_crfsuite(path)


NAMES = st.text(st.characters(exclude_characters="\t\n\r\0\1", exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: not name.isspace() and not name.startswith("@")
)


def escaped(name):
    return name.replace("\\", "\\\\").replace(":", "\\:")


@given(
    st.lists(st.lists(st.tuples(NAMES, st.lists(st.tuples(NAMES, st.floats(-9, 9)))), min_size=1)),
    st.integers(1, 40),
)
@example([[("A", [("a", 1.0)])], [("\\", [(":", 0.0)])]], 1)
def test_what_is_written_is_read_back(sequences, chunk):
    text = "".join(
        "".join(
            "\t".join([escaped(label), *(f"{escaped(name)}:{value!r}" for name, value in pairs)]) + "\n"
            for label, pairs in sequence
        )
        + "\n"
        for sequence in sequences
    )
    blocks = crfsuite_blocks(io.BytesIO(text.encode("utf-8")), chunk)
    found = list(itertools.chain.from_iterable(blocks))
    assert [sequence.labels for sequence in found] == [[label for label, _ in sequence] for sequence in sequences]
    for sequence, expected in zip(found, sequences, strict=True):
        for item, (_, pairs) in zip(sequence.items, expected, strict=True):
            total = {}
            for name, value in pairs:
                total[name] = total.get(name, 0.0) + value
            values = item if isinstance(item, dict) else dict.fromkeys(item, 1.0)
            assert values == pytest.approx(total)


@given(st.binary(max_size=60) | st.lists(st.sampled_from([b"A", b":", b"\\", b"\t", b"\n", b"@weight", b"1", b"\r"])))
def test_any_bytes_are_read_or_refused(data):
    data = data if isinstance(data, bytes) else b"".join(data)
    try:
        X, y, weights = parsed(data)
    except DataError:
        return
    assert len(X) == len(y) == len(weights)
    assert [len(items) for items in X] == [len(labels) for labels in y]
    assert all(label for labels in y for label in labels)


# --- learning


TEXT = "A\tw=a\tx:2\nB\tw=b\n\n@weight:3\nB\tw=b\nA\tw=a\tx:0.5\n\nA\tw=c\n"


def test_fitting_a_file_is_fitting_its_sequences(tmp_path):
    path = tmp_path / "train"
    path.write_text(TEXT)
    X, y, weights = read_crfsuite(path)
    expected = ChainCRF(n_threads=1).fit(X, y, sample_weight=weights)
    found = ChainCRF(n_threads=1).fit_file(path, format="crfsuite")
    assert found.coef_.tolist() == expected.coef_.tolist()
    assert found.model_.training["format"] == "crfsuite"
    assert b"".join(found.model_.tag_columns(path)).decode() == "".join(
        "".join(f"{label}\n" for label in row) + "\n" for row in expected.predict(X)
    )


def test_files_that_do_not_fit_the_options(tmp_path):
    path = tmp_path / "train"
    path.write_text(TEXT)
    with pytest.raises(ParameterError, match="without a template; remove the template"):
        ChainCRF(template="U%x[0,0]").fit_file(path, format="crfsuite")
    with pytest.raises(ParameterError, match="some of the files"):
        ChainCRF().fit_file([ColumnFile(path, format="crfsuite"), ColumnFile(path, format="columns")])
    path.write_text("A\ta\nA\tb\n")
    with pytest.raises(DataError, match="train: every position has the label 'A'"):
        ChainCRF().fit_file(path, format="crfsuite")
    path.write_text("\n")
    with pytest.raises(DataError, match="train: the file has no sequences"):
        ChainCRF().fit_file(path, format="crfsuite")
