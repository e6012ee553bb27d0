"""`crfkit train` names labels that are probably misspelt, with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

NAMES = [["B-PER", "I-PER", "O", "B-ORG", "I-ORG", "I-ORG", "O"], ["O", "B-LOC", "O"]] * 12


@pytest.mark.filterwarnings("default::crfkit.errors.DataWarning")
def test_training_names_the_line(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [*NAMES[:6], ["O", "B_ORG", "I-ORG"], *NAMES, ["B-PER", "I-PRE"]]
    Path("t").write_text("\n".join("".join(f"w{label} {label}\n" for label in row) for row in rows))
    done = call("train", "t", "--features", "ner", "-m", "m.crf", "-q", "--max-iterations", 3)
    assert done.code == 0, done
    lines = Path("t").read_text().splitlines()
    error = " ".join(done.err.split())
    for label, meant in (("B_ORG", "B-ORG"), ("I-PRE", "I-PER")):
        place = f"t:{lines.index(f'w{label} {label}') + 1}"
        assert error.count(f"the label '{label}' occurs once ({place}); did you mean '{meant}'?") == 1


def test_good_labels_are_not_mentioned(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t").write_text("\n".join("".join(f"w{label} {label}\n" for label in row) for row in NAMES))
    assert "did you mean" not in call("train", "t", "--features", "ner", "-m", "m.crf", "--max-iterations", 3).err
