"""`crfkit explain`, `label-errors` and `suggest`: a person's path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crfkit import read_columns
from crfkit.explain.inputs import token_lines


def test_explain(call, fails):
    outcome = call("explain", "model.crf", "test.txt", "--sentence", "0", "--top", "2")
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("sentence 0: labels with probability")
    assert "rather than" in outcome.out
    (row,) = json.loads(call("explain", "model.crf", "test.txt", "-s", "1", "--top", "9999", "--json").out)
    tagged = call("tag", "model.crf", "test.txt", "--labels-only").out.split("\n\n")[1].split()
    assert row["labels"] == tagged
    for one in row["positions"]:
        assert sum(c["amount"] for c in one["contributions"]) == pytest.approx(one["difference"], abs=1e-9)
    assert "there is no sentence 999" in fails("explain", "model.crf", "test.txt", "-s", "999")


def test_label_errors_name_the_line(call, fails, workspace):
    lines = (workspace / "train.txt").read_text(encoding="utf-8").split("\n")
    place = next(k for k, line in enumerate(lines) if line.endswith(" O") or line.endswith("\tO"))
    lines[place] = lines[place][:-1] + "I-LOC"
    (workspace / "spoilt.txt").write_text("\n".join(lines), encoding="utf-8")
    arguments = ("label-errors", "spoilt.txt", "--template", "template", "--folds", "3", "--rounds", "1")
    outcome = call(*arguments)
    assert outcome.code == 0, outcome.err
    assert f"line {place + 1} " in outcome.out
    assert "what would be corrected" in outcome.out
    assert "model 3 of 3" in outcome.err
    told = json.loads(call(*arguments, "--json", "--quiet").out)
    first = told["suspects"][0]
    assert (first["line"], first["given"], first["suggested"]) == (place + 1, "I-LOC", "O")
    assert "--template or --features is missing" in fails("label-errors", "train.txt")
    assert "--folds must be at most the number of sequences" in fails(
        "label-errors", "train.txt", "-t", "template", "--folds", "10000"
    )


def test_label_errors_by_a_model(call, fails, workspace):
    lines = (workspace / "test.txt").read_text(encoding="utf-8").split("\n")
    place = next(k for k, line in enumerate(lines) if line.endswith("B-PER"))
    lines[place] = lines[place].removesuffix("B-PER") + "B-LOC"
    (workspace / "spoilt.txt").write_text("\n".join(lines), encoding="utf-8")
    found = json.loads(call("label-errors", "model.crf", "spoilt.txt", "--json").out)
    assert (found["suspects"][0]["line"], found["suspects"][0]["given"]) == (place + 1, "B-LOC")
    assert "--folds is for training without a model" in fails("label-errors", "model.crf", "spoilt.txt", "--folds", 3)
    assert "not 3 files" in fails("label-errors", "model.crf", "spoilt.txt", "test.txt")


def test_lines_of_tokens(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("\na X\nb X\n\n\nc Y\n")
    assert token_lines(path) == [[2, 3], [6]]
    path.write_text("a X\n\nb X")
    assert token_lines(path) == [[1], [3]]


def test_suggest_writes_sentences_that_can_be_labelled(call, fails, workspace):
    X, _ = read_columns(workspace / "test.txt")
    outcome = call("suggest", "model.crf", "test.txt", "-n", "3")
    assert outcome.code == 0, outcome.err
    sentences = [[tuple(line.split("\t")) for line in text.split("\n")] for text in outcome.out.strip().split("\n\n")]
    assert len(sentences) == 3
    assert all(sentence in X for sentence in sentences)  # without the column of labels
    told = json.loads(call("suggest", "model.crf", "test.txt", "-n", "3", "--json").out)
    assert [X[row["sentence"]] for row in told] == sentences
    call("suggest", "model.crf", "test.txt", "-n", "3", "-o", "next.txt")
    assert (workspace / "next.txt").read_bytes() == outcome.stdout
    assert "unknown strategy" in fails("suggest", "model.crf", "test.txt", "--strategy", "luck")
