"""Plain text on the command line: train with features, tag tokens and sentences, inspect."""

from __future__ import annotations

import json

import pytest

TRAIN = "In O\nRome B-LOC\n\nRome B-LOC\nsleeps O\n. O\n\nNew B-LOC\nYork I-LOC\nsleeps O\n"


@pytest.fixture
def model(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.train").write_text(TRAIN)
    (tmp_path / "cities").write_text("Rome\nNew York\n")
    done = call("train", "plain.train", "--features", "ner", "--gazetteer", "LOC=cities", "-m", "plain.crf", "-q")
    assert done.code == 0, done
    return "plain.crf"


def test_tokens_one_per_line(call, model, tmp_path):
    (tmp_path / "t").write_text("In\nRome\n\nNew\nYork\n")
    assert call("tag", model, "t").out == "In\tO\nRome\tB-LOC\n\nNew\tB-LOC\nYork\tI-LOC\n\n"
    (tmp_path / "more").write_text("In NN x\nRome NN y\n\n")  # further columns are kept
    assert call("tag", model, "more").out == "In NN x O\nRome NN y B-LOC\n\n"


def test_sentences(call, model, tmp_path):
    (tmp_path / "t").write_text("In Rome.\n\nNew York sleeps.")
    expected = "In\tO\nRome\tB-LOC\n.\tO\n\nNew\tB-LOC\nYork\tI-LOC\nsleeps\tO\n.\tO\n\n"
    assert call("tag", model, "t", "--text").out == expected
    assert call("tag", model, "t", "--format", "text").out == expected
    (tmp_path / "line").write_text("In Rome. New York sleeps.\n")  # a line of two sentences
    assert call("tag", model, "line", "--text").out == expected
    words = call("tag", model, "t", "--format", "words", "--json").out.splitlines()
    assert [json.loads(line)["tokens"] for line in words] == [["In", "Rome."], ["New", "York", "sleeps."]]


def test_inspect_shows_the_features(call, model):
    shown = call("inspect", model).out
    assert "text features (bag=6, context=True): word[0] lower[0]" in shown
    assert "gazetteer LOC: 2 phrases" in shown
    found = json.loads(call("inspect", model, "--json").out)
    assert found["inputs"] == "text"
    assert found["features"]["gazetteers"] == {"LOC": 2}


def test_hashed_names(call, model):
    args = ("plain.train", "--features", "ner", "-m", "hashed.crf", "-q")
    assert call("train", *args, "--hash-bits", 14).code == 0
    assert "names of attributes are hashed to 2^14 buckets" in call("inspect", "hashed.crf").out
    assert "hash_bits must be a whole number from 4 to 28" in call("train", *args, "--hash-bits", 99).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "nre"], "unknown preset of features 'nre'"),
        (["--features", "ner", "--template", "t"], "--features and --template cannot be combined"),
        (["--gazetteer", "LOC=cities"], "--gazetteer adds to text features; give --features NAME as well"),
        (["--features", "ner", "--gazetteer", "cities"], "--gazetteer must be NAME=FILE"),
        (["--features", "ner", "--gazetteer", "LOC=nosuch"], "cannot read the gazetteer 'LOC'"),
        (["--features", "ner", "--feature-columns", "pos"], "--feature-columns must be numbers"),
        (
            ["--features", "ner", "--feature-columns", "1"],
            "the features use column 1, but there is only 1 feature column",
        ),
        (["--features", "ner", "--format", "text"], "is plain text and has no labels"),
        ([], "needs a template (--template FILE) or features (--features ner)"),
    ],
)
def test_mistakes_are_named(call, model, options, message):
    done = call("train", "plain.train", "-m", "other.crf", "-q", *options)
    assert done.code != 0
    assert message in " ".join(done.err.split())


def test_text_contradicts_another_format(call, model):
    assert (
        "--text is --format text, but --format is words" in call("tag", model, "t", "--text", "--format", "words").err
    )


def test_sentences_without_the_option_are_recognised(call, model, tmp_path):
    (tmp_path / "t").write_text("In Rome.\nNew York sleeps.\n")
    done = call("tag", model, "t")
    assert done.code == 2
    assert "t:2: 3 columns, but the lines before have 2; give --text if this is plain text" in done.err
    assert "--text" not in call("tag", model, "t", "--format", "columns").err
    for command in ("explain", "suggest"):
        assert "before have 2; give --format text if this is plain text" in call(command, model, "t").err
        assert call(command, model, "t", "--format", "text").code == 0


def test_words_of_characters_are_written_without_blanks(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.train").write_text("我 B\n们 E\n爱 S\n\n他 S\n爱 S\n我 B\n们 E\n" * 5, encoding="utf-8")
    assert call("train", "s.train", "--features", "segmentation", "-m", "s.crf", "-q", "--l2", "0.01").code == 0
    (tmp_path / "t").write_text("他爱我们\n", encoding="utf-8")
    rows = call("tag", "s.crf", "t", "--format", "characters", "--spans").out.splitlines()
    assert [row.split("\t")[-1] for row in rows] == ["他", "爱", "我们"]
    found = json.loads(call("tag", "s.crf", "t", "--format", "characters", "--json").out)
    assert [span["text"] for span in found["spans"]] == ["他", "爱", "我们"]
    assert found["tokens"] == list("他爱我们")


def test_the_hint_does_not_depend_on_words_of_the_error(model):
    """Any line that cannot be read as columns may be a sentence; other errors have nothing to do with it."""
    from crfkit.chain.model.model import ChainModel
    from crfkit.cli.options.text import hinting
    from crfkit.errors import DataError

    trained = ChainModel.load(model)
    with pytest.raises(DataError, match=r"t:2: some reason; give --text if"), hinting(trained, "auto", "--text"):
        raise DataError("some reason", "t", 2)
    with pytest.raises(DataError, match=r"t: but the lines before have$"), hinting(trained, "auto", "--text"):
        raise DataError("but the lines before have", "t")
