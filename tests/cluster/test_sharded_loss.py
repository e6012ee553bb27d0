"""A sum over shards is the loss: the same values, derivatives and optima, whatever the number of shards."""

from functools import partial

import numpy as np
import pytest
from cluster_cases import sentences
from numpy.testing import assert_allclose

from crfkit import L1, L2, ChainCRF
from crfkit.chain.training.train import ChainTraining
from crfkit.distributed import Cluster
from crfkit.distributed.branches import FAN_OUT
from crfkit.distributed.chains import sharded_chain
from crfkit.distributed.graphs import sharded_graphs
from crfkit.errors import CapabilityError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import tied_field
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.losses.contrastive import ContrastiveDivergence
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.protocols import Capability
from crfkit.solvers import make_solver
from crfkit.solvers.parts.stopping import GradientNorm

SHARDS = (1, 2, 4, 7)


def chain_problem(n=120, **options):
    training = ChainTraining(**options)
    X, y = sentences(n)
    corpus, _, _ = training._learn(X, y, np.linspace(0.5, 2.0, len(X)), None, None)
    return training, training.make_problem(corpus, np.linspace(0.5, 2.0, len(X)))


@pytest.fixture
def closing():
    """A list of losses whose shards are released at the end of a test."""
    made = []
    yield made
    for loss in made:
        loss.shards.close()


def spread(client, closing, training, problem, shards, **options):
    loss = sharded_chain(client, Cluster(client, shards=shards, **options), training, problem.data, problem.field)
    closing.append(loss)
    return loss


@pytest.mark.parametrize(
    "options",
    [{}, {"order": 2}, {"loss": "softmax-margin"}, {"class_weight": {"A": 0.5}}, {"all_possible_states": True}],
    ids=str,
)
def test_values_and_derivatives_of_chains(client, closing, options):
    training, problem = chain_problem(**options)
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=(2, problem.field.size))
    one = problem.loss.at(w)
    for shards in SHARDS:
        loss = spread(client, closing, training, problem, shards)
        many = loss.at(w)
        assert_allclose(many.value, one.value, rtol=1e-12)
        assert_allclose(many.grad, one.grad, rtol=1e-12, atol=1e-12 * np.abs(one.grad).max())
        for capability in (Capability.HESSP, Capability.HESS_DIAG):
            assert (capability in loss.capabilities) == (capability in problem.loss.capabilities)
        if Capability.HESSP in loss.capabilities:
            assert_allclose(many.hessp(v), one.hessp(v), rtol=1e-10, atol=1e-10)
            assert_allclose(many.hess_diag(), one.hess_diag(), rtol=1e-10, atol=1e-10)


def test_a_tree_of_shards_sums_all_of_them(client, closing):
    training, problem = chain_problem()
    w = np.random.default_rng(1).normal(size=problem.field.size)
    loss = spread(client, closing, training, problem, 2 * FAN_OUT + 3)
    assert len(loss.shards) == 2 * FAN_OUT + 3
    assert_allclose(loss.at(w).value, problem.loss.at(w).value, rtol=1e-12)
    assert_allclose(loss.at(w).grad, problem.loss.at(w).grad, rtol=1e-11, atol=1e-11)


def test_the_same_weights_give_the_same_bits(client, closing):
    training, problem = chain_problem()
    w = np.random.default_rng(1).normal(size=problem.field.size)
    first, second = (spread(client, closing, training, problem, 4).at(w) for _ in range(2))
    assert first.value == second.value
    assert np.array_equal(first.grad, second.grad)


def test_subsets(client, closing):
    training, problem = chain_problem()
    w = np.random.default_rng(1).normal(size=problem.field.size)
    loss = spread(client, closing, training, problem, 3)
    v = np.random.default_rng(2).normal(size=problem.field.size)
    for ids in (np.arange(7), np.array([100, 3, 50]), np.arange(len(problem.data))):
        one, many = problem.loss.subset(ids).at(w), loss.subset(ids).at(w)
        assert_allclose(many.hessp(v), one.hessp(v), rtol=1e-9, atol=1e-10)  # the first shard alone has the first ids
        assert_allclose(many.value, one.value, rtol=1e-12)
        assert_allclose(many.grad, one.grad, rtol=1e-10, atol=1e-12)


def test_single_precision_transport_is_nearly_the_same(client, closing):
    training, problem = chain_problem(precision="single")
    w = np.random.default_rng(1).normal(size=problem.field.size)
    wide, narrow = (
        spread(client, closing, training, problem, 2, transport=transport) for transport in ("double", "single")
    )
    values = wide.at(w), narrow.at(w)
    assert_allclose(values[1].value, values[0].value, rtol=1e-5)
    assert_allclose(values[1].grad, values[0].grad, atol=1e-3)
    assert narrow.shards.traffic.sent * 2 == wide.shards.traffic.sent


@pytest.mark.parametrize(
    ("solver", "penalty"), [("lbfgs", L2(1.0)), ("tron", L2(1.0)), ("owlqn", L1(0.5)), ("ogm", L2(20.0))]
)
def test_every_number_of_shards_has_the_same_optimum(client, closing, solver, penalty):
    training, problem = chain_problem(30)
    run = partial(
        make_solver(solver, stopping=GradientNorm(1e-9), max_iterations=4000).minimize,
        penalty=penalty,
        w0=np.zeros(problem.field.size),
    )
    one = run(problem.loss)
    X, _ = sentences(30)
    known = training.model_of(problem, one).predict(X)
    for shards in SHARDS if solver == "lbfgs" else SHARDS[3:]:
        many = run(spread(client, closing, training, problem, shards))
        assert_allclose(many.value, one.value, rtol=1e-9)
        assert_allclose(many.w, one.w, atol=1e-5)
        assert training.model_of(problem, many).predict(X) == known


def test_epochs_are_mixed(client, closing):
    training, problem = chain_problem()
    loss, n = spread(client, closing, training, problem, 3), len(problem.data)
    online = loss.online()
    online.start(np.zeros(loss.size))
    values = [online.sgd(np.arange(n), np.full(n, 0.1), 1.0, 0.0, False) for _ in range(4)]
    assert values[3] < values[2] < values[1] < values[0]
    with pytest.raises(CapabilityError, match="no averaged weights"):
        online.sgd(np.arange(n), np.full(n, 0.1))
    one = spread(client, closing, training, problem, 1).online()  # one shard: nothing is mixed
    here = problem.loss.online()
    for epochs in (one, here):
        epochs.start(np.zeros(loss.size))
        epochs.sgd(np.arange(n), np.full(n, 0.1), 1.0, 0.0, False)
    assert_allclose(one.weights(), here.weights(), atol=1e-12)


def test_auto_needs_few_evaluations(client):
    X, y = sentences(400)
    here = ChainCRF().fit(X, y)
    there = ChainCRF(cluster=Cluster(client, shards=3)).fit(X, y)
    assert there.predict(X) == here.predict(X)
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-4)
    extra = there.result_.trace[-1].extra
    assert extra["sent_mb"] > 0
    assert extra["lost_shards"] == 0


@pytest.mark.parametrize("kind", ["likelihood", "bp", "pseudo"])
def test_values_and_derivatives_of_graphs(client, closing, kind):
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph.grid((2, int(k))) for k in rng.integers(1, 4, size=9)])
    data = GraphData.make(
        graph, rng.normal(size=(graph.n_nodes, 2)), labels=rng.integers(0, 2, graph.n_nodes), weights=np.arange(1, 10)
    )
    field = tied_field(data, 2)
    if kind == "pseudo":
        whole = PseudoLikelihood(data, field)
    else:
        whole = GraphLikelihood(data, field, make_engine("junction" if kind == "likelihood" else "bp"))
    w = 0.3 * rng.normal(size=field.size)
    for shards in SHARDS:
        loss = sharded_graphs(client, Cluster(client, shards=shards), whole)
        closing.append(loss)
        assert_allclose(loss.at(w).value, whole.at(w).value, rtol=1e-9 if kind == "bp" else 1e-12)
        assert_allclose(loss.at(w).grad, whole.at(w).grad, rtol=1e-6 if kind == "bp" else 1e-10, atol=1e-9)
        if kind == "pseudo":
            assert loss.lipschitz() >= whole.lipschitz() * (1 - 1e-9)


def test_losses_that_have_no_sum(client):
    data = GraphData.make(Graph.grid((2, 2)), labels=[0, 0, 1, 1])
    with pytest.raises(ParameterError, match="cannot be trained on a cluster; losses that can: likelihood"):
        sharded_graphs(client, Cluster(client), ContrastiveDivergence(data, tied_field(data, 2)))
    with pytest.raises(CapabilityError, match="the solver iis needs expectations"):
        ChainCRF(cluster=client, solver="iis").fit(*sentences(20))


def test_losses_that_are_no_sum_over_shards_are_refused(monkeypatch):
    training, problem = chain_problem(20)
    monkeypatch.setattr(type(problem.loss), "shardable", False)
    with pytest.raises(ParameterError, match="chain likelihood cannot be trained on a cluster; losses that can: "):
        sharded_chain(None, None, training, problem.data, problem.field)
