"""`crfkit calibrate`, and `crfkit tag` with what it found."""

import json

from optional import optional

from crfkit import ChainModel
from crfkit.files.columns import read_columns


def test_calibrate_and_tag(call, workspace):
    command = "calibrate model.crf test.txt --precision 0.8 --min-spans 3 --coverage 0.8 --output new.crf"
    outcome = call(*command.split())
    assert outcome.code == 0, outcome.err
    assert "temperature" in outcome.out
    assert "thresholds for a precision of 0.800" in outcome.out
    assert "wrote new.crf" in outcome.out
    X, y = read_columns(workspace / "test.txt")
    expected = ChainModel.load(workspace / "model.crf").calibrate(X, y, 0.8, 0.8, min_spans=3)
    new = ChainModel.load(workspace / "new.crf")
    assert new.calibration == expected.calibration
    kept = call("tag", "new.crf", "test.txt", "--spans", "--min-confidence", "calibrated").out.splitlines()
    spans = new.predict_spans(X, "calibrated")
    assert len(kept) == sum(map(len, spans)) > 0
    objects = call("tag", "new.crf", "test.txt", "--json", "--min-confidence", "calibrated").out.splitlines()
    assert [len(json.loads(line)["spans"]) for line in objects] == [len(row) for row in spans]
    assert f"calibrated: temperature {new.calibration.temperature:.4f}" in call("inspect", "new.crf").out
    assert json.loads(call("inspect", "new.crf", "--json").out)["calibration"] == new.calibration.as_dict()


def test_json_and_plot(call, workspace):
    optional("matplotlib")
    outcome = call("calibrate", "model.crf", "test.txt", "--json", "--plot", "r.png", "--output", "new.crf")
    found = json.loads(outcome.out)
    assert found["kind"] == "spans"
    assert {"temperature", "ece_before", "ece_after"} <= set(found)
    assert (workspace / "r.png").read_bytes().startswith(b"\x89PNG")


def test_bad_input(fails, workspace):
    command = "calibrate model.crf test.txt --output new.crf"
    assert "--output are the same file" in fails("calibrate", "model.crf", "test.txt", "--output", "model.crf")
    assert "unknown objective 'ece'" in fails(*command.split(), "--objective", "ece")
    assert "no threshold gives any type" in fails(*command.split(), "--precision", "0.9", "--min-spans", "100000")
    assert "needs at least" in fails(*command.split(), "--coverage", "0.9999")
    assert "must be a file that ends in" in fails(*command.split(), "--plot", "r.doc")
    (workspace / "words.txt").write_text("a b c\nc d e\n")
    assert "none of the model's labels" in fails("calibrate", "model.crf", "words.txt", "--output", "new.crf")
