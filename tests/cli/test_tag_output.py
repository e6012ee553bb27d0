"""`crfkit tag` with more than one label per token: JSON, n best, phrases, confidences; and what cannot be combined."""

import json

import numpy as np
import pytest

from crfkit import ChainCRF, ChainModel, Template
from crfkit.cli.commands import tag_progress

TRAIN = """in IN O
New NNP B-LOC
York NNP I-LOC
it PRP O
rains VBZ O

Rome NNP B-LOC
is VBZ O
dry JJ O

she PRP O
left VBD O
New NNP B-LOC
York NNP I-LOC
"""
TEST = "in IN\nNew NNP\nYork NNP\n\nRome NNP\nrains VBZ\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tag")
    (path / "train").write_text(TRAIN)
    (path / "test").write_text(TEST)
    crf = ChainCRF(template=Template("U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,0]\nB\n"))
    crf.fit_file(path / "train").model_.save(path / "m.crf")
    return path


@pytest.fixture
def tag(call, folder):
    def tagged(*options):
        outcome = call("tag", folder / "m.crf", folder / "test", *options)
        assert outcome.code == 0, outcome.err
        return outcome.out

    return tagged


def test_tokens_may_be_or_have_other_blanks(call, folder, tmp_path):
    """Columns are separated by spaces and tabs alone: form feeds are common in texts that were taken from PDF."""
    (tmp_path / "blanks").write_bytes(b"\x0c NNP\nNew\x0bYork\tNNP\n")
    outcome = call("tag", folder / "m.crf", tmp_path / "blanks", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["tokens"] == ["\x0c", "New\x0bYork"]


def test_json(tag, folder):
    model = ChainModel.load(folder / "m.crf")
    X = [[("in", "IN"), ("New", "NNP"), ("York", "NNP")], [("Rome", "NNP"), ("rains", "VBZ")]]
    lines = [json.loads(line) for line in tag("--json", "--nbest", "3").splitlines()]
    for entry, found, spans in zip(lines, model.decode(X, 3), model.predict_spans(X), strict=True):
        assert entry["labels"] == found.labels
        assert entry["probability"] == pytest.approx(found.probability, rel=1e-5)
        assert entry["confidences"] == pytest.approx(found.confidences.tolist(), rel=1e-5)
        assert [x["labels"] for x in entry["alternatives"]] == [x.labels for x in found.alternatives]
        assert [(s["start"], s["end"], s["type"]) for s in entry["spans"]] == [s[:3] for s in spans]
        assert [s["probability"] for s in entry["spans"]] == pytest.approx([s.probability for s in spans], rel=1e-5)
    assert lines[0]["tokens"] == ["in", "New", "York"]
    assert lines[0]["spans"][0]["text"] == "New York"
    assert list(lines[1]) == ["tokens", "labels", "probability", "confidences", "spans", "alternatives"]
    assert "alternatives" not in json.loads(tag("--json").splitlines()[0])


def test_nbest(tag, folder):
    blocks = tag("--nbest", "2").split("\n\n")[:-1]
    found = ChainModel.load(folder / "m.crf").predict_nbest([[("in", "IN"), ("New", "NNP"), ("York", "NNP")]], 2)[0]
    assert len(blocks) == 4
    for rank, (block, labelling) in enumerate(zip(blocks[:2], found, strict=True), start=1):
        head, *lines = block.split("\n")
        assert head == f"# {rank} {labelling.probability:.6f}"
        tokens = zip(["in IN", "New NNP", "York NNP"], labelling.labels, strict=True)
        assert lines == [f"{token} {label}" for token, label in tokens]


def test_spans(tag, folder):
    rows = [line.split("\t") for line in tag("--spans").splitlines()]
    assert [row[:4] + row[5:] for row in rows] == [["0", "1", "3", "LOC", "New York"], ["1", "0", "1", "LOC", "Rome"]]
    chances = [float(row[4]) for row in rows]
    least = (chances[0] + chances[1]) / 2
    kept = tag("--spans", "--min-confidence", str(least)).splitlines()
    assert [line.split("\t") for line in kept] == [row for row, p in zip(rows, chances, strict=True) if p >= least]
    assert len(kept) == 1
    two = tag(str(folder / "test"), "--spans").splitlines()  # sentences are counted over all files
    assert [line.split("\t")[0] for line in two] == ["0", "1", "2", "3"]


def test_confidence_and_posterior(tag, folder):
    plain = [line.split() for line in tag("--marginals").splitlines() if line]
    least = float(np.median([float(row[-1]) for row in plain]))
    for options, abstain in ((("--abstain", "?"), "?"), ((), "_")):
        labels = [line.split()[-1] for line in tag("--min-confidence", str(least), *options).splitlines() if line]
        assert labels == [row[2] if float(row[-1]) >= least else abstain for row in plain]
    as_json = [json.loads(line) for line in tag("--json", "--min-confidence", str(least)).splitlines()]
    assert sum(label is None for entry in as_json for label in entry["labels"]) == labels.count("_") > 0
    model = ChainModel.load(folder / "m.crf")
    X = [[("in", "IN"), ("New", "NNP"), ("York", "NNP")], [("Rome", "NNP"), ("rains", "VBZ")]]
    expected = [label for found in model.decode(X, method="posterior") for label in found.labels]
    assert [line.split()[-1] for line in tag("--posterior").splitlines() if line] == expected


def test_other_files(call, fails, tmp_path):
    """CoNLL-U has its tokens in the second column; files of attributes have none."""
    lines = ["1\tNew\t_\t_\tNNP\t_\t0\t_\t_\t_", "2\tYork\t_\t_\tNNP\t_\t0\t_\t_\t_", "", ""]
    (tmp_path / "t.conllu").write_text("# text = New York\n" + "\n".join(lines))
    gold = "\n".join(lines).replace("New\t_\t_", "New\t_\tB-LOC").replace("York\t_\t_", "York\t_\tI-LOC")
    (tmp_path / "train.conllu").write_text(gold)
    crf = ChainCRF(template=Template("U0:%x[0,1]\n")).fit_file(tmp_path / "train.conllu")
    crf.model_.save(tmp_path / "u.crf")
    entry = json.loads(call("tag", tmp_path / "u.crf", tmp_path / "t.conllu", "--json").out)
    assert entry["tokens"] == ["New", "York"]
    assert entry["spans"][0]["text"] == "New York"

    (tmp_path / "t.crfsuite").write_text("DET\tw=the\nNOUN\tw=cat\n\n")
    ChainCRF().fit([[["w=the"], ["w=cat"]]], [["DET", "NOUN"]]).model_.save(tmp_path / "a.crf")
    found = call("tag", tmp_path / "a.crf", tmp_path / "t.crfsuite", "--json").out
    assert list(json.loads(found)) == ["labels", "probability", "confidences"]
    found = call("tag", tmp_path / "a.crf", tmp_path / "t.crfsuite", "--nbest", "1").out
    assert found.split("\n")[1:] == ["DET", "NOUN", "", ""]
    message = fails("tag", tmp_path / "a.crf", tmp_path / "t.crfsuite", "--spans")
    assert "the labels of this model do not mark phrases" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--json", "--marginals"], "--json and --marginals cannot be combined; JSON has the probabilities"),
        (["--json", "--labels-only"], "different forms of output"),
        (["--nbest", "2", "--posterior"], "posterior decoding has one result"),
        (["--nbest", "0"], "--nbest must be at least 1, not 0"),
        (["--nbest", "2", "--min-confidence", "0.5"], "only with --json"),
        (["--spans", "--labels-only"], "different forms of output"),
        (["--abstain", "?"], "it needs --min-confidence"),
        (["--min-confidence", "2"], "must be a probability between 0 and 1 or 'calibrated', not '2'"),
        (["--min-confidence", "calibrated"], "it needs --spans"),
        (["--spans", "--min-confidence", "calibrated"], "the model has no calibrated thresholds"),
        (["--min-confidence", "0.5", "--abstain", "O"], "is a label of the model"),
    ],
)
def test_what_makes_no_sense(fails, folder, options, message):
    assert message in fails("tag", folder / "m.crf", folder / "test", *options)


def test_progress_is_for_terminals_alone(monkeypatch):
    with tag_progress.watching([10], to_terminal=False) as watch:
        assert watch is None
    monkeypatch.setattr(tag_progress.sys, "stderr", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(tag_progress.sys, "stdout", type("Pipe", (), {"isatty": lambda self: False})())
    with tag_progress.watching([10, None], to_terminal=True) as watch:
        watch.read(b"abc")
        watch.tagged(3)  # too early to show anything
        assert watch._bar is None
    assert tag_progress.describe(300, 2.0, 5, 20) == "300 tokens, 150 tokens/s, 0:06 left"
