"""Fixtures and hypothesis profiles shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"

# Derandomised: a run fails or passes whatever the day; `--hypothesis-profile=explore` looks further.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", parent=settings.get_profile("steady"), derandomize=False, max_examples=1000)
settings.load_profile("steady")


def _directory(path: Path) -> Path:
    if not path.is_dir():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Corpora that are not part of the repository."""
    return _directory(SHARED / "data")


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """What CRF++ and Wapiti printed; not part of the repository."""
    return _directory(SHARED / "reference")


def pytest_configure() -> None:
    """Enter the toy members of tests/recipes in the registries before tests are collected, if asked to."""
    if os.environ.get("CRFKIT_RECIPES"):
        from recipes.registered import register

        register()
