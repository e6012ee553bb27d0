"""Warnings about labels that are probably misspelt: what is found, where, and what is left in peace."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from crfkit import ChainCRF, read_columns
from crfkit.chain.encoding.label_typos import suspects
from crfkit.errors import DataWarning
from crfkit.schemes import convert_tags

NAMES = [["B-PER", "I-PER", "O", "B-ORG", "I-ORG", "I-ORG", "O"], ["O", "B-LOC", "O"]] * 12


def found(rows: list[list[str]]) -> list[tuple[str, str | None]]:
    names = sorted({label for row in rows for label in row})
    ids = np.array([names.index(label) for row in rows for label in row], dtype=np.int32)
    starts = np.cumsum([0, *map(len, rows)])
    counts = np.bincount(ids, minlength=len(names))
    return [(suspect.label, suspect.meant) for suspect in suspects(names, counts, ids, starts)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (["B_ORG", "I-ORG"], [("B_ORG", "B-ORG")]),
        (["B-PER", "I-PRE"], [("I-PRE", "I-PER")]),
        (["B-OGR", "I-OGR"], [("B-OGR", "B-ORG"), ("I-OGR", "I-ORG")]),
        (["b-org"], [("b-org", "B-ORG")]),
        (["B-Org"], [("B-Org", "B-ORG")]),
        (["BORG"], [("BORG", "B-ORG")]),
        (["0"], [("0", None)]),
        (["B-LOC", "I_LOC"], [("I_LOC", "I-LOC")]),  # which does not occur otherwise
        (["B-LOC", "I-LOK"], [("I-LOK", "I-LOC")]),  # nothing begins a phrase of LOK
        (["B-LOC", "I-MISC"], [("I-MISC", None)]),
        (["B-MISC", "I-MISC"], []),  # a rare type
        (["B-DATE"], []),
    ],
)
def test_labels_of_phrases(row, expected):
    assert found([*NAMES, row]) == expected


def test_long_types_may_differ_by_a_letter():
    rows = [["B-PERSON", "I-PERSON", "O", "B-LOCATION"]] * 60
    assert found([*rows, ["B-PERSONN", "B-LOCTION"]]) == [("B-LOCTION", "B-LOCATION"), ("B-PERSONN", "B-PERSON")]
    assert found([*rows[:4], ["B-PERSONN"]]) == []  # too few to say which is meant
    assert found([[f"B-ARG{k % 4}", "O"] for k in range(400)] + [["B-ARG5"]]) == []


@pytest.mark.parametrize(
    "rows",
    [
        [["DT", "NN", "VBD", "."], ["NNP", "NNP", "VBZ", "``", "PRP$"]] * 40 + [["NNS", "VBP", "PRP", "NNPS", "''"]],
        [["NOUN", "VERB", "PROPN", "CCONJ", "ADJ"]] * 100 + [["PRON", "SCONJ", "ADV", "ADP", "X"]],
        [["VMS"]] * 100 + [["VSM"]],
        [list("abcdefg")] * 20 + [list("ABCxyz")],
        [list("0123")] * 20 + [list("89")],
        [["10", "20", "30"]] * 20 + [["01", "02"]],
        [["I-PER", "O", "I-LOC", "I-PER", "B-PER"]] * 20 + [["I-ORG"]],  # IOB1
        [["O", "B-X", "I-X"], ["O", "O"]],
        [["rain", "sun"], ["sun", "rain", "snow"]] * 20,
    ],
)
def test_no_false_alarm(rows):
    assert found(rows) == []


def test_other_labels():
    assert found([["NOUN", "VERB", "DET"]] * 20 + [["noun", "NUON"]]) == [("NUON", "NOUN"), ("noun", "NOUN")]


def test_random_labels():
    """Types that are drawn at random from common ones are no typos, however few there are."""
    kinds = ["PER", "LOC", "ORG", "MISC", "GPE", "DNA", "RNA", "NP", "VP", "PP", "ADJP", "ADVP", "DATE", "TIME"]
    rng = random.Random(0)
    for _ in range(200):
        weights = [rng.random() ** 4 for _ in kinds]
        drawn = rng.choices(kinds, weights, k=rng.choice([5, 20, 100]))
        rows = [[f"B-{kind}", *[f"I-{kind}"] * rng.randrange(3), "O"] for kind in drawn]
        for scheme in ("iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou"):
            assert found(convert_tags(rows, scheme)) == []


@pytest.mark.parametrize("column", [1, 2])
@pytest.mark.parametrize("name", ["conll2000/train.txt", "conll2002_spanish/esp.train", "conll2002_spanish/esp.testb"])
def test_corpora(shared_data, name, column):
    if not (shared_data / name).exists():
        pytest.skip(f"{shared_data / name} is not there")
    X, y = read_columns(shared_data / name)
    rows = y if column == 2 else [[row[1] for row in sentence] for sentence in X]
    rng = random.Random(0)
    for size in (len(rows), 3000, 300, 30):
        assert found(rng.sample(rows, min(size, len(rows)))) == []


def sentences():
    y = [*NAMES, ["O", "B_ORG", "I-ORG"]]
    return [[f"w{label}" for label in row] for row in y], y


def warnings_of_training(X, y):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ChainCRF(features="ner", max_iterations=3).fit(X, y)
    return [str(one.message) for one in said if issubclass(one.category, DataWarning)]


def test_fit_warns_once():
    X, y = sentences()
    assert warnings_of_training(X, y) == [
        "the label 'B_ORG' occurs once (sequence 24, position 1); did you mean 'B-ORG'?"
    ]
    y[-1][1] = "0"
    assert warnings_of_training(X, y) == [
        "the label '0' occurs once (sequence 24, position 1), and it is not written as B-…, I-… or O, as the others are"
    ]


def test_unknown_labels_are_no_typos():
    X, y = sentences()
    y = [[None if label == "B_ORG" else label for label in row] for row in y]
    assert warnings_of_training(X, y) == []
