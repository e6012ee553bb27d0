"""Chain kernels against enumeration over all labellings: every instruction set, any number of threads."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from oracle import Problem, forward_backward, make_problem, path_score, problems, solve

from crfkit import _core
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference

KERNELS = _core.available_kernels()
every_kernel = pytest.mark.parametrize("kernels", KERNELS)


def check(problem: Problem, n_threads=(1,), solver=solve, atol: float = 1e-10) -> None:
    data = problem.data
    expected = [(U, P, solver(U, P)) for U, P in problem.potentials()]
    for kernels, threads in itertools.product(KERNELS, n_threads):
        inference = ChainInference(problem.field, problem.w, threads, kernels)
        log_z, node, edge = (
            inference.log_partition(data),
            inference.node_marginals(data),
            inference.edge_marginals(data),
        )
        labels, scores = inference.decode(data)
        for n, (U, P, answer) in enumerate(expected):
            here, who = slice(data.starts[n], data.starts[n + 1]), f"{kernels}, {threads} threads, sequence {n}"
            assert_allclose(log_z[n], answer.log_z, rtol=1e-10, atol=1e-10, err_msg=who)
            assert_allclose(node[here], answer.node, atol=atol, rtol=0, err_msg=who)
            assert_allclose(edge[here], answer.edge, atol=atol, rtol=0, err_msg=who)
            assert_allclose(scores[n], answer.best_score, rtol=1e-10, atol=1e-10, err_msg=who)
            # Ties and near-ties may be broken either way; the labels must have the best score.
            found = path_score(U, P, labels[here])
            assert_allclose(found, answer.best_score, rtol=1e-10, atol=1e-10, err_msg=who)


@settings(max_examples=100)
@given(problem=problems())
def test_small_chains_equal_the_oracle(problem):
    check(problem, n_threads=(1, 2, 3))


@every_kernel
def test_unique_best_labels_are_found(kernels):
    for seed in range(5):
        problem = make_problem(seed, n_labels=4, lengths=(5, 5, 4), n_pair_attributes=2, scale=2.0)
        labels, _ = ChainInference(problem.field, problem.w, 2, kernels).decode(problem.data)
        expected = [solve(U, P).best for U, P in problem.potentials()]
        assert labels.tolist() == np.concatenate(expected).tolist()


@every_kernel
def test_ties_are_broken_by_the_lowest_label(kernels):
    problem = make_problem(n_labels=5, lengths=(4, 2), scale=0.0)
    labels, scores = ChainInference(problem.field, problem.w, 1, kernels).decode(problem.data)
    assert labels.tolist() == [0] * 6
    assert scores.tolist() == [0.0, 0.0]


# --- extreme weights


def extreme(seed: int, n_labels: int, unary: float, spread: float, length: int = 5, pairs: bool = False) -> Problem:
    """Unary scores within ±unary; transitions are 0 or −spread, so that the best path may have to pay for them."""
    problem = make_problem(seed, n_labels, (length, 1, length), n_pair_attributes=2 if pairs else 0, per_position=2)
    rng = np.random.default_rng(seed + 1)
    w, layout = problem.w.copy(), problem.field.layout
    w[layout["state"]] = rng.uniform(-unary, unary, problem.field.n_state)
    for block in ("transition", "pair"):
        size = layout[block].stop - layout[block].start
        w[layout[block]] = -spread * rng.integers(0, 2, size) + rng.normal(size=size)
    return Problem(problem.data, problem.field, w)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("unary", [1.0, 300.0, 1000.0])
@pytest.mark.parametrize("spread", [0.0, 40.0, 113.0, 150.0, 195.0, 205.0, 400.0, 750.0, 2000.0])
def test_extreme_scores_equal_the_oracle(spread, unary, pairs):
    for seed, n_labels in enumerate((2, 3, 9)):
        check(extreme(seed, n_labels, unary, spread, pairs=pairs))


@pytest.mark.parametrize("spread", [60.0, 190.0, 250.0, 800.0])
def test_forbidden_transitions_fight_strong_evidence(spread):
    """Evidence wants label 0 and 1 in turn, transitions want to stay: unlikely paths must not underflow away."""
    T, L = 12, 3
    field = ChainField(L, L, n_transition=L * L)
    data = SequenceData([0, T], np.arange(T + 1), np.arange(T) % 2, labels=np.zeros(T, dtype=int))
    for evidence in (spread / 2, spread, 1.5 * spread):
        w = np.concatenate([evidence * np.eye(L).ravel(), (spread * np.eye(L)).ravel()])
        check(Problem(data, field, w), solver=forward_backward)


@every_kernel
@pytest.mark.parametrize("size", [-1000.0, 1000.0])
def test_large_scores_that_all_labels_share_cancel(kernels, size):
    problem = make_problem(3, n_labels=4, lengths=(5, 3), transitions="none")
    shift = np.full(problem.field.size, size)
    a = ChainInference(problem.field, problem.w, 1, kernels)
    b = ChainInference(problem.field, problem.w + shift, 1, kernels)
    assert_allclose(a.node_marginals(problem.data), b.node_marginals(problem.data), atol=1e-10)


@pytest.mark.parametrize("n_labels", [2, 17])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_long_sequence_equals_the_oracle(n_labels, scale):
    problem = make_problem(5, n_labels, (2000,), n_attributes=30, scale=scale)
    check(problem, solver=forward_backward, atol=1e-9)


def test_long_sequence_in_log_space_equals_the_oracle():
    check(extreme(6, 3, unary=10.0, spread=300.0, length=1000), solver=forward_backward, atol=1e-9)


# --- laws that need no oracle


@every_kernel
@given(problem=problems(scales=(1.0, 100.0)))
def test_marginals_are_consistent(kernels, problem):
    data = problem.data
    inference = ChainInference(problem.field, problem.w, 2, kernels)
    node, edge = inference.node_marginals(data), inference.edge_marginals(data)
    first = data.starts[:-1][data.lengths > 0]
    inner = np.setdiff1d(np.arange(data.n_positions), first)
    assert (node >= 0).all()
    assert_allclose(node.sum(axis=1), 1.0, atol=1e-10)
    assert (edge[first] == 0).all()
    assert_allclose(edge[inner].sum(axis=1), node[inner], atol=1e-10)
    assert_allclose(edge[inner].sum(axis=2), node[inner - 1], atol=1e-10)


@given(problem=problems())
def test_best_score_is_below_log_partition(problem):
    inference = ChainInference(problem.field, problem.w, 1)
    log_z = inference.log_partition(problem.data)
    _, score = inference.decode(problem.data)
    assert (score <= log_z + 1e-9).all()
    assert (log_z <= score + problem.data.lengths * np.log(problem.field.n_labels) + 1e-9).all()


@every_kernel
def test_threads_do_not_change_inference(kernels):
    problem = make_problem(2, n_labels=9, lengths=tuple(range(9)) * 3, n_pair_attributes=3, values=True)
    results = []
    for n_threads in (1, 2, 3, 50):
        inference = ChainInference(problem.field, problem.w, n_threads, kernels)
        results.append((inference.node_marginals(problem.data), *inference.decode(problem.data)))
    for a, b in itertools.pairwise(results):
        for x, y in zip(a, b, strict=True):
            assert (x == y).all()


def test_no_sequences_and_only_empty_ones():
    problem = make_problem(lengths=(2,))
    for starts, n in (([0], 0), ([0, 0, 0], 2)):
        data = SequenceData(starts, [0], [])
        inference = ChainInference(problem.field, problem.w, 2)
        assert inference.log_partition(data).tolist() == [0.0] * n
        assert inference.node_marginals(data).shape == (0, 3)
        assert inference.edge_marginals(data).shape == (0, 3, 3)
        labels, scores = inference.decode(data)
        assert len(labels) == 0
        assert scores.tolist() == [0.0] * n
        assert inference.errors(data.with_labels(np.zeros(0, dtype=np.int32))) == (0.0, 0.0)


def test_errors_are_shares_of_positions_and_sequences():
    field = ChainField(2, 2)
    data = SequenceData([0, 2, 2, 3], [0, 1, 2, 3], [0, 1, 0], labels=[0, 0, 0])
    inference = ChainInference(field, np.array([1.0, 0.0, 0.0, 1.0]), 1)
    assert inference.decode(data)[0].tolist() == [0, 1, 0]
    assert inference.errors(data) == (1 / 3, 1 / 3)


# --- refusals


def test_data_that_do_not_fit_the_field_are_refused():
    field = ChainField(2, 2)
    inference = ChainInference(field, np.zeros(4), 1)
    with pytest.raises(ValueError, match="attribute id 2 at position 0"):
        inference.decode(SequenceData([0, 1], [0, 1], [2]))
    with pytest.raises(ValueError, match="do not ascend"):
        inference.decode(SequenceData([0, 1], [0, 2], [1, 0]))
    with pytest.raises(ValueError, match="pair attribute id 0"):
        inference.decode(SequenceData([0, 1], [0, 0], [], pair_offsets=[0, 1], pair_attributes=[0]))


def test_wrong_number_of_weights_and_unknown_kernels_are_refused():
    field, data = ChainField(2, 2), SequenceData([0], [0], [])
    with pytest.raises(ValueError, match="has 4 weights, but 5"):
        ChainInference(field, np.zeros(5)).decode(data)
    with pytest.raises(ValueError, match="no kernels named 'mmx'"):
        ChainInference(field, np.zeros(4), kernels="mmx").decode(data)
