"""Training files whose labels are known in part, or whose tokens have weights."""

import subprocess
import sys

import pytest

from crfkit import L2, ChainCRF, read_columns
from crfkit.errors import DataError

TEXT = "in 1 O\nNew 2 B\nYork 1 I\n\nYork 1 ?\nin 1 O|I\nrain 1 O\n\n"


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "crfkit", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "t.template").write_text("U00:%x[0,0]\nB\n")
    (tmp_path / "train.txt").write_text(TEXT)
    return tmp_path


def train(files, *options):
    return run("train", files / "train.txt", "-t", files / "t.template", "-m", files / "m.crf", "-q", *options)


def test_unknown_labels_and_sets(files):
    done = train(files, "--unknown-label", "?", "--label-separator", "|", "--l2", "0.1")
    assert done.returncode == 0, done.stderr
    assert "3 labels" in done.stdout
    assert "not convex" in done.stdout
    X, y = read_columns(files / "train.txt")
    rows = [[None if a == "?" else set(a.split("|")) if "|" in a else a for a in row] for row in y]
    same = ChainCRF(files / "t.template", penalty=L2(0.1)).fit(X, rows)
    assert ChainCRF.load(files / "m.crf").predict_marginals(X)[1] == pytest.approx(
        same.predict_marginals(X)[1], abs=1e-4
    )


def test_a_column_of_weights(files):
    done = train(files, "--weight-column", 2, "--class-weight", "O=0.5", "--class-weight", "?=0")
    assert done.returncode == 0, done.stderr
    X, y = read_columns(files / "train.txt")
    weights = [[float(token[1]) for token in row] for row in X]
    same = ChainCRF(files / "t.template", class_weight={"O": 0.5, "?": 0.0}).fit(X, y, token_weight=weights)
    assert ChainCRF.load(files / "m.crf").coef_ == pytest.approx(same.coef_, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weight-column", "1"], "the weight in column 1 is 'in'"),
        (["--weight-column", "0"], "weight_column"),
        (["--weight-column", "7"], "3 columns, so that there is no column 7"),
        (["--class-weight", "O"], "LABEL=W"),
        (["--class-weight", "X=2"], "not a label"),
        (["--label-separator", "?"], "names no label"),
    ],
)
def test_bad_options(files, options, message):
    done = train(files, *options)
    assert done.returncode != 0
    assert message in done.stderr
    assert not (files / "m.crf").exists()


def test_files_without_known_labels(files):
    (files / "train.txt").write_text("a 1 ?\nb 1 ?\n")
    assert "no label is known; at least two" in train(files, "--unknown-label", "?").stderr
    (files / "train.txt").write_text("a 1 B|O\nb 1 B|O\n")  # two labels, but one text
    assert "2 labels" in train(files, "--label-separator", "|").stdout


def test_a_label_for_unknown_that_does_not_occur_is_mentioned(files):
    done = train(files, "--unknown-label", "UNK")
    assert done.returncode == 0
    assert "warning: the training files have no label 'UNK'" in done.stderr


def test_weights_of_the_wrong_shape_are_named():
    X, y = [[["a"], ["b"]], [["b"]]], [["O", "B"], ["B"]]
    with pytest.raises(DataError, match="token_weight must have a list of numbers for every sequence"):
        ChainCRF().fit(X, y, token_weight=[1.0, 2.0])
    with pytest.raises(DataError, match=r"sample_weight\[1\] is nan"):
        ChainCRF().fit(X, y, sample_weight=[1.0, float("nan")])


def test_unknown_labels_where_they_cannot_be():
    X = [[["a"], ["b"]]]
    with pytest.raises(DataError, match=r"only ChainCRF.fit learns from unknown labels \(None\)"):
        ChainCRF(solver="sgd").partial_fit(X, [["O", None]], classes=["O", "B"])
    with pytest.raises(DataError, match=r"give ChainCRF.fit a set where a label is one of several"):
        ChainCRF().fit(X, [["O", ["O", "B"]]])
