"""Tests of crfkit.torch: `make test-torch` runs them. Without PyTorch all of them are skipped."""

from __future__ import annotations

import pytest
from optional import INSTALL

pytest.importorskip("torch.nn", reason=f"torch is not installed: {INSTALL['torch']}")

import torch
from layer_cases import COMPILED_CORE, use_plain


@pytest.fixture(params=["compiled", "plain"])
def path(request, monkeypatch):
    """Run a test with the compiled core, where it is there, and in plain PyTorch."""
    if request.param == "plain":
        use_plain(monkeypatch)
    elif not COMPILED_CORE:
        pytest.skip("the compiled core is not there")
    return request.param


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
