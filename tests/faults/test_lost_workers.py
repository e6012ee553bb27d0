"""Workers that are killed, stopped or late change nothing but the time; what cannot go on says so."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from cluster_cases import column_text, sentences
from numpy.testing import assert_allclose

from crfkit import ChainCRF
from crfkit.chain.training.train import ChainTraining
from crfkit.distributed import Cluster, connect, shards
from crfkit.distributed.chains import sharded_chain
from crfkit.distributed.shards import Recipe, Shards
from crfkit.errors import ClusterError, DataError
from crfkit.solvers.parts.stopping import GradientNorm

slow = pytest.mark.slow
TIGHT = GradientNorm(1e-8)


@pytest.fixture(scope="module")
def fragile():
    """A cluster whose workers may be killed."""
    with connect("local:2") as client:
        yield client


@pytest.fixture
def own(fragile):
    """The same when both of its workers are there: killed ones are replaced."""
    fragile.wait_for_workers(2, timeout=60)
    return fragile


def processes(client):
    return list(client.run(os.getpid).values())


class At:
    """Call a function once, in the iteration with this number."""

    def __init__(self, number, function):
        self._number, self._function = number, function

    def __call__(self, iteration):
        if iteration.row.iteration == self._number:
            self._function()


def problem_of(training):
    X, y = sentences()
    return training.make_problem(training._learn(X, y, None, None, None)[0])


@pytest.mark.parametrize(
    ("solver", "victims"), [("lbfgs", 1), pytest.param("lbfgs", 2, marks=slow), pytest.param("tron", 1, marks=slow)]
)
def test_killed_workers_do_not_change_the_optimum(own, solver, victims):
    X, y = sentences()
    here = ChainCRF(solver=solver, tolerance=TIGHT).fit(X, y)

    def kill():
        for pid in processes(own)[:victims]:
            os.kill(pid, signal.SIGKILL)

    there = ChainCRF(solver=solver, tolerance=TIGHT, cluster=Cluster(own, shards=3))
    there.fit(X, y, callbacks=[At(4, kill)])
    assert there.result_.trace[-1].extra["lost_shards"] >= 1
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)
    assert there.predict(X) == here.predict(X)


@slow
def test_a_worker_is_killed_in_the_middle_of_an_evaluation(own):
    """A killer that nobody waits for; evaluations go on all the time."""
    training = ChainTraining()
    problem = problem_of(training)
    loss = sharded_chain(own, Cluster(own, shards=2), training, problem.data, problem.field)
    w = np.random.default_rng(0).normal(size=problem.field.size)
    expected, victim = loss.at(w).value, processes(own)[0]
    killer = threading.Timer(0.2, os.kill, (victim, signal.SIGKILL))
    killer.start()
    end = time.monotonic() + 60
    while loss.shards.traffic.lost == 0 and time.monotonic() < end:
        assert loss.at(w).value == expected  # the same terms in the same order
    assert loss.shards.traffic.lost > 0
    assert loss.at(w).value == expected
    loss.shards.close()


@slow
def test_files_are_read_again(own, tmp_path):
    (tmp_path / "train.txt").write_text(column_text())
    options = {"template": "U00:%x[0,0]\nU01:%x[0,1]\nB\n", "tolerance": TIGHT, "solver": "lbfgs"}
    here = ChainCRF(**options).fit_file(tmp_path / "train.txt")
    there = ChainCRF(**options, cluster=Cluster(own, shards=3))
    there.fit_file(tmp_path / "*.txt", callbacks=[At(3, lambda: os.kill(processes(own)[0], signal.SIGKILL))])
    assert there.result_.trace[-1].extra["lost_shards"] >= 1
    assert there.model_.vocabulary.attributes.to_list() == here.model_.vocabulary.attributes.to_list()
    assert_allclose(there.result_.value, here.result_.value, rtol=1e-9)


@slow
def test_a_worker_that_does_not_answer_is_replaced(own, monkeypatch):
    monkeypatch.setattr(shards, "PING_TIMEOUT", 1.0)
    training = ChainTraining()
    problem = problem_of(training)
    loss = sharded_chain(own, Cluster(own, shards=2, timeout=2.0), training, problem.data, problem.field)
    w = np.zeros(problem.field.size)
    expected, stopped = loss.at(w).value, processes(own)[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        assert loss.at(w).value == expected
        assert loss.shards.traffic.lost >= 1
    finally:
        os.kill(stopped, signal.SIGCONT)
        loss.shards.close()


@slow
def test_a_worker_that_comes_late_gets_a_shard(monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(shards, "BALANCE", 0.0)
    training = ChainTraining()
    problem = problem_of(training)
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster, set_as_default=False) as client:
        loss = sharded_chain(client, Cluster(client, shards=2), training, problem.data, problem.field)
        w = np.zeros(problem.field.size)
        expected = loss.at(w).value
        assert "on 1 worker" in loss.shards.describe()
        cluster.scale(2)
        client.wait_for_workers(2, timeout=60)
        assert loss.at(w).value == expected
        assert "on 2 workers" in loss.shards.describe()


@slow
def test_the_scheduler_goes(monkeypatch):
    monkeypatch.setattr(shards, "PING_TIMEOUT", 2.0)
    training = ChainTraining()
    problem = problem_of(training)
    with connect("local:1") as client:
        loss = sharded_chain(client, Cluster(client), training, problem.data, problem.field)
        w = np.zeros(problem.field.size)
        _ = loss.at(w).value
        client.cluster.close()
        with pytest.raises(ClusterError, match=r"the scheduler has gone; .* continue from the last checkpoint"):
            _ = loss.at(w).value


def refuse(own, shared, n_threads):
    raise DataError("no labels", own.name)


def die(own, shared, n_threads):
    os._exit(1)


class Named:
    small, name = True, "part7.txt"


def test_errors_of_shards_arrive(own):
    own.upload_file(__file__)  # the functions above
    recipe = Recipe(refuse, Named(), 0, 1, "part7.txt")
    with pytest.raises(DataError, match=r"part7\.txt: no labels"):
        Shards(own, [recipe], None, 1, Cluster(own))


@slow
def test_shards_that_kill_every_worker_end_the_run(own):
    own.upload_file(__file__)
    recipe = Recipe(die, Named(), 0, 1, "part7.txt")
    with pytest.raises(ClusterError, match=r"workers were lost 2 times in a row .* too little memory"):
        Shards(own, [recipe], None, 1, Cluster(own, retries=1, timeout=60.0))
