"""A cluster of two processes for all tests of this folder."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed.client", reason="the extra crfkit[distributed] is not installed")


def pytest_collection_modifyitems(items):
    for item in items:
        if "/cluster/" in item.nodeid:  # Dask's own, at the end of clusters whose workers were killed
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="session")
def client():
    from crfkit.distributed import connect

    with connect("local:2") as client:
        yield client
