"""Chains that grow: at every stage the loss of the selected attributes, with the gradients of all others."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from oracle import make_problem

from crfkit.chain.attribute_index import block_norms
from crfkit.chain.data import SequenceData
from crfkit.chain.fields.field import ChainField
from crfkit.errors import DataError, ParameterError
from crfkit.losses import CandidateChain, CandidateMargin, ChainLikelihood, SoftmaxMargin
from crfkit.penalties import L1, ElasticNet
from crfkit.protocols import GrowingLoss
from crfkit.result import Status
from crfkit.solvers import GaussSeidel, GradientNorm, Grafting, GraftingLight, make_solver
from crfkit.solvers.parts.objective import extended
from crfkit.training.path import regularisation_path

LENGTHS = (4, 0, 6, 1, 5, 3)
FAMILY = {"grafting-light": GraftingLight, "grafting": Grafting, "gauss-seidel": GaussSeidel}
shapes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "n_labels": st.integers(1, 4),
        "n_attributes": st.integers(1, 7),
        "n_pair_attributes": st.integers(0, 3),
        "values": st.booleans(),
        "weights": st.booleans(),
        "states": st.sampled_from(["all", "observed", "subset"]),
        "transitions": st.sampled_from(["all", "observed", "none"]),
        "order": st.sampled_from([1, 2]),
    }
)


def random_cost(seed, n_labels):
    cost = np.random.default_rng(seed).uniform(0.0, 3.0, size=(n_labels, n_labels))
    np.fill_diagonal(cost, 0.0)
    return cost


def both_losses(kind, data, field, seed=0, **options):
    """The loss of all attributes and the one that selects them."""
    if kind == "likelihood":
        return ChainLikelihood(data, field, n_threads=1), CandidateChain(data, field, n_threads=1, **options)
    cost = random_cost(seed, field.n_labels)
    return SoftmaxMargin(data, field, cost, 1), CandidateMargin(data, field, cost, 1, **options)


KINDS = ("likelihood", "softmax-margin")
every_kind = pytest.mark.parametrize("kind", KINDS)


def random_subset(rng, n):
    return np.flatnonzero(rng.random(n) < 0.4)


def grown(loss, ids):
    return loss.activate(ids)[0] if len(ids) else loss


@every_kind
@settings(max_examples=15)
@given(shape=shapes, norm=st.sampled_from(["max", "l1", "l2"]), limit=st.sampled_from([1 << 30, 2000, 64]))
def test_gradients_are_those_of_the_full_model(kind, shape, norm, limit):
    problem = make_problem(lengths=LENGTHS, **shape)
    rng = np.random.default_rng(shape["seed"])
    full, start = both_losses(kind, problem.data, problem.field, shape["seed"], memory_limit=limit)
    assert isinstance(start, GrowingLoss)
    loss = grown(start, random_subset(rng, start.n_candidates))
    w = rng.normal(size=loss.size)
    here, there = loss.at(w), full.at(loss.in_full(w))
    assert_allclose(here.value, there.value, rtol=1e-12)
    assert_allclose(here.grad, there.grad[loss.full_places], atol=1e-10)
    ids, scores = loss.candidates(here, norm)
    everything = start.activate(np.arange(start.n_candidates))[0]
    blocks = everything.block_index
    gradient = there.grad[everything.full_places]
    for name, score in zip(ids.tolist(), scores.tolist(), strict=True):
        assert name not in loss.active_ids
        order = {"max": np.inf, "l1": 1, "l2": 2}[norm]
        assert_allclose(score, np.linalg.norm(gradient[blocks == name], order), rtol=1e-9, atol=1e-10)
    silent = np.setdiff1d(np.arange(start.n_candidates), np.r_[ids, loss.active_ids])
    assert_allclose(gradient[np.isin(blocks, silent)], 0.0, atol=1e-12)
    assert list(zip(-scores, ids, strict=True)) == sorted(zip(-scores, ids, strict=True))
    assert loss.n_candidates == start.n_candidates - len(loss.active_ids)


@every_kind
@settings(max_examples=15)
@given(shape=shapes, limit=st.sampled_from([1 << 30, 200]))
def test_growth_is_zero_extension(kind, shape, limit):
    problem = make_problem(lengths=LENGTHS, **shape)
    rng = np.random.default_rng(shape["seed"])
    start = both_losses(kind, problem.data, problem.field, shape["seed"], memory_limit=limit)[1]
    loss = grown(start, random_subset(rng, start.n_candidates))
    larger, place = loss.activate(random_subset(rng, start.n_candidates))
    w = rng.normal(size=loss.size)
    v = extended(w, place, larger.size)
    assert np.array_equal(larger.in_full(v), loss.in_full(w))
    assert np.array_equal(larger.block_index[place], loss.block_index)
    assert set(larger.active_ids) >= set(loss.active_ids)
    evaluation = loss.at(w)
    carried, again = larger.carry(evaluation, place), larger.at(v)
    assert_allclose(carried.value, again.value, rtol=1e-12)
    assert_allclose(carried.grad, again.grad, atol=1e-10)
    for mine, other in zip(larger.candidates(carried), larger.candidates(again), strict=True):
        assert_allclose(mine, other, atol=1e-10)


def dense_problem(seed=0, n_inputs=20, sequences=40, length=5):
    """Real-valued inputs, as one matrix row by position."""
    rng = np.random.default_rng(seed)
    T = sequences * length
    X = rng.normal(size=(T, n_inputs))
    labels = (X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=T) > 0).astype(np.int32)
    ids = np.tile(np.arange(n_inputs), T)
    data = SequenceData(
        np.arange(0, T + 1, length), np.arange(0, T * n_inputs + 1, n_inputs), ids, X.ravel(), labels=labels
    )
    return data, ChainField.from_data(data, 2, n_inputs, all_states=True, all_transitions=True)


def string_problem():
    problem = make_problem(3, 3, (6,) * 20, 25, n_pair_attributes=4, states="observed", weights=True, order=2)
    return problem.data, problem.field


PROBLEMS = {"dense": dense_problem, "strings": string_problem}


def test_the_gradient_of_a_candidate_is_its_slope_under_the_costs():
    """By central differences of the softmax margin in which the candidate has been switched on."""
    problem = make_problem(5, 3, LENGTHS, 6, n_pair_attributes=2, values=True, weights=True)
    start = CandidateMargin(problem.data, problem.field, random_cost(5, 3), 1)
    loss = grown(start, [0, 3])
    w = np.random.default_rng(5).normal(size=loss.size)
    ids, scores = loss.candidates(loss.at(w))
    assert len(ids) >= 4
    for name, score in zip(ids.tolist(), scores.tolist(), strict=True):
        larger, place = loss.activate([name])
        v = extended(w, place, larger.size)
        slopes = []
        for k in np.flatnonzero(larger.block_index == name):
            step = 1e-5 * np.eye(larger.size)[k]
            slopes.append((larger.at(v + step).value - larger.at(v - step).value) / 2e-5)
        assert_allclose(score, np.abs(slopes).max(), rtol=1e-6, atol=1e-7)


@every_kind
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("penalty", [L1(2.0), ElasticNet(1.5, 0.3)], ids=lambda p: p.name)
@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("unit", [1, 7, 10_000])
def test_the_optimum_of_all_attributes(kind, problem, penalty, name, unit):
    full, loss = both_losses(kind, *PROBLEMS[problem]())
    rule = GradientNorm(1e-5)
    best = make_solver("owlqn", stopping=rule).minimize(full, penalty, np.zeros(full.size))
    result = FAMILY[name](select_unit=unit, stopping=rule).minimize(loss, penalty, np.zeros(loss.size))
    assert result.status is Status.CONVERGED
    assert_allclose(result.value, best.value, rtol=1e-8)
    last = result.loss
    smooth, rest = penalty.split()
    w = last.in_full(result.w)
    gradient = full.at(w).grad
    if smooth is not None:
        smooth.add_gradient(w, gradient)
    assert np.abs(rest.min_norm_subgradient(w, gradient)).max() < 1e-4
    assert last.size == len(result.w) < full.size or unit == 10_000


@every_kind
@pytest.mark.parametrize("name", FAMILY)
def test_attributes_that_come_later(kind, name):
    data, _ = string_problem()
    plain = SequenceData(data.starts, data.offsets, data.attributes, labels=data.labels, weights=data.weights)

    def only(first, last):
        keep = (plain.attributes >= first) & (plain.attributes < last)
        counts = np.concatenate([[0], np.cumsum(keep)])
        return SequenceData(
            plain.starts,
            counts[plain.offsets],
            plain.attributes[keep] - first,
            labels=plain.labels,
            weights=plain.weights,
        )

    options = {"all_states": False, "all_transitions": True}
    full = both_losses(kind, plain, ChainField.from_data(plain, 3, 25, **options))[0]
    rule, penalty = GradientNorm(1e-5), L1(1.5)
    best = make_solver("owlqn", stopping=rule).minimize(full, penalty, np.zeros(full.size))
    first = only(0, 8)
    loss = both_losses(kind, first, ChainField.from_data(first, 3, 8, **options))[1]
    batches = [(only(8, 20), 12), (only(20, 25), 5)]
    result = FAMILY[name](select_unit=3, stopping=rule, batches=batches).minimize(loss, penalty, np.zeros(loss.size))
    assert_allclose(result.value, best.value, rtol=1e-8)
    assert result.loss.active_ids.max() >= 8
    assert result.loss.n_candidates + len(result.loss.active_ids) == 25
    with pytest.raises(DataError, match="other sequences"):
        loss.add_candidates(only(8, 9).take([0]))


def test_losses_of_earlier_stages_are_let_go(monkeypatch):
    alive = weakref.WeakSet()
    make = CandidateChain._set

    def counted(self, *arguments):
        make(self, *arguments)
        alive.add(self)

    monkeypatch.setattr(CandidateChain, "_set", counted)
    gc.disable()
    try:
        loss = CandidateChain(*string_problem(), 1)
        result = GraftingLight(select_unit=1).minimize(loss, L1(1.0), np.zeros(loss.size))
    finally:
        gc.enable()
    assert result.trace[-1].extra["selected"] > 5
    assert len(alive) == 2


def test_a_strength_that_selects_nothing():
    data, field = dense_problem()
    loss = CandidateChain(data, field, 1)
    result = GraftingLight().minimize(loss, L1(1e5), np.zeros(loss.size))
    assert result.status is Status.CONVERGED
    assert result.loss is None
    assert not result.w.any()


def test_a_path_scores_the_weights_of_all_attributes():
    data, field = dense_problem()
    sizes = []
    path = regularisation_path(
        CandidateChain(data, field, 1), L1(), n=3, ratio=0.3, score=lambda w: sizes.append(w) or 0
    )
    assert [len(w) for w in sizes] == [field.size] * 3
    assert path[0].nonzeros == 0 < path[-1].nonzeros < len(path[-1].w) < field.size
    assert np.count_nonzero(sizes[-1]) == path[-1].nonzeros


def test_what_is_refused():
    data, field = dense_problem()
    with pytest.raises(ParameterError, match="memory_limit"):
        CandidateChain(data, field, memory_limit=0)
    with pytest.raises(ParameterError, match="ids are of no candidate"):
        CandidateChain(data, field).activate([20])
    loss = CandidateChain(data, field)
    evaluation = loss.at(np.zeros(loss.size))
    with pytest.raises(ParameterError, match="norm"):
        loss.candidates(evaluation, "frobenius")
    classes = make_problem(n_classes=2, n_labels=3)
    with pytest.raises(ParameterError, match="label_classes"):
        CandidateChain(classes.data, classes.field)


def test_norms_of_blocks():
    gradient = np.array([3.0, -4.0, 1.0, -2.0])
    offsets = np.array([0, 2, 2, 3, 4, 4])
    assert block_norms(gradient, offsets, "max").tolist() == [4.0, 0.0, 1.0, 2.0, 0.0]
    assert block_norms(gradient, offsets, "l1").tolist() == [7.0, 0.0, 1.0, 2.0, 0.0]
    assert block_norms(gradient, offsets, "l2").tolist() == [5.0, 0.0, 1.0, 2.0, 0.0]
