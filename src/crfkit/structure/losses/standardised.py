"""A loss with switchable edges whose edge weights are measured in units of their own, as if columns were standardised.

A pair of rare labels has a small score even if one label determines the other: at the fit without edges the gradient by
the coupling of i and j is 2n·cov(s_i, s_j), with the standard deviation 2√n·σ_i·σ_j if they are independent. The loss
of weights u = σ_i·σ_j·w has scores that are comparable, and a penalty of u is one of w with a strength for each edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Floats, Ints, Sparse
from crfkit.protocols import BlockNorm, Capability, Evaluation, GrowingLoss
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.observations import Observations

LEAST_COUNT = 5.0  # a rarer label is scaled as if it had occurred this often


def column_scales(table: Observations) -> Floats:
    """Return [p] the scale of each column: the standard deviation of a binary column as ±1, and of scores.

    A column of more labels has the sum of the standard deviations of their indicators, divided by the same sum for
    equally frequent labels.

    >>> column_scales(Observations.of([[0, 0], [0, 1], [0, 0], [1, 1]] * 5, 2, ising=True)).round(3).tolist()
    [0.866, 1.0]
    """
    n = max(table.total, 1.0)
    shares = np.clip((table.weights @ table.one_hot) / n, 0.0, 1.0)
    least = min(0.5, LEAST_COUNT / n)
    if table.ordinal:
        moments = [np.add.reduceat(shares * table.scores**k, table.state_starts) for k in (1, 2)]
        floor = 2.0 * np.sqrt(least * (1.0 - least)) / (table.n_states - 1.0)  # the next label, seen so often
        deviations: Floats = np.sqrt(np.maximum(moments[1] - np.square(moments[0]), np.square(floor)))
        return (
            deviations if table.single else np.where(table.has_scores, deviations, _of_indicators(table, shares, least))
        )
    return _of_indicators(table, shares, least)


def _of_indicators(table: Observations, shares: Floats, least: float) -> Floats:
    """Return [p] the sums of the standard deviations of indicators."""
    shares = np.clip(shares, least, 1.0 - least)
    found: Floats = np.add.reduceat(np.sqrt(shares * (1.0 - shares)), table.state_starts)
    found /= np.sqrt(table.n_states - 1.0)  # K·√(1/K·(1 − 1/K)) where all are equally frequent
    return found


class StandardisedEdges(GrowingLoss):
    """An :class:`EdgeLoss` in the weights u = scale_i·scale_j·w of edges; the weights of nodes stay unchanged."""

    def __init__(self, loss: EdgeLoss, scales: Floats) -> None:
        self.loss = loss
        self.scales = scales  # [p]
        self.table = loss.table

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def size(self) -> int:
        return self.loss.size

    @property
    def layout(self) -> Mapping[str, slice]:
        return self.loss.layout

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.loss.capabilities - {Capability.LIPSCHITZ, Capability.HESSIAN}

    @property
    def growing(self) -> tuple[str, ...]:
        return self.loss.growing

    @property
    def n_candidates(self) -> int:
        return self.loss.n_candidates

    @property
    def active_ids(self) -> Ints:
        return self.loss.active_ids

    @property
    def block_index(self) -> Ints:
        return self.loss.block_index

    @cached_property
    def factors(self) -> Floats:
        """Return [size] u = factors·w."""
        p = len(self.scales)
        found = np.ones(self.loss.size)
        edge = self.loss.layout["edge"]
        ids = self.loss.block_index[edge]
        found[edge] = self.scales[ids // p] * self.scales[ids % p]
        return found

    def at(self, w: Floats, warm: Evaluation | None = None) -> StandardisedEvaluation:
        inner = warm.inner if isinstance(warm, StandardisedEvaluation) else None
        return StandardisedEvaluation(self.loss.at(w / self.factors, inner), w, self.factors)

    def candidates(self, evaluation: Any, norm: str = BlockNorm.MAX, above: float = 0.0) -> tuple[Ints, Floats]:
        return self.loss.candidates(evaluation.inner, norm, above, self.scales)

    def activate(self, ids: ArrayLike) -> tuple[StandardisedEdges, Ints]:
        larger, place = self.loss.activate(ids)
        return StandardisedEdges(larger, self.scales), place

    def add_candidates(self, pairs: ArrayLike) -> StandardisedEdges:
        return StandardisedEdges(self.loss.add_candidates(pairs), self.scales)

    def carry(self, evaluation: StandardisedEvaluation, place: Ints) -> StandardisedEvaluation | None:
        """Return the evaluation of a loss with fewer edges, where those that are new have weight 0."""
        inner = self.loss.carry(evaluation.inner, place)
        if inner is None:
            return None
        w = np.zeros(self.loss.size)
        w[place] = evaluation.w
        return StandardisedEvaluation(inner, w, self.factors)


class StandardisedEvaluation:
    """An evaluation in other units: derivatives are divided by the factors."""

    def __init__(self, inner: Any, w: Floats, factors: Floats) -> None:
        self.inner, self.w, self._factors = inner, w, factors

    @property
    def value(self) -> float:
        return float(self.inner.value)

    @property
    def grad(self) -> Floats:
        found: Floats = self.inner.grad / self._factors
        return found

    def hessp(self, v: Floats) -> Floats:
        found: Floats = self.inner.hessp(v / self._factors) / self._factors
        return found

    def hess_diag(self) -> Floats:
        found: Floats = self.inner.hess_diag() / np.square(self._factors)
        return found

    def sparse_hessian(self) -> Sparse:
        """Return the Hessian [size, size] as a sparse matrix."""
        from scipy.sparse import diags

        units = diags(1.0 / self._factors)
        return units @ self.inner.sparse_hessian() @ units
