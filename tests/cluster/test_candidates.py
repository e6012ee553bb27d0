"""Grafting on a cluster selects what it selects on one machine."""

import numpy as np
import pytest
from cluster_cases import sentences
from numpy.testing import assert_allclose

from crfkit import L1, ChainCRF
from crfkit.chain.losses.candidates import CandidateChain
from crfkit.chain.training.train import ChainTraining
from crfkit.distributed import Cluster
from crfkit.distributed.candidates import ShardedCandidates
from crfkit.distributed.chains import sharded_chain
from crfkit.solvers.parts.stopping import GradientNorm


@pytest.fixture(scope="module")
def losses(client):
    training = ChainTraining()
    X, y = sentences(40)
    problem = training.make_problem(training._learn(X, y, None, None, None)[0])
    whole = sharded_chain(client, Cluster(client, shards=3), training, problem.data, problem.field)
    yield CandidateChain(problem.data, problem.field), ShardedCandidates(whole)
    whole.shards.close()


def test_the_same_candidates(losses):
    one, many = losses
    rng = np.random.default_rng(0)
    for ids in ((), (3, 1), (0, 2, 7, 30)):
        a, b = one.activate(ids)[0], many.activate(ids)[0]
        assert a.size == b.size
        assert a.n_candidates == b.n_candidates
        assert a.active_ids.tolist() == b.active_ids.tolist()
        assert a.block_index.tolist() == b.block_index.tolist()
        assert {n: s for n, s in a.layout.items() if s.stop > s.start} == {
            n: s for n, s in b.layout.items() if s.stop > s.start
        }
        w = rng.normal(size=a.size)
        here, there = a.at(w), b.at(w)
        assert_allclose(there.value, here.value, rtol=1e-12)
        assert_allclose(there.grad, here.grad, atol=1e-10)
        for norm in ("max", "l1", "l2"):
            known, found = a.candidates(here, norm, 0.5), b.candidates(there, norm, 0.5)
            assert found[0].tolist() == known[0].tolist()
            assert_allclose(found[1], known[1], atol=1e-10)
        larger, place = b.activate([20, 21])
        assert_allclose(larger.carry(there, place).grad, larger.at(larger.carry(there, place).w).grad, atol=1e-10)


@pytest.mark.parametrize(
    ("solver", "loss"),
    [("grafting-light", "likelihood"), ("grafting", "likelihood"), ("grafting-light", "softmax-margin")],
)
def test_the_same_model(client, solver, loss):
    X, y = sentences(40)
    options = {"solver": solver, "loss": loss, "penalty": L1(0.7), "tolerance": GradientNorm(1e-7)}
    here = ChainCRF(**options).fit(X, y)
    there = ChainCRF(**options, cluster=Cluster(client, shards=3)).fit(X, y)
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)
    assert there.state_features_.keys() == here.state_features_.keys()
    assert there.predict(X) == here.predict(X)
