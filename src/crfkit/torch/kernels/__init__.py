"""Triton kernels of chains for CUDA devices; :mod:`crfkit.torch` has the same in plain PyTorch."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch

MOST_LABELS = 256


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None


def interpreted() -> bool:
    """Return whether Triton runs kernels on the CPU, slowly, to test them."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def usable(device: torch.device, n_labels: int) -> bool:
    """Return whether the kernels can compute chains of so many labels on a device."""
    return (device.type == "cuda" or interpreted()) and has_triton() and n_labels <= MOST_LABELS


def why_not(n_labels: int) -> str:
    """Return why they cannot on a CUDA device, in words."""
    if not has_triton():
        return "Triton is not installed; pip install triton"
    return f"the kernels take at most {MOST_LABELS} labels, and there are {n_labels}"


def padded(n_labels: int) -> int:
    """Return the width of tables in registers: 32, 64, 128 or 256 labels."""
    return next(width for width in (32, 64, 128, MOST_LABELS) if n_labels <= width)
