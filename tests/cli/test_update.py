"""Training that goes on, training from disk, and tuning, on the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crfkit import ChainCRF, evaluate, read_columns
from crfkit.chain.model.model import ChainModel
from crfkit.synthetic import entity_corpus

FIRST, MORE = "the D\ncat N\n\na D\ndog N\n\n" * 4, "the D\nowl N\nsings V\n\n" * 4
TRAIN = ["train", "first.txt", "-t", "words.t", "-m", "a.crf", "-q"]
UPDATE = ["update", "a.crf", "more.txt", "-m", "b.crf"]


@pytest.fixture(autouse=True)
def two_files(workspace):
    Path("words.t").write_text("U00:%x[0,0]\nB\n")
    Path("first.txt").write_text(FIRST)
    Path("more.txt").write_text(MORE)
    Path("held.txt").write_text("the D\ncat N\n\n")


def test_an_update_learns_new_words_and_labels(call):
    assert call(*TRAIN).code == 0
    done = call(*UPDATE, "--epochs", 3)
    assert done.code == 0, done.err
    assert "4 sequences, 2 new attributes" in done.out
    assert "1 new label: V\n" in done.out
    new = ChainCRF.load("b.crf")
    assert new.predict([[["the"], ["owl"], ["sings"]], [["a"], ["cat"]]]) == [["D", "N", "V"], ["D", "N"]]
    assert ChainCRF.load("a.crf").classes_.tolist() == ["D", "N"]


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--epochs", "0"], "--epochs"), (["--solver", "sdg"], "sgd")],
)
def test_updates_that_cannot_be(call, fails, options, message):
    assert call(*TRAIN).code == 0
    assert message in fails(*UPDATE, *options)


def test_constraints_have_to_be_named(call, fails):
    assert call(*TRAIN, "--constraints", "observed").code == 0
    assert "--constraints" in fails(*UPDATE)


def test_training_from_disk(call, fails):
    done = call(*TRAIN, "--out-of-core")
    assert done.code == 0, done.err
    assert ChainCRF.load("a.crf").predict([[["a"], ["cat"]]]) == [["D", "N"]]
    assert "cannot be combined with --out-of-core" in fails(*TRAIN, "--out-of-core", "--unknown-label", "D")


def test_tuning(call, fails):
    tune = ["tune", "first.txt", "--dev", "held.txt", "-m", "m.crf", "-t", "words.t", "--features", "pos"]
    done = call(*tune, "--table", "t.json", "--plot", "t.png", "--trials", 2, "--min-frequency", 1)
    assert done.code == 0, done.err
    assert "best on the development set" in done.out
    assert "trial 1 of" in done.err
    assert {row["inputs"] for row in json.loads(Path("t.json").read_text())["trials"]} == {"words.t", "pos"}
    assert Path("t.png").stat().st_size > 1000
    assert ChainCRF.load("m.crf").predict([[("a",), ("cat",)]]) == [["D", "N"]]
    assert "0.1:10" in fails(*tune, "--l2", "1:x")
    assert "whole numbers" in fails(*tune, "--order", "one")


def test_an_update_says_that_the_calibration_is_gone(call):
    assert call(*TRAIN).code == 0
    done = call("calibrate", "a.crf", "first.txt", "--coverage", "0.5", "-o", "c.crf")
    assert done.code == 0, done.err
    done = call("update", "c.crf", "first.txt", "-m", "b.crf")
    assert "not calibrated any more" in done.out
    assert "new label" not in done.out


def test_few_sentences_do_not_ruin_a_model(workspace, call):
    """A pass of stochastic gradients forgets what the old sentences said; the default weighs old against new."""
    for name, n, seed in (("train", 300, 1), ("more", 20, 2), ("test", 300, 3)):
        rows = ["\n".join(map(" ".join, row)) for row in entity_corpus(n, seed)]
        (workspace / f"{name}.txt").write_text("\n\n".join(rows) + "\n")
    (workspace / "t.template").write_text("U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,0]\nU3:%x[1,0]\nB\n")
    X, y = read_columns(workspace / "test.txt")
    ChainCRF(workspace / "t.template").fit_file(workspace / "train.txt").save(workspace / "a.crf")

    def wrong(name):
        return 1 - evaluate(y, ChainCRF.load(workspace / f"{name}.crf").predict(X)).overall.f1

    for name, options in {"default": (), "sgd": ("--solver", "sgd"), "asgd": ("--solver", "asgd")}.items():
        done = call("update", workspace / "a.crf", workspace / "more.txt", "-m", workspace / f"{name}.crf", *options)
        assert done.code == 0, done.err
    assert wrong("default") <= wrong("a") + 0.005
    assert wrong("default") < wrong("asgd") < wrong("sgd")


def test_models_without_counts_are_updated_from_the_files_alone(call):
    assert call(*TRAIN).code == 0
    model = ChainModel.load("a.crf")
    replace(model, seen=None).save("a.crf")
    done = call(*UPDATE)
    assert done.code == 0, done.err
    assert "learns from these files alone, by asgd" in done.err
