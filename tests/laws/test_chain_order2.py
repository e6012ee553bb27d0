"""Second-order chains: weights of label triples, exact over label pairs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from oracle import (
    KERNELS,
    Problem,
    check_inference,
    check_likelihood,
    check_long_likelihood,
    exact_marginals,
    make_problem,
    recursion,
    small_problems,
)

from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.chain.inference import ChainInference
from crfkit.errors import DataError
from crfkit.losses import ChainLikelihood

every_kernel = pytest.mark.parametrize("kernels", KERNELS)
second_order = small_problems(orders=(2,), masks=(None,), classes=(0,))


# --- against the oracles


@settings(max_examples=60)
@given(problem=second_order)
def test_likelihood_equals_enumeration(problem):
    check_likelihood(problem, n_threads=(1, 2, 3))


@given(problem=small_problems(orders=(2,)))
def test_inference_equals_enumeration(problem):
    check_inference(problem, n_threads=(1, 2))


@pytest.mark.parametrize("transitions", ["all", "observed", "none"])
@pytest.mark.parametrize("n_labels", [1, 2, 7, 8, 9, 16, 17, 33])
def test_label_counts_around_vector_widths(n_labels, transitions):
    problem = make_problem(n_labels, n_labels, (4, 3, 1, 2), order=2, n_pair_attributes=1, transitions=transitions)
    check_long_likelihood(problem)
    check_inference(problem, solver=recursion)


def extreme(seed: int, n_labels: int, unary: float, spread: float, length: int = 5) -> Problem:
    """Unary scores within ±unary; transitions and triples are 0 or −spread: the best path may have to pay for them."""
    problem = make_problem(seed, n_labels, (length, 1, length), n_pair_attributes=seed % 2, per_position=2, order=2)
    rng = np.random.default_rng(seed + 1)
    w, layout = problem.w.copy(), problem.field.layout
    w[layout["state"]] = rng.uniform(-unary, unary, problem.field.n_state)
    for block in ("transition", "pair", "triple"):
        size = len(w[layout[block]])
        w[layout[block]] = -spread * rng.integers(0, 2, size) + rng.normal(size=size)
    return Problem(problem.data, problem.field, w)


@pytest.mark.parametrize("unary", [1.0, 300.0, 1000.0])
@pytest.mark.parametrize("spread", [0.0, 40.0, 113.0, 195.0, 400.0, 750.0, 2000.0])
def test_extreme_scores_equal_the_oracle(spread, unary):
    for seed, n_labels in enumerate((2, 3)):
        problem = extreme(seed, n_labels, unary, spread)
        check_likelihood(problem)
        check_inference(problem)
    check_inference(extreme(2, 9, unary, spread), solver=recursion)


@pytest.mark.parametrize(("n_labels", "scale"), [(2, 1.0), (5, 0.01), (5, 30.0)])
def test_long_sequence_equals_the_recursion(n_labels, scale):
    problem = make_problem(5, n_labels, (1000,), n_attributes=30, order=2)
    w = np.random.default_rng(1).uniform(-scale, scale, problem.field.size)
    problem = Problem(problem.data, problem.field, w)
    check_long_likelihood(problem)
    check_inference(problem, solver=recursion)


def test_long_sequence_in_log_space_equals_the_recursion():
    problem = extreme(6, 3, unary=10.0, spread=300.0, length=1000)
    check_long_likelihood(problem)
    check_inference(problem, solver=recursion)


@every_kernel
def test_unique_best_labels_are_found(kernels):
    for seed in range(5):
        problem = make_problem(seed, 4, (5, 5, 4, 2), n_pair_attributes=2, scale=2.0, order=2)
        labels, _ = ChainInference(problem.field, problem.w, 2, kernels).decode(problem.data)
        expected = [exact_marginals(problem, n).best for n in range(4)]
        assert labels.tolist() == np.concatenate(expected).tolist()


# --- laws


def without_triples(problem: Problem) -> tuple[Problem, np.ndarray]:
    """(the first-order problem, the places of its weights in the second-order vector)."""
    field, block = problem.field, problem.field.layout["triple"]
    kept = np.delete(np.arange(field.size), block)
    return Problem(problem.data, replace(field, order=1, triple_codes=None, n_triple=0), problem.w[kept]), kept


@given(problem=small_problems(orders=(2,)))
def test_with_zero_triple_weights_it_is_the_first_order_chain(problem):
    first, kept = without_triples(problem)
    w = np.zeros(problem.field.size)
    w[kept] = first.w
    u, v = np.zeros(len(w)), np.random.default_rng(0).normal(size=len(kept))
    u[kept] = v
    for kernels in KERNELS:
        a = ChainLikelihood(problem.data, problem.field, 2, kernels).at(w)
        b = ChainLikelihood(problem.data, first.field, 2, kernels).at(first.w)
        pairs = [(a.value, b.value), (a.grad[kept], b.grad), (a.hessp(u)[kept], b.hessp(v))]
        pairs += [(a.hess_diag()[kept], b.hess_diag())]
        c, d = (ChainInference(p.field, x, 2, kernels) for p, x in ((problem, w), (first, first.w)))
        for name in ("log_partition", "node_marginals", "edge_marginals"):
            pairs += [(getattr(c, name)(problem.data), getattr(d, name)(problem.data))]
        pairs += [(c.decode(problem.data)[1], d.decode(problem.data)[1])]
        for x, y in pairs:
            assert_allclose(x, y, rtol=1e-9, atol=1e-9, err_msg=kernels)


@given(problem=second_order)
def test_triples_need_three_positions(problem):
    short = np.flatnonzero(problem.data.lengths < 3)
    data, block = problem.data.take(short), problem.field.layout["triple"]
    other = problem.w.copy()
    other[block] += 1.0
    loss = ChainLikelihood(data, problem.field, 1)
    assert_allclose(loss.at(problem.w).value, loss.at(other).value, rtol=1e-12, atol=1e-12)
    assert (loss.at(problem.w).grad[block] == 0).all()
    assert (loss.at(problem.w).hessp(other)[block] == 0).all()


@every_kernel
@given(problem=small_problems(scales=(1.0, 100.0), orders=(2,)))
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


@every_kernel
def test_a_shift_of_all_triples_changes_only_the_partition(kernels):
    problem = make_problem(2, 5, (7, 2, 4), order=2)
    shifted = problem.w.copy()
    shifted[problem.field.layout["triple"]] += 600.0
    a, b = (ChainInference(problem.field, w, 1, kernels) for w in (problem.w, shifted))
    assert_allclose(b.log_partition(problem.data) - a.log_partition(problem.data), [3000.0, 0.0, 1200.0], atol=1e-9)
    assert_allclose(a.edge_marginals(problem.data), b.edge_marginals(problem.data), atol=1e-10)


@every_kernel
def test_threads_agree(kernels):
    problem = make_problem(7, 6, tuple(range(9)) * 4, 40, 2, values=True, weights=True, order=2)
    one = ChainLikelihood(problem.data, problem.field, 1, kernels).at(problem.w)
    marginals = ChainInference(problem.field, problem.w, 1, kernels).edge_marginals(problem.data)
    for n_threads in (1, 2, 3, 7):
        loss = ChainLikelihood(problem.data, problem.field, n_threads, kernels)
        found, again = loss.at(problem.w), loss.at(problem.w.copy())
        assert found.value == again.value
        assert (found.grad == again.grad).all()
        assert_allclose(found.value, one.value, rtol=1e-12)
        assert_allclose(found.grad, one.grad, rtol=1e-12, atol=1e-12 * np.abs(one.grad).max())
        inference = ChainInference(problem.field, problem.w, n_threads, kernels)
        assert (inference.edge_marginals(problem.data) == marginals).all()


# --- the field


def test_triples_of_a_training_set():
    data = SequenceData([0, 4, 6], [0] * 7, [], labels=[0, 1, 1, 0, 1, 0])
    options = {"all_states": True, "order": 2}
    observed = ChainField.from_data(data, 2, 0, all_transitions=False, **options)
    assert observed.triple_codes.tolist() == [3, 6]  # 0, 1, 1 and 1, 1, 0
    assert observed.n_triple == 2
    assert observed.size == 3 + 2
    every = ChainField.from_data(data, 2, 0, all_transitions=True, **options)
    assert every.triple_codes is None
    assert every.n_triple == 8
    assert every.layout["triple"] == slice(4, 12)


@pytest.mark.parametrize(
    "options",
    [
        {"order": 3},
        {"order": 0},
        {"order": 1, "n_triple": 8},
        {"order": 2, "n_triple": 7},
        {"order": 2, "n_triple": 1, "triple_codes": np.array([8], dtype=np.int32)},
        {"order": 2, "n_triple": 2, "triple_codes": np.array([3, 1], dtype=np.int32)},
        {"order": 2, "n_triple": 1, "triple_codes": np.array([1, 3], dtype=np.int32)},
    ],
)
def test_malformed_fields_are_refused(options):
    with pytest.raises(DataError):
        ChainField(2, 1, **options)
