"""A pseudo-likelihood of a table at one point: value, gradient and curvature, each computed when needed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crfkit._types import Floats, Sparse
from crfkit.structure.losses.ising_table import IsingTerms

if TYPE_CHECKING:
    from crfkit.structure.losses.pseudo import StructurePseudoLikelihood


class StructureEvaluation:
    """A pseudo-likelihood at w. The value takes one product of matrices, the gradient another, each when needed."""

    def __init__(self, loss: StructurePseudoLikelihood, w: Floats) -> None:
        self._loss = loss
        self.w = w

    @cached_property
    def _both(self) -> tuple[float, Floats]:
        """Return (value, [m, S] probabilities: of states, or in the Ising form of the state that is not the row's)."""
        loss = self._loss
        table, logits = loss.table, loss.linear(self.w)
        p, value = np.empty((table.indicators if table.ising else table.one_hot).shape), 0.0
        for rows in loss.blocks:
            ready = self._ising_block if table.ising else self._block
            value += ready(rows, logits(rows), p[rows])
        return value, p

    def _ising_block(self, rows: slice, L: Floats, p: Floats) -> float:
        """Write p of some rows, and return their part of the value."""
        table = self._loss.table
        L *= table.indicators[rows]
        L *= -2.0
        e = np.abs(L)
        np.negative(e, out=e)
        np.exp(e, out=e)
        q = 1.0 + e
        np.divide(np.where(L > 0, 1.0, e), q, out=p)
        np.maximum(L, 0.0, out=L)
        total = L.sum(axis=1)
        for first in range(0, q.shape[1], 512):  # Σ log(1 + e) as one logarithm: products of numbers up to 2
            total += np.log(q[:, first : first + 512].prod(axis=1))
        return float(table.weights[rows] @ total)

    def _block(self, rows: slice, L: Floats, p: Floats) -> float:
        table = self._loss.table
        K = table.n_states
        L -= np.repeat(np.maximum.reduceat(L, table.state_starts, axis=1), K, axis=1)
        scores = np.einsum("ms,ms->m", L, table.one_hot[rows])
        np.exp(L, out=L)
        z = np.add.reduceat(L, table.state_starts, axis=1)
        np.divide(L, np.repeat(z, K, axis=1), out=p)
        return float(table.weights[rows] @ (np.log(z).sum(axis=1) - scores))

    @property
    def value(self) -> float:
        return self._both[0]

    @cached_property
    def _gradients(self) -> tuple[Floats, Floats]:
        """Return the gradient by weights of nodes and by couplings [F, S, S], from the derivative R by the logits."""
        loss, p = self._loss, self._both[1]
        table, D, X, Q = loss.table, loss.table.indicators, loss.table.features, loss.table.own_columns
        nodes, pairs = np.zeros(loss.field.n_node_weights), np.zeros((sum(table.edge_parts), *2 * D.shape[1:]))
        for rows in loss.blocks:
            c, x = table.weights[rows, None], X[rows] if table.has_inputs else X
            R = (-2.0 * c) * p[rows] * D[rows] if table.ising else c * (p[rows] - D[rows])
            nodes += loss.node_gradient(R, x, Q[:, rows])
            loss.add_pair_sums(R, D[rows], x, Q[:, rows], pairs)
        return nodes, loss.both_ways(pairs)

    @property
    def pairs(self) -> Floats:
        """Return [F, S, S] the gradient by all couplings."""
        return self._gradients[1]

    @property
    def grad(self) -> Floats:
        return self._loss.packed(*self._gradients)

    def carried(self, loss: StructurePseudoLikelihood, w: Floats) -> StructureEvaluation:
        """Return the same of a loss with more edges, of weight 0."""
        found = StructureEvaluation(loss, w)
        found.__dict__.update(_both=self._both, _gradients=self._gradients)
        return found

    @property
    def curvature(self) -> Floats:
        """Return [S, m] p(1 − p) of every state, ·4 in the Ising form, with the weights of rows."""
        table, p = self._loss.table, self._both[1].T
        return np.asarray((4.0 if table.ising else 1.0) * table.weights * p * (1.0 - p))

    def hessp(self, v: Floats) -> Floats:
        return self._loss._hessp(v, self._both[1])

    def hess_diag(self) -> Floats:
        """Return the diagonal: Σ weight · feature² · p(1 − p) · indicator²."""
        loss, p = self._loss, self._both[1]
        table = loss.table
        X, Q = np.square(table.features), np.square(table.own_columns)
        R = (4.0 if table.ising else 1.0) * table.weights[:, None] * p * (1.0 - p)
        return loss.packed(loss.node_gradient(R, X, Q), loss.pair_sums(R, np.square(table.indicators), X, Q))

    def hessian(self) -> Floats:
        """Return the Hessian [size, size], dense. Variable i sees Z_i = X ⊗ [1, indicators of its neighbours]:
        Σ_n c_n (p_a δ_ab − p_a p_b) Z_i Z_iᵀ for its states a, b."""
        loss, (_, p) = self._loss, self._both
        table, size = loss.table, loss.size
        H = np.zeros((size, size))
        for i in range(table.n_variables):
            Z, index = loss.neighbourhood(i)  # [q, m]
            first = int(table.starts[i])
            P = p[:, first : first + len(index)].T
            for a in range(len(index)):
                for b in range(a, len(index)):
                    curvature = 4.0 * P[0] * (1.0 - P[0]) if table.ising else P[a] * ((a == b) - P[b])
                    block = (Z * (table.weights * curvature)) @ Z.T
                    H[np.ix_(index[a], index[b])] += block
                    if a != b:
                        H[np.ix_(index[b], index[a])] += block.T
        return H

    def sparse_hessian(self) -> Sparse:
        """Return the same as a sparse matrix."""
        from scipy.sparse import csr_matrix

        return csr_matrix(self.hessian())

    @property
    def conditionals(self) -> list[Floats]:
        """Return p(y_i = k | the other variables) of every variable, [m, K] each."""
        table, p = self._loss.table, self._both[1]
        if not table.ising:
            return np.split(p, table.state_starts[1:].tolist(), axis=1)
        up = np.where(table.states == 1, 1.0 - p, p)
        return [np.stack([1.0 - q, q], axis=1) for q in up.T]


class SparseEvaluation(StructureEvaluation):
    """The same of a binary table with few edges, where value and gradient cost edges·rows (:mod:`ising_table`)."""

    @cached_property
    def terms(self) -> IsingTerms:
        layout = self._loss.field.layout
        return IsingTerms(self._loss.neighbours, self.w[layout["node"]], self.w[layout["edge"]])

    @property
    def value(self) -> float:
        return self.terms.value

    @cached_property
    def _both(self) -> tuple[float, Floats]:
        return self.terms.value, self.terms.q.T

    @cached_property
    def _gradients(self) -> tuple[Floats, Floats]:
        return self.terms.gradient[0], self.terms.pair_gradient()[None]

    @property
    def grad(self) -> Floats:
        known = self.__dict__.get("_gradients")  # of all pairs
        return np.concatenate(self.terms.gradient) if known is None else self._loss.packed(*known)

    def carried(self, loss: StructurePseudoLikelihood, w: Floats) -> StructureEvaluation:
        if not loss.sparse:
            return super().carried(loss, w)
        found = SparseEvaluation(loss, w)
        found.__dict__.update(_gradients=self._gradients)
        found.terms.__dict__.update(value=self.terms.value)
        return found

    @property
    def curvature(self) -> Floats:
        return self.terms.curvature

    def sparse_hessian(self) -> Sparse:
        """Return the Hessian [size, size] as a sparse matrix."""
        return self.terms.hessian()

    def hessian(self) -> Floats:
        return np.asarray(self.sparse_hessian().toarray())
