"""Decoding by a beam: its score, its bound, and what it proves, next to exact decoding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracle import KERNELS, labelling_score, make_problem, recursion, small_problems

from crfkit import ChainCRF
from crfkit.errors import DataError, ParameterError
from crfkit.inference import ChainInference

every_kernel = pytest.mark.parametrize("kernels", KERNELS)


def check(problem, beam, kernels="auto"):
    inference = ChainInference(problem.field, problem.w, 2, kernels)
    labels, scores, gaps = inference.beam(problem.data, beam)
    best = inference.decode(problem.data)[1]
    for n, (a, b) in enumerate(zip(problem.data.starts[:-1], problem.data.starts[1:], strict=True)):
        if b > a:
            assert_allclose(labelling_score(problem, n, labels[a:b]), scores[n], rtol=1e-9, atol=1e-9)
    tolerance = 1e-9 * (1 + np.abs(best))
    assert (gaps >= 0).all()
    assert (scores <= best + tolerance).all()
    assert (best <= scores + gaps + tolerance).all()
    return scores, gaps, best


@settings(max_examples=80)
@given(problem=small_problems(), beam=st.integers(1, 6))
def test_the_bound_holds_whatever_the_beam(problem, beam):
    check(problem, beam)


@settings(max_examples=30)
@given(problem=small_problems())
def test_a_beam_of_all_states_is_exact(problem):
    scores, gaps, best = check(problem, problem.field.n_labels**problem.field.order)
    assert_allclose(scores, best, rtol=1e-12, atol=1e-12)
    assert_array_equal(gaps, 0.0)


@every_kernel
@pytest.mark.parametrize(("order", "n_labels", "beam"), [(1, 70, 8), (1, 17, 3), (2, 9, 12), (2, 17, 40)])
def test_attributes_that_say_much_prove_the_best_labels(kernels, order, n_labels, beam):
    problem = make_problem(3, n_labels, (9, 1, 0, 14, 6, 11), order=order, n_attributes=20)
    problem.w[problem.field.layout["state"]] *= 10
    scores, gaps, best = check(problem, beam, kernels)
    proven = gaps == 0.0
    assert proven.sum() >= 3
    assert_allclose(scores[proven], best[proven], rtol=1e-12)


def test_a_wider_beam_bounds_more_tightly():
    problem = make_problem(5, 40, (12, 15, 9, 20), scale=1.0, n_attributes=30)
    gaps = [check(problem, beam)[1].sum() for beam in (1, 10, 40)]
    assert gaps[0] > gaps[1] >= gaps[2] == 0.0


def test_known_labels_and_constraints_that_a_beam_cannot_keep_are_found():
    problem = make_problem(1, 12, (8, 8, 5), forbidden=0.6)
    for n in range(1, 13):
        check(problem, n)
    best = np.array([recursion(problem, n).best_score for n in range(3)])
    assert_allclose(ChainInference(problem.field, problem.w).beam(problem.data, 12)[1], best, rtol=1e-9)


def test_nothing_allowed_is_an_error():
    problem = make_problem(1, 4, (3,), forbidden=0.0)
    allowed = np.zeros((3, 4), dtype=bool)
    with pytest.raises(DataError, match="no label is allowed"):
        ChainInference(problem.field, problem.w).beam(problem.data, 2, allowed)


def test_the_estimator_names_the_labels():
    X, y = [[["a"], ["b"], ["a"]]] * 3, [["A", "B", "A"]] * 3
    crf = ChainCRF().fit(X, y)
    found = crf.predict_beam(X[:1], beam=1)[0]
    assert found.labels == crf.predict(X[:1])[0]
    assert crf.predict_beam([[]], beam=1)[0].labels == []
    assert crf.predict_beam(X[:1], beam=10**30)[0].exact


@pytest.mark.parametrize("beam", [0, -1, 1.5, True, "2", None])
def test_a_beam_is_a_positive_integer(beam):
    crf = ChainCRF().fit([[["a"]]] * 2, [["A"], ["B"]])
    with pytest.raises(ParameterError, match="beam must be an integer >= 1"):
        crf.predict_beam([[["a"]]], beam=beam)
