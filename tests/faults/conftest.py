"""Warnings of Dask at the end of clusters whose workers were killed."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "/faults/test_lost_" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
