"""AGPM as a whole against Algorithm 1 of Xue & Zhang (2016), written out plainly: loops, bisection, no part of crfkit.

The paper leaves three things open, which the transcription states: eq. (6) has the cosine in place of its inverse;
where φ is rounding or s·ŷ ≤ 0, φ counts as zero; a step that eq. (7) refuses is shortened to the minimiser of the cubic
through both ends, within a tenth and a half of the step.
"""

import numpy as np
from numpy.testing import assert_allclose

from crfkit.graph.fields.field import untied_field
from crfkit.losses import PseudoLikelihood
from crfkit.penalties import L2, Blockwise, GroupLinf
from crfkit.result import Status
from crfkit.solvers import AGPM, GradientNorm
from crfkit.synthetic import random_pairwise

LAMBDA_1, LAMBDA_2 = 0.5, 4.0  # stronger than in the paper, for a quick end
NU, EPSILON, KAPPA, ETA = 1e-4, 1e-4, 0.5, 0.7
BETA_MIN, BETA_MAX = 1e-10, 1e10
SAME_STEPS = 30  # rounding doubles every few steps: here it is at most 1e-8, whatever the machine


class Paper:
    """Problem (2): x = (v, w, α), the pseudo-likelihood of binary nodes with v_{i,2} = 0 and w_{ij,22} = 0."""

    def __init__(self, X, Y):
        self.Y = Y
        (self.N, self.n, d), ones = X.shape, np.ones((len(X), 1))
        self.edges = [(i, j) for i in range(self.n) for j in range(i + 1, self.n)]
        self.x_node = [np.hstack([ones, X[:, i]]) for i in range(self.n)]
        self.x_edge = [np.hstack([ones, X[:, i], X[:, j]]) for i, j in self.edges]
        self.sizes = self.n * (1 + d), len(self.edges) * 3 * (1 + 2 * d), len(self.edges)

    def parts(self, x):
        a, b, _ = self.sizes
        return x[:a].reshape(self.n, -1), x[a : a + b].reshape(len(self.edges), 3, -1), x[a + b :]

    def f(self, x):
        """Value and gradient."""
        v, w, alpha = self.parts(x)
        G = np.zeros_like(x)
        gv, gw, ga = self.parts(G)
        value = LAMBDA_1 * np.sum(v**2) + LAMBDA_2 * np.sum(alpha)
        gv += 2 * LAMBDA_1 * v
        ga += LAMBDA_2
        rows = np.arange(self.N)
        for i in range(self.n):
            score = np.zeros((self.N, 2))  # of both states of i, given the others
            score[:, 0] = self.x_node[i] @ v[i]
            for e, ends in enumerate(self.edges):
                if i in ends:
                    for state in (0, 1):
                        score[:, state] += self.table(w, e, i, state)
            z = np.log(np.exp(score).sum(axis=1))
            value += np.sum(z - score[rows, self.Y[:, i]])
            r = np.exp(score - z[:, None])
            r[rows, self.Y[:, i]] -= 1  # the derivative by the scores
            gv[i] += r[:, 0] @ self.x_node[i]
            for e, ends in enumerate(self.edges):
                if i in ends:
                    for state in (0, 1):
                        cell = self.cell(e, i, state)
                        for k in range(3):
                            gw[e, k] += (r[:, state] * (cell == k)) @ self.x_edge[e]
        return value, G

    def cell(self, e, i, state):
        """Which of 00, 01, 10, 11 the edge has in each sample if node i has this state."""
        first, second = (state if k == i else self.Y[:, k] for k in self.edges[e])
        return 2 * first + second

    def table(self, w, e, i, state):
        scores = np.hstack([self.x_edge[e] @ w[e].T, np.zeros((self.N, 1))])
        return scores[np.arange(self.N), self.cell(e, i, state)]

    def optimality(self, x):
        """Return the norm of the projected gradient, which the stopping rule looks at."""
        return np.linalg.norm(self.project(x - self.f(x)[1]) - x)

    def project(self, x):
        """Problem (8) for each edge. At a given α the nearest w is w cut to ±α; α by bisection of the derivative."""
        x = x.copy()
        _, w, alpha = self.parts(x)
        for e in range(len(self.edges)):
            low, high = 0.0, max(np.abs(w[e]).max(), alpha[e], 0.0)
            for _ in range(60):
                middle = (low + high) / 2
                slope = (middle - alpha[e]) - np.maximum(np.abs(w[e]) - middle, 0).sum()
                low, high = (middle, high) if slope < 0 else (low, middle)
            alpha[e] = high
            w[e] = np.clip(w[e], -high, high)
        return x


def shorter(t, f0, slope0, ft, slope_t):
    """The minimiser of the cubic with these values and slopes at 0 and t, kept between a tenth and a half of t."""
    c3, c2 = np.linalg.solve([[t**3, t**2], [3 * t**2, 2 * t]], [ft - f0 - slope0 * t, slope_t - slope0])
    roots = np.roots([3 * c3, 2 * c2, slope0])
    minima = [r.real for r in roots if abs(r.imag) < 1e-12 and 6 * c3 * r.real + 2 * c2 > 0]
    return min(max(minima[0] if minima else 0.1 * t, 0.1 * t), 0.5 * t)


def equation_6(k, x, f, g, x_new, f_new, g_new):
    s, y = x_new - x, g_new - g
    phi = 4 * (f - f_new) + 2 * (g_new + g) @ s
    rounding = 8 * 2.0**-52 * max(abs(f), abs(f_new), abs(g @ s), abs(g_new @ s))
    if abs(phi) <= rounding or s @ y + phi <= 0:
        phi = 0.0
    hat = y + phi * s / (s @ s)
    if k % 2 == 1 or s @ hat / (np.linalg.norm(s) * np.linalg.norm(hat)) >= KAPPA:
        return s @ s / (s @ hat)
    return s @ hat / (hat @ hat)


def algorithm_1(problem, x):
    """Return the iterates, and the numbers of the iterations in which a step was cut."""
    iterates, cuts = [x], []
    f, g = problem.f(x)
    C, Q, k, beta = f, 1.0, 0, 1.0
    while problem.optimality(x) >= EPSILON:
        beta = min(BETA_MAX, max(beta, BETA_MIN))
        d = problem.project(x - beta * g) - x
        t = 1.0
        while True:
            f_new, g_new = problem.f(x + t * d)
            if f_new <= C + NU * t * (g @ d):
                break
            t = shorter(t, f, g @ d, f_new, g_new @ d)
            cuts.append(k + 1)
        k += 1
        beta = equation_6(k, x, f, g, x + t * d, f_new, g_new)
        x, f, g = x + t * d, f_new, g_new
        Q, C = ETA * Q + 1, (ETA * Q * C + f) / (ETA * Q + 1)
        iterates.append(x)
    return iterates, cuts


def test_agpm_is_algorithm_1():
    table = random_pairwise(3, 2, 40, seed=3)
    paper = Paper(table.X, table.Y)
    n, _, edges = paper.sizes
    data = table.data()
    loss = PseudoLikelihood(data, untied_field(data, 2), 1)
    penalty = Blockwise({"node": L2(2 * LAMBDA_1), "edge": GroupLinf(LAMBDA_2, np.repeat(np.arange(edges), 15))})
    x = np.random.default_rng(0).normal(size=sum(paper.sizes))
    value = paper.f(x)[0] - LAMBDA_1 * (x[:n] @ x[:n]) - LAMBDA_2 * x[-edges:].sum()
    assert_allclose(value, loss.at(x[:-edges]).value)
    iterates, cuts = algorithm_1(paper, np.zeros(sum(paper.sizes)))
    assert cuts[0] <= SAME_STEPS  # so the search is compared as well

    def run(iterations):
        solver = AGPM(eps=EPSILON, stopping=GradientNorm(0.0), max_iterations=iterations)
        return solver.minimize(loss, penalty, np.zeros(loss.size))

    for k in range(SAME_STEPS + 1):
        found = run(k)
        assert_allclose(found.w, iterates[k][:-edges], rtol=1e-7, atol=1e-7, err_msg=f"step {k}")
        assert_allclose(found.state["alpha"], iterates[k][-edges:], rtol=1e-7, atol=1e-7)
    # Rounding has grown too much to compare later steps. Both runs end at other points, by the same rule.
    end = run(10_000)
    assert end.status is Status.CONVERGED
    assert_allclose(end.value, paper.f(iterates[-1])[0], rtol=1e-7)
    assert paper.optimality(np.concatenate([end.w, end.state["alpha"]])) < EPSILON
