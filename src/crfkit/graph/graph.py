"""The structure of graphs: nodes, edges and, for many graphs, where each begins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._checks import ascends, check_count, whole_numbers
from crfkit._types import Array, Floats, Ids, Ints, Label, Record, Tabular
from crfkit.errors import DataError, ParameterError

MOST_EDGES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Graph:
    """G graphs as one: nodes 0 … n−1 and E edges between them.

    Graph g holds the nodes ``node_offsets[g] : node_offsets[g+1]`` and the edges from
    ``edge_offsets[g]`` on. An edge (i, j) joins two different nodes of one graph, at most once; its order matters to
    fields whose tables are not symmetric. The arrays here are read-only.

    >>> Graph.grid((2, 2)).edges.tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """

    n_nodes: int
    edges: Ids  # [E, 2]
    node_offsets: Ints = None  # type: ignore[assignment]  # [G+1]; None: one graph
    edge_offsets: Ints = None  # type: ignore[assignment]  # [G+1]
    checked: bool = False  # by who made it

    def __post_init__(self) -> None:
        n = _count(self.n_nodes)
        edges = np.asarray(self.edges, dtype=np.int32) if self.checked else _edge_array(self.edges, n)
        offsets: list[Ints] = []
        for name, given, end in (("node", self.node_offsets, n), ("edge", self.edge_offsets, len(edges))):
            array = whole_numbers([0, end] if given is None else given, f"{name} offsets", dtype=np.int64)
            if array.ndim != 1 or len(array) < 1 or array[0] != 0 or array[-1] != end or not ascends(array):
                raise DataError(f"{name} offsets must ascend from 0 to {end}")
            offsets.append(array)
        if len(offsets[0]) != len(offsets[1]):
            raise DataError(f"{len(offsets[0]) - 1} graphs by their nodes, {len(offsets[1]) - 1} by their edges")
        object.__setattr__(self, "n_nodes", n)
        arrays: dict[str, Array] = {"edges": edges, "node_offsets": offsets[0], "edge_offsets": offsets[1]}
        for name, array in arrays.items():
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        if not self.checked:
            self._check()

    def _check(self) -> None:
        i, j = self.edges[:, 0], self.edges[:, 1]
        if (loops := np.flatnonzero(i == j)).size:
            raise DataError(f"edge {loops[0]} joins node {i[loops[0]]} to itself")
        low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j)
        codes = low * self.n_nodes + high
        order = np.argsort(codes, kind="stable")
        if (same := np.flatnonzero(np.diff(codes[order]) == 0)).size:
            first, second = order[same[0]], order[same[0] + 1]
            raise DataError(f"edges {first} and {second} both join nodes {i[second]} and {j[second]}")
        if self.n_graphs > 1 and len(self.edges):
            begin = np.repeat(self.node_offsets[:-1], np.diff(self.edge_offsets))
            end = np.repeat(self.node_offsets[1:], np.diff(self.edge_offsets))
            if (outside := np.flatnonzero((low < begin) | (high >= end))).size:
                e = int(outside[0])
                g = int(np.searchsorted(self.edge_offsets, e, side="right")) - 1
                raise DataError(f"edge {e} ({i[e]}, {j[e]}) leaves its graph {g}, nodes {begin[e]} … {end[e] - 1}")

    # --- builders

    @classmethod
    def grid(cls, shape: Sequence[int], neighbours: int | None = None) -> Graph:
        """Return a grid of 2 or 3 axes; nodes in row-major order.

        neighbours: 4 (default) or 8 in two dimensions, 6 (default) or 26 in three.
        """
        if np.ndim(shape) != 1:
            raise ParameterError(f"a grid has a shape such as (20, 30), not {shape!r}")
        sizes = [_count(size, "a grid's size") for size in shape]
        if len(sizes) not in (2, 3) or min(sizes) < 1:
            raise ParameterError(f"a grid has 2 or 3 axes of at least one node, not {tuple(shape)}")
        if neighbours is None:
            neighbours = 2 * len(sizes)
        if neighbours not in ((4, 8) if len(sizes) == 2 else (6, 26)):
            raise ParameterError(f"a {len(sizes)}-D grid has {'4 or 8' if len(sizes) == 2 else '6 or 26'} neighbours")
        steps = [step for step in product((0, 1, -1), repeat=len(sizes)) if step > (0,) * len(sizes)]
        if neighbours == 2 * len(sizes):
            steps = [step for step in steps if sum(map(abs, step)) == 1]
        n_nodes = _count(math.prod(sizes))
        return _built(f"a grid of {n_nodes:,} nodes", partial(cls._grid, sizes, n_nodes, steps))

    @classmethod
    def _grid(cls, sizes: list[int], n_nodes: int, steps: list[tuple[int, ...]]) -> Graph:
        ids = np.arange(n_nodes, dtype=np.int32).reshape(sizes)
        parts = []
        for step in steps:
            here = tuple(slice(max(0, -s), size - max(0, s)) for s, size in zip(step, sizes, strict=True))
            there = tuple(slice(max(0, s), size + min(0, s)) for s, size in zip(step, sizes, strict=True))
            parts.append(np.stack([ids[here].ravel(), ids[there].ravel()], axis=1))
        return cls(ids.size, np.concatenate(parts), checked=True)

    @classmethod
    def complete(cls, n_nodes: int) -> Graph:
        """Return the graph in which every pair of nodes is joined."""
        n = _count(n_nodes)
        n_edges = n * (n - 1) // 2
        if n_edges > MOST_EDGES:
            raise ParameterError(
                f"a complete graph of {n:,} nodes has {n_edges:,} edges; at most {MOST_EDGES:,} are possible"
            )
        return _built(f"a complete graph of {n:,} nodes", partial(cls._complete, n, n_edges))

    @classmethod
    def _complete(cls, n: int, n_edges: int) -> Graph:
        edges, begin = np.empty((n_edges, 2), dtype=np.int32), 0
        for i in range(n):
            end = begin + n - 1 - i
            edges[begin:end, 0] = i
            edges[begin:end, 1] = np.arange(i + 1, n)
            begin = end
        return cls(n, edges, checked=True)

    @classmethod
    def path(cls, n_nodes: int) -> Graph:
        """Return a chain."""
        ids = np.arange(_count(n_nodes), dtype=np.int32)
        return cls(len(ids), np.stack([ids[:-1], ids[1:]], axis=1), checked=True)

    @classmethod
    def from_networkx(cls, graph: Tabular) -> tuple[Graph, list[Label]]:
        """Return (the graph, its nodes' names in the order of the ids), from any networkx graph."""
        names = list(graph.nodes)
        ids = {name: i for i, name in enumerate(names)}
        edges: list[tuple[int, int]] = []
        seen = set()
        for a, b in graph.edges():
            if a == b:
                raise DataError(f"node {a!r} is joined to itself")
            edges.append((ids[a], ids[b]))
            pair = frozenset(edges[-1])
            if pair in seen:
                raise DataError(f"nodes {a!r} and {b!r} are joined twice")
            seen.add(pair)
        return cls(len(names), np.array(edges, dtype=np.int32).reshape(-1, 2)), names

    def repeat(self, times: int) -> Graph:
        """Return this many copies of the graph, one after the other."""
        times = _count(times, "the number of copies")
        shift = np.arange(times, dtype=np.int64)
        if self.n_nodes * times > np.iinfo(np.int32).max:
            raise DataError(f"{self.n_nodes} nodes times {times} are too many")
        edges = (self.edges[None] + (shift * self.n_nodes)[:, None, None]).reshape(-1, 2).astype(np.int32)
        return Graph(
            self.n_nodes * times,
            edges,
            _repeated(self.node_offsets, times, self.n_nodes),
            _repeated(self.edge_offsets, times, len(self.edges)),
            checked=True,
        )

    @classmethod
    def join(cls, graphs: Iterable[Graph]) -> Graph:
        """Return many graphs joined into one."""
        parts = list(graphs)
        nodes = np.cumsum([0, *(part.n_nodes for part in parts)])
        counts = np.cumsum([0, *(len(part.edges) for part in parts)])
        if nodes[-1] > np.iinfo(np.int32).max:
            raise DataError(f"{nodes[-1]} nodes are too many")
        pairs = [part.edges + np.int32(start) for part, start in zip(parts, nodes, strict=False)]
        return cls(
            int(nodes[-1]),
            np.concatenate([np.empty((0, 2), dtype=np.int32), *pairs]),
            np.concatenate([[0], *(part.node_offsets[1:] + s for part, s in zip(parts, nodes, strict=False))]),
            np.concatenate([[0], *(part.edge_offsets[1:] + s for part, s in zip(parts, counts, strict=False))]),
            checked=True,
        )

    # --- what it is

    @property
    def n_edges(self) -> int:
        return len(self.edges)

    @property
    def n_graphs(self) -> int:
        return len(self.node_offsets) - 1

    @cached_property
    def native(self) -> _core.Graph:
        return _core.Graph(self.n_nodes, self.edges, self.node_offsets, self.edge_offsets)

    @cached_property
    def blocks(self) -> _core.Blocks:
        """Return the nodes in blocks, as the sweeping engines work on them."""
        return _core.Blocks(self.native)

    @cached_property
    def components(self) -> Ids:
        """Return an array [n]: which connected component each node is in."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ones = np.ones(self.n_edges, dtype=np.int8)
        matrix = coo_array((ones, (self.edges[:, 0], self.edges[:, 1])), shape=(self.n_nodes, self.n_nodes))
        ids: Ids = connected_components(matrix, directed=False)[1].astype(np.int32)
        return ids

    @cached_property
    def is_forest(self) -> bool:
        """Return whether the graph has no cycle."""
        n_components = int(self.components.max()) + 1 if self.n_nodes else 0
        return self.n_edges == self.n_nodes - n_components

    @cached_property
    def are_copies(self) -> bool:
        """Return whether all graphs have the nodes and edges of the first, in its order."""
        G = self.n_graphs
        if G < 2:
            return True
        n, E = self.n_nodes // G, self.n_edges // G
        steps = np.arange(G + 1)
        if not (np.array_equal(self.node_offsets, n * steps) and np.array_equal(self.edge_offsets, E * steps)):
            return False
        edges = self.edges.reshape(G, E, 2)
        return bool((edges - n * steps[:G, None, None] == edges[:1]).all())

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}  # without what was made from them

    def __setstate__(self, state: Record) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # copies are not by themselves, and the core reads them in place
            object.__setattr__(self, name, value)

    def sum_nodes(self, values: Array) -> Floats:
        """Return sums of node values [n, …] by graph [G, …]."""
        return _sum_by(values, self.node_offsets)

    def sum_edges(self, values: Array) -> Floats:
        """Return sums of edge values [E, …] by graph [G, …]."""
        return _sum_by(values, self.edge_offsets)

    def take(self, ids: ArrayLike) -> tuple[Graph, Ints, Ints]:
        """Return (some of the graphs, the ids of their nodes here, the ids of their edges here)."""
        if np.asarray(ids).dtype == bool:
            raise DataError("graphs are taken by their numbers, not by a mask; use np.flatnonzero")
        chosen = np.atleast_1d(whole_numbers(ids, "the numbers of graphs", dtype=np.int64))
        if chosen.ndim != 1:
            raise DataError(f"the numbers of graphs must be a list; got shape {chosen.shape}")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.n_graphs):
            missing = chosen[(chosen < 0) | (chosen >= self.n_graphs)][0]
            raise DataError(f"there is no graph {missing}; they are numbered 0 … {self.n_graphs - 1}")
        nodes, node_offsets = _ranges(self.node_offsets, chosen)
        edges, edge_offsets = _ranges(self.edge_offsets, chosen)
        shift = np.repeat(node_offsets[:-1] - self.node_offsets[chosen], np.diff(edge_offsets))
        pairs = (self.edges[edges] + shift[:, None]).astype(np.int32)
        return Graph(len(nodes), pairs, node_offsets, edge_offsets, checked=True), nodes, edges


def _ranges(offsets: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    lengths = np.diff(offsets)[chosen]
    ends = np.cumsum(lengths)
    ids = np.arange(lengths.sum()) + np.repeat(offsets[chosen] - (ends - lengths), lengths)
    return ids, np.concatenate([[0], ends]).astype(np.int64)


def _sum_by(values: Array, offsets: Ints) -> Floats:
    """Return sums of rows by graph; graphs without rows get 0."""
    values = np.asarray(values)
    out = np.zeros((len(offsets) - 1, *values.shape[1:]))
    full = np.flatnonzero(np.diff(offsets))
    if len(full):
        out[full] = np.add.reduceat(values, offsets[full], axis=0)
    return out


def _repeated(offsets: Ints, times: int, total: int) -> Ints:
    rest = (offsets[1:] + (np.arange(times, dtype=np.int64) * total)[:, None]).ravel()
    return np.concatenate([[0], rest]).astype(np.int64)


def _built(what: str, build: Callable[[], Graph]) -> Graph:
    try:
        return build()
    except MemoryError:
        raise ParameterError(f"there is not enough memory for {what}") from None


def _count(n: int, what: str = "the number of nodes") -> int:
    check_count(0, **{what: n})
    if n > np.iinfo(np.int32).max:
        raise ParameterError(f"{what} is {n}; at most {np.iinfo(np.int32).max} are possible")
    return int(n)


def _edge_array(edges: object, n_nodes: int) -> Ids:
    array = whole_numbers(edges, "edges, pairs of node numbers,", dtype=np.int64, floats=True)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        raise DataError(f"edges must be pairs of node numbers; got an array of shape {array.shape}")
    if (bad := np.flatnonzero((array < 0).any(axis=1) | (array >= n_nodes).any(axis=1))).size:
        e = int(bad[0])
        i, j = array[e].tolist()
        raise DataError(f"edge {e} ({i}, {j}) is dangling: nodes are numbered 0 … {n_nodes - 1}")
    return array.astype(np.int32)
