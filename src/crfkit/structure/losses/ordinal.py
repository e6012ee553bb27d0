"""Pseudo-likelihood of a table of ordinal variables: an edge has one weight, times the scores of both its states.

    L_n,ik = v_ik·x_n + s_ik Σ_j (w_ij·x_n) s_j(y_nj)        s_i: equally spaced from −1 to 1

Biases are free, one for every state, so scores have no influence on how frequent states are. With R the derivative by
L and r_i = Σ_k s_ik R_ik, the gradient by the couplings is that of the Ising form, Tᵀr plus its transpose, where T are
the scores of the table.

A variable whose states have no order has, instead of its scores, an indicator for each state: several factors. An edge
has a weight for each pair of factors of its ends.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from crfkit._types import Array, Floats
from crfkit.graph.losses.pseudo import largest_eigenvalue
from crfkit.protocols import Evaluation
from crfkit.structure.losses.evaluation import StructureEvaluation
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.losses.reference import ReferencePseudoLikelihood
from crfkit.structure.observations import Observations


def pseudo_likelihood(
    table: Observations, pairs: ArrayLike | None = None, active: ArrayLike = ()
) -> StructurePseudoLikelihood:
    """Return the pseudo-likelihood of a table, in the form that its edges have."""
    if table.reference:
        return ReferencePseudoLikelihood(table, pairs, active)
    return (OrdinalPseudoLikelihood if table.ordinal else StructurePseudoLikelihood)(table, pairs, active)


class OrdinalPseudoLikelihood(StructurePseudoLikelihood):
    """The negative log-pseudo-likelihood of a table of ordinal variables, given its active edges.

    >>> table = Observations.of([[0, 0], [1, 1], [2, 2]], [3, 3], ordinal=True)
    >>> loss = OrdinalPseudoLikelihood(table, active=[1])
    >>> loss.size, loss.at(np.zeros(7)).grad[-1:].tolist()  # −2 Σ s·t
    (7, [-4.0])
    """

    def at(self, w: Floats, warm: Evaluation | None = None) -> OrdinalEvaluation:
        return OrdinalEvaluation(self, w)

    def by_state(self, couplings: Floats) -> Floats:
        if not self.table.single:
            return np.asarray((self.table.score_map.T @ couplings.T).T)
        found: Floats = np.repeat(couplings, self.table.n_states, axis=1)
        found *= self.table.scores
        return found

    @cached_property
    def _lipschitz(self) -> float:
        sizes = np.repeat(self.table.n_states, self.table.n_states).astype(float)
        p = np.broadcast_to(1.0 / sizes, (len(self.table.states), len(sizes)))
        return 1.01 * largest_eigenvalue(lambda v: self._hessp(v, p, sizes / 2), self.size)

    def gradients(self, R: Floats, rows: slice = slice(None)) -> tuple[Floats, Floats]:
        """Return the gradient by weights of nodes, and sums for couplings [F, S, S], from derivatives by logits."""
        table = self.table
        X = table.features[rows] if table.has_inputs else table.features
        sums = np.zeros((sum(table.edge_parts), *2 * table.indicators.shape[1:]))
        self.add_pair_sums(table.mean_scores(R), table.indicators[rows], X, table.own_columns[:, rows], sums)
        return self.node_gradient(R, X, table.node_columns[:, rows]), sums

    def _hessp(self, v: Floats, p: Floats, scale: Floats | None = None) -> Floats:
        table = self.table
        change = self.logits(v)
        mean = np.add.reduceat(p * change, table.state_starts, axis=1)
        R = p * (change - np.repeat(mean, table.n_states, axis=1)) * table.weights[:, None]
        nodes, sums = self.gradients(R if scale is None else R * scale)
        return self.packed(nodes, self.both_ways(sums))

    def neighbourhood(self, i: int) -> tuple[Floats, Array]:
        """Return the features of the edges of i times the factors at their other ends [q, m], and weights [·, q]."""
        table, G = self.table, self.field.n_edge_features
        m, factors = len(table.states), table.factors
        mine = np.flatnonzero((self.edges == i).any(axis=1))
        sizes = factors[self.edges].prod(axis=1) * G
        begins = self.field.n_node_weights + np.cumsum(sizes) - sizes
        Z, index = [np.zeros((0, m))], [np.zeros((int(factors[i]), 0), dtype=np.int64)]
        for e in mine.tolist():
            j, k = self.edges[e].tolist()
            other = j + k - i
            features = np.moveaxis(table.pair_features(j, [k])[:, 0], 1, 0)  # [G, m]
            first, width = int(table.starts[other]), int(factors[other])
            Z.append((table.indicator_rows[first : first + width, None] * features).reshape(-1, m))
            own, its = np.arange(factors[i])[:, None], np.arange(width)
            pair = own * width + its if i == j else its * int(factors[i]) + own  # [factors of i, of the other end]
            index.append((begins[e] + pair[:, :, None] * G + np.arange(G)).reshape(len(own), -1))
        return np.concatenate(Z), np.hstack(index)


class OrdinalEvaluation(StructureEvaluation):
    """The pseudo-likelihood at w."""

    _loss: OrdinalPseudoLikelihood

    @cached_property
    def _gradients(self) -> tuple[Floats, Floats]:
        loss, p, table = self._loss, self._both[1], self._loss.table
        nodes, sums = np.zeros(loss.field.n_node_weights), np.zeros(())
        for rows in loss.blocks:
            of_nodes, of_pairs = loss.gradients(table.weights[rows, None] * (p[rows] - table.one_hot[rows]), rows)
            nodes += of_nodes
            sums = sums + of_pairs
        return nodes, loss.both_ways(sums)

    def carried(self, loss: StructurePseudoLikelihood, w: Floats) -> StructureEvaluation:
        found = loss.at(w)
        found.__dict__.update(_both=self._both, _gradients=self._gradients)
        return found

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Return the means of factors [m, S] and their variances [m, S]."""
        table, p = self._loss.table, self._both[1]
        mean = table.mean_scores(p)
        if table.single:
            squares = table.mean_scores(p * table.scores)
        else:
            squares = np.asarray((table.score_map.power(2) @ p.T).T)
        return mean, np.maximum(squares - np.square(mean), 0.0)

    @property
    def curvature(self) -> Floats:
        """Return [S, m] the variance of every factor, with the weights of rows."""
        return np.ascontiguousarray(self._moments[1].T * self._loss.table.weights)

    def hess_diag(self) -> Floats:
        loss, p, table = self._loss, self._both[1], self._loss.table
        X, c = np.square(table.features), table.weights[:, None]
        nodes = loss.node_gradient(c * p * (1.0 - p), X, np.square(table.node_columns))
        squares = np.square(table.indicators), X, np.square(table.own_columns)
        return loss.packed(nodes, loss.pair_sums(c * self._moments[1], *squares))

    def hessian(self) -> Floats:
        loss, p, table = self._loss, self._both[1], self._loss.table
        F, m = loss.field.n_node_features, len(table.states)
        H = np.zeros((loss.size, loss.size))
        X = np.broadcast_to(table.features.T, (table.features.shape[1], m))
        for i, K in enumerate(table.n_states.tolist()):
            x = X if table.own is None else np.concatenate([X, table.own[:, i].T])
            Z, edges = loss.neighbourhood(i)
            first = int(table.state_starts[i])
            P, B = p[:, first : first + K].T, factors_of(table, i)
            mean = B @ P  # [factors, m]
            nodes = (first + np.arange(K))[:, None] * F + np.arange(F)
            for a in range(K):
                for b in range(K):
                    H[np.ix_(nodes[a], nodes[b])] += (x * (table.weights * P[a] * ((a == b) - P[b]))) @ x.T
                for f, places in enumerate(edges):
                    cross = (x * (table.weights * P[a] * (B[f, a] - mean[f]))) @ Z.T
                    H[np.ix_(nodes[a], places)] += cross
                    H[np.ix_(places, nodes[a])] += cross.T
            for f, places in enumerate(edges):
                for g, others in enumerate(edges):
                    covariance = (B[f] * B[g]) @ P - mean[f] * mean[g]
                    H[np.ix_(places, others)] += (Z * (table.weights * covariance)) @ Z.T
        return H


def factors_of(table: Observations, i: int) -> Floats:
    """Return [factors, K]: the factors of the states of a variable, its scores or an indicator for each."""
    K = int(table.n_states[i])
    return np.linspace(-1.0, 1.0, K)[None] if table.has_scores[i] else np.eye(K)
