"""Labels that are known in part, and weights of single positions: the loss is the sum over all labellings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import KERNELS, Problem, enumerate_labellings, logsumexp, make_problem, small_problems

from crfkit.chain.fields.observed import _possible_pairs
from crfkit.chain.losses.likelihood import ChainLoss
from crfkit.losses import ChainLikelihood, MarginalLikelihood


def weak(problem: Problem, seed: int, share: float, weighted: bool, sequence_weights: bool = True) -> Problem:
    """The problem with random sets of labels, of which at least one labelling is possible, and random weights."""
    random = np.random.default_rng(seed)
    data = problem.data
    targets = random.random((data.n_positions, problem.field.n_labels)) < share
    for n in range(len(data)):
        begin, end = problem.span(n)
        paths = enumerate_labellings(problem, n).paths
        targets[np.arange(begin, end), paths[random.integers(len(paths))]] = True
    weights = random.choice([0.0, 0.5, 1.0, 3.0], data.n_positions) if weighted else None
    per_sequence = random.random(len(data)) if sequence_weights else None
    return replace(
        problem, data=replace(data, labels=None, targets=targets, token_weights=weights, weights=per_sequence)
    )


def by_enumeration(problem: Problem) -> tuple[float, np.ndarray]:
    """−Σ_t v_t (L_t − L_{t−1}), where L_t sums the labellings that keep to the sets up to t, and its gradient."""
    data = problem.data
    value, gradient = 0.0, np.zeros(problem.field.size)
    for n in range(len(data)):
        begin, end = problem.span(n)
        every = enumerate_labellings(problem, n)
        scores = every.features @ problem.w
        kept = np.ones(len(scores), dtype=bool)
        weight = 1.0 if data.weights is None else data.weights[n]

        def part(kept=kept, scores=scores, every=every):
            total = logsumexp(scores[kept])
            return total, np.exp(scores[kept] - total) @ every.features[kept]

        before = part()
        for t in range(begin, end):
            kept &= data.targets[t][every.paths[:, t - begin]]
            after = part()
            v = weight * (1.0 if data.token_weights is None else data.token_weights[t])
            value -= v * (after[0] - before[0])
            gradient -= v * (after[1] - before[1])
            before = after
    return value, gradient


def check(problem: Problem, kernels: str = "auto", scale: float = 1.0) -> None:
    problem = replace(problem, w=problem.w * scale)
    value, gradient = by_enumeration(problem)
    found = MarginalLikelihood(problem.data, problem.field, 2, kernels).at(problem.w)
    assert_allclose(found.value, value, rtol=1e-10, atol=1e-10)
    assert_allclose(found.grad, gradient, rtol=1e-10, atol=1e-10)


@given(
    problem=small_problems(),
    seed=st.integers(0, 99),
    share=st.sampled_from([0.0, 0.4, 1.0]),
    weighted=st.booleans(),
)
def test_the_loss_equals_enumeration(problem, seed, share, weighted):
    check(weak(problem, seed, share, weighted))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("order", [1, 2])
def test_every_kernel(order, kernels):
    problem = make_problem(3, 9, (3, 2, 1), order=order, n_pair_attributes=2)
    check(weak(problem, 0, 0.4, weighted=True), kernels)
    check(weak(make_problem(3, 9, (3, 2), order=order), 1, 0.2, weighted=False), kernels)


@pytest.mark.parametrize("order", [1, 2])
def test_extreme_scores_take_the_way_by_parts(order):
    """The potentials range too far for scaled space, so that every part has an inference of its own."""
    check(weak(make_problem(3, 3, (4, 3), order=order), 2, 0.3, weighted=True), scale=500.0)
    check(weak(make_problem(3, 3, (4, 3), order=order, n_pair_attributes=2), 3, 0.3, weighted=False), scale=500.0)


def test_improbable_labels_take_the_way_by_parts():
    problem = make_problem(3, 3, (5, 4))
    assert problem.data.labels is not None
    w = problem.w.copy()
    w[problem.field.layout["state"]] *= 400.0
    targets = np.arange(3) == problem.data.labels[:, None]
    weights = np.linspace(1.0, 2.0, problem.data.n_positions)
    check(replace(problem, w=w, data=replace(problem.data, labels=None, targets=targets, token_weights=weights)))


def same(a: ChainLoss, b: ChainLoss, w: np.ndarray) -> None:
    assert_allclose(a.at(w).value, b.at(w).value, rtol=1e-11)
    assert_allclose(a.at(w).grad, b.at(w).grad, rtol=1e-9, atol=1e-11)


def test_one_label_at_each_position_is_the_likelihood():
    problem = make_problem(7, 5, (40, 1, 12))
    data = problem.data
    assert data.labels is not None
    told = replace(data, labels=None, targets=data.labels[:, None] == np.arange(5))
    same(MarginalLikelihood(told, problem.field), ChainLikelihood(data, problem.field), problem.w)
    tripled = replace(data, token_weights=np.full(data.n_positions, 3.0))
    heavy = ChainLikelihood(data.with_weights(np.full(len(data), 3.0)), problem.field)
    same(MarginalLikelihood(tripled, problem.field), heavy, problem.w)


def test_nothing_known_is_nothing_to_learn():
    problem = make_problem(7, 4, (6, 3))
    data = replace(problem.data, labels=None, targets=np.ones((9, 4), dtype=bool))
    found = MarginalLikelihood(data, problem.field).at(problem.w)
    assert abs(found.value) < 1e-12
    assert_allclose(found.grad, 0.0, atol=1e-12)


def test_stochastic_gradients_follow_the_same_loss():
    """One tiny step on one sequence moves the weights by the gradient."""
    problem = weak(make_problem(5, 4, (7,)), 0, 0.4, weighted=True, sequence_weights=False)
    loss = MarginalLikelihood(problem.data, problem.field)
    online = loss.online()
    online.start(problem.w)
    value = online.sgd([0], [1e-6])
    assert_allclose(value, loss.at(problem.w).value, rtol=1e-12)
    assert_allclose((problem.w - online.weights()) / 1e-6, loss.at(problem.w).grad, rtol=1e-6, atol=1e-8)


def test_some_of_the_sequences():
    problem = weak(make_problem(5, 4, (4, 3, 5)), 1, 0.4, weighted=True)
    loss = MarginalLikelihood(problem.data, problem.field)
    parts = [loss.subset([n]).at(problem.w) for n in range(3)]
    assert_allclose(sum(part.value for part in parts), loss.at(problem.w).value, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite(order, bad):
    """As after steps that were too long: the loss says so, and nothing outside of the labels is read."""
    problem = weak(make_problem(0, 3, (4, 2), order=order), 1, 0.4, weighted=True)
    assert not np.isfinite(MarginalLikelihood(problem.data, problem.field).at(np.full(problem.field.size, bad)).value)


def test_possible_pairs_do_not_depend_on_how_many_are_looked_at_once():
    targets = np.random.default_rng(0).random((20, 3)) < 0.5
    t = np.arange(1, 20, 2)
    expected = np.argwhere(targets[t - 1][:, :, None] & targets[t][:, None, :]).T
    for cells in (1, 30, 1 << 25):
        assert_allclose(_possible_pairs(targets, t, cells), expected)
    assert [len(part) for part in _possible_pairs(targets, t[:0])] == [0, 0, 0]
