"""Masks: transitions, starts and ends that cannot occur have probability 0, whatever the scores say."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import (
    KERNELS,
    Problem,
    check_inference,
    check_likelihood,
    check_long_likelihood,
    make_problem,
    permitted,
    recursion,
    small_problems,
)

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.errors import DataError
from crfkit.losses import ChainLikelihood

every_kernel = pytest.mark.parametrize("kernels", KERNELS)
every_order = pytest.mark.parametrize("order", [1, 2])
masked = small_problems(masks=(0.2, 0.5, 1.0))
NO_MASKS = {"allowed": None, "allowed_start": None, "allowed_end": None}


# --- against the oracles


@settings(max_examples=40)
@given(problem=masked)
def test_likelihood_equals_enumeration(problem):
    """Normalised over the labellings that are allowed, and no others."""
    check_likelihood(problem, n_threads=(1, 2, 3))


@given(problem=masked)
def test_inference_equals_enumeration(problem):
    check_inference(problem, n_threads=(1, 2))


@pytest.mark.parametrize("kept", ["allowed", "allowed_start", "allowed_end"])
@every_order
def test_each_mask_alone(kept, order):
    for seed in range(5):
        problem = make_problem(seed, 4, (1, 2, 4, 0, 3), order=order, forbidden=0.7)
        field = replace(problem.field, **{name: None for name in NO_MASKS if name != kept})
        problem = replace(problem, field=field)
        check_likelihood(problem)
        check_inference(problem)


@pytest.mark.parametrize("n_labels", [7, 8, 9, 17, 33])
@every_order
def test_label_counts_around_vector_widths(n_labels, order):
    problem = make_problem(n_labels, n_labels, (4, 3, 1), order=order, forbidden=0.6)
    check_long_likelihood(problem)
    check_inference(problem, solver=recursion)


def against_the_mask(problem: Problem, size: float) -> Problem:
    """Weights that want what is forbidden: `size` more for forbidden transitions and starts, by attributes and all."""
    rng = np.random.default_rng(0)
    w, field = rng.normal(size=problem.field.size), problem.field
    i, j = field.transition_ids()
    w[field.layout["transition"]] += size * ~field.allowed[i, j]
    w[field.layout["state"]] += size * rng.uniform(-1, 1, field.n_state)
    w[field.layout["triple"]] += size * rng.uniform(-1, 1, field.n_triple)
    return replace(problem, w=w)


@pytest.mark.parametrize("forbidden", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("size", [10.0, 100.0, 300.0, 1000.0])
@every_order
def test_scores_that_want_what_is_forbidden(order, size, forbidden):
    for seed, n_labels in enumerate((2, 3, 4)):
        problem = make_problem(seed, n_labels, (4, 1, 5, 2), order=order, forbidden=forbidden, values=True)
        check_likelihood(against_the_mask(problem, size))
        check_inference(against_the_mask(problem, size))


@pytest.mark.parametrize("evidence", [30.0, 200.0, 500.0, 2000.0])
@every_order
def test_evidence_that_moves_the_wrong_way(order, evidence):
    """Labels may only descend, the evidence wants them to ascend: every step runs against it, for the whole chain."""
    L, T = 4, 24
    labels = np.arange(T)[::-1] * L // T
    data = SequenceData([0, T], np.arange(T + 1), np.arange(T) * L // T, labels=labels)
    field = ChainField(L, L, n_transition=L * L, order=order, allowed=np.tri(L, dtype=bool))
    w = np.concatenate([evidence * np.eye(L).ravel(), np.zeros(L * L)])
    check_long_likelihood(Problem(data, field, w))
    check_inference(Problem(data, field, w), solver=recursion)


@pytest.mark.parametrize("size", [1.0, 30.0])
@every_order
def test_long_sequence_equals_the_recursion(order, size):
    problem = make_problem(1, 4, (1000, 3), n_attributes=30, order=order, forbidden=0.0)
    banned = np.random.default_rng(2).random((4, 4)) < 0.4
    field = replace(problem.field, allowed=~banned | np.eye(4, dtype=bool) | np.eye(4, k=1, dtype=bool))
    labels = np.concatenate([np.arange(1000) // 250, [1, 1, 2]])
    problem = against_the_mask(replace(problem, field=field, data=problem.data.with_labels(labels)), size)
    check_long_likelihood(problem)
    check_inference(problem, solver=recursion)


# --- laws


@every_kernel
@given(problem=small_problems(scales=(1.0, 300.0), masks=(0.2, 0.5, 1.0)))
def test_what_is_forbidden_never_happens(kernels, problem):
    data, field = problem.data, problem.field
    inference = ChainInference(field, problem.w, 2, kernels)
    node, edge, (labels, _) = inference.node_marginals(data), inference.edge_marginals(data), inference.decode(data)
    ends = data.starts[1:][data.lengths > 0] - 1
    starts = data.starts[:-1][data.lengths > 0]
    assert (edge[:, ~field.allowed] == 0).all()
    assert (node[starts][:, ~field.allowed_start] == 0).all()
    assert (node[ends][:, ~field.allowed_end] == 0).all()
    assert all(permitted(field, path) for path in data.split(labels))
    assert_allclose(node.sum(axis=1), 1.0, atol=1e-10)


@given(problem=masked)
def test_weights_of_forbidden_transitions_do_nothing(problem):
    field, block = problem.field, problem.field.layout["transition"]
    i, j = field.transition_ids()
    dead = np.arange(field.size)[block][~field.allowed[i, j]]
    loss = ChainLikelihood(problem.data, field, 1)
    w = problem.w.copy()
    w[dead] += 5.0
    here, there = loss.at(problem.w), loss.at(w)
    assert_allclose(there.value, here.value, rtol=1e-12, atol=1e-12)
    for vector in (here.grad, here.hessp(w), here.hess_diag()):
        assert (vector[dead] == 0).all()


@given(problem=small_problems(masks=(0.0,)))
def test_a_mask_that_forbids_nothing_changes_nothing(problem):
    free = replace(problem.field, **NO_MASKS)
    v = np.random.default_rng(0).normal(size=free.size)
    for kernels in KERNELS:
        a, b = (ChainLikelihood(problem.data, field, 1, kernels).at(problem.w) for field in (problem.field, free))
        for x, y in ((a.value, b.value), (a.grad, b.grad), (a.hessp(v), b.hessp(v)), (a.hess_diag(), b.hess_diag())):
            assert_allclose(x, y, rtol=1e-10, atol=1e-10)
        c, d = (ChainInference(field, problem.w, 1, kernels) for field in (problem.field, free))
        assert_allclose(c.node_marginals(problem.data), d.node_marginals(problem.data), atol=1e-11)
        assert_allclose(c.decode(problem.data)[1], d.decode(problem.data)[1], rtol=1e-12, atol=1e-12)


@every_kernel
@every_order
def test_a_mask_is_the_limit_of_low_weights(kernels, order):
    for seed in range(5):
        problem = make_problem(seed, 4, (5, 3, 1), order=order, forbidden=0.5)
        field, w = problem.field, problem.w.copy()
        i, j = field.transition_ids()
        w[field.layout["transition"]] -= 1000.0 * ~field.allowed[i, j]
        a = ChainLikelihood(problem.data, replace(field, allowed=None), 1, kernels).at(w)
        b = ChainLikelihood(problem.data, field, 1, kernels).at(problem.w)
        assert_allclose(a.value, b.value, rtol=1e-10)
        assert_allclose(a.grad, b.grad, atol=1e-10)
        assert_allclose(a.hessp(problem.w), b.hessp(problem.w), atol=1e-9)


@every_kernel
@every_order
def test_probabilities_of_the_allowed_labellings_add_up_to_one(kernels, order):
    problem = make_problem(3, 3, (4,), order=order, forbidden=0.4)
    total, n_refused = 0.0, 0
    for path in itertools.product(range(3), repeat=4):
        data = problem.data.with_labels(path)
        if permitted(problem.field, path):
            total += np.exp(-ChainLikelihood(data, problem.field, 1, kernels).at(problem.w).value)
        else:
            n_refused += 1
            with pytest.raises(DataError):
                ChainLikelihood(data, problem.field, 1, kernels)
    assert n_refused > 0
    assert_allclose(total, 1.0, rtol=1e-10)


@every_kernel
@given(seed=st.integers(0, 1000))
def test_the_only_labelling_allowed_is_certain(kernels, seed):
    """A cycle of labels with one start: no freedom, no curvature."""
    L = 4
    start = np.arange(L) == seed % L
    field = ChainField(L, 2, n_transition=L * L, allowed=np.roll(np.eye(L, dtype=bool), 1, axis=1), allowed_start=start)
    labels = (seed + np.arange(6)) % L
    data = SequenceData([0, 6], np.arange(7), np.arange(6) % 2, labels=labels)
    w = 10 * np.random.default_rng(seed).normal(size=field.size)
    here = ChainLikelihood(data, field, 1, kernels).at(w)
    assert_allclose(here.value, 0.0, atol=1e-9)
    for vector in (here.grad, here.hessp(w), here.hess_diag()):
        assert_allclose(vector, 0.0, atol=1e-9)
    assert ChainInference(field, w, 1, kernels).decode(data)[0].tolist() == labels.tolist()


# --- refusals


def ladder() -> ChainField:
    """0 → 1 → 2 and no other way: only three positions can be labelled."""
    ends = {"allowed_start": np.array([True, False, False]), "allowed_end": np.array([False, False, True])}
    return ChainField(3, 1, n_transition=9, allowed=np.eye(3, k=1, dtype=bool), **ends)


@every_kernel
@pytest.mark.parametrize("length", [1, 2, 4, 50])
@every_order
def test_lengths_that_cannot_be_labelled_are_refused(kernels, length, order):
    field = replace(ladder(), order=order)
    inference = ChainInference(field, np.zeros(field.size), 1, kernels)
    good, bad = SequenceData([0, 0, 3], [0] * 4, []), SequenceData([0, 3, 3 + length], [0] * (4 + length), [])
    assert inference.decode(good)[0].tolist() == [0, 1, 2]
    for ask in (inference.decode, inference.log_partition, inference.node_marginals, inference.edge_marginals):
        ask(good)
        with pytest.raises(DataError):
            ask(bad)


@pytest.mark.parametrize("labels", [[1, 1, 2], [0, 1, 1], [0, 2, 2], [0, 0, 2]])
@every_order
def test_labels_that_break_a_mask_are_refused(labels, order):
    field, data = replace(ladder(), order=order), SequenceData([0, 3, 6], [0] * 7, [])
    ChainLikelihood(data.with_labels([0, 1, 2, 0, 1, 2]), field)
    with pytest.raises(DataError):
        ChainLikelihood(data.with_labels([0, 1, 2, *labels]), field)
    with pytest.raises(DataError):
        ChainLikelihood(data.with_labels([0, 1, 2, *labels]).with_weights([1.0, 0.0]), field)


@pytest.mark.parametrize(
    "options",
    [
        {"allowed": np.ones((3, 3), dtype=bool)},
        {"allowed": np.ones(4, dtype=bool)},
        {"allowed_start": np.ones(3, dtype=bool)},
        {"allowed_end": np.ones((2, 1), dtype=bool)},
    ],
)
def test_masks_of_another_shape_are_refused(options):
    with pytest.raises(DataError):
        ChainField(2, 1, **options)
