"""`cluster="local:N"`: ports on the loopback interface, certificates, and processes that end while they start."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil
import pytest

from crfkit import ChainCRF
from crfkit.distributed import cluster as clusters
from crfkit.distributed import connect, shards
from crfkit.errors import ClusterError

distributed = pytest.importorskip("distributed")
X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"], ["w=barks"]]] * 20
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]] * 20

UNGUARDED = """
from crfkit import ChainCRF
ChainCRF(cluster="local:1").fit([[["a"], ["b"]]], [["x", "y"]])
"""


def processes():
    """This process and those that it has started."""
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def listening():
    return {
        connection.laddr
        for process in processes()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def test_every_port_is_on_the_loopback_interface():
    before = listening()
    with connect("local:2") as client:
        opened = listening() - before
        assert len(opened) >= 3  # the scheduler and the workers, at least
        assert {address.ip for address in opened} <= {"127.0.0.1", "::1"}
        assert client.submit(sum, [1, 2]).result() == 3


def test_a_stranger_is_refused():
    with connect("local:1") as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        workers = list(client.scheduler_info()["workers"])
        assert all(worker.startswith("tls://127.0.0.1:") for worker in workers)
        strange = distributed.Security.temporary()
        for security in (None, strange):
            other = address if security else address.replace("tls://", "tcp://")
            with pytest.raises((OSError, TypeError)):
                distributed.Client(other, security=security, timeout=2, set_as_default=False)


def test_no_port_answers_over_http():
    with connect("local:1") as client:
        for port in client.scheduler_info()["services"].values():
            import http.client

            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            assert connection.getresponse().status == 404
            connection.close()


def test_a_start_that_fails_is_repeated(monkeypatch):
    made, real = [], distributed.LocalCluster

    def failing(**options):
        made.append(options)
        if len(made) < 3:
            raise RuntimeError("Nanny failed to start.")
        return real(**options)

    monkeypatch.setattr(distributed, "LocalCluster", failing)
    with connect("local:1") as client:
        assert client.submit(sum, [1, 2]).result() == 3
    assert len(made) == 3


def test_a_start_that_always_fails_says_nothing_of_scripts(monkeypatch):
    made = []

    def failing(**options):
        made.append(options)
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", failing)
    with pytest.raises(ClusterError, match="ended 5 times while they started") as raised, connect("local:1"):
        pass
    assert "__main__" not in str(raised.value)
    assert len(made) == clusters.START_ATTEMPTS


def test_a_script_that_its_workers_import_is_told_so(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "import the script that starts them; put the call under if __name__ == '__main__':" in done.stderr


def test_versions_are_asked_for_again_when_a_worker_is_lost(monkeypatch):
    with connect("local:1") as client:
        asked, run = [], client.run

        def losing(function):
            asked.append(function)
            if len(asked) == 1:
                raise OSError("Timed out trying to connect to tls://127.0.0.1:1")
            return run(function)

        monkeypatch.setattr(client, "run", losing)
        clusters._check_workers(client, 15.0)
        assert len(asked) == 2


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=lambda how: how.name)
def test_data_sent_to_a_worker_that_does_not_answer_are_sent_to_another(how, monkeypatch):
    """It has gone, or it is stopped and the scheduler still knows it. Dask would wait for it until the time limit."""
    monkeypatch.setattr(shards, "PING_TIMEOUT", 2.0)
    expected = ChainCRF().fit(X, Y).result_.value
    with connect("local:2") as client:
        pids, lost, scatter = client.run(os.getpid), [], client.scatter

        def losing(data, workers, **options):
            if lost:
                return scatter(data, workers=workers, **options)
            lost.append(workers[0])
            os.kill(pids[workers[0]], how)
            return asyncio.sleep(500)

        monkeypatch.setattr(client, "scatter", losing)
        begin = time.monotonic()
        try:
            crf = ChainCRF(cluster=client).fit(X, Y)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pids[lost[0]], signal.SIGCONT)
    assert time.monotonic() - begin < 100
    assert crf.result_.value == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_worker_is_killed_in_the_first_seconds(seed, capfd):
    expected = ChainCRF().fit(X, Y).result_.value
    delay, before = random.Random(seed).uniform(0.0, 3.0), {process.pid for process in processes()}

    def kill():
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for process in processes():
                with suppress(psutil.Error):
                    if process.pid not in before and "spawn_main" in " ".join(process.cmdline()):
                        time.sleep(delay)
                        process.kill()
                        return
            time.sleep(0.01)

    threading.Thread(target=kill, daemon=True).start()
    crf = ChainCRF(cluster="local:3").fit(X, Y)
    assert crf.result_.value == pytest.approx(expected, rel=1e-6)
    assert "Traceback" not in capfd.readouterr().err
