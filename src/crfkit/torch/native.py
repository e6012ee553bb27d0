"""The compiled core on tensors of the CPU. The functions return None where it is not there or the tensors are elsewhere."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from crfkit.torch.recursions import Beliefs


@cache
def available() -> bool:
    """Return whether the compiled core is there."""
    return False


def beliefs(u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor) -> Beliefs | None:
    return None


def viterbi(u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor] | None:
    return None


def nbest(
    u: Tensor, start: Tensor, P: Tensor, end: Tensor, lengths: Tensor, n: int
) -> list[list[tuple[list[int], float]]] | None:
    return None
