"""Iterative scaling by the total of each labelling: its expectations by enumeration, its bounds, its optima."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import enumerate_labellings
from test_iis import KINDS, every_kind, likelihood, problem, solve

from crfkit.chain.losses.tilted import TiltedExpectations
from crfkit.errors import ParameterError
from crfkit.losses import ChainLikelihood
from crfkit.penalties import L2, NoPenalty
from crfkit.result import Status
from crfkit.solvers import IIS, LBFGS, GradientNorm
from crfkit.solvers.parts.tilted_scaling import TiltedStep

VARYING = ("observed", "pairs", "classes")  # kinds whose labellings have different totals


def enumerated(made, delta):
    """Σ_n weight_n · E[f_k·exp(δ·F#)], and the observed counts."""
    tilted, observed = np.zeros(made.field.size), np.zeros(made.field.size)
    for n in range(len(made.data)):
        all_ = enumerate_labellings(made, n)
        scores = all_.features @ made.w
        p = np.exp(scores - scores.max())
        p *= np.exp(delta * all_.features.sum(axis=1)) / p.sum()
        tilted += made.weight(n) * p @ all_.features
        observed += made.weight(n) * all_.features[all_.at(made.labels(n))]
    return tilted, observed


@every_kind
@pytest.mark.parametrize("delta", [-0.7, -0.05, 0.0, 0.01, 0.4])
def test_tilted_counts_against_enumeration(kind, delta):
    made = problem(kind, seed=1)
    source = TiltedExpectations(ChainLikelihood(made.data, made.field, 1))
    at = source.at(made.w)
    exact, observed = enumerated(made, delta)
    assert_allclose(source.observed, observed, atol=1e-12)
    assert_allclose(np.exp(at.log_counts(delta)), exact, rtol=1e-9, atol=1e-10)
    totals = [enumerate_labellings(made, n).features.sum(axis=1).max() for n in range(len(made.data)) if made.weight(n)]
    assert_allclose(source.largest, max(totals))


def test_counts_that_no_double_holds_have_logarithms():
    made = problem("observed", lengths=(30, 25))
    at = TiltedExpectations(ChainLikelihood(made.data, made.field, 1)).at(made.w)
    for delta in (-10.0, 10.0):
        found = at.log_counts(delta)
        assert not np.isnan(found).any()
        assert found.max() < np.inf
    assert at.log_counts(10.0).max() > 700


def exact_bound(made, k, delta):
    """∫₀^δ E[f_k·exp(t·F#)] dt, by enumeration."""
    value = 0.0
    for n in range(len(made.data)):
        all_ = enumerate_labellings(made, n)
        scores, total = all_.features @ made.w, all_.features.sum(axis=1)
        p = np.exp(scores - scores.max())
        of = np.where(total > 0, np.expm1(delta * total) / np.where(total > 0, total, 1.0), 0.0)
        value += made.weight(n) * (p / p.sum() * all_.features[:, k]) @ of
    return value


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), s=st.sampled_from([0.0, 0.1, 3.0]))
def test_a_step_is_near_the_minimum_of_each_term_and_does_not_pass_it(seed, s):
    """The bounds between places are tight: the step is that of the equation itself to a few percent."""
    made = problem("observed", seed, lengths=(3, 2, 4))
    source = TiltedExpectations(ChainLikelihood(made.data, made.field, 1))
    step = TiltedStep(source.at(made.w).log_counts, source.observed, made.w, s, 0.01 / source.largest, 5.0)
    delta = step.solve()

    def slope(k, d):
        return enumerated(made, d)[0][k] + s * (made.w[k] + d) - source.observed[k]

    for k in range(0, made.field.size, 5):
        if abs(delta[k]) < 1e-9 or abs(delta[k]) >= 5.0:
            continue
        toward = np.sign(delta[k])
        assert toward * slope(k, delta[k]) <= 1e-8 * max(1.0, source.observed[k])  # the minimum is not passed
        assert toward * slope(k, 1.1 * delta[k]) >= 0  # and is near
        assert (
            exact_bound(made, k, delta[k]) - delta[k] * source.observed[k] + s * delta[k] * (made.w[k] + delta[k] / 2)
            <= 1e-12
        )


@settings(max_examples=8, deadline=None)
@given(
    kind=st.sampled_from(list(KINDS)),
    seed=st.integers(0, 10**6),
    strength=st.sampled_from([None, 0.01, 1.0, 100.0]),
    scale=st.sampled_from([0.0, 1.0, 10.0]),
)
def test_no_step_raises_the_objective(kind, seed, strength, scale):
    made = problem(kind, seed, scale=scale)
    loss = ChainLikelihood(made.data, made.field, 1)
    penalty = NoPenalty() if strength is None else L2(strength)
    result = solve(loss, penalty, w0=made.w, totals="exact", max_iterations=5, stopping=GradientNorm(0.0))
    for old, new in itertools.pairwise(result.trace):
        assert new.value <= old.value + 8 * 2.0**-52 * abs(old.value)
    gradient = loss.at(result.w).grad
    if strength is not None:
        penalty.add_gradient(result.w, gradient)
    assert_allclose(result.optimality, np.linalg.norm(gradient), rtol=1e-9, atol=1e-11)


@every_kind
def test_the_optimum_is_that_of_lbfgs(kind):
    loss, penalty = likelihood(kind), L2(3.0)
    exact = LBFGS(stopping=GradientNorm(1e-9)).minimize(loss, penalty, np.zeros(loss.size))
    result = solve(loss, penalty, totals="exact")
    assert result.status is Status.CONVERGED
    assert_allclose(result.value, exact.value, rtol=1e-9)
    assert_allclose(result.w, exact.w, atol=1e-5)


@pytest.mark.parametrize("kind", VARYING)
def test_no_more_iterations_than_with_the_largest_total(kind):
    """Also when each sequence has its own bound; where labellings differ much in their totals, far fewer."""
    needed = []
    for seed in range(3):
        loss = likelihood(kind, seed)
        bound = solve(loss, L2(5.0), buckets=1000)
        exact = solve(loss, L2(5.0), totals="exact")
        assert exact.iterations <= bound.iterations
        needed.append((exact.iterations, bound.iterations))
    assert sum(exact for exact, _ in needed) < sum(bound for _, bound in needed)


def test_an_unknown_kind_of_total_is_refused():
    with pytest.raises(ParameterError, match=r"totals.*exact"):
        IIS(totals="exakt")
