"""Devices by name: which tensors to compute with, and clear errors where that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch

from crfkit.errors import LimitError, ParameterError

_NAMES = re.compile(r"(?:torch:)?(cpu|cuda(?::\d+)?)")


def find_device(name: str | torch.device) -> torch.device:
    """Return the device of a name: "cuda", "cuda:1", or "torch:cpu" for tensors in main memory.

    >>> find_device("torch:cpu")
    device(type='cpu')
    """
    found = _NAMES.fullmatch(str(name))
    if found is None:
        raise ParameterError(f"unknown device {str(name)!r}; expected 'cuda', 'cuda:1' or 'torch:cpu'")
    device = torch.device(found[1])
    if device.type == "cuda":
        return _cuda(device)
    return device


def _cuda(device: torch.device) -> torch.device:
    if not torch.cuda.is_available():
        why = (
            f"this PyTorch ({torch.__version__}) was built without CUDA"
            if torch.version.cuda is None
            else "PyTorch finds no CUDA device"
        )
        raise ParameterError(
            f"the device {str(device)!r} cannot be used: {why}. Install a CUDA build of PyTorch on a machine with an "
            "NVIDIA GPU, or drop the device to train on the CPU"
        )
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise ParameterError(
            f"the device {str(device)!r} does not exist; there are {torch.cuda.device_count()} CUDA devices, numbered "
            "from 0"
        )
    return torch.device("cuda", index)


@contextmanager
def enough_memory(device: torch.device, what: str, advice: str) -> Iterator[None]:
    """Compute on the device inside the block, also by kernels.

    Raise LimitError with what is free on the device and `advice` if it runs out of memory.
    """
    current = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    try:
        with current:
            yield
    except torch.cuda.OutOfMemoryError as error:
        free = ""
        if device.type == "cuda":
            left, total = torch.cuda.mem_get_info(device)
            free = f" ({left / 2**30:.1f} of {total / 2**30:.1f} GiB are free)"
        raise LimitError(f"the device {device} has too little memory for {what}{free}; {advice}") from error
