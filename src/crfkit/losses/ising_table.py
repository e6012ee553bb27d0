"""The pseudo-likelihood of a binary table with few edges: each conditional is computed from its neighbours alone.

With s the table as ±1 [p, m] and t_i = −2·s_i·(b_i + Σ_j w_ij s_j) over the neighbours j of i,

    loss = Σ_i Σ_n c_n log(1 + exp t_in)

costs edges·rows, not variables²·rows. The gradient by all couplings, of edges that are off as well, is one product of
matrices, made when it is asked for. The Hessian is sparse: the bias and the couplings of i meet in the conditional of i
only, as a block [1, s_j …] diag(c·4p(1 − p)) [1, s_j …]ᵀ. Variables are shared out among threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from crfkit._threads import thread_count
from crfkit._types import Floats, Ints

FACTORS = 512  # numbers up to 2 that are multiplied before their logarithm is taken
T = TypeVar("T")


class Neighbours:
    """Who is joined to whom: of variable i, `others[starts[i]:starts[i + 1]]` by the edges `ids` of the same places."""

    def __init__(self, edges: Any, p: int) -> None:
        ends = np.concatenate([edges[:, 0], edges[:, 1]]).astype(np.int64)
        order = np.argsort(ends, kind="stable")
        self.others: Ints = np.concatenate([edges[:, 1], edges[:, 0]]).astype(np.int64)[order]
        self.ids: Ints = np.tile(np.arange(len(edges), dtype=np.int64), 2)[order]
        self.starts: Ints = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=p))]).astype(np.int64)
        self.spans = [slice(a, b) for a, b in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)]


class IsingTerms:
    """The terms of the loss at biases b [p] and couplings w [E]."""

    def __init__(self, s: Floats, c: Floats, near: Neighbours, b: Floats, w: Floats) -> None:
        self.s, self.c, self.near = s, c, near
        self.b, self.w = b, w[near.ids]

    @cached_property
    def _passed(self) -> tuple[float, Floats, Floats, Floats]:
        """(value, [p, m] probabilities of the other state, [p] and [2E] derivatives by biases and couplings)."""
        s, c, near = self.s, self.c, self.near
        p, m = s.shape
        q, nodes, slopes = np.empty((p, m)), np.empty(p), np.empty(len(near.others))

        def some(rows: Sequence[int]) -> float:
            total, product = np.zeros(m), np.ones(m)
            for count, i in enumerate(rows):
                span = near.spans[i]
                seen = s[near.others[span]]
                t = self.w[span] @ seen
                t += self.b[i]
                t *= s[i]
                t *= -2.0
                e = np.exp(-np.abs(t))
                z = 1.0 + e
                np.divide(np.where(t > 0, 1.0, e), z, out=q[i])
                np.maximum(t, 0.0, out=t)
                total += t
                product *= z
                if count % FACTORS == FACTORS - 1:
                    total += np.log(product)
                    product.fill(1.0)
                np.multiply(q[i], s[i], out=t)
                t *= c
                nodes[i] = -2.0 * t.sum()
                slopes[span] = -2.0 * (seen @ t)
            total += np.log(product)
            return float(c @ total)

        return float(sum(shared(some, p))), q, nodes, slopes

    @property
    def value(self) -> float:
        return self._passed[0]

    @property
    def q(self) -> Floats:
        """[p, m] the probability of the state that is not the row's."""
        return self._passed[1]

    @property
    def gradient(self) -> tuple[Floats, Floats]:
        """(by biases [p], by couplings [E])"""
        _, _, nodes, slopes = self._passed
        edges: Floats = np.bincount(self.near.ids, slopes, minlength=len(slopes) // 2).astype(np.float64)
        return nodes.copy(), edges

    def pair_gradient(self) -> Floats:
        """[p, p] by all couplings."""
        half = products(lambda rows: (-2.0 * self.c) * self.q[rows] * self.s[rows], self.s)
        return half + half.T

    @property
    def curvature(self) -> Floats:
        """[p, m] the second derivative by the logits, with the weights of rows."""
        return 4.0 * self.c * self.q * (1.0 - self.q)

    def hessian(self) -> Any:
        """[p + E, p + E], sparse."""
        near, s, q, p = self.near, self.s, self.q, len(self.s)
        places: list[Any] = [None] * p
        blocks: list[Any] = [None] * p

        def some(rows: Sequence[int]) -> None:
            for i in rows:
                span = near.spans[i]
                k = 4.0 * self.c * q[i] * (1.0 - q[i])
                Z = np.concatenate([np.ones((1, s.shape[1])), s[near.others[span]]])
                places[i] = np.concatenate([[i], p + near.ids[span]])
                blocks[i] = (Z * k) @ Z.T

        shared(some, p)
        sizes = [len(place) for place in places]
        rows = np.concatenate([np.repeat(place, size) for place, size in zip(places, sizes, strict=True)])
        columns = np.concatenate([np.tile(place, size) for place, size in zip(places, sizes, strict=True)])
        size = p + len(near.ids) // 2
        return csr_matrix((np.concatenate([b.ravel() for b in blocks]), (rows, columns)), shape=(size, size))


def products(rows_of: Callable[[slice], Floats], s: Floats) -> Floats:
    """[p, p] A sᵀ where `rows_of` makes some rows of A."""
    p = len(s)
    out = np.empty((p, p))

    def some(rows: Sequence[int]) -> None:
        for first in range(rows[0], rows[-1] + 1, 64):
            part = slice(first, min(first + 64, rows[-1] + 1))
            np.matmul(rows_of(part), s.T, out=out[part])

    shared(some, p)
    return out


def shared(work: Callable[[Sequence[int]], T], n: int) -> list[T]:
    """The results of `work` on ranges that make up 0 … n − 1, one for each thread."""
    threads = max(1, min(thread_count(), n))
    cuts = np.linspace(0, n, threads + 1).astype(int).tolist()
    ranges = [range(a, b) for a, b in pairwise(cuts) if b > a]
    return [work(ranges[0])] if len(ranges) == 1 else list(_pool(threads).map(work, ranges))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="crfkit-table")
