"""Training files whose labels are known in part, or whose tokens have weights."""

import pytest

from crfkit import L2, ChainCRF, read_columns

TEXT = "in 1 O\nNew 2 B\nYork 1 I\n\nYork 1 ?\nin 1 O|I\nrain 1 O\n\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "t.template").write_text("U00:%x[0,0]\nB\n")
    (tmp_path / "train.txt").write_text(TEXT)
    return tmp_path


def train(call, files, *options):
    return call("train", files / "train.txt", "-t", files / "t.template", "-m", files / "m.crf", "-q", *options)


def test_unknown_labels_and_sets(call, files):
    done = train(call, files, "--unknown-label", "?", "--label-separator", "|", "--l2", "0.1")
    assert done.code == 0, done.err
    assert "3 labels" in done.out
    assert "not convex" in done.out
    X, y = read_columns(files / "train.txt")
    rows = [[None if a == "?" else set(a.split("|")) if "|" in a else a for a in row] for row in y]
    same = ChainCRF(files / "t.template", penalty=L2(0.1)).fit(X, rows)
    assert ChainCRF.load(files / "m.crf").predict_marginals(X)[1] == pytest.approx(
        same.predict_marginals(X)[1], abs=1e-4
    )


def test_a_set_of_one_label_is_that_label(call, files):
    (files / "train.txt").write_text(TEXT.replace("?", "O|").replace("O|I", "I"))
    done = train(call, files, "--label-separator", "|")
    assert done.code == 0, done.err
    assert ChainCRF.load(files / "m.crf").classes_.tolist() == ["B", "I", "O"]


def test_a_set_does_not_name_the_unknown_label(call, files):
    (files / "train.txt").write_text(TEXT.replace("O|I", "O|?"))
    done = train(call, files, "--unknown-label", "?", "--label-separator", "|")
    assert done.code != 0
    assert "'O|?' names '?', which says that nothing is known" in done.err


def test_a_column_of_weights(call, files):
    done = train(call, files, "--weight-column", 2, "--class-weight", "O=0.5", "--class-weight", "?=0")
    assert done.code == 0, done.err
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
        (["--class-weight", "balanced", "--class-weight", "O=2"], "give it alone"),
        (["--label-separator", "?"], "names no label"),
    ],
)
def test_bad_options(call, files, options, message):
    done = train(call, files, *options)
    assert done.code != 0
    assert message in done.err
    assert not (files / "m.crf").exists()
