"""Labels in another tagging scheme than the gold ones are compared by their phrases."""

import numpy as np
import pytest

from crfkit.explain.comparison import compare
from crfkit.schemes import TAG_SCHEMES, convert_tags, in_scheme_of


def sentences(n, seed):
    rng = np.random.default_rng(seed)
    rows = [
        convert_tags([rng.choice(["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"], 12).tolist()], "iob2")[0]
        for _ in range(n)
    ]
    return rows


@pytest.mark.parametrize("scheme", sorted(TAG_SCHEMES))
@pytest.mark.parametrize("other", sorted(TAG_SCHEMES))
def test_the_same_phrases_are_the_same_labels(scheme, other):
    gold = convert_tags(sentences(200, 0), scheme)
    assert in_scheme_of(gold, convert_tags(gold, other)).labels == gold


def test_two_models_of_two_schemes():
    """A model of IOB1 and one of IOB2 with the same phrases on gold labels of IOB2: equal, not 87 against 97 %."""
    gold, predicted = sentences(100, 0), sentences(100, 1)
    found = compare(gold, convert_tags(predicted, "iob1"), predicted, samples=100)
    assert found.differences["accuracy"].difference == 0
    assert found.differing == []
    assert found.notes == ("the labels of A are IOB1; they were converted to IOB2, the scheme of the gold labels",)
    assert str(found).startswith("the labels of A are IOB1")


def test_labels_that_break_their_own_scheme_now_and_then_are_kept():
    gold = sentences(100, 0)
    predicted = [["I-PER" if (n + t) % 50 == 0 else label for t, label in enumerate(r)] for n, r in enumerate(gold)]
    assert in_scheme_of(gold, predicted) == (predicted, None)


def test_labels_that_mark_no_phrases():
    rows = [["DET", "NOUN"]]
    assert in_scheme_of(rows, [["NOUN", "NOUN"]]) == ([["NOUN", "NOUN"]], None)
    assert in_scheme_of([["O", "O"]], [["B-X", "O"]]) == ([["B-X", "O"]], None)
