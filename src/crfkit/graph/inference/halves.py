"""Exact inference in many copies of one dense graph: its labellings in two halves, all copies in products of matrices.

Nodes are split into A and B. Copies differ in their unary potentials only, so the score of a labelling (a, b) is

    score(a, b) = u(a) + v(b) + Q(a, b)        u = Σ_{i∈A} U_i, v = Σ_{i∈B} U_i of a copy; Q: the edges, of all copies

and with P = exp Q, Z = Σ_ab exp u(a) · P(a, b) · exp v(b): one product of matrices [copies, A] · [A, B] for all copies.
A junction tree of a complete graph visits each labelling of each copy once per clique instead.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crfkit._checks import check_count
from crfkit._types import Floats, Ids, Ints
from crfkit.errors import ParameterError
from crfkit.graph.fields.basis import expanded
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.marginals import InferenceStatus, Marginals

BLOCK = 1 << 21  # entries of P that are in memory at once
IMPOSSIBLE = -1e30  # instead of −inf, which times 0 is NaN
SMALLEST = 1e-200  # Z below this, relative to its parts: the row is summed again in log space
MOST_LABELLINGS = 1 << 15  # of a half that is worth a try
MOST_COLUMNS = 1 << 24  # entries of a table with a column for each state of each node of a half
FLOPS = 1e10  # of products of matrices, per second
SECONDS_PER_ENTRY = 1.5e-8  # of P
ENTRIES = 3e8  # of P that are compared per second to find the best labelling


@dataclass(frozen=True)
class Halves:
    """Sum-product and max-product over all labellings, for graphs with few nodes and any edges. Exact.

    Fast where many graphs are copies of one, with the same potentials of edges: the rows of a table. `max_labellings`
    is the largest number of labellings of a graph.

    >>> from crfkit.graph.graph import Graph
    >>> square = Potentials.from_tables(Graph.grid((2, 2)), np.zeros((4, 2)), np.log([[2.0, 1.0], [1.0, 2.0]]))
    >>> np.exp(Halves().run(square).log_z).round(3).tolist()  # 3⁴ + 1
    [82.0]
    """

    max_labellings: int = 1 << 30

    name = "halves"
    bound = "exact"

    def __post_init__(self) -> None:
        check_count(max_labellings=self.max_labellings)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        graph, K = potentials.graph, potentials.n_states
        if graph.n_graphs and copies_of_one(potentials):
            copies = _Copies(potentials, self.max_labellings)
            nodes = copies.nodes.reshape(potentials.unary.shape)
            return Marginals(copies.log_z, nodes, copies.edges, InferenceStatus.EXACT, edge_sums=copies.edge_sums)
        groups = [(group, _Copies(group.field, self.max_labellings)) for group in _groups(potentials)]
        log_z, nodes = np.zeros(graph.n_graphs), np.zeros((graph.n_nodes, K))
        for group, copies in groups:
            log_z[group.ids] = copies.log_z
            nodes[group.nodes] = copies.nodes.reshape(-1, K)

        def edges() -> Floats:
            found = np.zeros((graph.n_edges, K, K))
            for group, copies in groups:
                found[group.edges] = copies.edges()
            return found

        return Marginals(log_z, nodes, edges, InferenceStatus.EXACT)

    def decode(self, potentials: Potentials) -> Ids:
        """Return an array [n]: a labelling of the highest score."""
        labels = np.zeros(potentials.graph.n_nodes, dtype=np.int32)
        for group in _groups(potentials):
            labels[group.nodes] = _Copies(group.field, self.max_labellings).best.ravel()
        return labels


def labellings_in_halves(n_states: Sequence[int] | Ids) -> tuple[int, float, float]:
    """Return (how many nodes are in the first half, labellings of the first half, of the second): as even as can be.

    >>> labellings_in_halves([2, 2, 2, 3])
    (2, 4.0, 6.0)
    """
    sizes = np.asarray(n_states, dtype=np.float64)
    first = np.concatenate([[1.0], np.cumprod(sizes)])
    second = np.concatenate([np.cumprod(sizes[::-1])[::-1], [1.0]])
    m = int(np.argmin(np.maximum(first, second)))
    return m, float(first[m]), float(second[m])


def halves_seconds(n_states: Sequence[int], copies: int) -> float:
    """Return the predicted seconds of the expectations of copies of a graph; infinite where tables are too large."""
    m, first, second = labellings_in_halves(n_states)
    columns = max(first * sum(n_states[:m]), second * sum(n_states[m:]))
    if max(first, second) > MOST_LABELLINGS or columns > MOST_COLUMNS:
        return math.inf
    entries = first * second
    tables = entries * SECONDS_PER_ENTRY * (1 if entries <= BLOCK else 3)  # several blocks are computed again each time
    return 6.0 * copies * entries / FLOPS + tables


def decoding_seconds(potentials: Potentials) -> float:
    """Return the predicted seconds of finding the best labelling of each of these copies of one graph."""
    sizes = _sizes(potentials)
    _, first, second = labellings_in_halves(sizes)
    if math.isinf(halves_seconds(sizes, 1)):
        return math.inf
    return potentials.graph.n_graphs * first * second / ENTRIES


def suits_halves(potentials: Potentials) -> bool:
    """Return whether this engine is made for the graphs: many copies of one whose tables are not too large."""
    return copies_of_one(potentials) and math.isfinite(halves_seconds(_sizes(potentials), 1))


def copies_of_one(potentials: Potentials) -> bool:
    """Return whether all graphs are copies of the first, and their edges have the same potentials."""
    graph = potentials.graph
    if graph.n_graphs < 2 or not graph.are_copies:
        return graph.n_graphs == 1
    shape = graph.n_graphs, graph.n_edges // graph.n_graphs
    shared = potentials.places
    each = potentials.rows.reshape(*shape, len(potentials.basis)) if shared is None else shared.reshape(shape)
    return bool((each == each[:1]).all())


def _sizes(potentials: Potentials) -> list[int]:
    """Return the number of states of each node that are possible in some copy, and of those below them."""
    G = potentials.graph.n_graphs
    allowed = potentials.allowed.reshape(G, -1, potentials.n_states).any(axis=0)
    return [int(np.flatnonzero(row)[-1]) + 1 for row in allowed]


class _Group(NamedTuple):
    """Graphs that are copies of one, with the same potentials of edges."""

    ids: list[int]
    nodes: Ints
    edges: Ints
    field: Potentials


def _groups(potentials: Potentials) -> Iterator[_Group]:
    """Yield the graphs in sets of copies."""
    graph = potentials.graph
    alike: dict[Hashable, list[int]] = {}
    if graph.n_graphs and copies_of_one(potentials):
        alike[None] = list(range(graph.n_graphs))
    else:
        for g in range(graph.n_graphs):
            begin, end = graph.node_offsets[g : g + 2].tolist()
            edges = slice(*graph.edge_offsets[g : g + 2].tolist())
            key = end - begin, (graph.edges[edges] - begin).tobytes(), _rows(potentials, edges).tobytes()
            alike.setdefault(key, []).append(g)
    for ids in alike.values():
        part, nodes, chosen = graph.take(ids)
        yield _Group(ids, nodes, chosen, potentials.part(part, nodes, chosen))


def _rows(potentials: Potentials, edges: slice) -> Floats:
    """Return the coefficients of some edges."""
    return potentials.rows[edges] if potentials.places is None else potentials.rows[potentials.places[edges]]


class _Half:
    """All labellings of some nodes."""

    def __init__(self, sizes: list[int]) -> None:
        count = int(np.prod(sizes, dtype=np.int64)) if sizes else 1
        self.labels = np.zeros((count, len(sizes)), dtype=np.int64)  # the first node changes slowest
        inner = count
        for i, size in enumerate(sizes):
            inner //= size
            self.labels[:, i] = np.resize(np.repeat(np.arange(size), inner), count)
        self.begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)  # columns of each node in `states`
        self.states = np.zeros((count, int(self.begins[-1])))  # 1 where a node has a state
        for i in range(len(sizes)):
            self.states[np.arange(count), self.begins[i] + self.labels[:, i]] = 1.0

    def within(self, edges: list[tuple[int, int, Floats]]) -> Floats:
        """Return [labellings] the scores of edges between nodes of this half."""
        scores = np.zeros(len(self.labels))
        for i, j, table in edges:
            scores += table[self.labels[:, i], self.labels[:, j]]
        return scores

    def pair(self, i: int, j: int, K: int, weights: Floats) -> Floats:
        """Return [..., K, K]: weights [..., labellings] summed by the labels of two nodes."""
        codes = self.labels[:, i] * K + self.labels[:, j]
        found = np.zeros((*weights.shape[:-1], K * K))
        for code in np.unique(codes):
            found[..., code] = weights[..., codes == code].sum(axis=-1)
        return found.reshape(*weights.shape[:-1], K, K)


class _Copies:
    """Copies of one graph with the same potentials of edges."""

    def __init__(self, potentials: Potentials, most: int) -> None:
        graph = potentials.graph
        self.K = potentials.n_states
        self.N = graph.n_graphs
        self.n, self.E = graph.n_nodes // self.N, graph.n_edges // self.N
        unary = potentials.unary.reshape(self.N, self.n, self.K)
        sizes = _sizes(potentials)
        m, first, second = labellings_in_halves(sizes)
        if first * second > most:
            raise ParameterError(
                f"a graph has {first * second:.3g} labellings, more than max_labellings = {most}; use 'tree' or "
                "'junction', which are exact as well, or 'trw', 'bp' or 'mean-field'"
            )
        self.m, self.sizes = m, sizes
        self.A, self.B = _Half(sizes[:m]), _Half(sizes[m:])
        self.U, self.V = (self._columns(unary, part) for part in (range(m), range(m, self.n)))
        self.edges_of_one = graph.edges[: self.E].tolist()
        self._far: set[int] = set()  # copies that are summed one by one, in log space
        self._set_edges(expanded(_rows(potentials, slice(self.E)), potentials.basis))

    def _columns(self, unary: Floats, nodes: range) -> Floats:
        """Return [N, states of all nodes of a half]: unary potentials, one after the other."""
        parts = [np.maximum(unary[:, i, : self.sizes[i]], IMPOSSIBLE) for i in nodes]
        return np.concatenate(parts, axis=1) if parts else np.zeros((self.N, 0))

    def _set_edges(self, tables: Floats) -> None:
        """Sort the edges: within the first half, within the second, between them."""
        m, between = self.m, np.zeros((self.A.states.shape[1], self.B.states.shape[1]))
        inside: tuple[list[tuple[int, int, Floats]], list[tuple[int, int, Floats]]] = ([], [])
        for (i, j), table in zip(self.edges_of_one, tables, strict=True):
            if (i < m) == (j < m):
                inside[int(i >= m)].append((i - m * (i >= m), j - m * (j >= m), table))
                continue
            a, b, across = (i, j - m, table) if i < m else (j, i - m, table.T)
            rows, columns = self._places(a, b)
            between[rows, columns] += across[: self.sizes[a], : self.sizes[b + m]]
        self.between = self.A.states @ between  # [A, states of the second half]
        self.within = self.A.within(inside[0]), self.B.within(inside[1])

    def _places(self, a: int, b: int) -> tuple[slice, slice]:
        """Return where the states of a node of each half lie."""
        return slice(*self.A.begins[a : a + 2]), slice(*self.B.begins[b : b + 2])

    # --- the edges: Q and P = exp(Q − top), a block of columns at a time

    @cached_property
    def _columns_of_blocks(self) -> list[slice]:
        step = max(1, BLOCK // len(self.A.labels))
        return [slice(k, k + step) for k in range(0, len(self.B.labels), step)]

    def _scores(self, columns: slice) -> Floats:
        Q: Floats = self.between @ self.B.states[columns].T
        Q += self.within[0][:, None]
        Q += self.within[1][columns]
        return Q

    @cached_property
    def _top(self) -> float:
        return max(float(self._scores(columns).max()) for columns in self._columns_of_blocks)

    @cached_property
    def _only(self) -> Floats:
        return np.exp(self._scores(self._columns_of_blocks[0]) - self._top)

    def _blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield (columns, P of these columns)."""
        if len(self._columns_of_blocks) == 1:
            yield self._columns_of_blocks[0], self._only
            return
        for columns in self._columns_of_blocks:
            yield columns, np.exp(self._scores(columns) - self._top)

    # --- sums, over blocks of copies

    def _scaled(self, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Return (exp u [rows, A], exp v [rows, B], what was divided by [rows], in logs): the largest of each is 1."""
        u, v = self.U[rows] @ self.A.states.T, self.V[rows] @ self.B.states.T
        top_u, top_v = u.max(axis=1, keepdims=True), v.max(axis=1, keepdims=True)
        np.exp(np.subtract(u, top_u, out=u), out=u)
        np.exp(np.subtract(v, top_v, out=v), out=v)
        return u, v, top_u[:, 0] + top_v[:, 0] + self._top

    def _blocks_of_copies(self) -> Iterator[slice]:
        step = max(1, BLOCK // (len(self.A.labels) + len(self.B.labels)))
        for k in range(0, self.N, step):
            yield slice(k, min(k + step, self.N))

    def _halves_of(self, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Return (log Z [rows], p(a) [rows, A], p(b) [rows, B])."""
        left, right, tops = self._scaled(rows)
        z, p, q = np.zeros(len(tops)), np.zeros_like(left), np.empty_like(right)
        for columns, P in self._blocks():
            np.multiply(left @ P, right[:, columns], out=q[:, columns])
            z += q[:, columns].sum(axis=1)
            p += right[:, columns] @ P.T
        p *= left
        far = np.flatnonzero(~(z > SMALLEST))
        z[far] = 1.0
        log_z = np.log(z) + tops
        p /= z[:, None]
        q /= z[:, None]
        for row in far.tolist():
            log_z[row] = self._sum_in_logs(rows.start + row, p[row], q[row])
        self._far.update(rows.start + row for row in far.tolist())
        return log_z, p, q

    def _sum_in_logs(self, row: int, p: Floats, q: Floats) -> float:
        """Return log Z of a copy whose best labelling has a score far below the sum of the largest parts; set p, q."""
        top = max(float(self._scores_of(row, columns).max()) for columns in self._columns_of_blocks)
        p[:] = 0.0
        for columns in self._columns_of_blocks:
            each = np.exp(self._scores_of(row, columns) - top)
            p += each.sum(axis=1)
            q[columns] = each.sum(axis=0)
        z = p.sum()
        p /= z
        q /= z
        return float(top + np.log(z))

    def _scores_of(self, row: int, columns: slice) -> Floats:
        """Return [A, columns] the scores of the labellings of one copy."""
        u, v = self.A.states @ self.U[row], self.B.states[columns] @ self.V[row]
        found: Floats = self._scores(columns) + u[:, None] + v
        return found

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        """Return (log Z [N], p(y_i) [N, n, K])."""
        log_z, nodes = np.empty(self.N), np.zeros((self.N, self.n, self.K))
        for rows in self._blocks_of_copies():
            log_z[rows], p, q = self._halves_of(rows)
            for half, shares, first in ((self.A, p, 0), (self.B, q, self.m)):
                columns = shares @ half.states
                for i in range(len(half.begins) - 1):
                    begin, end = half.begins[i : i + 2]
                    nodes[rows, first + i, : end - begin] = columns[:, begin:end]
        return log_z, nodes

    @property
    def log_z(self) -> Floats:
        return self._sums[0]

    @property
    def nodes(self) -> Floats:
        """Return [N, n, K] p(y_i)."""
        return self._sums[1]

    def _normalised(self, rows: slice, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Return left [rows, A] and right [rows, B] with weight · p(a, b) = left · P(a, b) · right; 0 for far rows."""
        left, right, tops = self._scaled(rows)
        scale = np.exp(np.minimum(tops - self.log_z[rows], -math.log(SMALLEST))) * weights
        scale[[row - rows.start for row in self._far if rows.start <= row < rows.stop]] = 0.0
        left *= scale[:, None]
        return left, right

    def edge_sums(self, weights: Floats) -> Floats:
        """Return [E, K, K]: marginals of the edges of the graph, summed over copies with these weights [N]."""
        far = self._far if self._sums else ()
        half = np.zeros((len(self.A.labels), self.B.states.shape[1]))  # [A, states of the second half]
        p, q = np.zeros(len(self.A.labels)), np.zeros(len(self.B.labels))
        for columns, P in self._blocks():
            joint = np.zeros_like(P)  # Σ over copies of weight · p(a, b)
            for rows in self._blocks_of_copies():
                left, right = self._normalised(rows, weights[rows])
                joint += left.T @ right[:, columns]
            joint *= P
            for row in far:
                joint += weights[row] * np.exp(self._scores_of(row, columns) - self.log_z[row])
            p += joint.sum(axis=1)
            q[columns] = joint.sum(axis=0)
            half += joint @ self.B.states[columns]
        return self._tables(p, q, self.A.states.T @ half)

    def edges(self) -> Floats:
        """Return [N · E, K, K]: marginals of the edges of every copy."""
        far = self._far if self._sums else ()
        found = np.zeros((self.N, self.E, self.K, self.K))
        for rows in self._blocks_of_copies():
            _, p, q = self._halves_of(rows)
            left, right = self._normalised(rows)
            between = np.zeros((len(p), self.A.states.shape[1], self.B.states.shape[1]))
            for columns, P in self._blocks():
                for s, chosen in enumerate(self.A.states.T):
                    at = np.flatnonzero(chosen)
                    between[:, s] += ((left[:, at] @ P[at]) * right[:, columns]) @ self.B.states[columns]
                for row in (row for row in far if rows.start <= row < rows.stop):
                    joint = np.exp(self._scores_of(row, columns) - self.log_z[row])
                    between[row - rows.start] += self.A.states.T @ joint @ self.B.states[columns]
            found[rows] = self._tables(p, q, between)
        return found.reshape(self.N * self.E, self.K, self.K)

    def _tables(self, p: Floats, q: Floats, between: Floats) -> Floats:
        """Return [..., E, K, K] from p(a), p(b) and the pairs of states across the halves."""
        m, found = self.m, np.zeros((*p.shape[:-1], self.E, self.K, self.K))
        for e, (i, j) in enumerate(self.edges_of_one):
            if (i < m) == (j < m):
                half, shares, first = (self.A, p, 0) if i < m else (self.B, q, m)
                found[..., e, :, :] = half.pair(i - first, j - first, self.K, shares)
                continue
            a, b = (i, j) if i < m else (j, i)
            rows, columns = self._places(a, b - m)
            table = between[..., rows, columns]
            if i != a:
                table = np.swapaxes(table, -1, -2)
            found[..., e, : table.shape[-2], : table.shape[-1]] = table
        return found

    # --- the best labelling

    @cached_property
    def best(self) -> Ids:
        """Return [N, n]: a labelling of the highest score for each copy."""
        score = np.full(self.N, -np.inf)
        chosen = np.zeros((self.N, 2), dtype=np.int64)
        for columns in self._columns_of_blocks:
            Q = self._scores(columns)
            total = np.empty_like(Q)
            v = self.V @ self.B.states[columns].T
            for row in range(self.N):
                np.add(Q, (self.A.states @ self.U[row])[:, None], out=total)
                total += v[row]
                a, b = divmod(int(total.argmax()), total.shape[1])
                if total[a, b] > score[row]:
                    score[row], chosen[row] = total[a, b], (a, b + columns.start)
        return np.concatenate([self.A.labels[chosen[:, 0]], self.B.labels[chosen[:, 1]]], axis=1).astype(np.int32)
