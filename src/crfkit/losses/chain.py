"""Negative log-likelihood of chains: ``Σ_n weight_n · (log Z(x_n) − score(x_n, y_n))``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit.data.sequences import Floats, SequenceData
from crfkit.fields.chain import ChainField
from crfkit.inference.chain import count_threads
from crfkit.protocols import Evaluation


class ChainLikelihood:
    """The loss of a field on labelled sequences; exact."""

    name = "chain likelihood"
    capabilities = frozenset({"smooth", "subset"})

    def __init__(
        self, data: SequenceData, field: ChainField, n_threads: int | None = None, kernels: str = "auto"
    ) -> None:
        self.data = data
        self.field = field
        self._options = (n_threads, kernels)
        self._objective = _core.Objective(data.native, field.native, count_threads(n_threads), kernels)

    @property
    def size(self) -> int:
        return self.field.size

    @property
    def layout(self) -> Mapping[str, slice]:
        return self.field.layout

    def subset(self, ids: ArrayLike) -> ChainLikelihood:
        """The loss of some sequences only; multiply by ``len(data) / len(ids)`` to estimate the whole."""
        return ChainLikelihood(self.data.take(ids), self.field, *self._options)

    def at(self, w: Floats, warm: Evaluation | None = None) -> ChainEvaluation:
        return ChainEvaluation(self._objective, w)


@dataclass(frozen=True, eq=False)
class ChainEvaluation:
    """Value and gradient at w, computed together when either is first asked for."""

    _objective: _core.Objective
    w: Floats

    @cached_property
    def _both(self) -> tuple[float, Floats]:
        gradient = np.empty(len(self.w))
        return self._objective.value_gradient(self.w, gradient), gradient

    @property
    def value(self) -> float:
        return self._both[0]

    @property
    def grad(self) -> Floats:
        return self._both[1]
