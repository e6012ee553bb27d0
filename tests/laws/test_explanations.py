"""Explanations against the list of all labellings: the runner-up is right, and contributions sum to the difference."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from optional import optional
from oracle import Problem, enumerate_labellings, exact_marginals, make_problem, small_problems

from crfkit import ChainCRF
from crfkit.chain.inference import ChainInference
from crfkit.chain.model.explanation import explain_data
from crfkit.errors import DataError


def model_of(problem: Problem) -> SimpleNamespace:
    field = problem.field
    names = SimpleNamespace(
        attributes=[f"a{k}" for k in range(field.n_attributes)],
        pair_attributes=[f"b{k}" for k in range(field.n_pair_attributes)],
    )
    inference = ChainInference(field, problem.w)
    labels = list(range(field.n_labels))
    return SimpleNamespace(
        field=field, w=problem.w, inference=inference, class_list=labels, vocabulary=names, n_threads=1
    )


def check(problem: Problem, against: bool) -> None:
    model = model_of(problem)
    for n in range(len(problem.data)):
        data = problem.data.take([n])
        every = enumerate_labellings(problem, n)
        scores = every.features @ problem.w
        best = model.inference.decode(data)[0]
        other = problem.labels(n) if against else None
        found = explain_data(model, data, best, other)
        node = exact_marginals(problem, n).node
        chosen = scores[every.at(best)]
        assert found.labels == best.tolist()
        for t, one in enumerate(found):
            rivals = every.paths[:, t] != best[t]
            if other is not None and other[t] != best[t]:
                rivals = every.paths[:, t] == other[t]
            if not rivals.any():
                assert one.alternative is None
                assert one.contributions == ()
                continue
            assert one.label == best[t] != one.runner_up == one.alternative[t]
            assert_allclose(one.probability, node[t, one.label], atol=1e-10)
            assert_allclose(one.runner_up_probability, node[t, one.runner_up], atol=1e-10)
            assert_allclose(one.difference, chosen - scores[rivals].max(), atol=1e-10)
            assert_allclose(scores[every.at(one.alternative)], scores[rivals].max(), atol=1e-10)
            assert_allclose(sum(c.amount for c in one.contributions), one.difference, atol=1e-10)
            parts = one.from_attributes + one.from_transitions + one.from_elsewhere
            assert_allclose(parts, one.difference, atol=1e-10)
            assert all(c.amount == c.weight * c.value for c in one.contributions)


@given(problem=small_problems())
def test_contributions_sum_to_the_difference_of_scores(problem):
    check(problem, against=False)


@pytest.mark.parametrize("order", [1, 2])
def test_against_given_labels(order):
    check(make_problem(5, 3, (4, 1, 3, 0), order=order, n_pair_attributes=2), against=True)


def test_one_label_has_no_runner_up():
    check(make_problem(1, 1, (3,)), against=False)


X = [[{"word": "the", "bias": 1.0}, {"word": "cat", "bias": 1.0}], [{"word": "a<b>", "bias": 0.5}]]
Y = [["DET", "NOUN"], ["DET"]]


def test_of_an_estimator():
    crf = ChainCRF().fit(X, Y)
    found = crf.explain(X[0])
    assert [one.token for one in found] == ["the", "cat"]
    assert found.labels == crf.predict(X[:1])[0]
    assert_allclose(found.probability, crf.sequence_probability(X[:1], [found.labels])[0])
    assert "word:the" in str(found)
    html = crf.explain(X[1]).to_html()
    assert "a&lt;b&gt;" in html
    assert "<b>" not in html
    gold = crf.explain(X[0], against=["NOUN", "NOUN"])
    assert gold[0].runner_up == "NOUN"
    with pytest.raises(DataError, match=r"sequence 0, position \d: the label 'VERB' is not among"):
        crf.explain(X[0], against=["VERB", "NOUN"])
    assert len(crf.explain([])) == 0


def test_pair_features_columns_and_matrices():
    rows = [[("the", "D"), ("cat", "N")], [("a", "D"), ("dog", "N")]]
    crf = ChainCRF(template="U0:%x[0,0]\nB0:%x[0,1]\nB\n").fit(rows, [["D", "N"], ["D", "N"]])
    found = crf.explain(rows[0])
    assert {c.kind for one in found for c in one.contributions} >= {"attribute", "pair attribute", "transition"}
    matrices = [np.eye(3), np.ones((2, 3))]
    crf = ChainCRF(label_classes={"A": "x", "B": "x", "C": "y"}).fit(matrices, [["A", "B", "C"], ["A", "C"]])
    found = crf.explain(matrices[0])
    assert found[0].token == ""
    assert {c.name for c in found[0].contributions if c.kind == "attribute" and c.position == 0} <= {"x0", "x1", "x2"}
    assert_allclose(sum(c.amount for c in found[0].contributions), found[0].difference, atol=1e-10)


def test_a_frame_has_a_row_for_each_contribution():
    optional("pandas")
    found = ChainCRF().fit(X, Y).explain(X[0])
    frame = found.to_frame()
    assert len(frame) == sum(len(one.contributions) for one in found)
    assert_allclose(frame.groupby("position").amount.sum(), [one.difference for one in found])
