"""The tagger of single sequences gives what the bulk calls give."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crfkit import ChainCRF, _core

WORDS = ["the", "cat", "sleeps", "a", "dog", "barks", "big", "red"]


def corpus(seed, n=40):
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = random.choice(WORDS, size=random.integers(1, 7)).tolist()
        X.append(
            [
                {"w": w, "n": len(w) / 4, "last": w[-1], "next": {"w": words[(i + 1) % len(words)]}}
                for i, w in enumerate(words)
            ]
        )
        y.append([["D", "N", "V", "A"][(WORDS.index(w) + int(random.integers(2))) % 4] for w in words])
    return X, y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": 2},
        {"all_possible_states": True, "all_possible_transitions": True},
        {"constraints": "observed"},
        {"label_classes": {"D": "x", "N": "x"}},
    ],
)
def test_one_by_one_is_as_in_bulk(options):
    X, y = corpus(0)
    crf = ChainCRF(**options).fit(X, y)
    tagger = crf.model_.tagger
    names = crf.classes_.tolist()
    test = [*corpus(1)[0], [], [{"unknown": "attribute"}]]
    data = crf.model_.encode(test)
    log_z = crf.model_.inference.log_partition(data)
    for k, (x, labels, marginals) in enumerate(zip(test, crf.predict(test), crf.predict_marginals(test), strict=True)):
        assert tagger.tag(x) == labels
        assert tagger.length == len(x)
        assert_allclose(tagger.marginals(), marginals, rtol=1e-12, atol=1e-15)
        assert_allclose(tagger.log_partition, log_z[k], rtol=1e-12)
        if x:
            assert_allclose(tagger.marginal(0, len(x) - 1), marginals[-1][0], rtol=1e-12)
            found = crf.model_.inference.nbest(crf.model_.encode([x]), 3)[0]
            for best, score in found:
                assert_allclose(tagger.score(best.tolist()), score, rtol=1e-10, atol=1e-10)
            assert [names[j] for j in found[0][0]] == labels


def test_templates():
    rows = [[("the", "D"), ("cat", "N")], [("a", "D"), ("dog", "N"), ("barks", "V")]]
    crf = ChainCRF(template="U00:%x[0,0]\nU01:%x[-1,0]\nB\nB01:%x[0,0]").fit(rows, [["x", "y"], ["x", "y", "z"]])
    assert [crf.model_.tagger.tag(row) for row in rows] == crf.predict(rows)


def test_bad_input_leaves_an_empty_sequence():
    X, y = corpus(0)
    tagger = ChainCRF().fit(X, y).model_.tagger
    tagger.set(X[0])
    with pytest.raises(_core.BadInput, match="position 1"):
        tagger.set([{"w": "a"}, 3])
    assert tagger.viterbi() == []
    with pytest.raises(ValueError, match="label for every position"):
        tagger.score([0])
    tagger.set(X[0])
    with pytest.raises(IndexError):
        tagger.marginal(99, 0)
    with pytest.raises(IndexError):
        tagger.score([99] * len(X[0]))


def test_a_tagger_outlives_its_model():
    X, y = corpus(0)
    tagger = ChainCRF().fit(X, y).model_.tagger
    expected = ChainCRF().fit(X, y).predict(X[:3])
    assert [tagger.tag(x) for x in X[:3]] == expected


def test_impossible_sequences():
    X, y = [[["a"], ["b"]]], [["x", "y"]]
    crf = ChainCRF(constraints="observed").fit(X, y)
    with pytest.raises(_core.BadInput, match="no labelling"):
        crf.model_.tagger.tag([["a"]] * 3)
