"""CRFsuite's data files on the command line, and models of other tools in `tag` and `eval`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from crfpp_cases import binary_model

from crfkit import ChainCRF, read_columns, read_crfsuite
from crfkit.convert import crfpp, crfsuite
from crfkit.errors import DataWarning


def attributes(source: str, target: str) -> tuple[list, list]:
    """Write a column file as attributes; return what a reader should find."""
    X, y = read_columns(source)
    items = [[[f"w={row[0]}", f"low={row[0].lower()}", f"next:{k % 3}"] for k, row in enumerate(rows)] for rows in X]
    text = "".join(
        "".join("\t".join([label, *item]) + "\n" for item, label in zip(row, labels, strict=True)) + "\n"
        for row, labels in zip(items, y, strict=True)
    )
    Path(target).write_text(text, "utf-8")
    return read_crfsuite(target)[:2]


@pytest.mark.parametrize("format", [[], ["--format", "crfsuite"]])
def test_train_tag_and_score_without_a_template(call, format):
    attributes("train.txt", "train.attr")
    X, y = attributes("test.txt", "test.attr")
    assert call("train", "train.attr", "-m", "a.crf", "-q", "--dev", "test.attr", *format).code == 0
    crf = ChainCRF.load("a.crf")
    best, node = crf.predict(X), crf.predict_marginals(X)
    names = list(crf.classes_)

    def text(write):
        lines = ("".join(f"{write(n, t)}\n" for t in range(len(row))) + "\n" for n, row in enumerate(best))
        return "".join(lines)

    assert call("tag", "a.crf", "test.attr", *format).out == text(lambda n, t: best[n][t])
    piped = call("tag", "a.crf", *format, stdin=Path("test.attr").read_bytes()).out
    assert piped == text(lambda n, t: best[n][t])
    assert call("tag", "a.crf", "test.attr", "--marginals", *format).out == text(
        lambda n, t: f"{best[n][t]}:{node[n][t][names.index(best[n][t])]:.6f}"
    )
    assert call("tag", "a.crf", "test.attr", "--all-marginals", *format).out == text(
        lambda n, t: "\t".join([best[n][t], *(f"{name}:{p:.6f}" for name, p in zip(names, node[n][t], strict=True))])
    )
    scores = json.loads(call("eval", "a.crf", "test.attr", "--json", *format).out)
    right = sum(a == b for gold, row in zip(y, best, strict=True) for a, b in zip(gold, row, strict=True))
    assert scores["accuracy"] == pytest.approx(right / sum(map(len, y)))


def test_weights_count(call):
    train = "A\tx\nB\ty\n\n@weight:{}\nB\tx\nB\ty\n\n"
    for weight, label in ((0.1, "A"), (10, "B")):
        Path("w.attr").write_text(train.format(weight))
        assert call("train", "w.attr", "-m", "w.crf", "-q", "--format", "crfsuite").code == 0
        assert call("tag", "w.crf", stdin=b"?\tx\n").out == f"{label}\n\n"


def test_standard_input_needs_a_format(call, fails):
    attributes("train.txt", "train.attr")
    data = Path("train.attr").read_bytes()
    assert "--format crfsuite" in fails("train", "-", "-m", "a.crf", stdin=data)
    assert call("train", "-", "-m", "a.crf", "-q", "--format", "crfsuite", stdin=data).code == 0


def test_what_is_wrong(call, fails):
    attributes("train.txt", "train.attr")
    call("train", "train.attr", "-m", "a.crf", "-q")
    Path("bad.attr").write_text("B\tw=a\n\nB\tw=12:30:00\n")
    assert fails("train", "bad.attr", "--format", "crfsuite", "-m", "b.crf").startswith("bad.attr:3: the attribute")
    assert fails("tag", "a.crf", "bad.attr").startswith("bad.attr:3: the attribute")
    assert fails("eval", "a.crf", "bad.attr").startswith("bad.attr:3: the attribute")
    Path("other.attr").write_text("X\tw=a\n")
    assert "the first column ('X') has none of the model's labels" in fails("eval", "a.crf", "other.attr")
    assert "needs a template (--template FILE)" in fails("train", "train.txt", "-m", "b.crf")
    assert "remove the template" in fails(
        "train", "train.attr", "--format", "crfsuite", "-t", "template", "-m", "b.crf"
    )


# --- models of other tools


def test_a_model_of_crfpp(call):
    Path("model").write_bytes(binary_model())
    Path("x.txt").write_text("a n O\nbé v B\n\n", "utf-8")
    expected = crfpp.read("model").predict([[("a", "n"), ("bé", "v")]])[0]
    assert call("tag", "model", "x.txt").out == f"a n O {expected[0]}\nbé v B {expected[1]}\n\n"
    assert call("eval", "model", "x.txt").code == 0


def test_a_model_of_crfpp_in_another_encoding(call, fails):
    names = ("B", "U01:日本/n", "U01:は/v")
    Path("model").write_bytes(binary_model(names=names, encoding="euc-jp", weights=np.arange(15) % 5))
    Path("x.txt").write_bytes("日本 n\nは v\n\n".encode("euc-jp"))
    assert "is not utf-8" in fails("tag", "model", "x.txt")
    expected = crfpp.read("model", encoding="euc-jp").predict([[("日本", "n"), ("は", "v")]])[0]
    out = call("tag", "model", "x.txt", "--encoding", "euc-jp").out
    assert out == f"日本 n {expected[0]}\nは v {expected[1]}\n\n"


def test_a_model_of_crfsuite_reads_its_files(call):
    attributes("train.txt", "train.attr")
    attributes("test.txt", "test.attr")
    call("train", "train.attr", "-m", "a.crf", "-q")
    crfsuite.write(ChainCRF.load("a.crf").model_, "a.crfsuite")
    assert call("tag", "a.crfsuite", "test.attr").out == call("tag", "a.crf", "test.attr").out


def test_a_column_file_for_a_model_of_attributes(call):
    """It is tagged as CRFsuite tags it, where each line is a label without attributes; but with a warning."""
    attributes("train.txt", "train.attr")
    assert call("train", "train.attr", "-m", "a.crf", "-q").code == 0
    Path("columns.txt").write_text(Path("test.txt").read_text("utf-8").replace("\t", " "), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("default", DataWarning)
        done = call("tag", "a.crf", "columns.txt")
    assert done.code == 0
    assert "columns.txt: the first lines have no attributes" in done.err
    assert call("tag", "a.crf", "train.attr").err == ""


def test_a_template_in_the_encoding_of_the_files(call, fails):
    Path("euc.template").write_bytes("U単語:%x[0,0]\nB\n".encode("euc-jp"))
    Path("euc.txt").write_bytes("日本 N\nは P\n\n".encode("euc-jp") * 3)
    message = fails("train", "euc.txt", "-t", "euc.template", "-m", "e.crf")
    assert "euc.template: the template is not UTF-8 at byte" in message
    assert "--encoding euc-jp" in message
    assert call("train", "euc.txt", "-t", "euc.template", "-m", "e.crf", "-q", "--encoding", "euc-jp").code == 0
    assert "U単語:日本" in ChainCRF.load("e.crf").model_.vocabulary.attributes.to_list()
    assert call("tag", "e.crf", "euc.txt", "--encoding", "euc-jp").out.startswith("日本 N N\nは P P\n\n")
    assert "1.0" in call("eval", "e.crf", "euc.txt", "--encoding", "euc-jp", "--json").out


def test_a_named_format_is_believed(call, fails):
    """A column file whose cells look like attributes, and whose first column looks like labels."""
    Path("t").write_text("U0:%x[0,1]\nB\n")
    Path("odd.txt").write_text("".join(f"{'ab'[k % 2]}\tw=x{k}\tp=n{k % 3}\n" for k in range(60)))
    assert "looks like a file of CRFsuite attributes" in fails("train", "odd.txt", "-t", "t", "-m", "m.crf")
    assert call("train", "odd.txt", "-t", "t", "-m", "m.crf", "-q", "--format", "columns").code == 0
    assert list(ChainCRF.load("m.crf").classes_) == ["p=n0", "p=n1", "p=n2"]


def test_convert_to_weights_of_a_byte(call, fails):
    assert call("train", "train.txt", "--features", "ner", "-m", "a.crf", "-q", "--max-iterations", "5").code == 0
    assert call("convert", "a.crf", "small.crf", "--weights", "8bit").code == 0
    assert Path("small.crf").stat().st_size < Path("a.crf").stat().st_size
    before, after = (call("tag", name, "test.txt").out.split() for name in ("a.crf", "small.crf"))
    assert np.mean([a == b for a, b in zip(before, after, strict=True)]) > 0.99
    assert "4bit" in fails("convert", "a.crf", "b.crf", "--weights", "4bit")
    assert "only crfkit files" in fails("convert", "a.crf", "b.txt", "--weights", "8bit")
