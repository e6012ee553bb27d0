"""Losses with a cost of wrong labels: the softmax margin is smooth, the structured hinge is not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import (
    KERNELS,
    Exact,
    Problem,
    derivative,
    exact_hinge,
    hamming,
    make_problem,
    problems,
    small_problems,
)

from crfkit.chain.inference import ChainInference
from crfkit.errors import DataError, ParameterError
from crfkit.losses import ChainLikelihood, SoftmaxMargin, StructuredHinge
from crfkit.protocols import Loss

every_kernel = pytest.mark.parametrize("kernels", KERNELS)
every_order = pytest.mark.parametrize("order", [1, 2])
both = pytest.mark.parametrize("margin", [SoftmaxMargin, StructuredHinge])


def random_cost(problem: Problem, seed: int, size: float = 2.0) -> np.ndarray:
    """Some of it is zero, and it need not be symmetric."""
    rng = np.random.default_rng(seed)
    L = problem.field.n_labels
    return size * rng.uniform(0, 1, (L, L)) * rng.integers(0, 2, (L, L)) * hamming(L)


costs = st.sampled_from([None, 0, 1, 2])  # None: Hamming; else the seed of a matrix


def cost_of(problem: Problem, seed: int | None) -> tuple[np.ndarray | None, np.ndarray]:
    """(what the loss is given, what it means)."""
    if seed is None:
        return None, hamming(problem.field.n_labels)
    cost = random_cost(problem, seed)
    return cost, cost


# --- against enumeration


@settings(max_examples=60)
@given(problem=small_problems(scales=(0.1, 1.0, 5.0, 100.0)), seed=costs)
def test_softmax_margin_equals_enumeration(problem, seed):
    given_cost, cost = cost_of(problem, seed)
    expected = Exact(problem, cost)
    v = np.random.default_rng(0).normal(size=problem.field.size)
    product, size = expected.hessp(v), 1e-9 * max(1.0, np.abs(expected.grad).max(initial=0.0))
    for kernels in KERNELS:
        for n_threads, cache_bytes in ((1, 1 << 30), (2, 0), (3, 1000)):
            loss = SoftmaxMargin(problem.data, problem.field, given_cost, n_threads, kernels, cache_bytes)
            found = loss.at(problem.w)
            assert_allclose(found.value, expected.value, rtol=1e-9, atol=1e-9, err_msg=kernels)
            assert_allclose(found.grad, expected.grad, rtol=1e-9, atol=size, err_msg=kernels)
            assert_allclose(found.hessp(v), product, rtol=1e-9, atol=1e-9 * (1 + np.abs(product).max(initial=0.0)))


@settings(max_examples=60)
@given(problem=small_problems(scales=(0.1, 1.0, 5.0, 100.0)), seed=costs)
def test_hinge_equals_enumeration(problem, seed):
    given_cost, cost = cost_of(problem, seed)
    value, gradient = exact_hinge(problem, cost)
    for kernels in KERNELS:
        for n_threads in (1, 2, 3):
            found = StructuredHinge(problem.data, problem.field, given_cost, n_threads, kernels).at(problem.w)
            assert_allclose(found.value, value, rtol=1e-9, atol=1e-9, err_msg=kernels)
            assert_allclose(found.grad, gradient, rtol=1e-9, atol=1e-9, err_msg=kernels)


# --- laws


@given(problem=problems())
def test_without_cost_the_softmax_margin_is_the_likelihood(problem):
    L = problem.field.n_labels
    for kernels in KERNELS:
        a = SoftmaxMargin(problem.data, problem.field, np.zeros((L, L)), 2, kernels).at(problem.w)
        b = ChainLikelihood(problem.data, problem.field, 2, kernels).at(problem.w)
        assert_allclose(a.value, b.value, rtol=1e-11, atol=1e-11)
        assert_allclose(a.grad, b.grad, rtol=1e-10, atol=1e-10)


@every_kernel
@every_order
@pytest.mark.parametrize("scale", [0.3, 50.0])
def test_derivatives_of_the_softmax_margin_on_long_sequences(kernels, order, scale):
    problem = make_problem(2, 4, (2000, 40), 30, order=order, forbidden=0.3)
    rng = np.random.default_rng(1)
    w, v = rng.uniform(-scale, scale, problem.field.size), rng.normal(size=problem.field.size)
    loss = SoftmaxMargin(problem.data, problem.field, random_cost(problem, 1), 2, kernels)
    here = loss.at(w)
    slope, change = derivative(lambda h: loss.at(w + h * v).value), derivative(lambda h: loss.at(w + h * v).grad)
    assert_allclose(here.grad @ v, slope, rtol=1e-6, atol=1e-4)
    assert_allclose(here.hessp(v), change, rtol=1e-6, atol=1e-6 * (1 + np.abs(change).max()))


@given(problem=small_problems(scales=(0.1, 1.0, 30.0)), seed=costs)
def test_the_losses_are_ordered(problem, seed):
    """0 ≤ hinge ≤ softmax margin ≤ hinge + log of the number of labellings; likelihood ≤ softmax margin."""
    given_cost, cost = cost_of(problem, seed)
    weights = np.array([problem.weight(n) for n in range(len(problem.data))])
    hinge = StructuredHinge(problem.data, problem.field, given_cost, 1).at(problem.w).value
    soft = SoftmaxMargin(problem.data, problem.field, given_cost, 1).at(problem.w).value
    likelihood = ChainLikelihood(problem.data, problem.field, 1).at(problem.w).value
    slack = 1e-9 * (1 + abs(hinge))
    assert -slack <= hinge <= soft + slack
    assert soft <= hinge + weights @ problem.data.lengths * np.log(problem.field.n_labels) + slack
    assert likelihood <= soft + slack
    decoded, _ = ChainInference(problem.field, problem.w, 1).decode(problem.data)
    paid = [cost[a, b].sum() for a, b in zip(*map(problem.data.split, (problem.data.labels, decoded)), strict=True)]
    assert weights @ np.array(paid) <= hinge + slack


@both
@given(problem=small_problems(), seed=st.integers(0, 1000))
def test_a_gradient_supports_the_loss_from_below(margin, problem, seed):
    loss = margin(problem.data, problem.field, random_cost(problem, seed), 1)
    a = problem.w
    b = a + np.random.default_rng(seed).normal(size=len(a))
    left, right, middle = loss.at(a), loss.at(b), loss.at((a + b) / 2)
    slack = 1e-9 * (1 + abs(left.value) + abs(right.value))
    assert right.value >= left.value + left.grad @ (b - a) - slack
    assert left.value >= right.value + right.grad @ (a - b) - slack
    assert middle.value <= (left.value + right.value) / 2 + slack


@every_order
def test_the_hinge_is_the_limit_of_sharp_softmax_margins(order):
    problem = make_problem(3, 3, (5, 4, 1), order=order, values=True, forbidden=0.2)
    cost = random_cost(problem, 3)
    hinge = StructuredHinge(problem.data, problem.field, cost, 1).at(problem.w)
    for sharpness in (10.0, 100.0, 1e4):
        soft = SoftmaxMargin(problem.data, problem.field, sharpness * cost, 1).at(sharpness * problem.w)
        assert -1e-9 <= soft.value / sharpness - hinge.value <= 10 * np.log(3) / sharpness
    assert_allclose(soft.grad, hinge.grad, atol=1e-6)


@given(problem=small_problems(masks=(None,)))
def test_a_large_cost_makes_everything_wrong(problem):
    """The cost outweighs every score: the maximiser has no label right."""
    L = problem.field.n_labels
    value = StructuredHinge(problem.data, problem.field, 1e6 * hamming(L), 1).at(problem.w).value
    weights = np.array([problem.weight(n) for n in range(len(problem.data))])
    positions = weights @ problem.data.lengths * (L > 1)
    assert_allclose(value, 1e6 * positions, atol=1e3 * (1 + positions))


@every_kernel
@every_order
@both
def test_threads_agree_and_repetition_gives_the_same_bits(kernels, order, margin):
    problem = make_problem(7, 9, tuple(range(12)) * 4, 40, 3, values=True, weights=True, order=order)
    one = margin(problem.data, problem.field, None, 1, kernels).at(problem.w)
    for n_threads in (1, 2, 3, 7):
        loss = margin(problem.data, problem.field, None, n_threads, kernels)
        first, again = loss.at(problem.w), loss.at(problem.w.copy())
        assert first.value == again.value
        assert (first.grad == again.grad).all()
        assert_allclose(first.value, one.value, rtol=1e-12)
        assert_allclose(first.grad, one.grad, rtol=1e-12, atol=1e-12 * np.abs(one.grad).max())


# --- the contract


@both
def test_keeps_the_contract_of_a_loss(margin):
    problem = make_problem(n_pair_attributes=1, order=2)
    loss = margin(problem.data, problem.field)
    assert isinstance(loss, Loss)
    assert loss.size == problem.field.size
    assert loss.layout == problem.field.layout
    assert "online" in loss.capabilities
    assert ("smooth" in loss.capabilities) == (margin is SoftmaxMargin)
    assert ("hessp" in loss.capabilities) == (margin is SoftmaxMargin)


@both
def test_unusable_costs_are_refused(margin):
    problem = make_problem(n_labels=3)
    good = hamming(3)
    no_number, endless = good.copy(), good.copy()
    no_number[0, 1], endless[0, 1] = np.nan, np.inf
    for bad in (-good, good + np.eye(3), hamming(2), good[0], no_number, endless):
        with pytest.raises(ParameterError):
            margin(problem.data, problem.field, bad)
    margin(problem.data, problem.field, good.tolist())


@both
def test_labels_that_break_a_mask_are_refused(margin):
    problem = make_problem(1, 3, (4,), forbidden=1.0)
    margin(problem.data, problem.field)
    field = replace(problem.field, allowed_start=~problem.field.allowed_start)
    with pytest.raises(DataError):
        margin(problem.data, field)
