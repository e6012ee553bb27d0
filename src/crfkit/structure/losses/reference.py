"""Pseudo-likelihood of a table in the reference form of Xue & Zhang (2016).

The last state of a variable and the pair of last states of an edge have no weights: v_{i,K} = 0 and w_{ij,KK} = 0, so
a binary variable has one set of weights and an edge between two of them three tables. The loss equals the full form
with these weights fixed at 0, and so do value, gradient and Hessian at the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from crfkit._types import Floats, Ints
from crfkit.protocols import Evaluation
from crfkit.structure.losses.evaluation import StructureEvaluation
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood


class ReferencePseudoLikelihood(StructurePseudoLikelihood):
    """The negative log-pseudo-likelihood of a table in the reference form, given its active edges.

    >>> from crfkit.structure.observations import Observations
    >>> table = Observations.of([[0, 0], [1, 1], [1, 1]], [2, 2], reference=True)
    >>> loss = ReferencePseudoLikelihood(table, active=[1])
    >>> loss.size, loss.at(np.zeros(5)).grad.tolist()  # v_1, v_2, w_00, w_01, w_10
    (5, [0.5, 0.5, -1.0, 1.5, 1.5])
    """

    @cached_property
    def full(self) -> StructurePseudoLikelihood:
        """Return the loss of full tables with the same edges."""
        return StructurePseudoLikelihood(self.table.full, self._allowed, self.active_ids)

    @cached_property
    def kept(self) -> Ints:
        """Return [size] the place of each weight among those of full tables."""
        own, full = self.field, self.full.field
        nodes = np.repeat(own.node_active[full.node_active], full.n_node_features)
        edges = np.repeat(own.edge_active[full.edge_active], full.n_edge_features)
        return np.flatnonzero(np.concatenate([nodes, edges]))

    def expanded(self, w: Floats) -> Floats:
        """Return the weights of full tables, 0 where the reference form has none."""
        found = np.zeros(self.full.size)
        found[self.kept] = w
        return found

    def at(self, w: Floats, warm: Evaluation | None = None) -> ReferenceEvaluation:
        return ReferenceEvaluation(self, w)

    def linear(self, w: Floats) -> Callable[[slice], Floats]:
        return self.full.linear(self.expanded(w))

    def _hessp(self, v: Floats, p: Floats, scale: Floats | None = None) -> Floats:
        found: Floats = self.full._hessp(self.expanded(v), p, scale)[self.kept]
        return found

    def _pair_gradient(self, evaluation: ReferenceEvaluation) -> Floats:
        return evaluation.pairs * self.table.weighted_pairs


class ReferenceEvaluation(StructureEvaluation):
    """The pseudo-likelihood at w; `pairs` and `curvature` are those of full tables."""

    _loss: ReferencePseudoLikelihood

    @cached_property
    def _full(self) -> StructureEvaluation:
        return self._loss.full.at(self._loss.expanded(self.w))

    @cached_property
    def _both(self) -> tuple[float, Floats]:
        return self._full._both

    @cached_property
    def _gradients(self) -> tuple[Floats, Floats]:
        return self._full._gradients

    @property
    def grad(self) -> Floats:
        found: Floats = self._full.grad[self._loss.kept]
        return found

    def hessp(self, v: Floats) -> Floats:
        found: Floats = self._full.hessp(self._loss.expanded(v))[self._loss.kept]
        return found

    def carried(self, loss: StructurePseudoLikelihood, w: Floats) -> StructureEvaluation:
        found = loss.at(w)
        found.__dict__.update(_both=self._both, _gradients=self._gradients)
        return found

    def hess_diag(self) -> Floats:
        found: Floats = self._full.hess_diag()[self._loss.kept]
        return found

    def hessian(self) -> Floats:
        kept = self._loss.kept
        found: Floats = self._full.hessian()[np.ix_(kept, kept)]
        return found
