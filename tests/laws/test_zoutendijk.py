"""Zoutendijk's theorem: along steps that meet the Wolfe conditions, Σ_k cos²θ_k·‖g_k‖² is finite.

With a gradient that is L-Lipschitz, the curvature condition makes a step long enough, and the decrease condition makes
it worth that: f_k − f_{k+1} ≥ c1·(1 − c2)/L·cos²θ_k·‖g_k‖². The sum over k is at most (f_0 − f*)·L/(c1·(1 − c2)).
"""

from itertools import pairwise

import numpy as np
import pytest
from oracle import enumerate_labellings, make_problem

from crfkit.losses import ChainLikelihood
from crfkit.penalties import L2
from crfkit.solvers import (
    BFGS,
    DFP,
    LBFGS,
    ConjugateGradient,
    GradientDescent,
    GradientNorm,
    MoreThuente,
    Newton,
    StrongWolfe,
)

C1, C2 = 0.1, 0.4
METHODS = (GradientDescent, ConjugateGradient, DFP, BFGS, LBFGS, Newton)
SEARCHES = (StrongWolfe(C1, C2), MoreThuente(C1, C2))


def lipschitz(made, strength):
    """A bound of the largest eigenvalue of the Hessian at every w.

    It is s + Σ_n weight_n·λ_max(Cov F), and a random vector within a set of diameter d has no variance above d²/4 in
    any direction. Counts are not negative, so that ‖a − b‖² ≤ ‖a‖² + ‖b‖².
    """
    of = [
        made.weight(n) * (enumerate_labellings(made, n).features ** 2).sum(axis=1).max() for n in range(len(made.data))
    ]
    return strength + 0.5 * sum(of)


def terms(loss, penalty, visited):
    """(f_k − f_{k+1}, cos²θ_k·‖g_k‖², cos θ_k) of every step between the points visited."""

    def gradient(w):
        g = loss.at(w).grad
        penalty.add_gradient(w, g)
        return g

    found = []
    for w, after in pairwise(visited):
        g, p = gradient(w), after - w
        cosine = -(g @ p) / np.linalg.norm(g) / np.linalg.norm(p)
        values = [loss.at(x).value + penalty.value(x) for x in (w, after)]
        found.append((values[0] - values[1], (cosine * np.linalg.norm(g)) ** 2, cosine))
    return np.array(found)


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("seed", range(2))
def test_the_sum_is_bounded(method, search, seed):
    made = make_problem(seed, lengths=(3, 1, 4, 2))
    loss, penalty = ChainLikelihood(made.data, made.field, 1), L2(0.5)
    visited = []
    solver = method(line_search=search, stopping=GradientNorm(1e-6))
    result = solver.minimize(loss, penalty, np.zeros(loss.size), [lambda iteration: visited.append(iteration.w.copy())])
    assert result.status.converged
    decreases, squares, cosines = terms(loss, penalty, visited).T
    assert len(squares) == result.iterations >= 4
    assert (cosines > 0).all()  # descent directions all
    L = lipschitz(made, 0.5)
    rounding = 1e-12 * result.trace[0].value
    assert (decreases + rounding >= C1 * (1 - C2) / L * squares).all()
    assert squares.sum() <= (result.trace[0].value - result.value) * L / (C1 * (1 - C2))
    # what the theorem is for: the terms vanish, and with angles bounded away from 90° so does the gradient
    assert squares[-1] < 1e-6 * squares[0]
    if method is GradientDescent:
        np.testing.assert_allclose(cosines, 1.0)
        np.testing.assert_allclose(squares, [row.optimality**2 for row in result.trace[:-1]], rtol=1e-6)


def test_the_bound_of_the_hessian_is_one():
    made = make_problem(0, lengths=(3, 1, 4, 2))
    loss, L = ChainLikelihood(made.data, made.field, 1), lipschitz(made, 0.5)
    for w in (np.zeros(loss.size), made.w, 3 * made.w):
        at = loss.at(w)
        hessian = np.array([at.hessp(v) for v in np.eye(loss.size)])
        assert np.linalg.eigvalsh(hessian).max() + 0.5 <= L
