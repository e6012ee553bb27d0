"""Training that goes on, and training from disk, on the command line."""

import subprocess
import sys

import pytest

from crfkit import ChainCRF, evaluate, read_columns
from crfkit.synthetic import entity_corpus

FIRST, MORE = "the D\ncat N\n\na D\ndog N\n\n" * 4, "the D\nowl N\nsings V\n\n" * 4


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "crfkit", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "t.template").write_text("U00:%x[0,0]\nB\n")
    (tmp_path / "first.txt").write_text(FIRST)
    (tmp_path / "more.txt").write_text(MORE)
    return tmp_path


def train(folder, *options):
    return run("train", folder / "first.txt", "-t", folder / "t.template", "-m", folder / "a.crf", "-q", *options)


def test_an_update_learns_new_words_and_labels(folder):
    assert train(folder).returncode == 0
    done = run("update", folder / "a.crf", folder / "more.txt", "-m", folder / "b.crf", "--epochs", 3)
    assert done.returncode == 0, done.stderr
    assert "4 sequences, 2 new attributes" in done.stdout
    assert "1 new label: V\n" in done.stdout
    new = ChainCRF.load(folder / "b.crf")
    assert new.predict([[["the"], ["owl"], ["sings"]], [["a"], ["cat"]]]) == [["D", "N", "V"], ["D", "N"]]
    assert ChainCRF.load(folder / "a.crf").classes_.tolist() == ["D", "N"]


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--solver", "lbfgs"], "online solver"), (["--epochs", "0"], "--epochs"), (["--solver", "sdg"], "sgd")],
)
def test_updates_that_cannot_be(folder, options, message):
    assert train(folder).returncode == 0
    done = run("update", folder / "a.crf", folder / "more.txt", "-m", folder / "b.crf", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (folder / "b.crf").exists()


def test_constraints_have_to_be_named(folder):
    assert train(folder, "--constraints", "observed").returncode == 0
    done = run("update", folder / "a.crf", folder / "more.txt", "-m", folder / "b.crf")
    assert done.returncode == 2
    assert "--constraints" in done.stderr


def test_training_from_disk(folder):
    done = train(folder, "--out-of-core")
    assert done.returncode == 0, done.stderr
    assert ChainCRF.load(folder / "a.crf").predict([[["a"], ["cat"]]]) == [["D", "N"]]
    refused = train(folder, "--out-of-core", "--unknown-label", "D")
    assert refused.returncode == 2
    assert "does not go with --out-of-core" in refused.stderr


def test_an_update_says_that_the_calibration_is_gone(folder):
    assert train(folder).returncode == 0
    done = run("calibrate", folder / "a.crf", folder / "first.txt", "--coverage", "0.5", "-o", folder / "c.crf")
    assert done.returncode == 0, done.stderr
    done = run("update", folder / "c.crf", folder / "first.txt", "-m", folder / "b.crf")
    assert "not calibrated any more" in done.stdout
    assert "new label" not in done.stdout


def test_a_pass_over_few_sentences_does_not_ruin_a_model(tmp_path):
    """The weights of plain stochastic gradients depend on the last sentences; their average does less."""
    for name, n, seed in (("train", 300, 1), ("more", 20, 2), ("test", 300, 3)):
        rows = ["\n".join(map(" ".join, row)) for row in entity_corpus(n, seed)]
        (tmp_path / f"{name}.txt").write_text("\n\n".join(rows) + "\n")
    (tmp_path / "t.template").write_text("U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,0]\nU3:%x[1,0]\nB\n")
    X, y = read_columns(tmp_path / "test.txt")
    ChainCRF(tmp_path / "t.template").fit_file(tmp_path / "train.txt").save(tmp_path / "a.crf")
    wrong = {}
    for name, options in {"default": (), "sgd": ("--solver", "sgd"), "asgd": ("--solver", "asgd")}.items():
        done = run("update", tmp_path / "a.crf", tmp_path / "more.txt", "-m", tmp_path / f"{name}.crf", *options)
        assert done.returncode == 0, done.stderr
        wrong[name] = 1 - evaluate(y, ChainCRF.load(tmp_path / f"{name}.crf").predict(X)).overall.f1
    assert wrong["default"] == wrong["asgd"] < wrong["sgd"]
