"""Fixtures and hypothesis profiles shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent
# Corpora, and what other programs printed on them, are not part of the repository. Tests that need them have twins on
# generated data, which run everywhere.
SHARED = Path(os.environ.get("CRFKIT_SHARED") or REPOSITORY.parent / "shared")

# Derandomised: a run fails or passes whatever the day; `--hypothesis-profile=explore` looks further.
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", parent=settings.get_profile("steady"), derandomize=False, max_examples=1000)
settings.load_profile("steady")


def _directory(path: Path, what: str) -> Path:
    if not path.is_dir():
        pytest.skip(f"{path} is not there: set CRFKIT_SHARED to a folder with {what}; twins on generated data run")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of corpora, such as conll2000/train.txt."""
    return _directory(SHARED / "data", "data/conll2000")


@pytest.fixture(scope="session")
def shared_reference() -> Path:
    """Return the folder of what CRF++ and Wapiti printed."""
    return _directory(SHARED / "reference", "data/conll2000 and reference")


def pytest_configure() -> None:
    """Enter the toy members of tests/recipes in the registries before tests are collected, if asked to."""
    if os.environ.get("CRFKIT_RECIPES"):
        from recipes.registered import register

        register()
