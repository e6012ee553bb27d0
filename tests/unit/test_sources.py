"""Files are cut between sequences, and every byte of them is read once."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fsspec", reason="the extra crfkit[distributed] is not installed")

from crfkit.chain.encoding.vocabulary import Inputs
from crfkit.distributed.sources import PieceStream, expanded, file_sources
from crfkit.errors import DataError, ParameterError
from crfkit.text.template import Template

INPUTS = Inputs(Template.make("U00:%x[0,0]"))


def contents(sources):
    """What is read of each source."""
    found = []
    for source in sources:
        read = b""
        for piece in source.pieces:
            stream = PieceStream(piece)
            while block := stream.read(7):
                read += block
        found.append(read)
    return found


@given(
    lengths=st.lists(st.lists(st.integers(1, 4), max_size=8), min_size=1, max_size=4),
    n=st.integers(1, 9),
    blank=st.sampled_from(["\n", "\r\n", " \t\n", "\n\n"]),
)
def test_pieces_cover_all_files_and_begin_with_sequences(tmp_path_factory, lengths, n, blank):
    folder = tmp_path_factory.mktemp("files")
    end = "\r\n" if blank == "\r\n" else "\n"
    whole = b""
    for k, sizes in enumerate(lengths):
        text = "".join("".join(f"word{i} L{i % 2}{end}" for i in range(size)) + blank for size in sizes).encode()
        (folder / f"part{k}.txt").write_bytes(text)
        whole += text
    read = contents(file_sources([str(folder / "*.txt")], n, True))
    assert len(read) <= n
    assert b"".join(read) == whole
    for part in read:
        assert not part.strip() or part.lstrip(b"\r\n \t").startswith(b"word0 ")


def test_parts_are_about_equal(tmp_path):
    (tmp_path / "a.txt").write_text("a A\nb B\n\n" * 1000)
    (tmp_path / "b.txt").write_text("a A\nb B\n\n" * 3000)
    sizes = [len(part) for part in contents(file_sources([str(tmp_path / "*.txt")], 4, True))]
    assert len(sizes) == 4
    assert max(sizes) - min(sizes) < 30


def test_packed_files_are_not_cut(tmp_path):
    with gzip.open(tmp_path / "a.txt.gz", "wb") as file:
        file.write(b"a A\nb B\n\n" * 1000)
    sources = file_sources([str(tmp_path / "a.txt.gz")], 4, True)
    assert len(sources) == 1
    assert len(sources[0].read(INPUTS).data) == 1000


def test_errors_name_the_line_of_the_file(tmp_path):
    lines = ["a A", "b B", ""] * 100
    lines[250] = "only"
    path = tmp_path / "bad.txt"
    path.write_text("\n".join(lines) + "\n")
    sources = file_sources([str(path)], 3, True)
    assert len(sources) == 3
    with pytest.raises(DataError, match=r"bad\.txt:251: ") as found:
        sources[2].read(INPUTS)
    assert found.value.line == 251


def test_crfsuite_files_are_recognised(tmp_path):
    path = tmp_path / "train.crfsuite"
    path.write_text("@weight:2\nDET\tw=the\nNOUN\tw=cat\tlen:3\n\nNOUN\tw=dogs\nVERB\tw=run\n\n" * 20)
    pieces = [source.read(Inputs()) for source in file_sources([str(path)], 2, False)]
    assert len(pieces) == 2
    assert [w for piece in pieces for w in piece.data.weights.tolist()] == [2.0, 1.0] * 20
    with pytest.raises(ParameterError, match="without a template"):
        file_sources([str(path)], 2, True, format="crfsuite")


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"none\*\.txt: no file matches"):
        expanded([str(tmp_path / "none*.txt")])
    with pytest.raises(DataError, match=r"missing\.txt: cannot read the file"):
        expanded([str(tmp_path / "missing.txt")])
    with pytest.raises(DataError, match="nowhere://x: cannot read the file"):
        expanded(["nowhere://x"])
    (tmp_path / "columns.txt").write_text("a A\nb B\n")
    with pytest.raises(ParameterError, match="needs a template"):
        file_sources([str(tmp_path / "columns.txt")], 2, False)
