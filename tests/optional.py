"""Packages and programs that some tests need: where one is missing, the skipped test says how to install it."""

from __future__ import annotations

from types import ModuleType

import pytest

# Where a package is not among the development tools, what brings it. All others come with `pip install -e '.[dev]'`.
INSTALL = {
    "cvxpy": "pip install cvxpy",
    "cv2": "pip install opencv-python-headless",
    "torch": "pip install torch",
}


def optional(module: str) -> ModuleType:
    """Return the module; skip the test, or the whole file, if it is not installed."""
    package = module.split(".")[0]
    command = INSTALL.get(package, "pip install -e '.[dev]'")
    return pytest.importorskip(module, reason=f"{package} is not installed: {command}")
