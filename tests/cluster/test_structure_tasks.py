"""Structure learning on a cluster: the same edges, shares and scores as without one, whatever happens to workers."""

from __future__ import annotations

import _thread
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from structure_cases import planted

from crfkit import StructureLearner
from crfkit.cli.main import main
from crfkit.distributed import Cluster
from crfkit.distributed.tasks import ClusterTasks, cluster_tasks
from crfkit.errors import ClusterError, DataError, ParameterError
from crfkit.training.tasks import Tasks

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

Y, _ = planted(0, p=6, n_edges=5, rows=300)


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


def _slow(data, item):
    time.sleep(0.3)
    return data + item


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

    with pytest.raises(KeyboardInterrupt):
        found.fit(Y, on_half=interrupt)
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


def test_the_command_line(address, alone, tmp_path, monkeypatch, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "m.crf"
    np.savetxt(path, Y[:, [0, 4, 1]], "%d", ",", header="a,b,c", comments="")
    command = ["crfkit", "structure", "learn", path, "-m", model, "-s", "stability", "--refit", "pl", "--threads", 1]
    shares = []
    for more in ([], ["--cluster", address]):
        monkeypatch.setattr("sys.argv", [*map(str, command), *more])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        shares.append(StructureLearner.load(model).stability_)
        said = capsys.readouterr()
        assert ("random half 50 of 50" in said.err) == bool(more)
    assert shares[0] == shares[1]


def test_no_workers_are_left():
    local = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0")
    with local as cluster, cluster_tasks(Cluster(cluster, timeout=1.0)) as tasks:
        results = tasks.map(_slow, 100, range(4))
        assert next(results) == 100
        cluster.scale(0)
        with pytest.raises(ClusterError, match="no workers, for 1 s"):
            list(results)
