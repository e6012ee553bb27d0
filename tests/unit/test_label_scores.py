"""Labels that mark no phrases are scored one by one; phrases only if labels mark them; inputs are checked."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from crfkit import ChainCRF, evaluate
from crfkit.errors import DataError
from crfkit.metrics.report import report

POS = ["DET", "NOUN", "VERB", "IN", "ED"]


@given(pairs=st.lists(st.lists(st.tuples(st.sampled_from(POS), st.sampled_from(POS)), max_size=8), max_size=4))
def test_scores_of_labels_equal_scikit_learns(pairs):
    gold, guess = ([[pair[k] for pair in row] for row in pairs] for k in (0, 1))
    result = evaluate(gold, guess)
    flat = [list(itertools.chain(*rows)) for rows in (gold, guess)]
    if not flat[0]:
        assert result.by_label == {}
        return
    assert not result.has_phrases
    labels = list(result.by_label)
    expected = precision_recall_fscore_support(*flat, labels=labels, zero_division=0)
    for k, name in enumerate(("precision", "recall", "f1", "gold")):
        np.testing.assert_allclose([getattr(c, name) for c in result.by_label.values()], expected[k])
    means = precision_recall_fscore_support(*flat, labels=labels, zero_division=0, average="macro")
    np.testing.assert_allclose(list(result.macro.values()), means[:3])
    assert sum(n for _, _, n in result.mistakes) == result.tokens - result.correct_tokens


def test_labels_that_are_no_phrases_have_no_phrase_scores():
    """Part-of-speech tags once had an F1 of phrases, of a type without a name."""
    result = evaluate([["DET", "NOUN", "VERB", "O"]], [["DET", "NOUN", "NOUN", "O"]])
    for name in ("overall", "by_type"):
        with pytest.raises(DataError, match=r"do not mark phrases: the label 'DET' .*accuracy, by_label or macro"):
            getattr(result, name)
    told = result.as_dict()
    assert "overall" not in told
    assert "by_type" not in told
    assert told["scheme"] is None
    assert told["by_label"]["NOUN"]["support"] == 1
    assert told["confusion"] == [{"gold": "VERB", "predicted": "NOUN", "count": 1}]
    assert json.loads(json.dumps(told)) == told
    text = str(result)
    assert "overall" not in text
    assert "VERB → NOUN" in text


def test_underscores_write_no_phrases_and_the_report_says_so():
    result = evaluate([["B_NP", "I_NP"]], [["B_NP", "B_NP"]])
    assert not result.has_phrases
    assert "phrases are written with '-', as in 'B-NP', not 'B_NP'" in str(result)


def test_one_odd_label_is_named():
    """Whether it comes first or last."""
    for rows in ([["B-A", "I-A"], ["PAD"]], [["PAD"], ["B-A", "I-A"]]):
        result = evaluate(rows, rows)
        assert "the label 'PAD' is not written as B-…, I-… or O" in str(result)
        assert result.accuracy == 1.0


def test_report_of_phrases():
    result = evaluate([["B-A", "I-A", "O"]], [["B-A", "E-A", "O"]])
    text = str(result)
    assert text.splitlines()[1] == "tagging scheme IOB2"
    assert "the predicted label E-A does not belong to IOB2" in text
    assert "I-A → E-A" not in text
    assert "I-A → E-A" in report(result, labels=True)
    broken = evaluate([["O", "I-A", "B-A", "O", "B-A"]], [["O"] * 5])
    assert "the gold labels break the rules of every tagging scheme" in str(broken)
    assert str(evaluate([], [])).startswith("0 tokens")


def test_only_the_most_frequent_mistakes_are_shown():
    gold = [[f"a{k}" for k in range(14)]]
    text = str(evaluate(gold, [["b"] * 14]))
    assert text.count(" → ") == 11  # with the heading
    assert "and 4 other pairs" in text
    assert "no predicted label is also a gold label" in text


@pytest.mark.parametrize(
    ("labels", "other"), [([1, 2], [1, 1]), ([(1, "a")], [(2, "b")]), ([True], [False]), ([b"a"], [b"b"]), ([1], ["a"])]
)
def test_labels_of_other_types(labels, other):
    result = evaluate([labels], [other])
    assert result.by_label[labels[0]].gold == labels.count(labels[0])
    assert str(labels[0]) in str(result)


@pytest.mark.parametrize(
    ("gold", "guess", "message"),
    [
        (
            ["B-NP", "O"],
            ["B-NP", "O"],
            r"'B-NP'; put a single sequence into a list: evaluate\(\[gold\], \[predicted\]\)",
        ),
        ([1, 2], [1, 2], r"sequences of gold labels, but one of them is 1; put a single"),
        ([["O"]], ["O"], r"sequences of predicted labels, but one of them is 'O'"),
        (np.array(["O"]), np.array(["O"]), "put a single sequence"),
        ("O", "O", "gold labels must be a list of label sequences, not str"),
        ([["O"]], None, "predicted labels must be a list of label sequences, not NoneType"),
        ([["O"], ["O"]], [["O"]], "2 gold label sequences but 1 predicted"),
        ([["O"]], [["O"], []], "1 gold label sequences but 2 predicted"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sequence 1 has 2 gold labels but 1 predicted"),
        ([[["O"]]], [[["O"]]], r"sequence 0: \['O'\] is a list, not a label"),
    ],
    ids=str,
)
def test_inputs_that_cannot_be_scored(gold, guess, message):
    with pytest.raises(DataError, match=message):
        evaluate(gold, guess)


def test_arrays_and_iterators_are_sequences():
    rows = [["B-A", "O"], ["O"]]
    assert evaluate(iter(rows), [np.array(row) for row in rows]) == evaluate(rows, [tuple(row) for row in rows])


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (["B-A", "I-A", "O"], "dev_f1"),
        (["U-A", "L-A", "B-A"], "dev_f1"),
        (["E-A", "I-A", "O"], "dev_f1"),
        (["B", "I", "O"], "dev_f1"),
        (["B-A", "NOUN", "O"], "dev_accuracy"),
        (["B_A", "I_A", "O"], "dev_accuracy"),
        (["DET", "NOUN", "O"], "dev_accuracy"),
        ([1, 2, 3], "dev_accuracy"),
    ],
    ids=str,
)
def test_early_stopping_scores_what_the_labels_are(labels, name):
    X, y = [[["a"], ["b"], ["c"]]] * 2, [labels] * 2
    crf = ChainCRF(max_iterations=3, solver="lbfgs", n_threads=1, tolerance=0.5).fit(X, y, X_dev=X, y_dev=y)
    assert {key for row in crf.result_.trace for key in row.extra} == {name}
    assert crf.result_.trace[-1].extra[name] == 1.0
