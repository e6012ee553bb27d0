"""Pseudo-likelihood of a table whose graph is to be learnt: all variables at once, by matrix products.

    loss = Σ_n c_n Σ_i (log Σ_k exp L_n,ik − L_n,iy)        L = X Vᵀ + Σ_f X_f ⊙ (D W_f)

D [m, S] are indicators of states, W_f [S, S] the couplings of feature f: symmetric, 0 within a variable. With R the
derivative by L, the gradient by the couplings is Dᵀ(X_f ⊙ R) plus its transpose: of all edges, active or not, at once.
Features of variables, Q_f [m, S] by the columns of D, add Q_f ⊙ (D A_f) + (D ⊙ Q_f) A_fᵀ to L, where A_f[a, b] is the
weight of the feature of b's variable, with the gradient Dᵀ(Q_f ⊙ R) + Rᵀ(D ⊙ Q_f).
Binary variables in the Ising form have one column ±1 each: log(1 + exp(−2·D·L)).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from crfkit.data.sequences import Floats
from crfkit.losses.edges import EdgeLoss
from crfkit.losses.pseudo import _largest_eigenvalue
from crfkit.protocols import Evaluation


class StructurePseudoLikelihood(EdgeLoss):
    """The negative log-pseudo-likelihood of a table, given its active edges.

    >>> from crfkit.data.observations import Observations
    >>> table = Observations.of([[0, 0, 1], [1, 1, 0], [1, 1, 1]], [2, 2, 2], ising=True)
    >>> loss = StructurePseudoLikelihood(table)
    >>> ids, scores = loss.candidates(loss.at(np.zeros(loss.size)))
    >>> ids.tolist(), scores.tolist()  # 0·3 + 1: the first two variables are equal
    ([1, 2, 5], [6.0, 2.0, 2.0])
    >>> larger, place = loss.activate(ids[:1])
    >>> loss.size, larger.size, larger.block_index.tolist()
    (3, 4, [-1, -1, -1, 1])
    """

    name = "pseudo-likelihood"
    capabilities = frozenset({"smooth", "hessp", "hess_diag", "lipschitz", "candidates"})

    def at(self, w: Floats, warm: Evaluation | None = None) -> StructureEvaluation:
        return StructureEvaluation(self, w)

    def lipschitz(self) -> float:
        """A bound of the Hessian's eigenvalues at every w (Böhning 1992), as of the pseudo-likelihood of graphs."""
        return self._lipschitz

    @cached_property
    def _lipschitz(self) -> float:
        table = self.table
        sizes = np.repeat(table.n_states, 1 if table.ising else table.n_states).astype(float)
        rows = (len(table.states), len(sizes))
        p = np.broadcast_to(0.5 if table.ising else 1.0 / sizes, rows)
        # K/2 times the covariance of the uniform distribution; that of ±1 is 1
        scale = np.broadcast_to(1.0 if table.ising else sizes / 2, rows)
        return 1.01 * _largest_eigenvalue(lambda v: self._hessp(v, p, scale), self.size)

    # --- the map from weights to logits, and back

    @cached_property
    def _places(self) -> Any:
        return self.table.positions(self.edges)

    def logits(self, w: Floats) -> Floats:
        """[m, S]"""
        table, field = self.table, self.field
        D, X = table.indicators, table.features
        S = D.shape[1]
        V = w[field.layout["node"]].reshape(S, field.n_node_features)
        F, Q = X.shape[1], table.own_columns
        found = np.broadcast_to(X @ V[:, :F].T, D.shape).copy()
        for f in range(len(Q)):
            found += Q[f] * V[:, F + f]
        if len(self.edges):
            edge_weights = w[field.layout["edge"]].reshape(-1, field.n_edge_features)
            W = np.zeros((S, S))
            rows, columns = self._places
            shared, own = table.edge_parts
            for f in range(shared):
                W[rows, columns] = edge_weights[:, f]
                W[columns, rows] = edge_weights[:, f]
                product = D @ W
                if table.has_inputs:
                    product *= X[:, f : f + 1]
                found += product
            for f in range(own):
                W[columns, rows] = edge_weights[:, shared + f]
                W[rows, columns] = edge_weights[:, shared + own + f]
                found += Q[f] * (D @ W)
                found += (D * Q[f]) @ W.T
        return found

    def node_gradient(self, R: Floats, X: Floats, Q: Floats) -> Floats:
        """Rᵀ[X, Q], flat."""
        if not self.table.has_inputs:
            return np.asarray(R.sum(axis=0) * X[0, 0])
        if not len(Q):
            return (R.T @ X).ravel()
        return np.hstack([R.T @ X, np.einsum("ms,fms->sf", R, Q)]).ravel()

    def pair_sums(self, R: Floats, D: Floats, X: Floats, Q: Floats) -> Floats:
        """[F, S, S] Dᵀ(X_f ⊙ R) and its transpose; of features of variables those of rows, then of columns."""
        out = np.empty((self.field.n_edge_features, D.shape[1], D.shape[1]))
        shared, own = self.table.edge_parts
        for f in range(shared):
            G = D.T @ (R * X[:, f : f + 1] if self.table.has_inputs else R)
            np.add(G, G.T, out=out[f])
        for f in range(own):
            G = D.T @ (Q[f] * R) + R.T @ (D * Q[f])
            out[shared + f], out[shared + own + f] = G.T, G
        return out

    def neighbourhood(self, i: int) -> tuple[Floats, Any]:
        """(Z_i [m, q], [states of i, q] the weight of each of its columns)."""
        table, field = self.table, self.field
        S, X, D = (1 if table.ising else int(table.n_states[i])), table.features, table.indicators
        F, G = field.n_node_features, field.n_edge_features
        states = np.arange(S)[:, None]
        shared, own = table.edge_parts
        one = np.broadcast_to(X, (len(D), X.shape[1]))
        columns = [one if table.own is None else np.hstack([one, table.own[:, i]])]
        index = [(int(table.starts[i]) + states) * F + np.arange(F)]
        sizes = np.full((len(self.edges), 2), 1) if table.ising else table.n_states[self.edges]
        begins = field.n_node_weights + np.concatenate([[0], np.cumsum(sizes.prod(axis=1) * G)])
        for e in np.flatnonzero((self.edges == i).any(axis=1)).tolist():
            (k, m), (rows, width) = self.edges[e].tolist(), sizes[e].tolist()
            j, other = (m, width) if i == k else (k, rows)
            start = int(table.starts[j])
            features = X[:, :shared]
            if own and table.own is not None:
                features = np.hstack([features, table.own[:, k], table.own[:, m]])
            seen = D[:, start : start + other, None] * features[:, None, :]
            columns.append(seen.reshape(len(D), -1))
            b = np.arange(other)
            pair = states * width + b if i == k else b * width + states  # [S, other]
            index.append((begins[e] + pair[:, :, None] * G + np.arange(G)).reshape(S, -1))
        return np.hstack(columns), np.hstack(index)

    def packed(self, nodes: Floats, pairs: Floats) -> Floats:
        rows, columns = self._places
        return np.concatenate([nodes, pairs[:, rows, columns].T.ravel()])

    def _hessp(self, v: Floats, p: Floats, scale: Floats | None = None) -> Floats:
        """Σ weight · Aᵀ (diag p − p pᵀ) A v, where L = A w."""
        table = self.table
        change = self.logits(v)
        if table.ising:
            R = 4.0 * p * (1.0 - p) * change
        else:
            mean = np.add.reduceat(p * change, table.starts, axis=1)
            R = p * (change - np.repeat(mean, table.n_states, axis=1))
        R = R * table.weights[:, None]
        if scale is not None:
            R *= scale
        D, X, Q = table.indicators, table.features, table.own_columns
        return self.packed(self.node_gradient(R, X, Q), self.pair_sums(R, D, X, Q))

    def _pair_gradient(self, evaluation: Any) -> Floats:
        pairs: Floats = evaluation.pairs
        return pairs


class StructureEvaluation:
    """A pseudo-likelihood at w. The value takes one product of matrices, the gradient another, each when asked for."""

    def __init__(self, loss: StructurePseudoLikelihood, w: Floats) -> None:
        self._loss = loss
        self.w = w

    @cached_property
    def _both(self) -> tuple[float, Floats]:
        """(value, [m, S] probabilities: of states, or in the Ising form of the state that is not the row's)"""
        table, L = self._loss.table, self._loss.logits(self.w)
        if table.ising:
            L *= table.indicators
            L *= -2.0
            e = np.exp(-np.abs(L))
            total = np.maximum(L, 0.0).sum(axis=1)
            q = 1.0 + e
            e /= q
            for first in range(0, q.shape[1], 512):  # Σ log(1 + e) as one logarithm: products of numbers up to 2
                total += np.log(q[:, first : first + 512].prod(axis=1))
            np.subtract(1.0, e, out=e, where=L > 0)
            return float(table.weights @ total), e
        K = table.n_states
        L -= np.repeat(np.maximum.reduceat(L, table.starts, axis=1), K, axis=1)
        scores = np.einsum("ms,ms->m", L, table.indicators)
        np.exp(L, out=L)
        z = np.add.reduceat(L, table.starts, axis=1)
        L /= np.repeat(z, K, axis=1)
        return float(table.weights @ (np.log(z).sum(axis=1) - scores)), L

    @property
    def value(self) -> float:
        return self._both[0]

    @cached_property
    def _residual(self) -> Floats:
        """[m, S] the derivative of the loss by the logits."""
        table, p = self._loss.table, self._both[1]
        if table.ising:
            return -2.0 * table.weights[:, None] * table.indicators * p
        return table.weights[:, None] * (p - table.indicators)

    @cached_property
    def pairs(self) -> Floats:
        """[F, S, S] the gradient by all couplings."""
        table = self._loss.table
        return self._loss.pair_sums(self._residual, table.indicators, table.features, table.own_columns)

    @property
    def grad(self) -> Floats:
        loss, table = self._loss, self._loss.table
        return loss.packed(loss.node_gradient(self._residual, table.features, table.own_columns), self.pairs)

    def hessp(self, v: Floats) -> Floats:
        return self._loss._hessp(v, self._both[1])

    def hess_diag(self) -> Floats:
        """The diagonal: Σ weight · feature² · p(1 − p) · indicator²."""
        loss, p = self._loss, self._both[1]
        table = loss.table
        X, Q = np.square(table.features), np.square(table.own_columns)
        R = (4.0 if table.ising else 1.0) * table.weights[:, None] * p * (1.0 - p)
        return loss.packed(loss.node_gradient(R, X, Q), loss.pair_sums(R, np.square(table.indicators), X, Q))

    def hessian(self) -> Floats:
        """[size, size], dense. Variable i sees Z_i = X ⊗ [1, indicators of its neighbours]:
        Σ_n c_n (p_a δ_ab − p_a p_b) Z_i Z_iᵀ for its states a, b."""
        loss, (_, p) = self._loss, self._both
        table, size = loss.table, loss.size
        H = np.zeros((size, size))
        for i in range(table.n_variables):
            Z, index = loss.neighbourhood(i)
            first = int(table.starts[i])
            P = p[:, first : first + len(index)]
            for a in range(len(index)):
                for b in range(a, len(index)):
                    curvature = 4.0 * P[:, 0] * (1.0 - P[:, 0]) if table.ising else P[:, a] * ((a == b) - P[:, b])
                    block = Z.T @ (Z * (table.weights * curvature)[:, None])
                    H[np.ix_(index[a], index[b])] += block
                    if a != b:
                        H[np.ix_(index[b], index[a])] += block.T
        return H

    @property
    def conditionals(self) -> list[Floats]:
        """Of every variable [m, K]: p(y_i = k | the other variables)."""
        table, p = self._loss.table, self._both[1]
        if not table.ising:
            return np.split(p, table.starts[1:].tolist(), axis=1)
        up = np.where(table.states == 1, 1.0 - p, p)
        return [np.stack([1.0 - q, q], axis=1) for q in up.T]
