"""Fixtures and hypothesis profiles shared by all tests."""

from __future__ import annotations

import gc
import random
from pathlib import Path

import cores  # noqa: F401 - chooses them, before NumPy is loaded
import pytest
from hypothesis import HealthCheck, settings
from optional import SHARED
from recipes.registered import register

from crfkit.files import atomic as files

files.WAIT = 0.0  # seconds: tests damage thousands of files, and nobody is in the middle of writing them

# Derandomised: a run fails or passes whatever the day. `make explore` looks further.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", parent=settings.get_profile("steady"), derandomize=False, max_examples=200, print_blob=True
)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of corpora, such as conll2000/train.txt."""
    return SHARED / "data"


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """Return the folder of what CRF++ and Wapiti printed."""
    return SHARED / "reference"


def pytest_collection() -> None:
    """Collect no garbage among the thousands of tests and what they share: none of it is, and looking takes seconds."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure() -> None:
    """Enter the toy members of tests/recipes in the registries before tests are collected: every suite tests them."""
    register()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Explore in an order that the seed makes, so that a limit of time does not leave out the same tests each day."""
    if config.getoption("--hypothesis-profile") == "explore":
        random.Random(str(config.getoption("--hypothesis-seed"))).shuffle(items)
