"""The two oracles agree with each other, so that either may judge the kernels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from oracle import enumerate_chain, forward_backward, make_problem, path_score


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
