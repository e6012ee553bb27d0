"""Confusions, kinds of mistakes, comparisons, worst sequences, learning curves and suggestions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from optional import optional
from sklearn.exceptions import NotFittedError

from crfkit import ChainCRF, evaluate
from crfkit.errors import DataError, ParameterError
from crfkit.explain import (
    compare,
    confusions,
    find_label_errors,
    learning_curve,
    mistakes,
    suggest,
    suspect_labels,
    worst_sequences,
)
from crfkit.explain.comparison import bootstrap, sentence_counts
from crfkit.schemes import phrases

LABELS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
rows = st.lists(st.sampled_from(LABELS), min_size=1, max_size=6)
pairs = st.lists(rows.flatmap(lambda row: st.tuples(st.just(row), st.permutations(row))), min_size=1, max_size=4)


@given(pairs)
def test_every_wrong_phrase_is_in_one_mistake(found):
    gold, predicted = [a for a, _ in found], [b for _, b in found]
    result = mistakes(gold, predicted)
    scores = evaluate(gold, predicted).overall
    assert result.correct == scores.correct
    assert sum(item.gold is not None for item in result) == scores.gold - scores.correct
    assert sum(item.predicted is not None for item in result) == scores.predicted - scores.correct
    assert sum(result.counts.values()) == len(result) == sum(sum(row.values()) for row in result.by_type.values())
    for n, (a, b) in enumerate(found):
        true, guessed = set(phrases(a)), set(phrases(b))
        mine = [item for item in result if item.sequence == n]
        assert {item.gold for item in mine} - {None} == true - guessed
        assert {item.predicted for item in mine} - {None} == guessed - true
        for item in mine:
            if item.gold and item.predicted:
                assert item.gold.begin < item.predicted.end
                assert item.predicted.begin < item.gold.end
                same = (item.gold[1:] == item.predicted[1:], item.gold.type == item.predicted.type)
                assert item.kind == {(True, False): "type", (False, True): "boundary", (False, False): "both"}[same]
            else:
                assert item.kind == ("missed" if item.gold else "invented")


def test_kinds_of_mistakes():
    gold = ["B-PER", "I-PER", "O", "B-LOC", "O", "B-ORG", "I-ORG", "O", "B-LOC", "O"]
    guess = ["B-PER", "O", "O", "B-ORG", "O", "O", "B-LOC", "O", "O", "B-PER"]
    found = mistakes([gold], [guess])
    assert [item.kind for item in found] == ["boundary", "type", "both", "missed", "invented"]
    assert found.counts == {"boundary": 1, "type": 1, "both": 1, "missed": 1, "invented": 1}
    with pytest.raises(DataError, match="do not mark phrases: no label is written as"):
        mistakes([["DET"]], [["NOUN"]])
    with pytest.raises(DataError, match="sequence 0 has 1 gold labels but 2"):
        mistakes([["O"]], [["O", "O"]])
    with pytest.raises(DataError, match="1 gold label sequences but 0"):
        mistakes([["O"]], [])


def test_confusions_count_all_positions():
    found = confusions([["A", "B"], ["<i>"]], [["A", "A"], ["A"]])
    assert found.labels == ["<i>", "A", "B"]
    assert found.counts.tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0]]
    assert found.pairs == [("<i>", "A", 1), ("B", "A", 1)]
    assert "<i>" not in found.to_html()
    assert "&lt;i&gt;" in found.to_html()


def random_labels(n, seed, error):
    random = np.random.default_rng(seed)
    gold = [[["B-X", "O"][k] for k in random.integers(2, size=5)] for _ in range(n)]
    guess = [[x if random.random() > error else "O" for x in row] for row in gold]
    return gold, guess


def test_a_comparison_finds_what_is_there_and_nothing_else():
    gold, weak = random_labels(200, 0, 0.4)
    strong = [[x if k % 20 else "O" for k, x in enumerate(row)] for row in gold]
    found = compare(gold, weak, strong, samples=500)
    f1 = found.differences["F1 of phrases"]
    assert f1.a == pytest.approx(evaluate(gold, weak).overall.f1)
    assert f1.b == pytest.approx(evaluate(gold, strong).overall.f1)
    assert f1.difference == pytest.approx(f1.b - f1.a)
    assert f1.significant
    assert f1.p_bootstrap < 0.01
    assert f1.p_randomisation < 0.01
    assert f1.interval.low < f1.difference < f1.interval.high
    assert set(found.better) | set(found.worse) <= set(found.differing)
    assert "B is better" in str(found)
    same = compare(gold, weak, weak, samples=100)
    assert same.differing == []
    assert same.differences["accuracy"].p_bootstrap == same.differences["accuracy"].p_randomisation == 1.0
    assert not same.differences["accuracy"].significant
    other = compare(gold, strong, weak, samples=500).differences["F1 of phrases"]
    assert other.difference == -f1.difference
    assert other.p_randomisation < 0.01


def test_p_values_are_uniform_where_there_is_no_difference():
    """Two taggers that err equally often: in one case of ten, p ≤ 0.1."""
    values = []
    for seed in range(120):
        gold, a = random_labels(60, seed, 0.3)
        random = np.random.default_rng(seed + 10_000)
        b = [[x if random.random() > 0.3 else "O" for x in row] for row in gold]
        found = compare(gold, a, b, samples=200, seed=seed).differences["F1 of phrases"]
        values.append((found.p_bootstrap, found.p_randomisation))
    shares = (np.array(values) <= 0.1).mean(axis=0)
    assert ((shares >= 0.03) & (shares <= 0.2)).all()


def test_samples_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    gold = [["B-X", "O"], ["O", "B-Y"], ["B-X", "O"], ["O", "O"]]
    a = [["B-X", "O"], ["O", "O"], ["B-Y", "O"], ["O", "B-X"]]
    b = [["O", "O"], ["O", "B-Y"], ["B-X", "O"], ["O", "O"]]
    whole = compare(gold, a, b, samples=50)
    monkeypatch.setattr("crfkit.explain.comparison.MAX_NUMBERS_AT_ONCE", 30)
    assert compare(gold, a, b, samples=50) == whole


def test_the_bootstrap_has_the_right_spread():
    gold, guess = random_labels(400, 5, 0.3)
    counts = sentence_counts(gold, guess)
    sums = bootstrap(counts, 2000)
    accuracy = sums["right"] / sums["labels"]
    assert_allclose(accuracy.mean(), counts["right"].sum() / counts["labels"].sum(), atol=2e-3)
    assert_allclose(accuracy.std(), (counts["right"] / 5).std() / np.sqrt(400), rtol=0.1)


def test_comparisons_of_other_labels_and_bad_arguments():
    found = compare([["DET"]], [["DET"]], [["NOUN"]], samples=10)
    assert list(found.differences) == ["accuracy"]
    with pytest.raises(DataError, match="the labels of B do not fit"):
        compare([["O"]], [["O"]], [["O", "O"]])
    with pytest.raises(DataError, match="no sequences"):
        compare([], [], [])
    with pytest.raises(ParameterError, match="samples must be"):
        compare([["O"]], [["O"]], [["O"]], samples=0)
    with pytest.raises(ParameterError, match="confidence must be"):
        compare([["O"]], [["O"]], [["O"]], confidence=95)


X = [[[f"w={a}"], [f"w={b}"]] for a, b in product(["the", "a", "my"], ["cat", "dog", "okapi"])]
Y = [["DET", "NOUN"] for _ in X]


def test_worst_sequences_come_first():
    crf = ChainCRF().fit(X, Y)
    y = [list(row) for row in Y]
    y[4], y[7] = ["NOUN", "DET"], ["DET", "UNKNOWN"]
    found = worst_sequences(crf, X, y, n=3)
    assert [row.sequence for row in found[:2]] == [7, 4]
    assert found[0].log_probability == -np.inf
    assert found[1].wrong == [0, 1]
    assert_allclose(found[1].log_probability, crf.sequence_probability(X[4:5], y[4:5], log=True)[0])
    assert found[2].log_probability == crf.sequence_probability(X, Y, log=True).min()


def test_learning_curves():
    calls = []
    found = learning_curve(ChainCRF(), X, Y, X, Y, sizes=[2, 1.0], seeds=2, progress=lambda k, n: calls.append((k, n)))
    assert found.sizes == [2, 9]
    assert found.tokens.tolist() == [[4, 4], [18, 18]]
    assert found.score == "accuracy"
    assert found.mean[1] == 1.0
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert "± " in str(found)
    optional("matplotlib").use("Agg")
    assert found.plot().get_ylabel() == "accuracy"
    with pytest.raises(ParameterError, match="the size 10 is outside 1 … 9"):
        learning_curve(ChainCRF(), X, Y, X, Y, sizes=[10])


@pytest.mark.parametrize("strategy", ["entropy", "margin", "expected-change"])
def test_suggestions_prefer_what_is_unknown(strategy):
    crf = ChainCRF().fit(8 * X, 8 * Y)
    pool = [X[0], [["w=the"], ["w=unheard"]], X[1]]
    values = {found.sequence: found.value for found in suggest(crf, pool, 3, strategy, diversity=0.0)}
    if strategy != "expected-change":  # an unknown word has no weights that could change
        assert max(values, key=values.get) == 1
    assert sorted(values) == [0, 1, 2]
    assert suggest(crf.model_, pool, 10, strategy) == suggest(crf, pool, 10, strategy)


def test_diversity_leaves_out_duplicates():
    crf = ChainCRF().fit(X, Y)
    pool = [X[4], X[4], X[4], X[0]]
    values = {found.sequence: found.value for found in suggest(crf, pool, 4, diversity=0.0)}
    assert values[0] == values[1] == values[2]
    first, second = (found.sequence for found in suggest(crf, pool, 2, diversity=1.0))
    assert {first in (0, 1, 2), second in (0, 1, 2)} == {True, False}


def test_a_single_uncertain_word_is_not_worth_a_sentence():
    """Sentences of one token came first: divided by their length, they are the most uncertain ones."""
    crf = ChainCRF().fit(8 * X, 8 * Y)
    pool = [[["w=unheard"]], [["w=unheard"], ["w=unheard"], ["w=unheard"], ["w=unknown"]]]
    assert [found.sequence for found in suggest(crf, pool, 2)] == [1, 0]
    assert [found.sequence for found in suggest(crf, pool, 2, min_length=2)] == [1]
    assert suggest(crf, pool, 2, min_length=9) == []


def test_suggestions_of_bad_arguments():
    crf = ChainCRF().fit(X, Y)
    with pytest.raises(ParameterError, match="strategy"):
        suggest(crf, X, 2, "luck")
    with pytest.raises(ParameterError, match="n must be an integer"):
        suggest(crf, X, 0)
    with pytest.raises(ParameterError, match="diversity must be from 0 to 1"):
        suggest(crf, X, 2, diversity=2)
    with pytest.raises(ParameterError, match="min_length must be an integer >= 1"):
        suggest(crf, X, 2, min_length=0)
    assert suggest(crf, [], 2) == []


def test_what_cannot_be_judged_is_named():
    X, y = 4 * [[["w=a"], ["w=b"]]], 4 * [["O", "B-X"]]
    crf = ChainCRF().fit(X, y)
    for ask in (
        lambda model, X: suggest(model, X, 1),
        lambda model, X: worst_sequences(model, X, y),
        lambda model, X: suspect_labels(model, X, y),
    ):
        with pytest.raises(NotFittedError, match="call `fit`"):
            ask(ChainCRF(), X)
        with pytest.raises(ParameterError, match="a fitted ChainCRF or a ChainModel, not str"):
            ask("model.crf", X)
    hidden = [*y[:2], ["O", None], y[3]]
    with pytest.raises(DataError, match="sequence 2, position 1: the label is None; only certain labels"):
        find_label_errors(ChainCRF(), X, hidden, cv=2)
    with pytest.raises(DataError, match="sequence 2, position 1"):
        suspect_labels(crf, X, hidden)
    with pytest.raises(DataError, match="no sequences"):
        find_label_errors(ChainCRF(), [], [])
    with pytest.raises(ParameterError, match="sizes is empty"):
        learning_curve(ChainCRF(), X, y, X, y, sizes=[])
    with pytest.raises(DataError, match=r"entry for each sequence .*; there is 1 sequence, but known has 2 entries"):
        crf.decode(X[:1], known=["O", None])
    with pytest.raises(DataError, match="sequence 0 has 2 items, but known has 1 entry for it"):
        crf.decode(X[:1], known=[["O"]])


def test_labels_that_the_model_does_not_have_are_located():
    crf = ChainCRF().fit([[["w=a"], ["w=b"]]], [["O", "B-X"]])
    for label in ("B-Y", None, ["O"], float("nan")):
        with pytest.raises(DataError, match=r"sequence 2, position 1: the label .* is not among"):
            crf.sequence_probability([[["w=a"]], [], [["w=a"], ["w=b"]]], [["O"], [], ["O", label]])
