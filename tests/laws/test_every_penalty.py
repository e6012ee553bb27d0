"""Laws of penalties, over the examples of every member of the registry."""

import pickle

import numpy as np
import pytest
from growing import growing_regression
from numpy.testing import assert_allclose

from crfkit.penalties import PENALTIES
from crfkit.protocols import Kind, NonsmoothPenalty, Penalty, SmoothPenalty

LOSS = growing_regression(n_blocks=4, size=2, rest=2).whole()
SIZE = LOSS.size
EXAMPLES = [(name, k) for name, kind in PENALTIES.items() for k in range(len(kind.examples(SIZE)))]
seeds = pytest.mark.parametrize("seed", range(4))
steps = pytest.mark.parametrize("step", [0.3, 2.0])


def bound(example):
    name, k = example
    return PENALTIES[name].examples(SIZE)[k].bind(LOSS)


def parts(example):
    return [part for part in bound(example).split() if part is not None]


def smooth_part(example):
    return bound(example).split()[0]


def rest_part(example):
    return bound(example).split()[1]


def examples_where(condition):
    chosen = [example for example in EXAMPLES if condition(example)]
    return pytest.mark.parametrize("example", chosen, ids=lambda example: f"{example[0]}-{example[1]}")


every_penalty = examples_where(lambda example: True)
with_a_strength = examples_where(lambda example: bound(example).strength is not None)
with_a_smooth_part = examples_where(smooth_part)
with_corners = examples_where(rest_part)
with_an_epigraph = examples_where(lambda example: rest_part(example) and Kind.EPIGRAPH in rest_part(example).kinds)
with_a_critical_strength = examples_where(lambda example: bound(example).critical_strength(np.ones(SIZE)) is not None)


def vector(seed):
    """Some weights are exactly zero, some are near."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=SIZE) * rng.choice([0.0, 0.01, 1.0, 3.0], SIZE)


def inside(example, w):
    """w, or the nearest point where the penalty is finite."""
    for part in parts(example):
        if isinstance(part, NonsmoothPenalty) and part.value(w) == np.inf:
            w = part.prox(w, 1.0)
    return w


def test_every_member_has_examples():
    assert all(kind.examples(SIZE) for kind in PENALTIES.values())


def test_no_example_is_without_laws():
    """A penalty has a smooth part, corners or both, unless it is zero; and each law is about several penalties."""
    smooth, corners = with_a_smooth_part.args[1], with_corners.args[1]
    assert [name for name, k in EXAMPLES if (name, k) not in smooth + corners] == ["none"]
    assert set(with_a_critical_strength.args[1]) <= set(with_a_strength.args[1]) & set(corners)
    for law in (with_a_strength, with_a_smooth_part, with_corners, with_an_epigraph, with_a_critical_strength):
        assert len(law.args[1]) >= 3


@every_penalty
def test_it_keeps_the_contract(example):
    name, k = example
    penalty = PENALTIES[name].examples(SIZE)[k]
    assert isinstance(penalty, Penalty)
    assert isinstance(penalty.name, str)
    copy = pickle.loads(pickle.dumps(penalty))
    assert copy == penalty
    assert hash(copy) == hash(penalty)
    smooth, rest = bound(example).split()
    assert smooth is None or (isinstance(smooth, SmoothPenalty) and all(isinstance(k, Kind) for k in smooth.kinds))
    assert rest is None or (isinstance(rest, NonsmoothPenalty) and all(isinstance(k, Kind) for k in rest.kinds))


@every_penalty
@seeds
def test_parts_add_up_to_the_whole(example, seed):
    w = inside(example, vector(seed))
    assert_allclose(sum(part.value(w) for part in parts(example)), bound(example).value(w), rtol=1e-12)


@every_penalty
@seeds
def test_it_is_convex_non_negative_and_zero_at_zero(example, seed):
    penalty = bound(example)
    a, b = inside(example, vector(seed)), inside(example, vector(seed + 100))
    assert penalty.value(np.zeros(SIZE)) == 0.0
    assert penalty.value(a) >= 0.0
    for t in (0.25, 0.7):
        assert penalty.value(t * a + (1 - t) * b) <= t * penalty.value(a) + (1 - t) * penalty.value(b) + 1e-12


@with_a_strength
@seeds
def test_another_strength_scales_it(example, seed):
    penalty, w = bound(example), inside(example, vector(seed))
    doubled = penalty.at(2.0 * penalty.strength)
    assert doubled.name != penalty.name
    assert penalty.value(w) < doubled.value(w) <= 2.0 * penalty.value(w) * (1 + 1e-12)


@with_a_smooth_part
@seeds
def test_derivatives_of_the_smooth_part(example, seed):
    smooth, h = smooth_part(example), 1e-6
    rng = np.random.default_rng(seed)
    w, v = rng.normal(size=SIZE), rng.normal(size=SIZE)
    gradient, product, diagonal, onto = np.zeros(SIZE), np.zeros(SIZE), np.zeros(SIZE), np.ones(SIZE)
    smooth.add_gradient(w, gradient)
    smooth.add_gradient(w, onto)
    assert_allclose(onto, 1.0 + gradient, rtol=1e-14)  # it is added to what is there
    slopes = [(smooth.value(w + e) - smooth.value(w - e)) / (2 * h) for e in h * np.eye(SIZE)]
    assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)
    smooth.add_hessp(w, v, product)
    smooth.add_hess_diag(w, diagonal)
    ahead, behind = np.zeros(SIZE), np.zeros(SIZE)
    smooth.add_gradient(w + h * v, ahead)
    smooth.add_gradient(w - h * v, behind)
    assert_allclose(product, (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-6)
    for k, e in enumerate(np.eye(SIZE)):
        column = np.zeros(SIZE)
        smooth.add_hessp(w, e, column)
        assert_allclose(diagonal[k], column[k], rtol=1e-12)
    if smooth.lipschitz() is not None:
        assert np.linalg.norm(ahead - behind) <= smooth.lipschitz() * 2 * h * np.linalg.norm(v) * (1 + 1e-6)


@with_corners
@seeds
@steps
def test_prox_is_the_minimum_that_it_claims_to_be(example, seed, step):
    rest, w = rest_part(example), vector(seed)
    kept = w.copy()
    x = rest.prox(w, step)
    assert (w == kept).all()
    assert_allclose(rest.min_norm_subgradient(x, (x - w) / step), 0.0, atol=1e-7)

    def cost(y):
        return 0.5 * np.sum((y - w) ** 2) + step * rest.value(y)

    rng = np.random.default_rng(seed)
    for size in (1e-3, 0.1, 1.0):
        near = x + size * rng.normal(size=SIZE)
        near = rest.prox(near, 1.0) if rest.value(near) == np.inf else near
        assert cost(near) >= cost(x) - 1e-9


@with_corners
@seeds
@steps
def test_prox_does_not_expand(example, seed, step):
    rest, a, b = rest_part(example), vector(seed), vector(seed + 100)
    distance = np.linalg.norm(rest.prox(a, step) - rest.prox(b, step))
    assert distance <= np.linalg.norm(a - b) * (1 + 1e-12)


@with_a_critical_strength
@seeds
def test_the_critical_strength_is_where_zero_is_optimal(example, seed):
    penalty, g = bound(example), np.random.default_rng(seed).normal(size=SIZE)
    critical = penalty.critical_strength(g)
    zero = np.zeros(SIZE)

    def left(strength):
        return penalty.at(strength).split()[1].min_norm_subgradient(zero, g) - other

    other = penalty.at(1e6 * critical).split()[1].min_norm_subgradient(zero, g)  # of weights without a penalty
    assert_allclose(left(critical * (1 + 1e-9)), 0.0, atol=1e-9)
    assert np.linalg.norm(left(critical * 0.99)) > 1e-6


@with_an_epigraph
@seeds
def test_projections_onto_the_epigraph(example, seed):
    rest = rest_part(example)
    w = inside(example, vector(seed))
    alpha, cost = rest.epigraph_start(w)
    assert len(alpha) == rest.epigraph_size(SIZE)
    assert_allclose(cost @ alpha, rest.value(w), rtol=1e-12)
    rng = np.random.default_rng(seed)
    x, a = rest.project_epigraph(w + rng.normal(size=SIZE), alpha + rng.normal(size=len(alpha)))
    again = rest.project_epigraph(x, a)
    assert_allclose(again[0], x, atol=1e-10)
    assert_allclose(again[1], a, atol=1e-10)
    assert (a >= rest.epigraph_start(x)[0] - 1e-10).all()
