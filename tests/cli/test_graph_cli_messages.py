"""Messages of `crfkit graph`: which errors are counted, which columns are missing, what cannot be written."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest

TRAIN = ["graph", "train", "data.csv", "--labels", "a,b,c", "--model", "m.crf", "-p", "1", "-q"]


@pytest.fixture
def data(workspace):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(40, 2)), 3)
    Y = (X @ rng.normal(size=(2, 3)) + rng.normal(size=(40, 3)) > 0).astype(int)
    lines = [",".join(map(str, [*x, *y])) for x, y in zip(X, Y, strict=True)]
    Path("data.csv").write_text("\n".join(["u,v,a,b,c", *lines]) + "\n")
    Path("plain.csv").write_text("\n".join(lines) + "\n")
    return X, Y


@pytest.fixture
def model(call, data):
    assert call(*TRAIN).code == 0


def cells(text):
    return [[int(v) for v in row] for row in list(csv.reader(io.StringIO(text)))[1:]]


def test_labels_that_are_given_are_not_counted_as_right(call, model, data):
    _, Y = data
    outcome = call("graph", "predict", "m.crf", "data.csv", "--observed", "a,b")
    wrong = np.array(cells(outcome.out))[:, 2] != Y[:, 2]
    assert wrong.any()
    share = wrong.mean()
    assert outcome.err == f"40 rows, Hamming loss {share:.4f}, subset accuracy {1 - share:.4f}\n"
    assert call("graph", "predict", "m.crf", "data.csv", "--observed", "a,b,c").err == (
        "40 rows, no label to compare with\n"
    )


def test_observed_columns_have_the_numbers_of_the_table(call, model):
    by_name = call("graph", "predict", "m.crf", "data.csv", "--observed", "a,c")
    assert by_name.code == 0
    assert call("graph", "predict", "m.crf", "data.csv", "--observed", "3,5") == by_name
    assert call("graph", "predict", "m.crf", "data.csv").out != by_name.out


def test_inference_that_does_not_settle_is_said(call, data, monkeypatch):
    from crfkit.graph.inference.belief_propagation import BeliefPropagation

    assert call(*TRAIN, "--inference", "bp").code == 0
    assert "not converged" not in call("graph", "predict", "m.crf", "data.csv", "--marginals").err
    once = BeliefPropagation(max_iterations=1)
    monkeypatch.setattr("crfkit.graph.model.make_engine", lambda *_: once)
    for options in (["--marginals"], ["--decode", "marginal"]):
        assert "inference has not converged" in call("graph", "predict", "m.crf", "data.csv", *options).err


def test_messages_name_options_of_the_command_line(call, data):
    limited = call(*TRAIN, "-i", "1", "--tolerance", "1e-12").out
    assert "raise --max-iterations or --tolerance" in limited
    assert "max_iterations" not in limited
    many = [f"y{k}" for k in range(40)]
    rows = np.random.default_rng(0).integers(0, 2, (300, 40)).tolist()
    Path("many.csv").write_text("\n".join([",".join(many), *(",".join(map(str, row)) for row in rows)]) + "\n")
    said = call("graph", "train", "many.csv", "--labels", "1-40", "--features", "none", "-m", "m.crf", "-i", "2").err
    assert "training uses --loss pseudo-likelihood. Fewer edges (--edges) make" in said
    assert "--inference junction is exact" in said


def test_remedies_that_the_command_line_lacks_are_not_given(call, data, monkeypatch):
    from crfkit.graph.inference.belief_propagation import BeliefPropagation

    once = BeliefPropagation(max_iterations=1)
    monkeypatch.setattr("crfkit.graph.model.make_engine", lambda *_: once)
    assert call(*TRAIN, "--inference", "bp").code == 0
    said = call("graph", "predict", "m.crf", "data.csv", "--marginals").err
    assert "Raise --sweeps, or use 'trw'" in said
    assert "damping" not in said


def test_a_loss_without_a_value(call, data):
    outcome = call(*TRAIN, "--loss", "contrastive-divergence", "-i", "3")
    assert outcome.code == 0
    assert re.search(r"a gradient without a value after 3 iterations", outcome.out)
    shown = call("inspect", "m.crf").out
    assert "nan" not in outcome.out
    assert "None" not in shown


def test_all_losses_are_in_the_help(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert "persistent-contrastive-divergence" in call("graph", "train", "--help").out


def test_words_without_a_header(fails, data):
    Path("words.csv").write_text("yes,lo\n" * 20 + "no,hi\n" * 20)
    Path("inputs.csv").write_text("1\n2\n" * 20)
    message = fails("graph", "train", "inputs.csv", "--label-file", "words.csv", "--model", "w.crf")
    assert message == (
        "words.csv: the labels have 39 rows, but the data have 40; the first line of words.csv was taken for column "
        "names; if it is data, give --no-header"
    )


def test_columns_that_are_not_there(fails, model):
    message = fails("graph", "predict", "m.crf", "plain.csv")
    assert message == (
        "plain.csv: the table has no column 'u', which is a feature of the model; its columns are x1, x2, x3, x4, x5"
    )
    message = fails("graph", "train", "plain.csv", "--header", "--labels", "3-5", "--model", "n.crf")
    assert message.endswith("if the first line is data, give --no-header (header=False)")


def test_a_word_that_is_no_file_of_edges(fails, data):
    message = fails(*TRAIN, "--edges", "tree")
    assert message == "tree: there is no such file; --edges must be a file of edges, complete or none"


def test_an_output_that_cannot_be_written_is_known_before_the_work(fails, model, monkeypatch):
    monkeypatch.setattr("crfkit.graph.model.GraphModel.best", lambda *_: pytest.fail("too late"))
    message = fails("graph", "predict", "m.crf", "data.csv", "--output", "none/out.csv")
    assert message.startswith("none/out.csv: cannot write the output")


def test_out_of_memory(fails, data, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("crfkit.files.tables.read_table", full)
    assert "fewer rows, edges" in fails(*TRAIN)
