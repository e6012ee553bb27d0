"""Packages and files that some tests need: where one is missing, the skipped test says how to get it."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest

# Corpora, and what other programs printed on them, are not part of the repository. Tests that need them have twins on
# generated data, which run everywhere.
SHARED = Path(os.environ.get("CRFKIT_SHARED") or Path(__file__).resolve().parents[2] / "shared")

# Where a package is not among the development tools, what brings it. All others come with `pip install -e '.[dev]'`.
INSTALL = {
    "cvxpy": "pip install cvxpy",
    "cv2": "pip install opencv-python-headless",
    "torch": "pip install -e '.[torch]', or make test-torch",
}


def optional(module: str) -> ModuleType:
    """Return the module; skip the test, or the whole file, if it is not installed."""
    package = module.split(".")[0]
    command = INSTALL.get(package, "pip install -e '.[dev]'")
    return pytest.importorskip(module, reason=f"{package} is not installed: {command}")


def shared_is_there() -> bool:
    return (SHARED / "data").is_dir() and (SHARED / "reference").is_dir()


def need_shared(twin: str) -> None:
    """Skip the test, or the whole file, without the corpora; `twin` says where its claims are tested on other data."""
    if not shared_is_there():
        pytest.skip(
            f"CoNLL-2000 and what others printed on it are not there: set CRFKIT_SHARED to a folder with data/ and "
            f"reference/. Without them, {twin} checks the same on generated data",
            allow_module_level=True,
        )
