"""Training that goes on, and training from disk, on the command line."""

import pytest

from crfkit import ChainCRF

FIRST, MORE = "the D\ncat N\n\na D\ndog N\n\n" * 4, "the D\nowl N\nsings V\n\n" * 4


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.template").write_text("U00:%x[0,0]\nB\n")
    (tmp_path / "first.txt").write_text(FIRST)
    (tmp_path / "more.txt").write_text(MORE)
    return tmp_path


def train(call, folder, *options):
    return call("train", folder / "first.txt", "-t", folder / "t.template", "-m", folder / "a.crf", "-q", *options)


def test_an_update_learns_new_words_and_labels(call, folder):
    assert train(call, folder).code == 0
    done = call("update", folder / "a.crf", folder / "more.txt", "-m", folder / "b.crf", "--epochs", 3)
    assert done.code == 0, done.err
    assert "4 sequences, 2 new attributes" in done.out
    new = ChainCRF.load(folder / "b.crf")
    assert new.predict([[["the"], ["owl"], ["sings"]], [["a"], ["cat"]]]) == [["D", "N", "V"], ["D", "N"]]
    assert ChainCRF.load(folder / "a.crf").classes_.tolist() == ["D", "N"]


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--solver", "lbfgs"], "online solver"), (["--epochs", "0"], "--epochs"), (["--solver", "sdg"], "sgd")],
)
def test_updates_that_cannot_be(call, folder, options, message):
    assert train(call, folder).code == 0
    done = call("update", folder / "a.crf", folder / "more.txt", "-m", folder / "b.crf", *options)
    assert done.code == 2
    assert message in done.err
    assert not (folder / "b.crf").exists()


def test_constraints_have_to_be_named(call, folder):
    assert train(call, folder, "--constraints", "observed").code == 0
    done = call("update", folder / "a.crf", folder / "more.txt", "-m", folder / "b.crf")
    assert done.code == 2
    assert "--constraints" in done.err


def test_training_from_disk(call, folder):
    done = train(call, folder, "--out-of-core")
    assert done.code == 0, done.err
    assert ChainCRF.load(folder / "a.crf").predict([[["a"], ["cat"]]]) == [["D", "N"]]
    refused = train(call, folder, "--out-of-core", "--unknown-label", "D")
    assert refused.code == 2
    assert "does not go with --out-of-core" in refused.err
