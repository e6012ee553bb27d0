"""Files as people have them: several, from a pipe, in other encodings, CoNLL-U; and what comes out again."""

from __future__ import annotations

import gzip
import inspect
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from crfkit import ChainCRF, Template, read_columns
from crfkit.cli.commands import tagging
from crfkit.cli.main import app
from crfkit.cli.quick import FLAGS, VALUES, parse_tag
from crfkit.errors import DataError, ParameterError
from crfkit.files.columns import ColumnFile
from crfkit.files.conllu import is_conllu

TRAIN = ["train", "-t", "template", "-q", "-m"]


def weights(path: str) -> np.ndarray:
    return ChainCRF.load(path).coef_


def halves() -> None:
    """a.txt and b.txt are train.txt in two parts; the first has no blank line at its end, the second a BOM."""
    sequences = Path("train.txt").read_text("utf-8").strip().split("\n\n")
    Path("a.txt").write_text("\n\n".join(sequences[:40]), "utf-8")
    Path("b.txt").write_text("\n\n".join(sequences[40:]) + "\n", "utf-8-sig")


# --- several files, standard input


def test_several_files_are_one_training_set(call):
    halves()
    assert call(*TRAIN, "m.crf", "a.txt", "b.txt").code == 0
    np.testing.assert_array_equal(weights("m.crf"), weights("model.crf"))
    crf = ChainCRF("template").fit_file(["a.txt", Path("b.txt")])
    np.testing.assert_array_equal(crf.coef_, weights("model.crf"))


def test_standard_input(call):
    halves()
    assert call(*TRAIN, "m.crf", "-", stdin=Path("train.txt").read_bytes()).code == 0
    np.testing.assert_array_equal(weights("m.crf"), weights("model.crf"))
    assert call(*TRAIN, "m.crf", "a.txt", "-", stdin=Path("b.txt").read_bytes()).code == 0
    np.testing.assert_array_equal(weights("m.crf"), weights("model.crf"))
    assert call(*TRAIN, "m.crf", "train.txt", "--dev", "-", stdin=Path("test.txt").read_bytes()).code == 0


def test_what_is_wrong_with_several_files(fails):
    halves()
    Path("bad.txt").write_text("x x O\n\ny y\n")
    assert fails(*TRAIN, "m.crf", "a.txt", "bad.txt").startswith("bad.txt:3: 2 columns, but the lines before have 3")
    assert "only once" in fails(*TRAIN, "m.crf", "-", "-")
    assert "TRAIN and --log are the same file, b.txt" in fails(*TRAIN, "m.crf", "a.txt", "b.txt", "--log", "b.txt")


# --- encodings


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "utf-8-sig", "gb18030"])
def test_encodings(call, encoding):
    text = Path("train.txt").read_text("utf-8").replace("in\t", "für\t")
    test = Path("test.txt").read_text("utf-8").replace("in\t", "für\t")
    Path("plain.txt").write_text(text, "utf-8")
    Path("other.txt").write_bytes(text.encode(encoding))
    Path("test-other.txt").write_bytes(test.encode(encoding))
    assert call(*TRAIN, "p.crf", "plain.txt", "-i", 3).code == 0
    assert call(*TRAIN, "o.crf", "other.txt", "-i", 3, "--encoding", encoding).code == 0
    np.testing.assert_array_equal(weights("o.crf"), weights("p.crf"))
    tagged = call("tag", "o.crf", "test-other.txt", "--encoding", encoding)
    assert tagged.out == call("tag", "p.crf", "-", stdin=test.encode()).out
    assert "für\t" in tagged.out
    assert read_columns("other.txt", encoding=encoding) == read_columns("plain.txt")
    scores = call("eval", "o.crf", "test-other.txt", "--encoding", encoding, "--json").out
    assert scores == call("eval", "p.crf", "-", "--json", stdin=test.encode()).out
    Path("tagged.txt").write_bytes(tagged.out.encode(encoding))
    assert call("eval", "--tagged", "tagged.txt", "--encoding", encoding, "--json").out == scores


def test_a_file_in_another_encoding_names_the_byte_and_the_option(fails):
    Path("latin.txt").write_bytes("a x O\nfür x B\n".encode("latin-1"))
    message = fails(*TRAIN, "m.crf", "latin.txt")
    assert message.startswith("latin.txt:2: not UTF-8 at byte 2 of the line (0xFC); name the encoding of the file")
    assert "--encoding latin-1" in message
    Path("odd.txt").write_bytes(b"a x O\nb \x81 O\n")
    message = fails(*TRAIN, "m.crf", "odd.txt", "--encoding", "cp1252")
    assert re.match(r"odd\.txt:2: not cp1252 at byte 9 of the file \(0x81\): .*; name another encoding", message)
    assert "unknown encoding 'klingon'" in fails(*TRAIN, "m.crf", "train.txt", "--encoding", "klingon")
    assert "unknown encoding 'klingon'" in fails("tag", "model.crf", "test.txt", "--encoding", "klingon")


@given(text=st.text(max_size=30), chunk=st.integers(1, 9), encoding=st.sampled_from(["utf-16", "utf-8", "gb18030"]))
def test_any_chunks_give_the_same_text(text, chunk, encoding):
    text = text.encode("utf-8", "ignore").decode()
    file = ColumnFile(io.BytesIO(text.encode(encoding)), encoding, "columns")
    expected = text if "\n" in text else text.replace("\r", "\n")  # lines that end with carriage returns alone
    assert b"".join(file.chunks(False, chunk=chunk)) == expected.encode()


# --- CoNLL-U


CONLLU = """\
# sent_id = 1
# text = Vámonos al mar 10 000.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\tMood=Imp\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\tSpaceAfter=No
5.1\tvisto\tver\tVERB\t_\t_\t_\t_\t1:conj\t_
6\t10 000\t10 000\tNUM\t_\t_\t1\tobl\t_\t_

# sent_id = 2
1\t#\t#\tSYM\t_\t_\t2\tdep\t_\t_
2\tmar\tmar\tNOUN\t_\t_\t0\troot\t_\t_
"""
FORM = "U0:%x[0,1]\nU1:%x[-1,1]\nB\n"


@pytest.fixture
def conllu(workspace):
    Path("form").write_text(FORM)
    for name in ("x.conllu", "x.txt"):
        Path(name).write_text(CONLLU, "utf-8")
    return workspace


def test_conllu_is_tokens_without_comments_ranges_and_empty_nodes(conllu):
    X, y = read_columns("x.txt")
    assert [[row[1] for row in rows] for rows in X] == [["Vamos", "nos", "a", "el", "mar", "10\xa0000"], ["#", "mar"]]
    assert y == [["VERB", "PRON", "ADP", "DET", "NOUN", "NUM"], ["SYM", "NOUN"]]
    assert {row[3] for rows in X for row in rows} == {"_"}  # the label is not among the features
    assert read_columns("x.conllu", label_column="deprel")[1][1] == ["dep", "root"]
    assert read_columns("x.conllu", label=False)[0][1][0][:3] == ("1", "#", "#")


def test_conllu_from_training_to_tagging(call, conllu):
    assert call("train", "x.conllu", "-t", "form", "-m", "m.crf", "-q", "--l2", 0.01).code == 0
    X, y = read_columns("x.conllu")
    assert ChainCRF.load("m.crf").predict(X) == y
    blank = re.sub(r"(?m)^(\d+\t.*?\t.*?\t)\w+", r"\1_", CONLLU)
    assert blank != CONLLU
    assert call("tag", "m.crf", stdin=blank.encode()).out == CONLLU + "\n"
    assert call("tag", "m.crf", "x.txt", "--labels-only").out == "\n".join([*y[0], "", *y[1], "", ""])
    assert call("tag", "m.crf", "x.txt", "--marginals").out.startswith("# sent_id = 1\n")
    assert json.loads(call("eval", "m.crf", "x.conllu", "--json").out)["accuracy"] == 1


def test_conllu_with_another_label(call, conllu):
    assert call("train", "x.txt", "-t", "form", "-m", "m.crf", "-q", "--label-column", "deprel", "--l2", 0.01).code == 0
    assert ChainCRF.load("m.crf").classes_.tolist() == ["case", "dep", "det", "obj", "obl", "root"]
    out = call("tag", "m.crf", "x.txt").out
    assert [line.split("\t")[3] for line in out.splitlines() if "\t" in line] == [
        line.split("\t")[3] for line in CONLLU.splitlines() if "\t" in line
    ]
    crf = ChainCRF("form", n_threads=1).fit_file("x.txt", label_column=7)
    assert crf.classes_.tolist() == ["case", "dep", "det", "obj", "obl", "root"]


def test_what_is_wrong_with_conllu(fails, conllu):
    train = ["train", "-t", "form", "-m", "m.crf", "-q"]
    Path("bad.conllu").write_text(CONLLU.replace("2\tmar\tmar", "2\tmar"), "utf-8")
    message = fails(*train, "bad.conllu")
    assert message.startswith("bad.conllu:15: not a line of CoNLL-U: 9 cells between tabs, the first '2'; expected 10")
    Path("bad.conllu").write_bytes(CONLLU.encode().replace(b"\tmar\tmar", b"\tmar\tm\xe1r"))
    assert fails(*train, "bad.conllu").startswith("bad.conllu:9: not UTF-8 at byte ")
    assert "unknown label column 'pos'" in fails(*train, "x.conllu", "--label-column", "pos")
    assert "not a CoNLL-U file" in fails(*train, "train.txt", "--label-column", "upos")
    assert "unknown format 'csv'" in fails(*train, "train.txt", "--format", "csv")


@pytest.mark.parametrize("line", ["# NN B-NP", "#\tNN\tB-NP", "# 5\tx\tO"])
def test_a_hash_in_a_plain_file_stays_a_token(line):
    """Alone, before ten columns of numbers, or before a blank line."""
    numbers = "1\t2\t3\t4\t5\t6\t7\t8\t9\tO"
    for text in (f"{line}\n", f"{line}\n\n{CONLLU}", f"{line}\n{numbers}\n", f"{line}\nin\tIN\tO\n"):
        assert is_conllu(text.encode(), end=True) is False
    assert is_conllu(CONLLU.encode()) is True


def test_conllu_compressed_and_in_pieces(conllu):
    Path("x.conllu.gz").write_bytes(gzip.compress(CONLLU.encode()))
    assert read_columns("x.conllu.gz") == read_columns("x.txt")
    whole = b"".join(ColumnFile("x.txt").chunks(True))
    for chunk in (1, 7, 50):
        assert b"".join(ColumnFile("x.txt").chunks(True, chunk=chunk)) == whole
    with pytest.raises(DataError, match="columns"):  # cells with blanks
        read_columns("x.txt", format="columns")
    with pytest.raises(ParameterError, match="unknown label column 10"):
        ColumnFile("x.txt", label_column=10)


# --- labels only


def test_labels_only(call):
    full = call("tag", "model.crf", "test.txt").out
    only = call("tag", "model.crf", "test.txt", "--labels-only").out
    assert only == re.sub(r"(?m)^.*\t", "", full)
    with_p = call("tag", "model.crf", "test.txt", "--labels-only", "--marginals").out
    assert [line.split("\t")[0] for line in with_p.splitlines()] == only.splitlines()
    assert all(len(line.split("\t")) in (1, 2) for line in with_p.splitlines())


# --- the quick way to tag


def test_the_quick_way_knows_every_option():
    parameters = [p for p in get_command(app).commands["tag"].params if p.name not in ("model", "files")]
    known = {name for p in parameters if p.param_type_name == "option" for name in p.opts} - {"--help"}
    assert known == {*VALUES, *FLAGS}


@pytest.mark.parametrize(
    "arguments",
    [
        "m.crf",
        "m.crf -",
        "m.crf a b --marginals -p 2",
        "--threads=3 m.crf a -o out",
        "--output=x=y m.crf",
        "m.crf --all-marginals --labels-only --encoding latin-1 --format conllu",
    ],
)
def test_both_ways_mean_the_same(monkeypatch, call, arguments):
    seen = []
    monkeypatch.setattr("crfkit.cli.commands.tag.tag_files", lambda **given: seen.append(given))
    assert call("tag", *arguments.split()).code == 0
    defaults = {name: p.default for name, p in inspect.signature(tagging.tag_files).parameters.items()}
    assert {**defaults, **parse_tag(arguments.split())} == seen[0]


@pytest.mark.parametrize(
    "arguments",
    ["", "--help", "m.crf --nosuch", "m.crf -p", "m.crf -p two", "m.crf -p2", "m.crf -- -x", "m.crf --out x"],
)
def test_what_the_quick_way_leaves_to_typer(arguments):
    assert parse_tag(arguments.split()) is None


# --- penalties on other scales


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ("--c1 0.5", "--l1 0.5"),
        ("--rho1 0.5", "--l1 0.5"),
        ("--rho2 0.5", "--l2 0.5"),
        ("--c1 0.5 --c2 0.25", "--l1 0.5 --l2 0.5"),
        ("--rho1 0.5 --rho2 0.5", "--l1 0.5 --C 2"),
        ("--c1 0 --c2 0.25", "--l2 0.5"),
    ],
)
def test_scales_of_other_tools(call, options, same):
    said = [call(*TRAIN, f"{k}.crf", "train.txt", "-i", 5, *o.split()).out for k, o in enumerate((options, same))]
    assert said[0].splitlines()[1].split(" = ")[0] == said[1].splitlines()[1].split(" = ")[0]
    np.testing.assert_array_equal(weights("0.crf"), weights("1.crf"))


@pytest.mark.parametrize("options", ["--l1 1 --c1 1", "--c1 1 --rho1 1", "--l2 1 --rho2 1", "--C 1 --rho2 1"])
def test_one_penalty_twice(fails, options):
    one, _, two, _ = options.split()
    assert f"{one} and {two} are the same penalty" in fails(*TRAIN, "m.crf", "train.txt", *options.split())


# --- help, templates


@pytest.mark.parametrize(
    ("command", "groups"),
    [("train", "Input Model Optimisation Output"), ("tag", "Input Optimisation Output"), ("inspect", "Model Output")],
)
def test_options_are_in_groups(call, command, groups):
    text = call(command, "--help").out
    for group in groups.split():
        assert re.search(rf"(?m)^\W* {group} \W*$", text)
    assert not re.search(r"(?m)^\W*Options\W*\n(?!.*--help)", text)  # nothing but --help is left outside


def test_indented_comments_in_templates():
    template = Template("  # words\nU0:%x[0,0]\n\t# the end\nB\n")
    assert (template.unigrams, template.transitions) == (["U0:%x[0,0]"], True)
    with pytest.raises(DataError, match=r"template:2: ' U1:%x\[0,0\]' starts with neither U .*; remove the blanks"):
        Template("U0:%x[0,0]\n U1:%x[0,0]")


# --- inspect


def test_inspect_as_json_says_what_the_text_says(call):
    text, found = (
        call("inspect", "model.crf", "-n", 3).out,
        json.loads(call("inspect", "model.crf", "-n", 3, "--json").out),
    )
    crf = ChainCRF.load("model.crf")
    assert found["labels"] == crf.classes_.tolist()
    assert found["weights"] == {
        "total": len(crf.coef_),
        "state": len(crf.state_features_),
        "transition": len(crf.transition_features_),
    }
    assert "0 pair" not in text
    assert "0 triple" not in text
    for ends in found["strongest"].values():
        for rows in ends.values():
            assert len(rows) == 3
            for row in rows:
                assert f"{row['weight']:10.4f}  " in text
    best = max(crf.state_features_.items(), key=lambda item: item[1])
    assert found["strongest"]["state"]["largest"][0] == {
        "attribute": best[0][0],
        "label": best[0][1],
        "weight": pytest.approx(best[1]),
    }


def test_inspect_by_label_and_attribute(call, fails):
    crf = ChainCRF.load("model.crf")
    found = json.loads(call("inspect", "model.crf", "--json", "--label", "B-LOC", "-n", 10**6).out)["strongest"]
    mine = {(row["attribute"], row["label"]): row["weight"] for row in found["state"]["largest"]}
    assert mine == pytest.approx({name: w for name, w in crf.state_features_.items() if name[1] == "B-LOC"})
    pairs = {tuple(row["labels"]): row["weight"] for row in found["transition"]["largest"]}
    assert pairs == pytest.approx({name: w for name, w in crf.transition_features_.items() if "B-LOC" in name})
    found = json.loads(call("inspect", "model.crf", "--json", "--attribute", "U02:", "-n", 10**6).out)["strongest"]
    assert list(found) == ["state"]
    names = {(row["attribute"], row["label"]) for row in found["state"]["largest"]}
    assert names == {name for name in crf.state_features_ if "U02:" in name[0]}
    assert "no label 'X'; it has B-DATE" in fails("inspect", "model.crf", "--label", "X")
    assert "no attribute of the model contains 'nosuch'" in fails("inspect", "model.crf", "--attribute", "nosuch")
