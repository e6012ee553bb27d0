"""Improved iterative scaling: its expectations by enumeration, its equations, its descent and its optima."""

import itertools
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import enumerate_labellings, make_problem

from crfkit.chain.losses.expectations import ChainExpectations, observed_counts
from crfkit.errors import CapabilityError, DataError, ParameterError
from crfkit.losses import ChainLikelihood, SoftmaxMargin
from crfkit.penalties import L1, L2, NoPenalty
from crfkit.result import Status
from crfkit.solvers import IIS, LBFGS, GradientNorm
from crfkit.solvers.iis import scaling_step

KINDS = {
    "plain": {},
    "observed": {"states": "observed", "transitions": "observed"},
    "values and weights": {"values": True, "weights": True},
    "pairs": {"n_pair_attributes": 2, "states": "subset"},
    "order 2": {"order": 2, "triples": "subset", "weights": True},
    "masks": {"forbidden": 0.4, "order": 2},
    "classes": {"n_classes": 2, "values": True, "states": "subset"},
    "no transitions": {"transitions": "none"},
}
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def problem(kind="plain", seed=0, lengths=(3, 0, 1, 4, 2), **options):
    """A random one; real values are made non-negative."""
    made = make_problem(seed, lengths=lengths, **KINDS[kind] | options)
    values = made.data.values
    return made if values is None else replace(made, data=replace(made.data, values=np.abs(values)))


def likelihood(*args, **options):
    made = problem(*args, **options)
    return ChainLikelihood(made.data, made.field, 1)


def solve(loss, penalty, w0=None, resume=None, **options):
    solver = IIS(**{"stopping": GradientNorm(1e-6), "max_iterations": 3000} | options)
    return solver.minimize(loss, penalty, np.zeros(loss.size) if w0 is None else w0, resume=resume)


# --- expectations


@every_kind
@pytest.mark.parametrize("seed", range(3))
def test_counts_against_enumeration(kind, seed):
    made = problem(kind, seed)
    loss = ChainLikelihood(made.data, made.field, 1)
    observed, expected, totals = np.zeros(loss.size), np.zeros(loss.size), []
    for n in range(len(made.data)):
        all_ = enumerate_labellings(made, n)
        scores = all_.features @ made.w
        p = np.exp(scores - scores.max())
        observed += made.weight(n) * all_.features[all_.at(made.labels(n))]
        expected += made.weight(n) * (p / p.sum()) @ all_.features
        if made.weight(n) > 0:
            totals.append(all_.features.sum(axis=1).max())
    assert_allclose(observed_counts(made.data, made.field), observed, atol=1e-12)
    for buckets in (1, 2, 16):
        found = ChainExpectations(loss, buckets)
        at = found.at(made.w)
        assert_allclose(found.observed, observed, atol=1e-12)
        assert_allclose(at.expected.sum(axis=0), expected, atol=1e-12)
        assert (at.expected >= 0).all()
        assert_allclose(at.value, loss.at(made.w).value, rtol=1e-12)
        assert_allclose(at.grad, loss.at(made.w).grad, atol=1e-12)
        assert at.expected.shape == (len(found.totals), loss.size)
        assert len(found.totals) <= buckets
        assert (np.diff(found.totals) > 0).all()
        assert_allclose(found.totals[-1], max(totals))
    distinct = np.unique(np.round(totals, 9))
    assert_allclose(ChainExpectations(loss, 16).totals, distinct)


def test_a_bucket_bounds_the_totals_of_its_sequences():
    loss = likelihood("values and weights", lengths=tuple(range(30)))
    fine, coarse = (ChainExpectations(loss, buckets) for buckets in (1000, 4))
    assert len(coarse.totals) == 4
    for ids, bound in zip(coarse._ids, coarse.totals, strict=True):
        assert ChainExpectations(loss.subset(ids), 1).totals[0] == bound
    assert sorted(np.concatenate(coarse._ids)) == np.flatnonzero(loss.data.weights).tolist()
    # the shares of all features are about equal
    mass = [part.sum() for part in (coarse.at(np.zeros(loss.size)).expected)]
    assert max(mass) < 2.5 * min(mass)
    assert fine.totals[-1] == coarse.totals[-1]


def test_sequences_of_weight_zero_have_no_part():
    made = problem("values and weights", lengths=(3, 2, 6, 4))
    weights = np.array([1.0, 0.5, 0.0, 2.0])
    values = made.data.values.copy()
    inside = slice(made.data.offsets[made.data.starts[2]], made.data.offsets[made.data.starts[3]])
    values[inside] = -1.0  # they may even be negative
    data = replace(made.data, weights=weights, values=values)
    loss, kept = ChainLikelihood(data, made.field, 1), ChainLikelihood(data.take([0, 1, 3]), made.field, 1)
    a, b = ChainExpectations(loss), ChainExpectations(kept)
    assert (a.totals == b.totals).all()
    assert (a.observed == b.observed).all()
    assert_allclose(a.at(made.w).expected, b.at(made.w).expected, atol=1e-14)
    nothing = ChainLikelihood(data.with_weights(np.zeros(4)), made.field, 1)
    assert solve(nothing, L2(1.0), w0=made.w).value == 0.0
    assert (solve(nothing, NoPenalty(), w0=made.w).w == made.w).all()


def test_negative_values_are_refused_in_clear_words():
    made = problem("values and weights", lengths=(2, 5))
    entry = int(made.data.offsets[made.data.starts[1] + 3])
    values = made.data.values.copy()
    values[entry] = -0.25
    data = replace(made.data, values=values, weights=None)
    loss = ChainLikelihood(data, made.field, 1)
    what = rf"values >= 0, but attribute {data.attributes[entry]} is -0.25 at position \d of sequence 1.*another solver"
    with pytest.raises(DataError, match=what):
        solve(loss, L2(1.0))


# --- the equations of a step


def residual(E, T, observed, s, w, delta):
    return (E * np.exp(delta * T[:, None])).sum(axis=0) + s * (w + delta) - observed


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10**6),
    buckets=st.integers(1, 6),
    spread=st.sampled_from([1.0, 10.0, 30.0]),
    longest=st.sampled_from([1.0, 50.0, 3000.0]),
    s=st.sampled_from([0.0, 1e-8, 1e-2, 1.0, 1e4]),
)
def test_the_equations_are_solved(seed, buckets, spread, longest, s):
    """Also where expectations are 10¹³ times too large or too small, as at a bad start."""
    rng = np.random.default_rng(seed)
    n = 50
    T = np.sort(rng.uniform(0.1, longest, buckets))
    E = np.exp(rng.uniform(-spread, spread / 3, (buckets, n)))
    observed = np.exp(rng.uniform(-3, 5, n)) * (rng.random(n) < 0.8 if s else 1.0)
    w = rng.normal(size=n) * rng.choice([0.1, 10.0])
    limit = 1e12
    delta = scaling_step(E, T, observed, s, w, limit)
    # F rises: the root lies between two places close by
    width = 1e-9 * np.maximum(1.0 / longest, np.abs(delta))
    with np.errstate(over="ignore"):
        assert (residual(E, T, observed, s, w, delta - width) <= 1e-12 * observed).all()
        assert (residual(E, T, observed, s, w, delta + width) >= -1e-12 * observed).all()
    short = scaling_step(E, T, observed, s, w, 0.01)
    assert_allclose(short, np.clip(delta, -0.01, 0.01), rtol=1e-6, atol=1e-9)


def test_features_that_are_never_expected_or_observed():
    E, T = np.array([[0.0, 2.0, 0.0, 2.0]]), np.array([3.0])
    observed, w = np.zeros(4), np.array([1.5, 1.5, -2.0, 0.0])
    # without a penalty: no reason to move, and every reason to go to −∞
    assert scaling_step(E, T, observed, 0.0, w, 7.0).tolist() == [0.0, -7.0, 0.0, -7.0]
    # with one: to zero, and below it
    delta = scaling_step(E, T, observed, 0.5, w, 7.0)
    assert (w + delta)[[0, 2]].tolist() == [0.0, 0.0]
    assert_allclose(residual(E, T, observed, 0.5, w, delta), 0.0, atol=1e-12)


def test_blocks_of_weights_are_solved_alike():
    rng = np.random.default_rng(0)
    n = 40_000
    E, T = rng.exponential(size=(3, n)), np.array([1.0, 4.0, 9.0])
    observed, w = rng.exponential(size=n), rng.normal(size=n)
    delta = scaling_step(E, T, observed, 0.3, w, 10.0)
    assert_allclose(residual(E, T, observed, 0.3, w, delta), 0.0, atol=1e-9)


# --- descent and optima


@settings(max_examples=25)
@given(
    kind=st.sampled_from(list(KINDS)),
    seed=st.integers(0, 10**6),
    strength=st.sampled_from([None, 0.01, 1.0, 100.0]),
    buckets=st.sampled_from([1, 3, 16]),
    scale=st.sampled_from([0.0, 1.0, 10.0]),
)
def test_no_step_raises_the_objective(kind, seed, strength, buckets, scale):
    """From anywhere, also where the labels are all but impossible."""
    made = problem(kind, seed, scale=scale)
    loss = ChainLikelihood(made.data, made.field, 1)
    penalty = NoPenalty() if strength is None else L2(strength)
    result = solve(loss, penalty, w0=made.w, buckets=buckets, max_iterations=15, stopping=GradientNorm(0.0))
    for old, new in itertools.pairwise(result.trace):
        assert new.value <= old.value + 8 * 2.0**-52 * abs(old.value)
    assert result.trace[-1].evaluations == result.iterations + 1
    at = loss.at(result.w)
    gradient = at.grad
    if strength is not None:
        penalty.add_gradient(result.w, gradient)
    assert_allclose(result.value, at.value + penalty.value(result.w), rtol=1e-12)
    assert_allclose(result.optimality, np.linalg.norm(gradient), rtol=1e-9, atol=1e-11)


@every_kind
@pytest.mark.parametrize("buckets", [1, 16])
def test_the_optimum_is_that_of_lbfgs(kind, buckets):
    loss, penalty = likelihood(kind), L2(1.0)
    exact = LBFGS(stopping=GradientNorm(1e-9)).minimize(loss, penalty, np.zeros(loss.size))
    result = solve(loss, penalty, buckets=buckets)
    assert result.status is Status.CONVERGED
    assert_allclose(result.value, exact.value, rtol=1e-9)
    assert_allclose(result.w, exact.w, atol=1e-5)


@pytest.mark.parametrize("kind", ["plain", "values and weights", "order 2"])
def test_the_optimum_is_a_fixed_point(kind):
    """And an unreachable tolerance ends where rounding allows no decrease."""
    loss, penalty = likelihood(kind), L2(10.0)
    exact = LBFGS(stopping=GradientNorm(1e-12)).minimize(loss, penalty, np.zeros(loss.size))
    after = solve(loss, penalty, w0=exact.w, max_iterations=1, stopping=GradientNorm(0.0))
    assert_allclose(after.w, exact.w, atol=1e-11)
    result = solve(loss, penalty, stopping=GradientNorm(0.0))
    assert result.status is Status.ROUNDING
    assert result.optimality < 1e-12
    assert solve(loss, penalty, w0=exact.w).iterations == 0


def test_without_a_penalty():
    """Every feature of the field is observed, and none always: the optimum is finite."""
    made = problem(n_labels=2, n_attributes=1, per_position=1, lengths=(6, 5, 7, 4), seed=4)
    loss = ChainLikelihood(made.data, made.field, 1)
    exact = LBFGS(stopping=GradientNorm(1e-8)).minimize(loss, NoPenalty(), np.zeros(loss.size))
    result = solve(loss, NoPenalty())
    assert result.status is Status.CONVERGED
    assert_allclose(result.value, exact.value, rtol=1e-6)


def test_a_feature_that_is_never_observed_falls_by_max_step():
    loss = likelihood()
    never = ChainExpectations(loss).observed == 0
    assert never.any()
    result = solve(loss, NoPenalty(), max_iterations=2, max_step=3.0)
    assert (result.w[never] <= 0).all()
    assert result.w.min() == -6.0
    assert np.isfinite(result.value)


def test_more_buckets_need_no_more_iterations():
    loss = likelihood("values and weights", lengths=(1, 1, 2, 2, 3, 5, 8, 13, 21))
    needed = [solve(loss, L2(20.0), buckets=buckets).iterations for buckets in (1, 2, 4, 8, 16)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] < 0.8 * needed[0]


# --- bookkeeping


@pytest.mark.parametrize("k", [0, 1, 6])
def test_a_run_in_two_parts_gives_the_same_bits(k):
    loss, options = likelihood("order 2"), {"stopping": GradientNorm(0.0)}
    part = solve(loss, L2(0.1), max_iterations=k, **options)
    whole = solve(loss, L2(0.1), max_iterations=2 * k + 1, **options)
    state = pickle.loads(pickle.dumps(dict(part.state)))
    rest = solve(loss, L2(0.1), w0=part.w, resume=state, max_iterations=k + 1, **options)
    assert (rest.w == whole.w).all()
    assert rest.value == whole.value
    assert part.evaluations + rest.evaluations - 1 == whole.evaluations


def test_a_run_in_two_parts_ends_where_rounding_ends_the_whole():
    loss, options = likelihood(), {"stopping": GradientNorm(0.0)}
    whole = solve(loss, L2(10.0), **options)
    for k in range(whole.iterations - 12, whole.iterations, 3):
        part = solve(loss, L2(10.0), max_iterations=k, **options)
        rest = solve(loss, L2(10.0), w0=part.w, resume=part.state, **options)
        assert (rest.w == whole.w).all()
        assert rest.status is whole.status


def test_what_it_cannot_minimise_is_refused():
    made = problem()
    with pytest.raises(CapabilityError, match=r"iis needs expectations, which the softmax margin does not have"):
        solve(SoftmaxMargin(made.data, made.field, n_threads=1), L2(1.0))
    with pytest.raises(CapabilityError, match=r"iis minimises smooth objectives only; L1\(1\) is not smooth"):
        solve(likelihood(), L1(1.0))
    with pytest.raises(ParameterError, match="buckets must be >= 1"):
        ChainExpectations(likelihood(), 0)


@pytest.mark.parametrize("options", [{"max_iterations": -1}, {"buckets": 0}, {"max_step": 0.0}, {"max_step": math.nan}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        IIS(**options)
