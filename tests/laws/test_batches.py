"""Chains with many labels and of order 2 are inferred several sequences at a time, with the same numbers as singly."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import KERNELS, Problem, hamming, likelihood, make_problem, recursive_likelihood, select

from crfkit.losses import ChainLikelihood

LENGTHS = (7, 0, 1, 30, 2, 12, 12, 3, 1, 9, 5, 0, 6, 4, 17, 8, 2, 11)  # several batches, longest first or not
TOLERANCE = {"double": 1e-10, "single": 2e-6}
every_kernel = pytest.mark.parametrize("kernels", KERNELS)
every_precision = pytest.mark.parametrize("precision", TOLERANCE)


def close(problem: Problem, expected, kernels: str = "auto", precision: str = "double") -> None:
    found = ChainLikelihood(problem.data, problem.field, 2, kernels, precision=precision).at(problem.w)
    assert_allclose(found.value, expected[0], rtol=TOLERANCE[precision])
    assert_allclose(found.grad, expected[1], atol=TOLERANCE[precision] * problem.data.n_positions)


@pytest.mark.parametrize("n_labels", [79, 96, 131])
def test_many_labels(n_labels):
    problem = make_problem(n_labels, n_labels, LENGTHS, weights=True, scale=0.5, states="observed")
    expected = likelihood(problem.data, problem.field, problem.w)
    for kernels in KERNELS:
        for precision in TOLERANCE:
            close(problem, expected, kernels, precision)


@every_precision
@every_kernel
@pytest.mark.parametrize("forbidden", [None, 0.3])
@pytest.mark.parametrize("n_labels", [3, 8, 17])
def test_order_2(n_labels, forbidden, kernels, precision):
    problem = make_problem(
        n_labels, n_labels, LENGTHS, weights=True, scale=0.5, order=2, forbidden=forbidden, triples="subset"
    )
    close(problem, recursive_likelihood(problem), kernels, precision)


def test_masks_of_many_labels():
    problem = make_problem(1, 60, (4, 1, 3, 2), forbidden=0.5)
    close(problem, recursive_likelihood(problem))


@every_precision
def test_sequences_that_need_log_space_among_others(precision):
    """Some attributes, which few positions have, rule out most of what constraints allow."""
    problem = make_problem(2, 6, LENGTHS, order=2, forbidden=0.4, n_attributes=40)
    w = problem.w.copy()
    w[: 4 * 6] = np.random.default_rng(0).choice([0.0, -90.0], 4 * 6)
    problem = replace(problem, w=w)
    close(problem, recursive_likelihood(problem), precision=precision)


def test_sequences_longer_than_a_batch():
    problem = make_problem(4, 3, (1100, 5, 40, 2), order=2, scale=0.3)
    close(problem, recursive_likelihood(problem))


def test_the_order_of_sequences_does_not_matter():
    problem = make_problem(9, 90, LENGTHS, scale=0.5)
    expected = ChainLikelihood(problem.data, problem.field, 1).at(problem.w)
    order = np.random.default_rng(0).permutation(len(LENGTHS))
    close(replace(problem, data=select(problem.data, order)), (expected.value, expected.grad))


def test_margins_are_in_the_scores():
    problem = make_problem(5, 12, LENGTHS, order=2, scale=0.5)
    cost = hamming(12)
    data, field = problem.data, problem.field
    whole = ChainLikelihood(data, field, 1, cost=cost).at(problem.w)
    alone = [ChainLikelihood(select(data, [n]), field, 1, cost=cost).at(problem.w) for n in range(len(LENGTHS))]
    assert_allclose(whole.value, sum(one.value for one in alone), rtol=1e-12)
    assert_allclose(whole.grad, sum(one.grad for one in alone), atol=1e-10)
    keeping = ChainLikelihood(data, field, 1, cost=cost).at(problem.w)
    keeping.hessp(problem.w)  # leaves rows behind, which takes one sequence at a time
    assert_allclose(keeping.grad, whole.grad, atol=1e-10)
