"""A loss of some of the weights, with the others held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crfkit.errors import CapabilityError
from crfkit.protocols import Capability, Evaluation, GrowingLoss, Vector


class Restricted(GrowingLoss):
    """``v ↦ loss(w with v at index)``"""

    capabilities = frozenset({Capability.SMOOTH, Capability.CANDIDATES})

    def __init__(self, loss: Any, w: Vector, index: Any) -> None:
        self.loss = loss
        self.w = w
        self.index = index

    @property
    def name(self) -> str:
        return f"{self.loss.name} of some weights"

    @property
    def size(self) -> int:
        return len(self.index)

    @property
    def layout(self) -> Mapping[str, slice]:
        """The parts of the whole, as far as they are among the weights; the index ascends."""
        ends = {name: np.searchsorted(self.index, [part.start, part.stop]) for name, part in self.loss.layout.items()}
        return {name: slice(int(first), int(last)) for name, (first, last) in ends.items()}

    @property
    def growing(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self.loss.growing
        return names

    @property
    def block_index(self) -> Any:
        return self.loss.block_index[self.index]

    def at(self, v: Vector, warm: Any = None) -> RestrictedEvaluation:
        w = 1.0 * self.w
        w[self.index] = v
        return RestrictedEvaluation(w, self.loss.at(w, None if warm is None else warm.whole), self.index)


class RestrictedEvaluation:
    def __init__(self, w: Vector, whole: Evaluation, index: Any) -> None:
        self.w = w
        self.whole = whole
        self.value = whole.value
        self.grad = whole.grad[index]

    def hessp(self, v: Vector) -> Vector:
        raise CapabilityError("a loss of some of the weights has no hessp")

    def hess_diag(self) -> Vector:
        raise CapabilityError("a loss of some of the weights has no hess_diag")
