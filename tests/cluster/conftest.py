"""A cluster of two processes for all tests of this folder, which --dist worksteal begins in one process."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

pytest.importorskip("distributed.client", reason="the extra crfkit[distributed] is not installed")

_open = ExitStack()
_clients = []


def pytest_collection_modifyitems(items):
    for item in items:
        if "/cluster/" in item.nodeid:  # Dask's own, at the end of clusters
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="module")
def client():
    """Return the one client, whose cluster lasts until another folder's turn: idle workers take time, too."""
    from crfkit.distributed import connect

    if not _clients:
        _clients.append(_open.enter_context(connect("local:2")))
    return _clients[0]


@pytest.fixture
def address():
    """Return the address of a scheduler with a worker; connections to it need no certificate."""
    from distributed import LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, preload=["crfkit.distributed.local_worker"], **options) as cluster:
        yield cluster.scheduler_address


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if nextitem is None or "/cluster/" not in nextitem.nodeid:
        _clients.clear()
        _open.close()
