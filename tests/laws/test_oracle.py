"""The oracles agree with each other, so that either may judge the kernels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import (
    Exact,
    Problem,
    derivative,
    enumerate_chain,
    enumerate_labellings,
    exact_hinge,
    exact_marginals,
    forward_backward,
    hamming,
    labelling_score,
    likelihood,
    make_problem,
    path_score,
    permitted,
    recursion,
    recursive_derivatives,
    small_problems,
    tables,
)

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField


@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
@pytest.mark.parametrize(("n_labels", "length"), [(1, 4), (2, 1), (2, 6), (3, 5), (4, 4), (3, 0)])
def test_recursion_equals_enumeration(n_labels, length, scale):
    rng = np.random.default_rng(n_labels + 10 * length)
    U = scale * rng.normal(size=(length, n_labels))
    P = scale * rng.normal(size=(length, n_labels, n_labels))
    slow, fast = enumerate_chain(U, P), forward_backward(U, P)
    assert_allclose(fast.log_z, slow.log_z, rtol=1e-12, atol=1e-12)
    assert_allclose(fast.node, slow.node, atol=1e-11)
    assert_allclose(fast.edge, slow.edge, atol=1e-11)
    assert fast.best.tolist() == slow.best.tolist()
    assert_allclose(path_score(U, P, fast.best), slow.best_score)


def test_a_uniform_chain_is_worked_by_hand():
    problem = make_problem(n_labels=3, lengths=(4,), scale=0.0)
    ((U, P),) = problem.potentials()
    answer = enumerate_chain(U, P)
    assert_allclose(answer.log_z, 4 * np.log(3))
    assert_allclose(answer.node, 1 / 3)
    assert_allclose(answer.edge[1:], 1 / 9)


def test_a_masked_chain_of_second_order_is_worked_by_hand():
    """Labels alternate; 0, 1, 0 has the only triple weight: e^w of 1 + e^w."""
    codes = np.array([2], dtype=np.int32)
    field = ChainField(2, 0, order=2, triple_codes=codes, n_triple=1, allowed=~np.eye(2, dtype=bool))
    problem = Problem(SequenceData([0, 3], [0] * 4, []), field, np.array([np.log(3.0)]))
    for found in (exact_marginals(problem, 0), recursion(problem, 0)):
        assert_allclose(found.log_z, np.log(4.0))
        assert_allclose(found.node, [[0.75, 0.25], [0.25, 0.75], [0.75, 0.25]])
        assert found.best.tolist() == [0, 1, 0]


# --- fields of every kind


@given(problem=small_problems(scales=(0.1, 1.0, 300.0)))
def test_recursion_over_pairs_equals_enumeration(problem):
    for n in range(len(problem.data)):
        slow, fast = exact_marginals(problem, n), recursion(problem, n)
        assert_allclose(fast.log_z, slow.log_z, rtol=1e-12, atol=1e-12)
        for a, b in zip(tables(fast), tables(slow), strict=True):
            assert_allclose(a, b, atol=1e-10)
        assert_allclose(fast.best_score, slow.best_score, rtol=1e-12, atol=1e-12)
        assert_allclose(labelling_score(problem, n, fast.best), slow.best_score, rtol=1e-12, atol=1e-12)


@given(problem=small_problems())
def test_scores_of_labellings_are_features_times_weights(problem):
    for n in range(len(problem.data)):
        found = enumerate_labellings(problem, n)
        assert all(permitted(problem.field, path) for path in found.paths)
        assert found.at(problem.labels(n)) >= 0
        for k in np.linspace(0, len(found.paths) - 1, 5).astype(int):
            assert_allclose(found.features[k] @ problem.w, labelling_score(problem, n, found.paths[k]), atol=1e-11)


@given(problem=small_problems(scales=(0.1, 1.0, 5.0, 300.0)))
def test_likelihoods_agree(problem):
    slow, v = Exact(problem), np.random.default_rng(0).normal(size=problem.field.size)
    value, gradient, product = recursive_derivatives(problem, v)
    assert_allclose(value, slow.value, rtol=1e-12, atol=1e-10)
    assert_allclose(gradient, slow.grad, atol=1e-10)
    assert_allclose(product, slow.hessp(v), atol=1e-9)


@given(problem=small_problems(orders=(1,), masks=(None,), classes=(0,)))
def test_the_first_order_oracle_agrees(problem):
    value, gradient = likelihood(problem.data, problem.field, problem.w)
    slow = Exact(problem)
    assert_allclose(value, slow.value, rtol=1e-12, atol=1e-11)
    assert_allclose(gradient, slow.grad, atol=1e-11)


@given(problem=small_problems(scales=(0.5,)), with_cost=st.booleans(), seed=st.integers(0, 1000))
def test_derivatives_are_those_of_the_value(problem, with_cost, seed):
    rng = np.random.default_rng(seed)
    cost = rng.uniform(0, 2, (problem.field.n_labels,) * 2) if with_cost else None
    v = rng.normal(size=problem.field.size)
    v /= max(np.linalg.norm(v), 1.0)

    def at(h):
        return Exact(replace(problem, w=problem.w + h * v), cost)

    assert_allclose(derivative(lambda h: at(h).value), at(0).grad @ v, rtol=1e-6, atol=1e-7)
    assert_allclose(derivative(lambda h: at(h).grad), at(0).hessp(v), rtol=1e-6, atol=1e-7)


@given(problem=small_problems())
def test_the_hessian_is_the_matrix_of_its_products(problem):
    slow = Exact(problem)
    v = np.random.default_rng(0).normal(size=problem.field.size)
    H = slow.hessian()
    assert_allclose(H @ v, slow.hessp(v), atol=1e-10 * (1 + np.abs(H).max(initial=0.0)))
    assert_allclose(np.diag(H), slow.hess_diag(), atol=1e-12 * (1 + np.abs(H).max(initial=0.0)))


@given(problem=small_problems())
def test_the_hinge_lies_below_the_softmax_margin(problem):
    cost = hamming(problem.field.n_labels)
    hinge, _ = exact_hinge(problem, cost)
    assert -1e-9 <= hinge <= Exact(problem, cost).value + 1e-9
    weights = [problem.weight(n) for n in range(len(problem.data))]
    room = np.dot(weights, problem.data.lengths) * np.log(problem.field.n_labels)
    assert Exact(problem, cost).value <= hinge + room + 1e-9
