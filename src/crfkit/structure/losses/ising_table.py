"""The pseudo-likelihood of a binary table with few edges: each conditional is computed from its neighbours alone.

With s the table as ±1 [p, m] and t_i = −2·s_i·(b_i + Σ_j w_ij s_j) over the neighbours j of i,

    loss = Σ_i Σ_n c_n log(1 + exp t_in)

costs edges·rows, not variables²·rows, and far less where a variable has so few neighbours that rows repeat each other
(:mod:`ising_patterns`). The gradient by all couplings, also of inactive edges, is one product of matrices, made
when it is needed. The Hessian is sparse: the bias and the couplings of i meet in the conditional of i only, as a
block [1, s_j …] diag(c·4p(1 − p)) [1, s_j …]ᵀ. Variables are shared out among threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from crfkit._threads import thread_count
from crfkit._types import Floats, Ids, Ints, Sparse
from crfkit.structure.losses.ising_patterns import CACHED_PATTERNS, BinaryTable, Group, GroupTerms

FACTORS_PER_LOG = 512  # numbers up to 2 that are multiplied before their logarithm is taken
T = TypeVar("T")


class Neighbours:
    """Who is joined to whom: of variable i, `others[starts[i]:starts[i + 1]]` by the edges `ids` of the same places."""

    def __init__(self, edges: Ids, table: BinaryTable) -> None:
        p = len(table.s)
        ends = np.concatenate([edges[:, 0], edges[:, 1]]).astype(np.int64)
        order = np.argsort(ends, kind="stable")
        self.table = table
        self.others: Ints = np.concatenate([edges[:, 1], edges[:, 0]]).astype(np.int64)[order]
        self.ids: Ints = np.tile(np.arange(len(edges), dtype=np.int64), 2)[order]
        self.starts: Ints = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=p))]).astype(np.int64)
        self.spans = [slice(a, b) for a, b in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)]
        degrees = np.diff(self.starts)
        self.many: Ints = np.flatnonzero(degrees > table.most)  # variables whose rows are gone through one by one
        self.few: Ints = np.flatnonzero(degrees <= table.most)

    def of(self, i: int) -> Ints:
        return self.others[self.spans[i]]

    @cached_property
    def groups(self) -> list[Group]:
        """Return the variables with few neighbours, by their number of neighbours."""
        degrees = np.diff(self.starts)[self.few]
        counts: dict[int, Floats] = {}

        def count(some: Sequence[int]) -> None:
            for i in self.few[some[0] : some[-1] + 1].tolist():
                counts[i] = self.table.counts(i, self.of(i))

        if len(self.few):
            shared(count, len(self.few))
        found = []
        for k in np.unique(degrees).tolist():
            alike = self.few[degrees == k]
            step = max(1, CACHED_PATTERNS >> (k + 1))
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                places = self.starts[some, None] + np.arange(k)
                found.append(Group(some, places, np.stack([counts[i] for i in some.tolist()])))
        return found

    @cached_property
    def corners(self) -> tuple[Ints, Ints]:
        """Return (rows, columns) of the entries of all blocks in the Hessian: of groups, then of other variables."""
        p = len(self.table.s)
        index = [np.concatenate([g.variables[:, None], p + self.ids[g.places]], axis=1) for g in self.groups]
        index += [np.concatenate([[i], p + self.ids[self.spans[i]]])[None] for i in self.many.tolist()]
        shapes = [(*of.shape, of.shape[1]) for of in index]
        rows = [np.broadcast_to(of[:, :, None], shape).ravel() for of, shape in zip(index, shapes, strict=True)]
        columns = [np.broadcast_to(of[:, None, :], shape).ravel() for of, shape in zip(index, shapes, strict=True)]
        return np.concatenate(rows), np.concatenate(columns)


class IsingTerms:
    """The terms of the loss at biases b [p] and couplings w [E]."""

    def __init__(self, near: Neighbours, b: Floats, w: Floats) -> None:
        self.near, self.b, self.w = near, b, w[near.ids]
        self.s, self.c = near.table.s, near.table.weights

    @cached_property
    def _groups(self) -> list[GroupTerms]:
        return [GroupTerms(group, self.b, self.w) for group in self.near.groups]

    @cached_property
    def _rows(self) -> tuple[float, Floats, Floats, Floats]:
        """Return the value, [·, m] probabilities of the other state, [·] and [2E] derivatives by biases and couplings.

        They are for variables with many neighbours only.
        """
        s, c, near = self.s, self.c, self.near
        p, m = len(near.many), s.shape[1]
        q, nodes, slopes = np.empty((p, m)), np.empty(p), np.zeros(len(near.others))
        if not p:
            return 0.0, q, nodes, slopes

        def some(places: Sequence[int]) -> float:
            total, product = np.zeros(m), np.ones(m)
            for count, place in enumerate(places):
                i = int(near.many[place])
                span = near.spans[i]
                seen = s[near.others[span]]
                t = self.w[span] @ seen
                t += self.b[i]
                t *= s[i]
                t *= -2.0
                e = np.exp(-np.abs(t))
                z = 1.0 + e
                np.divide(np.where(t > 0, 1.0, e), z, out=q[place])
                np.maximum(t, 0.0, out=t)
                total += t
                product *= z
                if count % FACTORS_PER_LOG == FACTORS_PER_LOG - 1:
                    total += np.log(product)
                    product.fill(1.0)
                np.multiply(q[place], s[i], out=t)
                t *= c
                nodes[place] = -2.0 * t.sum()
                slopes[span] = -2.0 * (seen @ t)
            total += np.log(product)
            return float(c @ total)

        return float(sum(shared(some, p))), q, nodes, slopes

    @cached_property
    def value(self) -> float:
        return self._rows[0] + sum(terms.value for terms in self._groups)

    @property
    def gradient(self) -> tuple[Floats, Floats]:
        """Return the gradient by biases [p] and by couplings [E]."""
        near, nodes = self.near, np.empty(len(self.s))
        _, _, nodes[near.many], slopes = self._rows
        slopes = slopes.copy()
        for terms in self._groups:
            nodes[terms.group.variables] = terms.slopes[:, 0]
            slopes[terms.group.places] = terms.slopes[:, 1:]
        edges: Floats = np.bincount(near.ids, slopes, minlength=len(slopes) // 2).astype(np.float64)
        return nodes, edges

    # --- by rows of the table

    def by_row(self, of: Callable[[Floats, Floats], Floats], weighted: bool = True) -> Callable[..., Floats]:
        """Return a function from a slice of variables to `of` (probability of the other state, sign) [variables, m].

        The values are multiplied by the weights of rows. Threads may call the function.
        """
        near, s, many = self.near, self.s, self._rows[1]
        homes: dict[int, Floats] = {}  # variable → its values by pattern
        for terms in self._groups:
            homes.update(zip(terms.group.variables.tolist(), terms.by_pattern(of), strict=True))
        places = {i: place for place, i in enumerate(near.many.tolist())}

        def some(variables: slice, out: Floats | None = None) -> Floats:
            wanted = range(*variables.indices(len(s)))
            found = np.empty((len(wanted), s.shape[1])) if out is None else out
            for row, i in zip(found, wanted, strict=True):
                if i in places:
                    row[:] = of(many[places[i]], s[i])
                else:
                    np.take(homes[i], near.table.codes(i, near.of(i)), out=row, mode="clip")
            if weighted and not near.table.plain:
                found *= self.c
            return found

        return some

    def _all_by_row(self, of: Callable[[Floats, Floats], Floats], weighted: bool = True) -> Floats:
        out, make = np.empty(self.s.shape), self.by_row(of, weighted)

        def some(rows: Sequence[int]) -> None:
            part = slice(rows[0], rows[-1] + 1)
            make(part, out[part])

        shared(some, len(out))
        return out

    @cached_property
    def q(self) -> Floats:
        """Return [p, m] the probability of the state that is not the row's."""
        return self._all_by_row(lambda q, _: q, weighted=False)

    @property
    def curvature(self) -> Floats:
        """Return [p, m] the second derivative by the logits, with the weights of rows."""
        return self._all_by_row(lambda q, _: 4.0 * q * (1.0 - q))

    def pair_gradient(self) -> Floats:
        """Return [p, p] the gradient by all couplings."""
        half = products(self.by_row(lambda q, s: -2.0 * q * s), self.s)
        return half + half.T

    def hessian(self) -> Sparse:
        """Return the Hessian [p + E, p + E] as a sparse matrix."""
        near, s, many = self.near, self.s, self._rows[1]
        blocks: list[Sparse] = [None] * len(many)

        def some(places: Sequence[int]) -> None:
            for place in places:
                k = 4.0 * self.c * many[place] * (1.0 - many[place])
                Z = np.concatenate([np.ones((1, s.shape[1])), s[near.of(int(near.many[place]))]])
                blocks[place] = (Z * k) @ Z.T

        if blocks:
            shared(some, len(blocks))
        numbers = np.concatenate([block.ravel() for block in [*(g.blocks() for g in self._groups), *blocks]])
        size = len(s) + len(near.ids) // 2
        return csr_matrix((numbers, near.corners), shape=(size, size))


def products(rows_of: Callable[[slice], Floats], s: Floats) -> Floats:
    """Return [p, p] A sᵀ; `rows_of` makes some rows of A."""
    p = len(s)
    out = np.empty((p, p))

    def some(rows: Sequence[int]) -> None:
        for first in range(rows[0], rows[-1] + 1, 64):
            part = slice(first, min(first + 64, rows[-1] + 1))
            np.matmul(rows_of(part), s.T, out=out[part])

    shared(some, p)
    return out


def shared(work: Callable[[Sequence[int]], T], n: int) -> list[T]:
    """Return the results of `work` on ranges that make up 0 … n − 1, one for each thread."""
    threads = max(1, min(thread_count(), n))
    cuts = np.linspace(0, n, threads + 1).astype(int).tolist()
    ranges = [range(a, b) for a, b in pairwise(cuts) if b > a]
    return [work(ranges[0])] if len(ranges) == 1 else list(_pool(threads).map(work, ranges))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="crfkit-table")
