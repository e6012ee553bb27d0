"""Structure learning on a cluster: the same edges, shares and scores as without one, whatever happens to workers."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from structure_cases import planted

from crfkit import StructureLearner
from crfkit.cli.main import main
from crfkit.distributed import Cluster, connect
from crfkit.distributed.tasks import ClusterTasks, cluster_tasks
from crfkit.errors import ClusterError, DataError, ParameterError
from crfkit.training.tasks import Tasks

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

Y, _ = planted(0, p=6, n_edges=5, rows=300)


@pytest.fixture(scope="module")
def client():
    """Another cluster than the one of the other tests, as its workers are killed."""
    # a worker that is started again while the machine is busy stays part of the cluster
    with connect("local:2") as client:
        yield client


def learner(rule="stability", **options):
    small = {"n_subsamples": 8, "n_strengths": 8, "n_folds": 3, "refit": "pl", "n_threads": 1, "random_state": 3}
    return StructureLearner(edge_strength=rule, **(small | options))


def pids(client):
    return list(client.run(os.getpid).values())


def kill(numbers, how=signal.SIGKILL):
    for pid in numbers:
        os.kill(pid, how)


def same(found, expected):
    """Whether two learners chose the same by the same numbers."""
    assert found.stability_ == expected.stability_
    assert found.strength_ == expected.strength_
    assert found.edges_ == expected.edges_
    assert [p.score for p in found.strength_path_] == [p.score for p in expected.strength_path_]
    assert [p.error for p in found.strength_path_] == [p.error for p in expected.strength_path_]


# --- the same results


@pytest.fixture(scope="module")
def alone():
    return {rule: learner(rule).fit(Y) for rule in ("stability", "cv")}


@pytest.mark.parametrize("rule", ["stability", "cv"])
def test_the_same_as_without_a_cluster(rule, alone, client):
    seen = []
    found = learner(rule, cluster=client).fit(
        Y, callbacks=[lambda iteration: seen.append(iteration.row.extra["strength"])]
    )
    same(found, alone[rule])
    assert len(seen) > 5
    assert seen == sorted(seen, reverse=True)  # the path of all rows, which is followed here
    assert client.status == "running"  # a client that was given stays open


@pytest.mark.parametrize("rule", ["stability", "cv"])
def test_tables_with_inputs(rule, client):
    rng = np.random.default_rng(0)
    own = rng.normal(size=(150, 3, 1))
    Z = (own[:, :, 0] + rng.normal(size=(150, 3)) > 0).astype(int)
    Z[:, 2] = np.where(own[:, 2, 0] > 0, Z[:, 0], Z[:, 2])
    options = {"n_subsamples": 4, "n_strengths": 5, "n_folds": 2}
    same(*(learner(rule, **options, cluster=c).fit(Z, inputs=own) for c in (client, None)))


@pytest.mark.parametrize("options", [{"form": "ordinal"}, {"loss": "likelihood"}])
def test_other_losses(options, client):
    Z = Y[:, :3] + Y[:, 3:] if "form" in options else Y[:, [0, 4, 1]]
    same(*(learner("cv", **options, cluster=c).fit(Z) for c in (client, None)))


def test_threads_of_a_worker_are_divided(client):
    tasks = ClusterTasks(client, Cluster(client))
    assert list(tasks.map(_threads, None, range(5))) == [1] * 5


def _threads(data, item):
    from crfkit._threads import count_threads

    return count_threads(8)


# --- errors and Ctrl-C


def _refused(data, item):
    raise data


@pytest.mark.parametrize("error", [DataError("row 3 is empty", "t.csv", 3), ParameterError("too dense")])
def test_errors_arrive_as_they_were(error, client):
    with pytest.raises(type(error), match=str(error)):
        list(ClusterTasks(client, Cluster(client)).map(_refused, error, range(2)))


def test_other_errors_are_those_of_the_cluster(client):
    with pytest.raises(ClusterError, match="a task failed on a worker: MemoryError: 3 GB"):
        list(ClusterTasks(client, Cluster(client)).map(_refused, MemoryError("3 GB"), range(2)))


def test_ctrl_c_cancels_what_is_pending(client):
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(ClusterTasks(client, Cluster(client)).map(_slow, 0, range(100)))
    deadline = time.monotonic() + 10
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(client.processing().values())


@pytest.mark.parametrize("here", [True, False])
def test_ctrl_c_among_random_halves_keeps_the_edges_of_the_path(here, alone, client):
    found = learner(cluster=None if here else client)

    def interrupt(done, of):
        if done == 2:
            raise KeyboardInterrupt

    found._on_half = interrupt
    with pytest.raises(KeyboardInterrupt):
        found.fit(Y)
    assert found.stability_ == {}
    assert {edge[:2] for edge in found.edges_} == {edge[:2] for edge in alone["stability"].edges_}


# --- parts that go on together


def _summed(data, item, value, state):
    total = (state or 0) + value
    return data[item] * total, total


def test_parts_go_on_together(client):
    arguments = (_summed, [1, 10, 100], range(3), [5, 6, 7])
    tasks = ClusterTasks(client, Cluster(client))
    assert list(tasks.together(*arguments)) == list(Tasks().together(*arguments)) == [
        [5, 50, 500], [11, 110, 1100], [18, 180, 1800]
    ]  # fmt: skip
    assert list(tasks.together(_summed, [1], range(1), [])) == []
    with contextmanager(lambda: (yield tasks.together(*arguments)))() as left:
        assert next(left) == [5, 50, 500]
        left.close()


# --- options


@pytest.mark.parametrize("rule", ["ebic", "path", 20.0])
def test_a_cluster_that_is_not_used(rule):
    with pytest.warns(UserWarning, match=r"cluster is not used with edge_strength=.*'cv' and 'stability'"):
        learner(rule, cluster="tcp://nowhere.invalid:1").fit(Y)


def test_options_are_checked_before_the_cluster_is_asked():
    with pytest.raises(ParameterError, match="n_folds"):
        learner("cv", n_folds=1, cluster="tcp://nowhere.invalid:1").fit(Y)
    with pytest.raises(ParameterError, match="expected an address"):
        learner("cv", cluster="nowhere").fit(Y)


def test_a_clone_has_the_same_cluster(client):
    for cluster in (client, Cluster(client)):
        assert clone(learner(cluster=cluster)).cluster is cluster
    assert clone(learner(n_folds=4)).n_folds == 4


def test_halves_are_counted(client, capsys):
    learner(cluster=client, verbose=1).fit(Y)
    assert "random half 8 of 8" in capsys.readouterr().out


def test_the_command_line(client, alone, tmp_path, monkeypatch, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "m.crf"
    np.savetxt(path, Y[:, [0, 4, 1]], "%d", ",", header="a,b,c", comments="")
    command = ["crfkit", "structure", "learn", path, "-m", model, "-s", "stability", "--refit", "pl", "--threads", 1]
    shares = []
    for more in ([], ["--cluster", client.scheduler.address]):
        monkeypatch.setattr("sys.argv", [*map(str, command), *more])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        shares.append(StructureLearner.load(model).stability_)
        said = capsys.readouterr()
        assert ("random half 50 of 50" in said.err) == bool(more)
    assert shares[0] == shares[1]


# --- faults: the last tests, as workers take a while to come back


def _slow(data, item):
    time.sleep(0.3)
    return data + item


def test_no_workers_are_left():
    local = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0")
    with local as cluster, cluster_tasks(Cluster(cluster, timeout=1.0)) as tasks:
        results = tasks.map(_slow, 100, range(4))
        assert next(results) == 100
        cluster.scale(0)
        with pytest.raises(ClusterError, match="no workers, for 1 s"):
            list(results)


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
    found._on_half = lambda done, of: kill(pids(client)[:1]) if done == 1 else None
    same(found.fit(Y), alone["stability"])


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
