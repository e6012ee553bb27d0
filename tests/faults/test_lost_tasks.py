"""Structure learning on a cluster whose workers are killed or hang: the same edges, shares and scores."""

from __future__ import annotations

import os
import signal
import time

import pytest
from structure_cases import planted

from crfkit import StructureLearner
from crfkit.distributed import Cluster, connect
from crfkit.distributed.tasks import ClusterTasks
from crfkit.errors import ClusterError

pytestmark = pytest.mark.slow

Y, _ = planted(0, p=6, n_edges=5, rows=300)


@pytest.fixture(scope="module")
def client():
    # a worker that is started again while the machine is busy stays part of the cluster
    with connect("local:2") as client:
        yield client


def learner(rule="stability", **options):
    small = {"n_subsamples": 8, "n_strengths": 8, "n_folds": 3, "refit": "pl", "n_threads": 1, "random_state": 3}
    return StructureLearner(edge_strength=rule, **(small | options))


def same(found, expected):
    """Whether two learners chose the same by the same numbers."""
    assert found.stability_ == expected.stability_
    assert found.strength_ == expected.strength_
    assert found.edges_ == expected.edges_
    assert [p.score for p in found.strength_path_] == [p.score for p in expected.strength_path_]
    assert [p.error for p in found.strength_path_] == [p.error for p in expected.strength_path_]


@pytest.fixture(scope="module")
def alone():
    return {rule: learner(rule).fit(Y) for rule in ("stability", "cv")}


def pids(client):
    return list(client.run(os.getpid).values())


def kill(numbers, how=signal.SIGKILL):
    for pid in numbers:
        os.kill(pid, how)


def _slow(data, item):
    time.sleep(0.3)
    return data + item


def test_a_worker_that_hangs_is_left_alone(client):
    """It answers nobody, but its connections are open. The other worker takes its tasks."""
    stopped = pids(client)[:1]
    results = ClusterTasks(client, Cluster(client, timeout=3.0)).map(_slow, 100, range(4))
    kill(stopped, signal.SIGSTOP)
    try:
        assert list(results) == [100, 101, 102, 103]
    finally:
        kill(stopped, signal.SIGCONT)


def test_a_worker_that_is_killed_changes_no_share(alone, client):
    found = learner(cluster=client)
    found.fit(Y, on_half=lambda done, of: kill(pids(client)[:1]) if done == 1 else None)
    same(found, alone["stability"])


def test_all_workers_and_the_data_are_lost_without_a_change_of_scores(alone, client):
    strengths = []

    def callback(iteration):
        if iteration.row.iteration == 0:
            strengths.append(iteration.row.extra["strength"])
            if len(strengths) == 3:
                kill(pids(client))

    same(learner("cv", cluster=client).fit(Y, callbacks=[callback]), alone["cv"])


def _deadly(data, item):
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_task_that_kills_its_workers_ends_in_an_error(client):
    client.run_on_scheduler(_allow_no_failure)
    with pytest.raises(ClusterError, match=r"lost with 4 workers.*too little memory.*retries"):
        list(ClusterTasks(client, Cluster(client, retries=2)).map(_deadly, None, range(2)))


def _allow_no_failure(dask_scheduler):
    dask_scheduler.allowed_failures = 0
