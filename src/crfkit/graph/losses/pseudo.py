"""Pseudo-likelihood: every node given the labels of its neighbours (Besag 1975). Exact, convex and without inference.

loss = Σ_i weight_i · (log Σ_k exp c_i(k) − c_i(y_i)),    c_i(k) = U_i(k) + Σ_{j ∈ N(i)} P_ij(k, y_j)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._threads import count_threads
from crfkit._types import Features, Floats
from crfkit.graph.data import GraphData
from crfkit.graph.fields.basis import native_basis
from crfkit.graph.losses.labelled import LabelledLoss
from crfkit.graph.losses.pseudo_table import pseudo_table
from crfkit.protocols import Capability, Evaluation
from crfkit.protocols.field_loss import LazyEvaluation


class PseudoLikelihood(LabelledLoss):
    """The negative log-pseudo-likelihood of fully labelled graphs.

    >>> from crfkit import Graph, GraphData
    >>> from crfkit.graph.fields.field import tied_field
    >>> data = GraphData.make(Graph.grid((2, 2)), labels=np.array([0, 0, 1, 1]))
    >>> loss = PseudoLikelihood(data, tied_field(data, 2, "ising", "ising"))
    >>> round(float(loss.at(np.zeros(loss.size)).value / np.log(2)), 12)
    4.0
    """

    name = "pseudo-likelihood"
    sees_neighbours = held_out_strength = True
    rows = "distinct"
    capabilities = frozenset(
        {Capability.SMOOTH, Capability.HESSP, Capability.HESS_DIAG, Capability.SUBSET, Capability.LIPSCHITZ}
    )

    def at(self, w: Floats, warm: Evaluation | None = None) -> PseudoEvaluation:
        return PseudoEvaluation(self, w)

    def subset(self, ids: ArrayLike) -> PseudoLikelihood:
        """The loss of some graphs only."""
        part = super().subset(ids)
        part.__dict__["_table"] = None  # evaluated once, mostly: a table is not worth its making
        return part

    @cached_property
    def _table(self) -> _core.PseudoTable | None:
        return pseudo_table(self.data, self.field, self.labels)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_table"}

    def lipschitz(self) -> float:
        """A bound of the Hessian's eigenvalues at every w, so of how fast the gradient changes.

        The covariance of a node's label is at most ½(I − 11ᵀ/K) for K states (Böhning 1992), which for two is the
        covariance at w = 0. The largest eigenvalue of the Hessian with that in its place is found to 0.1% and raised
        by 1%.
        """
        allowed = self.field.potentials(self.data, np.zeros(self.size)).allowed
        states = allowed.sum(axis=1)
        # K/2 times the covariance of the uniform distribution: (I − 11ᵀ/K)/K
        p, weights = allowed / states[:, None], self.data.node_weights * states / 2
        return 1.01 * largest_eigenvalue(lambda v: self._hessp(v, p, weights), self.size)

    def _hessp(self, v: Floats, p: Floats, weights: Floats) -> Floats:
        """Σ_i weight_i A_iᵀ (diag p_i − p_i p_iᵀ) A_i v, where c_i = A_i w."""
        direction = self.field.potentials(self.data, v)
        nodes, edges = _core.pseudo_tangent(
            self.data.graph.native,
            direction.unary,
            direction.coefficients,
            native_basis(direction.basis),
            self.labels,
            weights,
            p,
            count_threads(self.n_threads),
        )
        return self.field.adjoint(self.data, nodes, edges)

    @cached_property
    def _squared(self) -> GraphData:
        """The data with squared features, for hess_diag: kept, as much memory again as the features."""
        return replace(
            self.data,
            node_features=_square(self.data.node_features),
            edge_features=_square(self.data.edge_features),
        )


class PseudoEvaluation(LazyEvaluation):
    """A pseudo-likelihood at w; value and gradient are computed together when either is first needed."""

    def _evaluate(self) -> tuple[float, Floats]:
        loss = self._loss
        if loss._table is not None:
            both: tuple[float, Floats] = loss._table.value(self.w, count_threads(loss.n_threads))
            return both
        value, self.conditionals, nodes, edges = self._nodes_and_edges()
        return value, loss.field.adjoint(loss.data, nodes, edges)

    def _nodes_and_edges(self) -> tuple[float, Floats, Floats, Floats]:
        """(the loss, conditionals, its derivatives by unary potentials and by coefficients)"""
        return _core.pseudo_value(*self._loss.native_arrays(self.w))

    @cached_property
    def conditionals(self) -> Floats:
        """[n, K] p(y_i = k | the labels of the neighbours)."""
        return self._nodes_and_edges()[1]

    def hessp(self, v: Floats) -> Floats:
        """∇²loss(w)·v."""
        product: Floats = self._loss._hessp(v, self.conditionals, self._loss.data.node_weights)
        return product

    def hess_diag(self) -> Floats:
        """The diagonal as if the edges of a node were independent; exact for node weights, and if no node has two."""
        loss, p = self._loss, self.conditionals
        field, data = loss.field, loss.data
        basis, threads = native_basis(field.edge_basis), count_threads(loss.n_threads)
        edges = _core.pseudo_variances(data.graph.native, basis, loss.labels, data.node_weights, p, threads)
        nodes = p * (1 - p) * data.node_weights[:, None]
        if field.node_form == "ising":  # Var ±1 = 4 p(1−p); the adjoint takes − first + second
            nodes[:, 0] = 0.0
            nodes[:, 1] *= 4.0
        diagonal: Floats = field.adjoint(loss._squared, nodes, edges)
        return diagonal


def _square(features: Features) -> Features:
    return np.square(features) if isinstance(features, np.ndarray) else features.power(2)


def largest_eigenvalue(product: Callable[[Floats], Floats], size: int, tolerance: float = 1e-3) -> float:
    """Return the largest eigenvalue of a positive semidefinite operator (Lanczos, orthogonalised twice).

    The largest eigenvalue θ of the tridiagonal matrix rises to the largest one; β|s_m| bounds its residual.
    """
    v = np.random.default_rng(0).standard_normal(size)
    basis: list[Floats] = []
    diagonal: list[float] = []
    beside: list[float] = []
    top = 0.0
    length = float(np.linalg.norm(v))
    while length > 0 and len(basis) < min(size, 200):
        basis.append(v / length)
        v = product(basis[-1])
        diagonal.append(float(basis[-1] @ v))
        Q = np.array(basis)
        for _ in range(2):
            v -= Q.T @ (Q @ v)
        length = float(np.linalg.norm(v))
        values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
        residual = length * abs(float(vectors[-1, -1]))
        top = float(values[-1]) + residual
        if residual <= tolerance * top:
            break
        beside.append(length)
    return max(top, 0.0)
