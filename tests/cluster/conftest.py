"""A cluster of two processes for all tests of this folder."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed.client", reason="the extra crfkit[distributed] is not installed")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    for item in items:
        if "/cluster/" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("cluster"))  # in one process, which has one cluster
            # Dask's own, at the end of clusters
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="session")
def client():
    from crfkit.distributed import connect

    with connect("local:2") as client:
        yield client
