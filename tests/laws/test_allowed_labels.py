"""Labels that single positions allow: everything is then about the labellings that keep to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import KERNELS, Problem, enumerate_labellings, make_problem, small_problems

from crfkit.chain.inference import ChainInference
from crfkit.errors import DataError


def limits(problem: Problem, seed: int, share: float) -> np.ndarray:
    """Which labels are allowed, with at least one labelling that the field allows for every sequence."""
    random = np.random.default_rng(seed)
    allowed = random.random((problem.data.n_positions, problem.field.n_labels)) < share
    for n in range(len(problem.data)):
        begin, end = problem.span(n)
        paths = enumerate_labellings(problem, n).paths
        allowed[np.arange(begin, end), paths[random.integers(len(paths))]] = True
    return allowed


def check(problem: Problem, allowed: np.ndarray, kernels: str = "auto") -> None:
    inference = ChainInference(problem.field, problem.w, 2, kernels)
    log_z = inference.log_partition(problem.data, allowed)
    node = inference.node_marginals(problem.data, allowed)
    edge = inference.edge_marginals(problem.data, allowed)
    best, scores = inference.decode(problem.data, allowed)
    listed = inference.nbest(problem.data, 5, allowed)
    for n in range(len(problem.data)):
        begin, end = problem.span(n)
        every = enumerate_labellings(problem, n)
        kept = allowed[np.arange(begin, end), every.paths].all(axis=1)
        paths, score = every.paths[kept], (every.features @ problem.w)[kept]
        p = np.exp(score - score.max())
        assert_allclose(log_z[n], score.max() + np.log(p.sum()), rtol=1e-10, atol=1e-10)
        assert_allclose(scores[n], score.max(), rtol=1e-10, atol=1e-10)
        assert kept[every.at(best[begin:end])]
        p /= p.sum()
        for t in range(end - begin):
            for j in range(problem.field.n_labels):
                assert_allclose(node[begin + t, j], p[paths[:, t] == j].sum(), rtol=1e-9, atol=1e-12)
                for i in range(problem.field.n_labels) if t > 0 else ():
                    together = (paths[:, t - 1] == i) & (paths[:, t] == j)
                    assert_allclose(edge[begin + t, i, j], p[together].sum(), rtol=1e-9, atol=1e-12)
        assert_allclose([x for _, x in listed[n]], np.sort(score)[::-1][:5], rtol=1e-10, atol=1e-10)
        assert not node[begin:end][~allowed[begin:end]].any()


@given(problem=small_problems(), seed=st.integers(0, 99), share=st.sampled_from([0.0, 0.3, 0.8, 1.0]))
def test_inference_equals_enumeration(problem, seed, share):
    check(problem, limits(problem, seed, share))


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("order", [1, 2])
def test_every_kernel(order, kernels):
    problem = make_problem(3, 9, (3, 2, 1), order=order, n_pair_attributes=2)
    check(problem, limits(problem, 0, 0.4), kernels)


def test_all_labels_allowed_is_as_without():
    problem = make_problem(5, 4, (30, 7))
    inference = ChainInference(problem.field, problem.w)
    every = np.ones((37, 4), dtype=bool)
    assert_allclose(inference.node_marginals(problem.data, every), inference.node_marginals(problem.data), rtol=1e-12)
    assert inference.decode(problem.data, every)[0].tolist() == inference.decode(problem.data)[0].tolist()


def test_a_long_sequence_whose_labels_are_improbable():
    """Scaled space would lose these labellings; the log-space twin finds them."""
    problem = make_problem(6, 3, (400,))
    w = problem.w * 60.0
    inference = ChainInference(problem.field, w)
    worst = np.argmin(inference.node_marginals(problem.data), axis=1)
    allowed = np.zeros((400, 3), dtype=bool)
    allowed[np.arange(400), worst] = True
    best, scores = inference.decode(problem.data, allowed)
    assert best.tolist() == worst.tolist()
    assert_allclose(inference.log_partition(problem.data, allowed), scores, rtol=1e-10)


def test_what_allows_nothing_is_named():
    problem = make_problem(7, 3, (3, 4))
    inference = ChainInference(problem.field, problem.w)
    allowed = np.ones((7, 3), dtype=bool)
    allowed[4] = False
    with pytest.raises(DataError, match="sequence 1, position 1: no label is allowed"):
        inference.decode(problem.data, allowed)
    with pytest.raises(DataError, match="shape"):
        inference.decode(problem.data, allowed[:3])
