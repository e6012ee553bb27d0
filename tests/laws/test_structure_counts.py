"""How often a pseudo-likelihood counts an edge: between once and twice, the same by every way to compute it."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit.structure.losses.evaluation import SparseEvaluation, StructureEvaluation
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.observations import Observations
from crfkit.structure.price import edges_counted, times_counted
from crfkit.structure.worth import gains


def table(seed: int, ordinal: bool = False, n: int = 60, p: int = 7) -> Observations:
    rng = np.random.default_rng(seed)
    states = (rng.random((n, p)) < rng.uniform(0.2, 0.8, p)).astype(np.int32)
    return Observations.of(states, np.full(p, 2), ising=not ordinal, ordinal=ordinal)


def test_an_edge_counts_once_to_twice():
    rng = np.random.default_rng(0)
    first, second = rng.exponential(size=(2, 50))
    counts = times_counted(first, second)
    assert ((counts >= 1.0) & (counts <= 2.0)).all()
    assert times_counted(np.array([3.0, 3.0, 0.0]), np.array([3.0, 0.0, 0.0])).tolist() == pytest.approx([2, 1, 2])


@pytest.mark.parametrize("seed", range(3))
def test_the_sparse_hessian_and_the_rows_of_the_table_say_the_same(seed):
    loss = pseudo_likelihood(table(seed), active=[9, 2, 5 * 7 + 6, 3])  # not in order
    w = np.random.default_rng(seed).normal(size=loss.size)
    sparse = edges_counted(loss, SparseEvaluation(loss, w))
    np.testing.assert_allclose(sparse, edges_counted(loss, StructureEvaluation(loss, w)), rtol=1e-9)
    assert sparse.std() > 0
    empty = pseudo_likelihood(table(seed))
    assert len(edges_counted(empty, SparseEvaluation(empty, np.zeros(empty.size)))) == 0


def test_an_edge_that_is_off_counts_as_often_as_it_would_with_weight_zero():
    loss = pseudo_likelihood(table(3), active=[2])
    w = np.random.default_rng(3).normal(size=loss.size)
    ids, _, counts = gains(loss, w)
    for edge in (3, 9, 5 * 7 + 6):
        larger, place = loss.activate([edge])
        grown = np.zeros(larger.size)
        grown[place] = w
        expected = edges_counted(larger, larger.at(grown))[larger.active_ids == edge]
        assert counts[ids == edge] == pytest.approx(expected)


def test_two_labels_count_the_same_in_the_ordinal_form():
    rng = np.random.default_rng(4)
    biases, couplings = rng.normal(size=7), rng.normal(size=2)
    ising, ordinal = (pseudo_likelihood(table(4, form), active=[2, 9]) for form in (False, True))
    free = np.stack([-biases, biases], axis=1).ravel()
    counts = [
        edges_counted(loss, loss.at(np.concatenate([nodes, couplings])))
        for loss, nodes in ((ising, biases), (ordinal, free))
    ]
    np.testing.assert_allclose(*counts, rtol=1e-9)


def test_independent_columns_count_twice_at_their_own_biases():
    """Given biases only, both ends say the same about an edge, however rare their labels are."""
    observed = table(5, n=400)
    loss = pseudo_likelihood(observed)
    shares = observed.weights @ observed.states / observed.total
    _, _, counts = gains(loss, 0.5 * np.log(shares / (1 - shares)))
    np.testing.assert_allclose(counts, 2.0, rtol=1e-6)
