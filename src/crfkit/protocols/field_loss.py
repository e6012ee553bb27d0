"""The base of losses of a field."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from crfkit._types import Floats
from crfkit.errors import CapabilityError
from crfkit.protocols import Capability, Loss


class FieldLoss(Loss):
    """A loss whose weights belong to a field."""

    name: str
    capabilities: frozenset[Capability]
    field: Any

    @property
    def size(self) -> int:
        return int(self.field.size)

    @property
    def layout(self) -> Mapping[str, slice]:
        layout: Mapping[str, slice] = self.field.layout
        return layout


class LazyEvaluation(ABC):
    """A loss at w; value and gradient are computed together when either is first needed."""

    def __init__(self, loss: FieldLoss, w: Floats) -> None:
        self.w = w
        self._loss: Any = loss
        self._both: tuple[float, Floats] | None = None

    @abstractmethod
    def _evaluate(self) -> tuple[float, Floats]:
        """(value, gradient)."""

    @property
    def value(self) -> float:
        if self._both is None:
            self._both = self._evaluate()
        return self._both[0]

    @property
    def grad(self) -> Floats:
        if self._both is None:
            self._both = self._evaluate()
        return self._both[1]

    def hessp(self, v: Floats) -> Floats:
        raise CapabilityError(f"the {self._loss.name} has no hessp")

    def hess_diag(self) -> Floats:
        raise CapabilityError(f"the {self._loss.name} has no hess_diag")
