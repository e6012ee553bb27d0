"""The pseudo-likelihood of a table with few edges, where rows that agree in the neighbours of a variable count once.

Variable i with neighbours j has, for each pattern q of their states, the logits L_q = Z_q·W, where Z_q is a one and the
indicators of the neighbours' states. With N_qk the weight of the rows with pattern q and state k, and C_q = Σ_k N_qk,

    loss = Σ_i Σ_q (C_q log Σ_k exp L_qk − Σ_k N_qk L_qk)

Patterns are often far fewer than rows: a variable with two neighbours of five states has 25 at most. The Hessian is
sparse: weights of i meet in the conditional of i only. (Binary columns have :mod:`ising_table`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from crfkit._types import Floats, Ints, Sparse
from crfkit.structure.losses.evaluation import StructureEvaluation
from crfkit.structure.observations import Observations

if TYPE_CHECKING:
    from crfkit.structure.losses.pseudo import StructurePseudoLikelihood

CACHED_NEIGHBOURHOODS = 4  # neighbourhoods of a variable that are remembered
MAX_CODES = 1 << 62


@dataclass(frozen=True, eq=False)
class Patterns:
    """The patterns of the neighbours of one variable."""

    Z: Floats  # [Q, q] a one, and the indicators of the neighbours' states
    N: Floats  # [Q, K] the weight of the rows with each pattern and state of the variable
    codes: Ints  # [m] the pattern of each row

    @cached_property
    def totals(self) -> Floats:
        """Return C [Q]: the weight of each pattern."""
        found: Floats = self.N.sum(axis=1)
        return found


class TablePatterns:
    """The patterns of a table's variables; it remembers the last ones of each."""

    def __init__(self, table: Observations) -> None:
        self._states, self._weights, self._n_states = table.states, table.weights, table.n_states
        self._kept: list[dict[tuple[int, ...], Patterns]] = [{} for _ in range(table.n_variables)]

    def of(self, i: int, others: tuple[int, ...]) -> Patterns:
        """Return the patterns of the neighbours `others` of variable i."""
        kept = self._kept[i]
        found = kept.pop(others, None)
        if found is None:
            found = self._made(i, list(others))
            if len(kept) >= CACHED_NEIGHBOURHOODS:
                kept.pop(next(iter(kept)))  # the one that was requested least recently
        kept[others] = found
        return found

    def _made(self, i: int, others: list[int]) -> Patterns:
        seen, sizes = self._states[:, others], self._n_states[others].astype(np.int64)
        if float(np.prod(sizes, dtype=float)) < MAX_CODES:
            radix = np.concatenate([[1], np.cumprod(sizes)[:-1]]) if len(others) else sizes
            _, first, codes = np.unique(seen @ radix, return_index=True, return_inverse=True)
        else:
            _, first, codes = np.unique(seen, axis=0, return_index=True, return_inverse=True)
        codes = codes.reshape(-1)
        K, Q = int(self._n_states[i]), len(first)
        N: Floats = np.bincount(codes * K + self._states[:, i], self._weights, Q * K).astype(np.float64).reshape(Q, K)
        Z = np.zeros((Q, 1 + int(sizes.sum())))
        Z[:, 0] = 1.0
        places = 1 + np.cumsum(sizes) - sizes + seen[first]
        Z[np.arange(Q)[:, None], places] = 1.0
        return Patterns(Z, N, codes)


_TABLES: WeakKeyDictionary[Observations, TablePatterns] = WeakKeyDictionary()


def table_patterns(table: Observations) -> TablePatterns:
    """Return the patterns of a table, with those that were made before."""
    found = _TABLES.get(table)
    if found is None:
        found = _TABLES[table] = TablePatterns(table)
    return found


@dataclass(frozen=True, eq=False)
class Conditional:
    """The part of the loss that one variable has: its patterns, and the places [K, q] of its weights."""

    patterns: Patterns
    index: Ints


def conditionals_of(loss: StructurePseudoLikelihood) -> list[Conditional]:
    """Return the conditional of each variable."""
    table, known = loss.table, table_patterns(loss.table)
    K, starts = table.n_states.tolist(), table.state_starts.tolist()
    ends = loss.edges.tolist()
    sizes = table.n_states[loss.edges].prod(axis=1).astype(np.int64)
    begins = (loss.field.n_node_weights + np.cumsum(sizes) - sizes).tolist()
    near: list[list[tuple[int, int]]] = [[] for _ in K]
    for e, (i, j) in enumerate(ends):
        near[i].append((j, e))
        near[j].append((i, e))
    found = []
    for i, its in enumerate(near):
        its.sort()
        states = np.arange(K[i])[:, None]
        index = [starts[i] + states]
        for j, e in its:
            other = np.arange(K[j])
            index.append(begins[e] + (states * K[j] + other if i == ends[e][0] else other * K[i] + states))
        found.append(Conditional(known.of(i, tuple(j for j, _ in its)), np.concatenate(index, axis=1)))
    return found


class PatternEvaluation(StructureEvaluation):
    """A pseudo-likelihood at w, from patterns."""

    @cached_property
    def _parts(self) -> tuple[float, list[Floats]]:
        """Return (value, [Q, K] probabilities of each variable's states)"""
        value, found = 0.0, []
        for part in self._loss.conditionals:
            patterns = part.patterns
            L = patterns.Z @ self.w[part.index].T
            value -= float(np.vdot(patterns.N, L))
            highest = L.max(axis=1, keepdims=True)
            L -= highest
            np.exp(L, out=L)
            z = L.sum(axis=1, keepdims=True)
            value += float(patterns.totals @ (np.log(z) + highest)[:, 0])
            L /= z
            found.append(L)
        return value, found

    @property
    def value(self) -> float:
        return self._parts[0]

    @cached_property
    def _both(self) -> tuple[float, Floats]:
        value, p = self._parts
        rows = [its[part.patterns.codes] for its, part in zip(p, self._loss.conditionals, strict=True)]
        return value, np.concatenate(rows, axis=1)

    @cached_property
    def _active_gradient(self) -> Floats:
        out = np.zeros(self._loss.size)
        for p, part in zip(self._parts[1], self._loss.conditionals, strict=True):
            patterns = part.patterns
            out[part.index] += (patterns.totals[:, None] * p - patterns.N).T @ patterns.Z
        return out

    @property
    def grad(self) -> Floats:
        return self._active_gradient.copy()

    def carried(self, loss: StructurePseudoLikelihood, w: Floats) -> StructureEvaluation:
        found = loss.at(w)
        found.__dict__.update(_gradients=self._gradients)
        return found

    def hessp(self, v: Floats) -> Floats:
        out = np.zeros(self._loss.size)
        for p, part in zip(self._parts[1], self._loss.conditionals, strict=True):
            patterns = part.patterns
            change = patterns.Z @ v[part.index].T
            R = p * (change - (p * change).sum(axis=1, keepdims=True)) * patterns.totals[:, None]
            out[part.index] += R.T @ patterns.Z
        return out

    def hess_diag(self) -> Floats:
        out = np.zeros(self._loss.size)
        for p, part in zip(self._parts[1], self._loss.conditionals, strict=True):
            patterns = part.patterns
            out[part.index] += (p * (1.0 - p) * patterns.totals[:, None]).T @ patterns.Z  # of zeros and ones
        return out

    def sparse_hessian(self) -> Sparse:
        """Return [size, size], sparse: Σ_q C_q (p_a δ_ab − p_a p_b) Z_q Z_qᵀ of the states a, b of each variable."""
        from scipy.sparse import csr_matrix

        rows, columns, values = [], [], []
        for p, part in zip(self._parts[1], self._loss.conditionals, strict=True):
            patterns, (K, q) = part.patterns, part.index.shape
            weighted = (p * np.sqrt(patterns.totals)[:, None])[:, :, None] * patterns.Z[:, None, :]
            Y = weighted.reshape(len(p), K * q)
            block = -(Y.T @ Y)
            for a in range(K):
                own = slice(a * q, (a + 1) * q)
                block[own, own] += (patterns.Z * (patterns.totals * p[:, a])[:, None]).T @ patterns.Z
            places = part.index.ravel()
            rows.append(np.repeat(places, K * q))
            columns.append(np.tile(places, K * q))
            values.append(block.ravel())
        shape = (self._loss.size, self._loss.size)
        return csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)

    def hessian(self) -> Floats:
        return np.asarray(self.sparse_hessian().toarray())
