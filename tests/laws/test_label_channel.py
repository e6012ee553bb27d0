"""Chains that have seen labels which may be wrong, against the list of all labellings; and what is found with them."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import Problem, enumerate_labellings, make_problem

from crfkit import ChainCRF
from crfkit.errors import DataError, ParameterError
from crfkit.explain import find_label_errors, suspect_labels
from crfkit.explain.channel import with_channel, with_given


def check_posterior(problem: Problem, n_given: int) -> None:
    field, L = problem.field, problem.field.n_labels
    random = np.random.default_rng(0)
    channel = random.dirichlet(np.ones(n_given), size=L)  # labels by what is given
    given = random.integers(n_given, size=problem.data.n_positions).astype(np.int32)
    model = SimpleNamespace(field=field, w=problem.w, n_threads=1)
    data = with_given(problem.data, given, field.n_attributes)
    node = with_channel(model, np.log(channel)).node_marginals(data)
    for n in range(len(problem.data)):
        begin, end = problem.span(n)
        every = enumerate_labellings(problem, n)
        score = every.features @ problem.w + np.log(channel)[every.paths, given[begin:end]].sum(axis=1)
        p = np.exp(score - score.max())
        p /= p.sum()
        for t in range(end - begin):
            assert_allclose(node[begin + t], np.bincount(every.paths[:, t], p, minlength=L), atol=1e-10)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_posterior_equals_enumeration(seed, order):
    check_posterior(make_problem(seed, 3, (4, 1, 3), order=order, n_pair_attributes=seed % 2), 4)


@pytest.mark.parametrize("all_states", [True, False])
def test_posterior_with_classes_of_labels(all_states):
    X, y = [[["a"], ["b"]], [["b", "c"], ["a"]]], [["A", "B"], ["B", "C"]]
    classes = {"A": "x", "B": "x", "C": "y"}
    crf = ChainCRF(label_classes=classes, all_possible_states=all_states).fit(X, y)
    data = crf.model_.encode(X)
    labels = np.array([0, 1, 1, 2], dtype=np.int32)
    check_posterior(Problem(data.with_labels(labels), crf.model_.field, crf.model_.w), 3)


def corpus(n: int = 60):
    random = np.random.default_rng(3)
    words = {"in": "O", "rain": "O", "falls": "O", "Rome": "B-LOC", "Ann": "B-PER", "Smith": "I-PER"}
    X, y = [], []
    for _ in range(n):
        row = random.choice(["in", "rain", "falls", "Rome", "Ann Smith"], size=4)
        tokens = " ".join(row.tolist()).split()
        X.append([[f"w={word}"] for word in tokens])
        y.append([words[word] for word in tokens])
    return X, y


def test_wrong_labels_come_first_and_are_corrected():
    X, y = corpus()
    spoilt = [list(row) for row in y]
    random = np.random.default_rng(0)
    wrong = set()
    for i in range(0, len(X), 6):
        t = int(random.integers(len(X[i])))
        spoilt[i][t] = "B-LOC" if y[i][t] != "B-LOC" else "O"
        wrong.add((i, t))
    done = []
    found = find_label_errors(ChainCRF(), X, spoilt, cv=3, progress=lambda k, n: done.append((k, n)))
    assert done == [(k, 6) for k in range(1, 7)]
    first = found.ranked(len(wrong))
    assert {(s.sequence, s.position) for s in first} == wrong
    assert found.corrected == y
    assert sorted(s.score for s in first) == [s.score for s in reversed(first)]
    assert {(s.sequence, s.position) for s in found.ranked()} == wrong
    assert {s.token for s in first} <= {"in", "rain", "falls", "Rome", "Ann", "Smith"}
    groups = found.groups()
    assert sum(group.size for group in groups) >= len(wrong)
    assert "LOC is no phrase" in {group.change for group in groups}
    assert "suspect labels among" in str(found)


def test_labels_of_a_test_set():
    X, y = corpus()
    crf = ChainCRF().fit(X[:40], y[:40])
    given = [list(row) for row in y[40:]]
    given[3][0] = "B-ORG"  # the model does not know it
    found = suspect_labels(crf, X[40:], given)
    assert found.ranked(1)[0][:2] == (3, 0)
    assert found.marginals[3][0] == 0.0
    assert suspect_labels(crf.model_, X[40:], given).corrected == found.corrected


def test_labels_without_phrases_are_grouped_by_label():
    X = [[["w=the"], ["w=cat"]] for _ in range(12)]
    y = [["DET", "NOUN"] for _ in range(12)]
    y[2] = ["NOUN", "NOUN"]
    groups = find_label_errors(ChainCRF(), X, y, cv=3, rounds=1).groups()
    assert [(group.change, group.size, group.sequences) for group in groups] == [("NOUN → DET", 1, [2])]


def test_bad_arguments():
    X, y = corpus(6)
    for cv in (1, 7, 2.5, True):
        with pytest.raises(ParameterError, match="cv must be an integer from 2"):
            find_label_errors(ChainCRF(), X, y, cv=cv)
    for rounds in (0, 1.5, "2"):
        with pytest.raises(ParameterError, match="rounds must be an integer >= 1"):
            find_label_errors(ChainCRF(), X, y, rounds=rounds)
    with pytest.raises(DataError, match="6 sequences but 5 label sequences"):
        find_label_errors(ChainCRF(), X, y[:5])
