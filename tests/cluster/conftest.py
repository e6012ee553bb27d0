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


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if nextitem is None or "/cluster/" not in nextitem.nodeid:
        _clients.clear()
        _open.close()
