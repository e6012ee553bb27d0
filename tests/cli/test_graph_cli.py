"""`crfkit graph train | predict` and `crfkit inspect` of what they made: a person's path, and wrong inputs."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import replacing

from crfkit import L1, L2, GraphCRF, GraphModel, GridCRF, read_table

TRAIN = [
    "graph",
    "train",
    "data.csv",
    "--labels",
    "a,b,c",
    "--model",
    "m.crf",
    "--inference",
    "junction",
    "--threads",
    "1",
]


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(30, 2)), 3)
    Y = (X @ rng.normal(size=(2, 3)) + rng.normal(size=(30, 3)) > 0).astype(int)
    return X, Y


def write(path, header, table):
    lines = [",".join(header)] if header else []
    lines += [",".join(map(str, row)) for row in table]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def data(workspace, values):
    """data.csv with the columns u, v, a, b, c; X.csv and Y.csv without header; edges."""
    X, Y = values
    write("data.csv", ["u", "v", "a", "b", "c"], [[*x, *y] for x, y in zip(X, Y, strict=True)])
    write("X.csv", None, X)
    write("Y.csv", None, Y)
    Path("edges").write_text("a b\n2,3\n\n")
    return X, Y


@pytest.fixture(scope="module")
def trained_once():
    """What `model` writes: {"outcome": …, "m.crf": its bytes}, empty until the first test asks for it."""
    return {}


@pytest.fixture
def model(call, data, trained_once):
    """m.crf, trained on data.csv; returns what `crfkit graph train` said."""
    if not trained_once:
        outcome = call(*TRAIN)
        assert outcome.code == 0, outcome.err
        trained_once.update({"outcome": outcome, "m.crf": Path("m.crf").read_bytes()})
    Path("m.crf").write_bytes(trained_once["m.crf"])
    return trained_once["outcome"]


# --- train


def test_train_is_the_estimator(model, data):
    X, Y = data
    crf = GraphCRF(inference="junction", n_threads=1).fit(X, Y)
    trained = GraphModel.load("m.crf")
    np.testing.assert_allclose(trained.w, crf.coef_)
    assert trained.encoder.variables == ["a", "b", "c"]
    assert trained.encoder.features == ["u", "v"]
    assert f"3 variables, 3 edges, 2 features, {len(crf.coef_)} weights\n" in model.out
    assert re.search(r"= \d+\.\d+ after \d+ iterations, .* s\nconverged.*\nmodel written to m\.crf\n", model.out)
    assert re.match(r"iteration +0  objective ", model.err)


def test_options(call, data):
    X, Y = data
    for options, crf in (
        (["--l2", 3], GraphCRF(penalty=L2(3))),
        (["--l1", 2], GraphCRF(penalty=L1(2))),
        (["--edges", "edges"], GraphCRF([(0, 1), (1, 2)])),
        (["--solver", "cg"], GraphCRF(solver="cg")),
        (["--no-edge-features"], GraphCRF(edge_features=False)),
        (["--tolerance", "1e-2"], GraphCRF(tolerance=1e-2)),
    ):
        outcome = call(*TRAIN, "--quiet", *options)
        assert (outcome.code, outcome.err) == (0, "")
        expected = crf.set_params(inference="junction", n_threads=1).fit(X, Y).coef_
        np.testing.assert_allclose(GraphModel.load("m.crf").w, expected, err_msg=str(options))
    outcome = call(*TRAIN, "--features", "none", "--quiet", "--log", "log.jsonl")
    np.testing.assert_allclose(
        GraphModel.load("m.crf").w, GraphCRF(inference="junction", n_threads=1).fit(None, Y).coef_
    )
    log = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert f"{log[-1]['value']:.6f} after {log[-1]['iteration']} iterations" in outcome.out
    assert "iteration limit" in call(*TRAIN, "-q", "-i", 1).out


@pytest.mark.parametrize("labels", ["3-5", "-3:", "a,4,c"])
def test_columns_by_number(call, model, labels):
    expected = GraphModel.load("m.crf").w
    assert call(*replacing(TRAIN, "--labels", labels, "--features", "1-2"), "-q").code == 0
    np.testing.assert_array_equal(GraphModel.load("m.crf").w, expected)


def test_labels_in_a_file_of_their_own(call, model):
    expected = GraphModel.load("m.crf").w
    common = ["--model", "n.crf", "--inference", "junction", "-p", 1, "-q"]
    Path("X.csv.gz").write_bytes(gzip.compress(Path("X.csv").read_bytes()))
    assert call("graph", "train", "X.csv.gz", "--label-file", "Y.csv", *common).code == 0
    trained = GraphModel.load("n.crf")
    np.testing.assert_array_equal(trained.w, expected)
    assert (trained.encoder.features, trained.encoder.variables) == (["x1", "x2"], ["y1", "y2", "y3"])
    scored = call("graph", "predict", "n.crf", "X.csv", "--label-file", "Y.csv")
    assert scored.err == call("graph", "predict", "m.crf", "data.csv").err
    assert call("graph", "train", "X.csv", "--label-file", "Y.csv", "--labels", "1,3", *common).code == 0
    assert GraphModel.load("n.crf").encoder.variables == ["y1", "y3"]


def test_arff(call, model, data):
    X, Y = data
    head = "@relation r\n@attribute u numeric\n@attribute v numeric\n" + "".join(
        f"@attribute {name} {{0,1}}\n" for name in "abc"
    )
    entries = ["{" + ",".join(f"{i} {v}" for i, v in enumerate([*x, *y]) if v) + "}" for x, y in zip(X, Y, strict=True)]
    Path("data.arff").write_text(head + "@data\n" + "\n".join(entries) + "\n")
    assert call("graph", "predict", "m.crf", "data.arff") == call("graph", "predict", "m.crf", "data.csv")
    expected = GraphModel.load("m.crf").w
    assert call(*["data.arff" if word == "data.csv" else word for word in TRAIN], "-q").code == 0
    np.testing.assert_array_equal(GraphModel.load("m.crf").w, expected)


def test_labels_that_are_words(call, data):
    X, Y = data
    names = np.array(["off", "on, really"])
    with open("words.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([["u", "v", "a", "b"], *([*x, *names[y[:2]]] for x, y in zip(X, Y, strict=True))])
    train = [
        "graph",
        "train",
        "words.csv",
        "--labels",
        "a,b",
        "-m",
        "w.crf",
        "--inference",
        "junction",
        "-q",
        "-p",
        "1",
    ]
    assert call(*train).code == 0
    crf = GraphCRF(inference="junction", decode="enumerate").fit(X, names[Y[:, :2]])
    found = rows(call("graph", "predict", "w.crf", "words.csv").out)
    assert [[row["a"], row["b"]] for row in found] == crf.predict(X).tolist()


@pytest.mark.parametrize("at", [0, 3])
def test_an_interruption_keeps_what_was_learned(call, data, monkeypatch, at):
    def press(iteration):
        if iteration.row.iteration == at:
            raise KeyboardInterrupt

    monkeypatch.setattr("crfkit.cli.runtime.progress.plain_lines", press)
    outcome = call(*TRAIN)
    assert outcome.code == 130
    early = "the first iteration was not complete, so no model was written"
    fate = "the model so far was written" if at else early
    assert outcome.err.endswith(f"crfkit: interrupted; {fate}\n")
    assert Path("m.crf").exists() == (at > 0)
    if at:
        assert "after 3 iterations" in outcome.out
        assert call("graph", "predict", "m.crf", "data.csv").code == 0


# --- predict


def test_predict_is_the_estimator(call, model, data):
    X, Y = data
    crf = GraphCRF.load("m.crf", n_threads=1)
    best = crf.predict(X)
    outcome = call("graph", "predict", "m.crf", "data.csv")
    assert outcome.code == 0
    assert [[int(v) for v in row.values()] for row in rows(outcome.out)] == best.tolist()
    wrong = best != Y
    counts = f"Hamming loss {wrong.mean():.4f}, subset accuracy {(~wrong.any(axis=1)).mean():.4f}"
    assert outcome.err == f"30 rows, {counts}\n"
    more = rows(call("graph", "predict", "m.crf", "data.csv", "--marginals").out)
    assert list(more[0]) == ["a", "b", "c", *(f"p({v}={k})" for v in "abc" for k in (0, 1))]
    for name, p in zip("abc", crf.predict_marginals(X), strict=True):
        found = [[float(row[f"p({name}={k})"]) for k in (0, 1)] for row in more]
        np.testing.assert_allclose(found, p, atol=1e-6)
    by_node = rows(call("graph", "predict", "m.crf", "data.csv", "--decode", "marginal").out)
    expected = [p.argmax(axis=1) for p in crf.predict_marginals(X)]
    assert [[int(v) for v in row.values()] for row in by_node] == np.stack(expected, axis=1).tolist()


def test_features_are_found_by_name(call, model, data):
    X, _ = data
    expected = call("graph", "predict", "m.crf", "data.csv").out
    write("turned.csv", ["v", "more", "u"], [[x[1], "text", x[0]] for x in X])
    outcome = call("graph", "predict", "m.crf", "turned.csv", "--output", "out.csv")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert Path("out.csv").read_text() == expected


def test_labels_that_are_known(call, model, data):
    X, Y = data
    crf = GraphCRF.load("m.crf", n_threads=1)
    some = [[*x, y[0] if i % 2 else "", y[1], "?"] for i, (x, y) in enumerate(zip(X, Y, strict=True))]
    write("some.csv", ["u", "v", "a", "b", "c"], some)
    observed = np.array([[y[0] if i % 2 else -1, y[1], -1] for i, y in enumerate(Y)])
    found = rows(call("graph", "predict", "m.crf", "some.csv", "--observed", "a,b").out)
    assert [[int(v) for v in row.values()] for row in found] == crf.predict(X, observed).tolist()
    found = rows(call("graph", "predict", "m.crf", "some.csv", "--observed", "b").out)
    observed[:, 0] = -1
    assert [[int(v) for v in row.values()] for row in found] == crf.predict(X, observed).tolist()
    write("bare.csv", ["u", "v", "b"], [[*x, y[1]] for x, y in zip(X, Y, strict=True)])
    outcome = call("graph", "predict", "m.crf", "bare.csv", "--observed", "b")
    assert (rows(outcome.out), outcome.err) == (found, "")


def test_without_inputs(call, data):
    assert call(*TRAIN, "--features", "none", "-q").code == 0
    outcome = call("graph", "predict", "m.crf", "Y.csv")
    assert len(rows(outcome.out)) == 30
    assert len({tuple(row.values()) for row in rows(outcome.out)}) == 1


def test_inspect(call, model, workspace):
    out = call("inspect", "m.crf", "--top", 2).out
    assert out.startswith("3 variables, 3 edges, 2 features\n  a: 0 1\n")
    weights = GraphModel.load("m.crf").edge_weights()
    block = out.partition("largest edge weights\n")[2].splitlines()[:2]
    np.testing.assert_allclose([float(line.split()[0]) for line in block], sorted(weights.values())[:-3:-1], atol=1e-4)
    assert re.search(r"[abc] – [abc]  (intercept|u|v)  [01] – [01]", block[0])
    assert "trained: graph likelihood by junction" in out
    image = np.arange(6.0).reshape(2, 3, 1)
    GridCRF(inference="enumerate", n_threads=1).fit([image], [image[..., 0] > 2]).save("grid.crf")
    assert call("inspect", "grid.crf").out.startswith("2 labels: False True\ninputs: grid\n")


def test_help(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "graph" in call("--help").out
    for command, words in (
        (
            "train",
            "DATA --labels --model --features --label-file --edges --loss --inference --l2 --l1 --solver 1-294 -6:",
        ),
        ("predict", "MODEL DATA --output --marginals --decode --observed"),
    ):
        outcome = call("graph", command, "--help")
        assert outcome.code == 0
        assert [word for word in words.split() if word not in outcome.out] == []


def test_the_commands_load_no_scikit_learn(model):
    code = (
        "import sys; import crfkit.cli.main; from crfkit.cli.commands import graph; assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    code = (
        "import sys; import crfkit.graph.training.train; "
        "import crfkit.cli.commands.graph_columns, crfkit.cli.commands.inspect_graph; "
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert read_table("data.csv").columns == ["u", "v", "a", "b", "c"]


# --- wrong inputs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("none.csv --labels a", "none.csv: cannot read the file: No such file or directory"),
        ("data.csv", "the label columns are missing; give --labels COLS"),
        ("data.csv --labels a,z", "data.csv: there is no column 'z'; the columns are u, v, a, b, c"),
        ("data.csv --labels 4-9", "data.csv: '4-9' is not a range of columns; the table has 5 columns"),
        ("data.csv --labels a,3", "'a,3' names the column 'a' twice"),
        ("data.csv --labels a,b --features a,u", "the column 'a' is both a feature and a label"),
        (
            "data.csv --labels 1-5",
            "all columns are labels, so no feature is left; for a field without inputs, give --features none",
        ),
        ("text.csv --labels a", "text.csv:4: column 'u' is 'red'; expected a number"),
        ("gaps.csv --labels a", "gaps.csv:3: column 'u' has no value"),
        ("gaps.csv --labels u --features a", "gaps.csv:3: column 'u' has no label"),
        ("constant.csv --labels a", "constant.csv: column a of Y has only the label 1; at least two"),
        ("ragged.csv --labels a", "ragged.csv:3: the line has 3 cells, but the lines before it have 2"),
        ("X.csv --label-file short.csv", "short.csv: the labels have 2 rows, but the data have 30"),
        ("data.csv --labels a,b --edges none.txt", "none.txt: there is no such file; --edges must be a file"),
        ("data.csv --labels a,b --edges edges", "edges:2: '3' is not a label column; expected one of a, b"),
        ("data.csv --labels a,b --edges short.csv", "short.csv:1: '0' is not a label column"),
        ("data.csv --labels a,b --edges twice", "twice:2: this edge is a duplicate of line 1"),
        ("data.csv --labels a,b --edges loop", "loop:1: 'a' is joined to itself"),
        ("data.csv --labels a,b --edges word", "word:1: expected two label columns, got 1 cell"),
        ("data.csv --labels a,b --loss squared", "unknown loss 'squared'"),
        ("data.csv --labels a,b --inference magic", "unknown inference 'magic'"),
        ("data.csv --labels a,b --l2 -1", "the strength of L2 must be"),
        ("data.csv --labels a,b --solver x", "unknown solver 'x'"),
        ("data.csv --labels a,b --model data.csv", "DATA and --model are the same file"),
        ("data.csv --labels a,b --model none/m.crf", "cannot write none/m.crf"),
    ],
)
def test_train_fails_in_one_line(fails, data, arguments, message):
    Path("text.csv").write_text("u,a\n1,0\n\nred,1\n")
    Path("gaps.csv").write_text("u,a\n1,0\n,1\n2,1\n")
    Path("constant.csv").write_text("u,a\n1,1\n2,1\n")
    Path("ragged.csv").write_text("u,a\n1,1\n2,1,3\n")
    Path("short.csv").write_text("0,1\n1,0\n")
    Path("twice").write_text("a b\nb a\n")
    Path("loop").write_text("a a\n")
    Path("word").write_text("a\n")
    arguments = arguments.split()
    model = [] if "--model" in arguments else ["--model", "m.crf"]
    assert fails("graph", "train", *arguments, *model).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("none.crf data.csv", "cannot read none.crf: No such file"),
        ("model.crf data.csv", "model.crf: this is a model of kind 'chain'; expected 'graph'"),
        ("data.csv data.csv", "data.csv: not a crfkit model"),
        ("m.crf X.csv", "X.csv: the table has no column 'u', which is a feature of the model"),
        ("m.crf data.csv --decode best", "unknown --decode 'best'; expected one of auto"),
        ("m.crf data.csv --inference magic", "unknown --inference 'magic'"),
        ("m.crf only.csv --observed a", "only.csv: the table has no column 'a', which is a variable of the model"),
        (
            "m.crf data.csv --observed u",
            "data.csv: --observed: 'u' is not a label of the model; its labels are a, b, c",
        ),
        ("m.crf other.csv", "other.csv:2: column 'a' has the unknown label 7; the model knows 0, 1"),
        ("m.crf gaps.csv", "gaps.csv:2: column 'v' has no value"),
        ("m.crf data.csv --label-file short.csv", "short.csv: the labels have 1 rows, but the data have 30"),
        ("m.crf data.csv --output m.crf", "MODEL and --output are the same file"),
        ("grid.crf data.csv", "grid.crf was not trained on a table"),
    ],
)
def test_predict_fails_in_one_line(fails, model, arguments, message):
    Path("only.csv").write_text("u,v\n1,2\n")
    Path("other.csv").write_text("u,v,a,b,c\n1,2,7,0,0\n")
    Path("gaps.csv").write_text("u,v\n1,\n")
    Path("short.csv").write_text("a,b,c\n1,1,1\n")
    image = np.arange(6.0).reshape(2, 3, 1)
    GridCRF(inference="enumerate", n_threads=1).fit([image], [image[..., 0] > 2]).save("grid.crf")
    assert fails("graph", "predict", *arguments.split()).startswith(message)


def test_the_commands_alone_show_their_help(call):
    outcome = call("graph")
    assert outcome.code == 2
    assert "train" in outcome.out
    assert "predict" in outcome.out


def test_tag_refuses_a_model_of_graphs(fails, model):
    assert fails("tag", "m.crf", "test.txt") == "m.crf: this is a model of kind 'graph'; expected 'chain'"
