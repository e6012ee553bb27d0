"""Pseudo-likelihood of a table whose graph is to be learned: all variables at once, by matrix products.

    loss = Σ_n c_n Σ_i (log Σ_k exp L_n,ik − L_n,iy)        L = X Vᵀ + Σ_f X_f ⊙ (D W_f)

D [m, S] are indicators of states, W_f [S, S] the couplings of feature f: symmetric, 0 within a variable. With R the
derivative by L, the gradient by the couplings is Dᵀ(X_f ⊙ R) plus its transpose: of all edges, active or not, at once.
Features of variables, Q_f [m, S] by the columns of D, add Q_f ⊙ (D A_f) + (D ⊙ Q_f) A_fᵀ to L, where A_f[a, b] is the
weight of the feature of b's variable, with the gradient Dᵀ(Q_f ⊙ R) + Rᵀ(D ⊙ Q_f).
Binary variables in the Ising form have one column ±1 each: log(1 + exp(−2·D·L)).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from crfkit._types import Array, Floats, Ids, Ints
from crfkit.graph.losses.pseudo import largest_eigenvalue
from crfkit.protocols import Capability, Evaluation
from crfkit.structure.losses.edges import EdgeLoss
from crfkit.structure.losses.evaluation import SparseEvaluation, StructureEvaluation
from crfkit.structure.losses.ising_patterns import binary_table
from crfkit.structure.losses.ising_table import Neighbours
from crfkit.structure.losses.table_patterns import Conditional, PatternEvaluation, conditionals_of

DENSE_EDGE_SHARE = 0.1  # of all pairs: with more active edges, one dense product is faster than one row at a time
MAX_PATTERNED_EDGES = 3  # edges per variable: with more of them, products of matrices are faster than patterns
BLOCK = 1 << 14  # numbers of an array that stay in a cache while a few passes are made over them


class StructurePseudoLikelihood(EdgeLoss):
    """The negative log-pseudo-likelihood of a table, given its active edges.

    >>> from crfkit.structure.observations import Observations
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
    capabilities = frozenset(
        {
            Capability.SMOOTH,
            Capability.HESSP,
            Capability.HESS_DIAG,
            Capability.LIPSCHITZ,
            Capability.HESSIAN,
            Capability.CANDIDATES,
        }
    )

    def at(self, w: Floats, warm: Evaluation | None = None) -> StructureEvaluation:
        if self.sparse:
            return SparseEvaluation(self, w)
        return PatternEvaluation(self, w) if self.patterned else StructureEvaluation(self, w)

    @property
    def sparse(self) -> bool:
        """Return whether each conditional is computed from its neighbours: the Ising form, no inputs, few edges."""
        p = self.table.n_variables
        few = 2 * len(self.edges) <= max(24 * p, DENSE_EDGE_SHARE * p * p)
        return self.table.ising and not self.table.has_inputs and self.table.own is None and few

    @property
    def patterned(self) -> bool:
        """Return whether each conditional is computed from patterns of its neighbours: tables, no inputs, few edges."""
        table = self.table
        plain = not (table.ising or table.ordinal or table.reference or table.has_inputs or table.own is not None)
        return plain and len(self.edges) <= MAX_PATTERNED_EDGES * table.n_variables

    @cached_property
    def neighbours(self) -> Neighbours:
        return Neighbours(self.edges, binary_table(self.table))

    @cached_property
    def conditionals(self) -> list[Conditional]:
        """Return the conditional of each variable, if the loss is `patterned`."""
        return conditionals_of(self)

    def lipschitz(self) -> float:
        """Return a bound of the Hessian's eigenvalues at every w (Böhning 1992), as for the loss of known graphs."""
        return self._lipschitz

    @cached_property
    def _lipschitz(self) -> float:
        table = self.table
        sizes = np.repeat(table.n_states, 1 if table.ising else table.n_states).astype(float)
        rows = (len(table.states), len(sizes))
        p = np.broadcast_to(0.5 if table.ising else 1.0 / sizes, rows)
        # K/2 times the covariance of the uniform distribution; that of ±1 is 1
        scale = np.broadcast_to(1.0 if table.ising else sizes / 2, rows)
        return 1.01 * largest_eigenvalue(lambda v: self._hessp(v, p, scale), self.size)

    # --- the map from weights to logits, and back

    @cached_property
    def _places(self) -> tuple[Ids, Ids]:
        return self.table.positions(self.edges)

    def logits(self, w: Floats) -> Floats:
        """Return [m, S] the logits of all rows."""
        return self.linear(w)(slice(None))

    def linear(self, w: Floats) -> Callable[[slice], Floats]:
        """Return a function from rows to their logits [rows, S]."""
        table, field = self.table, self.field
        D, X = table.indicators, table.features
        S, F, Q = D.shape[1], X.shape[1], table.own_columns
        V = w[field.layout["node"]].reshape(-1, field.n_node_features)
        shared, own = table.edge_parts if len(self.edges) else (0, 0)
        # W_f [S, S]: symmetric; of features of variables W[a, b] is for the feature of b's variable
        W = np.zeros((shared + own, S, S))
        rows, columns = self._places
        edge_weights = w[field.layout["edge"]].reshape(-1, field.n_edge_features)
        for f in range(shared):
            W[f, rows, columns] = edge_weights[:, f]
            W[f, columns, rows] = edge_weights[:, f]
        for f in range(shared, shared + own):
            W[f, columns, rows] = edge_weights[:, f]
            W[f, rows, columns] = edge_weights[:, own + f]

        def of(some: slice) -> Floats:
            x, d = X[some] if table.has_inputs else X, D[some]
            found: Floats = d @ W[0] if shared else np.zeros((len(d), S))
            if table.has_inputs and shared:
                found *= x[:, :1]
            for f in range(1, shared):
                found += x[:, f : f + 1] * (d @ W[f])
            for f in range(own):
                q = Q[f, some]
                found += q * (d @ W[shared + f])
                found += (d * q) @ W[shared + f].T
            found = self.by_state(found)
            found += x @ V[:, :F].T
            for f, q in enumerate(table.node_columns):
                found += q[some] * V[:, F + f]
            return found

        return of

    def by_state(self, couplings: Floats) -> Floats:
        """Return what couplings add to the logits, given the factors that they are multiplied with."""
        return couplings

    @cached_property
    def blocks(self) -> list[slice]:
        """Rows that a cache holds at a time."""
        m, S = self.table.indicators.shape
        size = max(16, BLOCK // S)
        return [slice(first, min(first + size, m)) for first in range(0, m, size)]

    def node_gradient(self, R: Floats, X: Floats, Q: Floats) -> Floats:
        """Rᵀ[X, Q], flat."""
        if not self.table.has_inputs:
            return np.asarray(R.sum(axis=0) * X[0, 0])
        if not len(Q):
            return (R.T @ X).ravel()
        return np.hstack([R.T @ X, np.einsum("ms,fms->sf", R, Q)]).ravel()

    def pair_sums(self, R: Floats, D: Floats, X: Floats, Q: Floats) -> Floats:
        """Return [F, S, S] the gradient by all couplings."""
        shared, own = self.table.edge_parts
        out = np.zeros((shared + own, D.shape[1], D.shape[1]))
        self.add_pair_sums(R, D, X, Q, out)
        return self.both_ways(out)

    def add_pair_sums(self, R: Floats, D: Floats, X: Floats, Q: Floats, out: Floats) -> None:
        """Adds Dᵀ(X_f ⊙ R), and of features of variables Dᵀ(Q_f ⊙ R) + Rᵀ(Q_f ⊙ D)."""
        shared, own = self.table.edge_parts
        for f in range(shared):
            out[f] += D.T @ (R * X[:, f : f + 1] if self.table.has_inputs else R)
        for f in range(own):
            out[shared + f] += D.T @ (Q[f] * R)
            out[shared + f] += R.T @ (D * Q[f])

    def both_ways(self, sums: Floats) -> Floats:
        """Return [F, S, S] the sums of `add_pair_sums` plus their transpose.

        Features of variables come twice: first for the rows, then for the columns.
        """
        shared, _ = self.table.edge_parts
        turned = sums.transpose(0, 2, 1)
        if len(sums) == shared:
            return sums + turned
        return np.concatenate([sums[:shared] + turned[:shared], turned[shared:], sums[shared:]])

    def neighbourhood(self, i: int) -> tuple[Floats, Array]:
        """Return Z_i [q, m] and [states of i, q] the weight of each of its rows."""
        table, field = self.table, self.field
        S, X, D = (1 if table.ising else int(table.n_states[i])), table.features.T, table.indicator_rows
        F, G = field.n_node_features, field.n_edge_features
        states = np.arange(S)[:, None]
        m = D.shape[1]
        shared, own = table.edge_parts
        if table.ising and not table.has_inputs:
            mine = np.flatnonzero((self.edges == i).any(axis=1))
            others = self.edges[mine].sum(axis=1) - i
            return np.concatenate([np.ones((1, m)), D[others]]), np.array([[i, *(field.n_node_weights + mine)]])
        columns = [np.broadcast_to(X, (len(X), m))]
        if table.own is not None:
            columns.append(table.own[:, i].T)
        index: list[Ints] = [(int(table.starts[i]) + states) * F + np.arange(F)]
        sizes = np.full((len(self.edges), 2), 1) if table.ising else table.n_states[self.edges]
        begins = field.n_node_weights + np.concatenate([[0], np.cumsum(sizes.prod(axis=1) * G)])
        for e in np.flatnonzero((self.edges == i).any(axis=1)).tolist():
            (k, end), (rows, width) = self.edges[e].tolist(), sizes[e].tolist()
            j, other = (end, width) if i == k else (k, rows)
            start = int(table.starts[j])
            features = X[:shared]
            if own and table.own is not None:
                features = np.concatenate([features, table.own[:, k].T, table.own[:, end].T])
            seen = D[start : start + other, None] * features
            columns.append(seen.reshape(-1, m))
            b = np.arange(other)
            pair = states * width + b if i == k else b * width + states  # [S, other]
            index.append((begins[e] + pair[:, :, None] * G + np.arange(G)).reshape(S, -1))
        return np.concatenate(columns), np.hstack(index)

    def packed(self, nodes: Floats, pairs: Floats) -> Floats:
        rows, columns = self._places
        return np.concatenate([nodes, pairs[:, rows, columns].T.ravel()])

    def _hessp(self, v: Floats, p: Floats, scale: Floats | None = None) -> Floats:
        """Return Σ weight · Aᵀ (diag p − p pᵀ) A v, where L = A w."""
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

    def carry(self, evaluation: StructureEvaluation, place: Ints) -> StructureEvaluation:
        """Return the evaluation of a loss with fewer edges, where those that are new have weight 0."""
        w = np.zeros(self.size)
        w[place] = evaluation.w
        return evaluation.carried(self, w)
