"""Training files whose labels are known in part, or whose tokens have weights."""

from pathlib import Path

import pytest

from crfkit import L2, ChainCRF, read_columns
from crfkit.errors import DataError

TEXT = "in 1 O\nNew 2 B\nYork 1 I\n\nYork 1 ?\nin 1 O|I\nrain 1 O\n\n"
TRAIN = ["train", "weak.txt", "-t", "weak.t", "-m", "weak.crf", "-q"]


@pytest.fixture(autouse=True)
def weak_files(workspace):
    Path("weak.t").write_text("U00:%x[0,0]\nB\n")
    Path("weak.txt").write_text(TEXT)


def test_unknown_labels_and_sets(call):
    done = call(*TRAIN, "--unknown-label", "?", "--label-separator", "|", "--l2", "0.1")
    assert done.code == 0, done.err
    assert "3 labels" in done.out
    assert "not convex" in done.out
    X, y = read_columns("weak.txt")
    rows = [[None if a == "?" else set(a.split("|")) if "|" in a else a for a in row] for row in y]
    same = ChainCRF("weak.t", penalty=L2(0.1)).fit(X, rows)
    assert ChainCRF.load("weak.crf").coef_ == pytest.approx(same.coef_, abs=1e-4)


def test_a_set_of_one_label_is_that_label(call):
    Path("weak.txt").write_text(TEXT.replace("?", "O|").replace("O|I", "I"))
    done = call(*TRAIN, "--label-separator", "|")
    assert done.code == 0, done.err
    assert ChainCRF.load("weak.crf").classes_.tolist() == ["B", "I", "O"]


def test_a_set_does_not_name_the_unknown_label(fails):
    Path("weak.txt").write_text(TEXT.replace("O|I", "O|?"))
    message = fails(*TRAIN, "--unknown-label", "?", "--label-separator", "|")
    assert "'O|?' names '?', which means that nothing is known" in message


def test_a_column_of_weights(call):
    done = call(*TRAIN, "--weight-column", 2, "--class-weight", "O=0.5", "--class-weight", "?=0")
    assert done.code == 0, done.err
    X, y = read_columns("weak.txt")
    weights = [[float(token[1]) for token in row] for row in X]
    same = ChainCRF("weak.t", class_weight={"O": 0.5, "?": 0.0}).fit(X, y, token_weight=weights)
    assert ChainCRF.load("weak.crf").coef_ == pytest.approx(same.coef_, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weight-column", "1"], "the weight in column 1 is 'in'"),
        (["--weight-column", "0"], "weight_column"),
        (["--weight-column", "7"], "3 columns, so there is no column 7"),
        (["--class-weight", "O"], "LABEL=W"),
        (["--class-weight", "X=2"], "not a label"),
        (["--label-separator", "?"], "has nothing on one side of the separator"),
    ],
)
def test_bad_options(fails, options, message):
    assert message in fails(*TRAIN, *options)


def test_files_without_known_labels(call, fails):
    Path("weak.txt").write_text("a 1 ?\nb 1 ?\n")
    assert "no label is known; at least two" in fails(*TRAIN, "--unknown-label", "?")
    Path("weak.txt").write_text("a 1 B|O\nb 1 B|O\n")  # two labels, but one text
    assert "2 labels" in call(*TRAIN, "--label-separator", "|").out


def test_a_label_for_unknown_that_does_not_occur_is_mentioned(run):
    done = run(*TRAIN, "--unknown-label", "UNK")
    assert done.code == 0
    assert "warning: the training files have no label 'UNK'" in done.err


def test_weights_of_the_wrong_shape_are_named():
    X, y = [[["a"], ["b"]], [["b"]]], [["O", "B"], ["B"]]
    with pytest.raises(DataError, match="token_weight must have a list of numbers for every sequence"):
        ChainCRF().fit(X, y, token_weight=[1.0, 2.0])
    with pytest.raises(DataError, match=r"sample_weight\[1\] is nan"):
        ChainCRF().fit(X, y, sample_weight=[1.0, float("nan")])


def test_unknown_labels_where_they_cannot_be():
    X = [[["a"], ["b"]]]
    with pytest.raises(DataError, match="partial_fit needs one known label at each position"):
        ChainCRF(solver="sgd").partial_fit(X, [["O", None]], classes=["O", "B"])
    with pytest.raises(DataError, match=r"give ChainCRF.fit a set where a label is one of several"):
        ChainCRF().fit(X, [["O", ["O", "B"]]])
