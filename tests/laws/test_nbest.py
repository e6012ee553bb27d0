"""The n best labellings against the list of all of them."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from oracle import KERNELS, Problem, enumerate_labellings, make_problem, small_problems

from crfkit.chain.inference import ChainInference


def check_nbest(problem: Problem, n: int, kernels: str = "auto", n_threads: int = 1) -> None:
    inference = ChainInference(problem.field, problem.w, n_threads, kernels)
    found = inference.nbest(problem.data, n)
    assert len(found) == len(problem.data)
    for k, labellings in enumerate(found):
        every = enumerate_labellings(problem, k)
        scores = every.features @ problem.w
        best = np.sort(scores)[::-1][:n]
        assert len(labellings) == min(n, len(scores))
        given = np.array([score for _, score in labellings])
        assert_allclose(given, best, rtol=1e-10, atol=1e-10)
        assert (np.diff(given) <= 1e-9).all()
        for labels, score in labellings:  # each score is that of its labels
            assert_allclose(scores[every.at(labels)], score, rtol=1e-10, atol=1e-10)
        assert len({tuple(labels.tolist()) for labels, _ in labellings}) == len(labellings)


@given(problem=small_problems())
def test_nbest_equals_enumeration(problem):
    for n in (1, 3, 10_000):
        check_nbest(problem, n, n_threads=2)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("order", [1, 2])
def test_every_kernel(order, kernels):
    check_nbest(make_problem(3, 9, (3, 2, 1, 0), order=order, n_pair_attributes=2), 7, kernels)


def test_the_best_is_that_of_decoding_and_all_probabilities_sum_to_one():
    problem = make_problem(1, 3, (6, 4), n_pair_attributes=1)
    inference = ChainInference(problem.field, problem.w)
    labels, scores = inference.decode(problem.data)
    log_z = inference.log_partition(problem.data)
    for k, found in enumerate(inference.nbest(problem.data, 10_000)):
        begin, end = problem.span(k)
        assert found[0][0].tolist() == labels[begin:end].tolist()
        assert_allclose(found[0][1], scores[k], rtol=1e-12)
        assert_allclose(sum(np.exp(score - log_z[k]) for _, score in found), 1.0, rtol=1e-10)


def test_none_and_long_sequences():
    problem = make_problem(2, 4, (300,))
    inference = ChainInference(problem.field, problem.w)
    assert inference.nbest(problem.data, 0) == [[]]
    scores = [score for _, score in inference.nbest(problem.data, 500)[0]]
    assert len(scores) == 500
    assert scores == sorted(scores, reverse=True)
