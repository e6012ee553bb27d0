"""`crfkit demo --data-only`: the files that tutorials and the tour work with."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import pytest

from crfkit.synthetic import SURVEY_EDGES

DATA = {"train.txt", "dev.txt", "test.txt", "template", "news.txt", "labels.csv", "new.csv", "survey.csv"}


@pytest.fixture
def folder(call):
    outcome = call("demo", "--data-only", "--output", "data")
    assert (outcome.code, outcome.err) == (0, "")
    return Path("data")


def test_data_only_writes_the_data_and_nothing_else(folder):
    names = {path.name for path in folder.iterdir()}
    assert names - {"images", "masks", "new_images"} == DATA | {"README.txt"}
    told = (folder / "README.txt").read_text()
    assert [name for name in names if name not in told and name != "README.txt"] == []


def test_images_have_masks(folder):
    pillow = pytest.importorskip("PIL.Image")
    images = sorted(path.name for path in (folder / "images").iterdir())
    assert images == sorted(path.name for path in (folder / "masks").iterdir())
    assert not set(images) & {path.name for path in (folder / "new_images").iterdir()}
    assert {k for name in images for k in pillow.open(folder / "masks" / name).tobytes()} == {0, 1}


def test_without_pillow_there_are_no_images(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert call("demo", "--data-only", "-o", "data").code == 0
    assert {path.name for path in Path("data").iterdir()} == DATA | {"README.txt"}


def test_same_seed_same_files(call, folder):
    for seed, same in ((0, True), (1, False)):
        assert call("demo", "--data-only", "-o", "other", "--seed", seed).code == 0
        for name in ("train.txt", "labels.csv", "survey.csv"):
            assert ((folder / name).read_bytes() == Path("other", name).read_bytes()) is same


def test_a_folder_with_other_files_is_refused(call, fails, folder):
    Path("mine").mkdir()
    assert call("demo", "--data-only", "-o", "mine").code == 0, "an empty folder may be used"
    assert call("demo", "--data-only", "-o", "mine").code == 0, "and so may that of an earlier demo"
    Path("other").mkdir()
    Path("other", "README.txt").write_text("my own notes")
    message = fails("demo", "--data-only", "-o", "other")
    assert message.startswith("other: ")
    assert "--output" in message


def test_plain_text_can_be_tagged(call, folder):
    assert call("train", "data/train.txt", "--features", "ner", "-m", "names.crf", "-q").code == 0
    spans = [
        line.split("\t") for line in call("tag", "names.crf", "data/news.txt", "--text", "--spans").out.split("\n")
    ]
    found = {(span[3], span[5]) for span in spans if len(span) > 5}
    assert {("PER", "Elena Costa"), ("ORG", "Orion Airlines"), ("LOC", "Nairobi"), ("DATE", "May 14")} <= found
    overall = re.search(r"overall.*?([\d.]+)%\s+\d+", call("eval", "names.crf", "data/test.txt").out)[1]
    assert 93 < float(overall) < 99.5, "neither hopeless nor trivial"


def test_labels_depend_on_each_other(call, folder):
    rows = list(csv.DictReader((folder / "labels.csv").read_text().splitlines()))
    umbrellas = {
        rain: sum(row["umbrella"] == "yes" for row in rows if row["rain"] == rain)
        / sum(row["rain"] == rain for row in rows)
        for rain in ("yes", "no")
    }
    assert umbrellas["yes"] > 0.8 > 0.2 > umbrellas["no"]
    assert call("graph", "train", "data/labels.csv", "--labels", "-4:", "-m", "days.crf", "-q").code == 0
    told = call("graph", "predict", "days.crf", "data/new.csv").out.splitlines()
    assert told[0] == "rain,umbrella,travel,picnic"
    assert len(told) == len((folder / "new.csv").read_text().splitlines())


def test_the_structure_of_the_survey_is_found(call, folder):
    outcome = call("structure", "learn", "data/survey.csv", "-m", "s.crf", "-q", "--graph", "edges.csv")
    assert outcome.code == 0
    edges = {frozenset(row[:2]) for row in csv.reader(Path("edges.csv").read_text().splitlines())}
    assert {frozenset(edge) for edge in SURVEY_EDGES} <= edges
