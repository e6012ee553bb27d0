"""`crfkit eval` of several files, of stdin, of tagged files; `crfkit convert-tags`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from crfkit import convert_tags, evaluate, read_columns
from crfkit.schemes import TAG_SCHEMES

POS = b"the D D\ncat N N\nruns V N\n\na D D\ndog N V\n\n"


def labels_of(path):
    """(gold, predicted) of a tagged file."""
    X, predicted = read_columns(path)
    return [[token[-1] for token in row] for row in X], predicted


# --- eval


def test_several_files_and_stdin_are_scored_together(call):
    whole = call("eval", "model.crf", "test.txt", "train.txt", "--json")
    assert (whole.code, whole.err) == (0, "")
    Path("both").write_bytes(Path("test.txt").read_bytes() + b"\n" + Path("train.txt").read_bytes())
    assert whole == call("eval", "model.crf", "both", "--json")
    assert whole == call("eval", "model.crf", "test.txt", "-", "--json", stdin=Path("train.txt").read_bytes())
    assert json.loads(whole.out)["scheme"] == "iob2"


def test_a_tagged_file_is_scored_as_the_model_is(call):
    expected = call("eval", "model.crf", "test.txt")
    tagged = call("tag", "model.crf", "test.txt").stdout
    Path("tagged").write_bytes(tagged)
    assert expected == call("eval", "--tagged", "tagged")
    assert expected == call("eval", "--tagged", stdin=tagged)
    assert expected == call("eval", "--tagged", "-", stdin=tagged)
    Path("tagged.gz").write_bytes(gzip.compress(tagged.replace(b"\n", b"\r\n")))
    assert expected == call("eval", "--tagged", "tagged.gz")
    sure = call("tag", "model.crf", "test.txt", "--marginals").stdout
    assert expected == call("eval", "--tagged", "--gold", 3, "--predicted", -2, stdin=sure)
    assert expected.out == f"{evaluate(*labels_of('tagged'))}\n"


def test_parts_of_speech_have_scores_per_label(call):
    outcome = call("eval", "--tagged", stdin=POS)
    assert outcome.code == 0
    assert "overall" not in outcome.out
    lines = outcome.out.splitlines()
    assert [line.split() for line in lines if line.startswith("N ")] == [
        ["N", "50.00%", "50.00%", "50.00%", "2", "2", "1"]
    ]
    assert [line.split() for line in lines if "→" in line][1:] == [["1", "N", "→", "V"], ["1", "V", "→", "N"]]
    told = json.loads(call("eval", "--tagged", "--json", stdin=POS).out)
    assert "overall" not in told
    assert told["accuracy"] == 0.6
    assert told["by_label"]["D"]["f1"] == 1.0


def test_labels_on_request(call):
    text = call("eval", "model.crf", "test.txt", "--labels").out
    assert text.startswith(call("eval", "model.crf", "test.txt").out)
    assert "support" in text


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        ("eval", b"", "MODEL and FILE are missing; give crfkit eval MODEL FILE..."),
        ("eval model.crf", b"", "FILE is missing"),
        ("eval model.crf test.txt --gold 2", b"", "--gold and --predicted need --tagged"),
        ("eval model.crf test.txt test.txt", b"", "test.txt is given twice"),
        ("eval --tagged", b"", "<stdin>: the file has no sequences"),
        ("eval --tagged", b"a b\nc\n", "<stdin>:2: the line has 1 column, so there is no column -2"),
        ("eval --tagged --gold 0", POS, "there is no column 0"),
        ("eval --tagged --gold -1", POS, "--gold and --predicted are both column -1"),
        ("eval --tagged --gold 9", POS, "<stdin>:1: the line has 3 columns, so there is no column 9"),
        ("eval --tagged", b"a N N .9\n", "numbers, '.9', but the true ones (column -2) are 'N'; choose the columns"),
        ("eval --tagged", b"a N \xff\n", "<stdin>:1: not UTF-8 at byte 5"),
        ("eval --tagged missing", b"", "missing: cannot read the file"),
        (
            "eval model.crf -",
            b"a x NOUN\nb y VERB\n",
            "the last column ('NOUN', 'VERB') has none of the model's labels",
        ),
    ],
)
def test_scores_that_cannot_be(fails, arguments, stdin, message):
    assert message in fails(*arguments.split(), stdin=stdin)


# --- convert-tags


@pytest.mark.parametrize("to", sorted(TAG_SCHEMES))
def test_files_are_converted_there_and_back(call, to):
    X, y = read_columns("train.txt")
    assert call("convert-tags", "train.txt", "--to", to, "-o", "there").code == 0
    assert read_columns("there") == (X, convert_tags(y, to))
    outcome = call("convert-tags", "there", "--from", to, "--to", "iob2")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.stdout == Path("train.txt").read_bytes()


def test_all_but_the_labels_stays_as_it_is(call):
    text = b"\xef\xbb\xbfa \t B-X  x\r\n\xff\tI-X y \r\n  \t\nb B-X z\n\n\nc\tO  -"
    outcome = call("convert-tags", "--to", "iobes", "--column", 2, stdin=text)
    assert outcome.code == 0
    assert outcome.stdout == text.replace(b"I-X", b"E-X").replace(b"b B-X", b"b S-X")
    assert call("convert-tags", "-", "--to", "BIOES", "--column", -2, stdin=text).stdout == outcome.stdout


def test_a_file_may_be_converted_in_place(call):
    X, y = read_columns("train.txt")
    assert call("convert-tags", "train.txt", "--to", "bilou", "-o", "train.txt").code == 0
    assert read_columns("train.txt") == (X, convert_tags(y, "bilou"))


def test_sequences_of_two_files_stay_apart(call):
    Path("one").write_text("a B-X")
    Path("two").write_text("b I-X\n\nc O\n")
    assert call("convert-tags", "one", "two", "one", "--to", "iob2").out == "a B-X\n\nb B-X\n\nc O\n\na B-X"


def test_labels_that_follow_no_scheme_are_told_of(call):
    outcome = call("convert-tags", "--to", "iob2", stdin=b"a O\nb I-X\nc B-Y\n")
    assert (outcome.code, outcome.out) == (0, "a O\nb B-X\nc B-Y\n")
    assert (
        "1 place broke IOB2; phrases there were read as conlleval reads them; the first is <stdin>:2: " in outcome.err
    )


def test_broken_labels_are_repaired(call, fails):
    broken = b"a O\nb I-X\n\nc B_X\nd I-X\ne I-Y\n"
    assert "<stdin>:2: I-X cannot begin" in fails("convert-tags", "--to", "iob2", "--from", "iob2", stdin=broken)
    outcome = call("convert-tags", "--to", "iob2", "--from", "iob2", "--repair", stdin=broken)
    assert (outcome.code, outcome.out) == (0, "a O\nb B-X\n\nc B-X\nd I-X\ne B-Y\n")
    assert "1 label got '-' after the tag; 2 places broke IOB2" in outcome.err
    assert "the first is <stdin>:2: I-X cannot begin a phrase in iob2" in outcome.err
    assert call("convert-tags", "--to", "iob2", "--repair", stdin=b"a B-X\nb I-X\n").err == ""


GROBID = "Deep I-<title> {}\nnets <title> {}\n, <other> {}\nLee I-<author> {}\n"


def test_labels_of_grobid(call):
    right = GROBID.format("I-<title>", "<title>", "<other>", "I-<author>")
    told = json.loads(call("eval", "--tagged", "--json", stdin=right.encode()).out)
    assert (told["overall"]["f1"], sorted(told["by_type"])) == (1.0, ["author", "title"])
    wrong = GROBID.format("I-<title>", "I-<title>", "I-<other>", "<author>")
    outcome = call("eval", "--tagged", "--json", stdin=wrong.encode())
    assert "GROBID" in outcome.err
    assert json.loads(outcome.out)["by_type"]["title"]["correct"] == 0
    written = call("convert-tags", "--to", "iob2", "--column", 2, stdin=right.encode()).out
    assert [line.split()[1] for line in written.splitlines()] == ["B-title", "I-title", "O", "B-author"]
    assert convert_tags([["I-<a>"], ["<a>"]], "iobes") == [["S-a"], ["S-a"]]


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        ("--to iobes", b"a B-X\n\nb NN\n", "<stdin>:3: the label 'NN' does not mark a phrase"),
        (
            "--to iobes --from iob2",
            b"a O\nb O\n\na O\nb I-ORG\n",
            "<stdin>:5: I-ORG cannot begin a phrase in iob2; these labels look like IOB1",
        ),
        ("--to nosuch", b"a O\n", "unknown tagging scheme 'nosuch'; expected one of bilou, iob1"),
        ("--to iob2 --from nosuch", b"a O\n", "unknown tagging scheme 'nosuch'"),
        ("--to iob2 --column 0", b"a O\n", "there is no column 0"),
        ("--to iob2 --column 3", b"a O\n", "<stdin>:1: the line has 2 columns, so there is no column 3"),
        ("--to iob2", b"\n\n", "<stdin>: the file has no sequences"),
        ("--to iob2 missing", b"", "missing: cannot read the file"),
    ],
)
def test_what_cannot_be_converted(fails, arguments, stdin, message):
    Path("out").write_text("precious")
    assert message in fails("convert-tags", *arguments.split(), "-o", "out", stdin=stdin)
