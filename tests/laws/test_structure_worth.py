"""The order in which edges are dropped: that of inverses computed anew after every edge."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from crfkit.structure import worth


def slowly(S, v, which, doubtful, prices, priors, n_edges):
    """The same by eliminating edges from S one after the other, with a new inverse each time."""
    order, balances, left, v = [], [0.0], np.ones(len(v), dtype=bool), v.copy()
    for k in range(n_edges, n_edges - len(doubtful), -1):
        A, now = np.linalg.inv(S[np.ix_(left, left)]), which[left]
        net = {}
        for e in doubtful:
            if e in now:
                its = now == e
                net[e] = v[left][its] @ np.linalg.solve(A[np.ix_(its, its)], v[left][its]) - prices[e]
        poorest = min(net, key=net.get)
        if net[poorest] > 2.0 * prices[poorest] + priors[1]:
            break
        balances.append(balances[-1] + net[poorest] - priors[k])
        order.append(poorest)
        its = now == poorest
        v[left] -= A[:, its] @ np.linalg.solve(A[np.ix_(its, its)], v[left][its])
        left &= which != poorest
    return order[: int(np.argmin(balances))]


@pytest.mark.parametrize(("n_edges", "width"), [(150, 1), (50, 3)])
def test_edges_are_dropped_in_the_order_of_new_inverses(n_edges, width):
    rng = np.random.default_rng(n_edges)
    which = rng.permutation(np.repeat(np.arange(n_edges), width))
    n = len(which)
    root = np.eye(n) + 0.5 * rng.normal(size=(n, n)) / np.sqrt(n)
    S = root @ root.T
    v = 0.1 * rng.normal(size=n)
    doubtful = np.flatnonzero(rng.random(n_edges) < 0.9)
    prices, priors = rng.uniform(0.02, 0.1, n_edges), np.full(n_edges + 1, 0.01)
    A = worth._Factored(S, np.arange(n)).corner
    np.testing.assert_array_equal(A, A.T)
    found = worth._sequence(A, v, which, doubtful=doubtful, prices=prices, priors=priors)
    assert len(found) * width > worth.DROPS_PER_UPDATE
    assert found.tolist() == slowly(S, v, which, doubtful, prices, priors, n_edges)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_corner_of_the_inverse_and_what_cannot_be_dropped(sparse):
    rng = np.random.default_rng(0)
    n = 250
    S = np.diag(rng.uniform(1.0, 9.0, n))
    for _ in range(2 * n):
        i, j = rng.integers(0, n, 2)
        S[i, j] = S[j, i] = S[i, j] + 0.2 * rng.normal() * (i != j)
    inverse, v = np.linalg.inv(S), rng.normal(size=n)
    given = csr_matrix(S) if sparse else S
    last = np.sort(rng.choice(n, 40, replace=False))
    factored = worth._Factored(given, last)
    np.testing.assert_allclose(factored.corner, inverse[np.ix_(last, last)], atol=1e-12)
    np.testing.assert_allclose(factored.solve(v), inverse @ v, atol=1e-12)
    costs, least = np.square(v) / np.diagonal(inverse), worth._least_costs(given, v)
    assert (least <= costs * (1 + 1e-12)).all()
    assert not sparse or np.median(least / costs) > 0.9
