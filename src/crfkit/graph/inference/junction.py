"""Exact inference on graphs whose cliques are small, in the compiled core."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from crfkit import _core
from crfkit._checks import check_count
from crfkit._threads import count_threads
from crfkit._types import Floats, Ids
from crfkit.errors import DataError, ParameterError, sample_error
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.marginals import InferenceStatus, Marginals
from crfkit.graph.inference.tree import check_sampling, check_threads, native_arrays

TABLES = 8  # all tables of a graph together may have so many times the entries of the largest
MAX_LOOKED_AT = 100_000  # fits() does not look at graphs with cycles and more nodes or edges than this
BUDGET = 500_000_000  # steps that fits() may search for an order: about a second
_UNBOUNDED = (1 << 63) - 1
_MOST_NODES = 60  # of a clique; more would be too large for any memory

_ORDERS: WeakKeyDictionary[Graph, dict[int, _core.Elimination]] = WeakKeyDictionary()
_PLANS: WeakKeyDictionary[Graph, dict[int, _core.JunctionPlan]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Junction:
    """Sum-product and max-product on the junction tree of an elimination order. Exact.

    The order is by min-fill or, where that needs fewer table entries, a sweep over the graph from end to end: on a
    grid of 4 neighbours the width is then its shorter side.

    Time and memory grow as K^(width+1), the table of the largest clique: `max_table` is how many entries (of 8
    bytes) that may have. All tables of one graph, which are in memory at once, may have eight times as many;
    graphs are worked on one after the other, and on fewer threads where more would not fit into that.

    >>> square = Potentials.from_tables(Graph.grid((2, 2)), np.zeros((4, 2)), np.log([[2.0, 1.0], [1.0, 2.0]]))
    >>> np.exp(Junction().run(square).log_z).round(3).tolist()  # 3⁴ + 1
    [82.0]
    """

    max_table: int = 1 << 24
    n_threads: int | None = None  # None: all; graphs are shared out among them

    name = "junction"
    bound = "exact"

    def __post_init__(self) -> None:
        check_count(max_table=self.max_table)
        check_threads(self.n_threads)

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        plan = self._plan(potentials)
        log_z, nodes, edges = plan.marginals(*native_arrays(potentials), self._threads(plan))
        return Marginals(log_z, nodes, lambda: edges, InferenceStatus.EXACT)

    def decode(self, potentials: Potentials) -> Ids:
        """Return an array [n]: a labelling of the highest score."""
        plan = self._plan(potentials)
        labels: Ids = plan.decode(*native_arrays(potentials), self._threads(plan))
        return labels

    def sample(self, potentials: Potentials, n_samples: int, seed: int = 0) -> Ids:
        """Return independent labellings [n_samples, n]."""
        check_sampling(n_samples, seed)
        plan = self._plan(potentials)
        labels: Ids = plan.sample(*native_arrays(potentials), n_samples, seed, self._threads(plan))
        return labels

    def pair_marginals(self, potentials: Potentials, pairs: ArrayLike) -> Floats:
        """Return [M, K, K] p(y_i, y_j) of pairs [M, 2] of nodes, joined by an edge or not, each of one graph.

        Takes K times the time of run() for the graph of every different node i.
        """
        checked = _check_pairs(pairs, potentials.graph)
        order = np.argsort(checked[:, 0], kind="stable")
        plan = self._plan(potentials)
        found = plan.pair_marginals(*native_arrays(potentials), checked[order], self._threads(plan))
        marginals: Floats = np.empty_like(found)
        marginals[order] = found
        return marginals

    def fits(self, graph: Graph, n_states: int) -> bool:
        """Return whether `max_table` allows exact inference on this graph.

        Takes a second or two at most. It is False without a closer look for graphs with cycles and more than 100,000
        nodes or edges, and where no order is found in time; run() tries harder.
        """
        n, E = np.diff(graph.node_offsets), np.diff(graph.edge_offsets)
        if ((n <= E) & (np.maximum(n, E) > MAX_LOOKED_AT)).any():
            return False
        return self._refusal(self._order(graph, n_states, BUDGET), n_states) is None

    def table_size(self, graph: Graph, n_states: int) -> int:
        """Return K^(width+1), the entries of the largest table, whatever `max_table` is; slow on large dense graphs."""
        orders = _ORDERS.setdefault(graph, {})
        order = orders.get(n_states)
        if order is None or order.stopped >= 0:
            order = orders[n_states] = _core.Elimination(graph.native, n_states, _UNBOUNDED, _UNBOUNDED)
        entries: int = int(n_states) ** (order.width + 1)
        return entries

    def entries(self, graph: Graph, n_states: int) -> float:
        """Return the entries of all tables of the graph that has most; for graphs that fit."""
        return float(self._order(graph, n_states, BUDGET).most_entries(n_states)[1])

    # --- plans

    def _plan(self, potentials: Potentials) -> _core.JunctionPlan:
        graph, K = potentials.graph, potentials.n_states
        order = self._order(graph, K, _UNBOUNDED)
        plans = _PLANS.setdefault(graph, {})
        plan = plans.get(K)
        # What most training steps come to: the tables are known and small enough.
        if plan is not None and order.width < self._limit(K) and plan.max_size <= TABLES * self.max_table:
            return plan
        refusal = self._refusal(order, K)
        if refusal is not None:
            raise refusal
        plans[K] = _core.JunctionPlan(order, K)
        return plans[K]

    def _order(self, graph: Graph, n_states: int, budget: int) -> _core.Elimination:
        """Return the elimination order, found once per graph; an incomplete one is used where it suffices."""
        orders = _ORDERS.setdefault(graph, {})
        order = orders.get(n_states)
        limit = self._limit(n_states)
        if order is None or (order.stopped >= 0 and order.width < limit):
            order = orders[n_states] = _core.Elimination(graph.native, n_states, limit, budget)
        return order

    def _limit(self, n_states: int) -> int:
        """Return the number of nodes of the largest clique that is allowed."""
        size = 0
        while size < _MOST_NODES and n_states ** (size + 1) <= self.max_table:
            size += 1
        return size

    def _refusal(self, order: _core.Elimination, n_states: int) -> ParameterError | None:
        """Return the error with the reason why exact inference is not possible in this order."""
        advice = "use 'bp' or 'trw', or raise max_table"
        short = "at least " if order.stopped >= 0 else ""
        if order.stopped >= 0 or order.width + 1 > self._limit(n_states):
            entries = _power(n_states, order.width + 1)
            return sample_error(
                ParameterError,
                order.widest,
                f" has width {short}{order.width}: exact inference would need a table of {short}{entries[0]} entries "
                f"({entries[1]}), more than max_table = {self.max_table}; {advice}",
            )
        graph, total = order.most_entries(n_states)
        if total > TABLES * self.max_table:
            return sample_error(
                ParameterError,
                graph,
                f": exact inference would need tables of {total:.3g} entries ({8 * total:.3g} bytes) in all, more than "
                f"{TABLES} times max_table = {self.max_table}; {advice}",
            )
        return None

    def _threads(self, plan: _core.JunctionPlan) -> int:
        most = TABLES * self.max_table // max(1, plan.max_size)
        return max(1, min(count_threads(self.n_threads), most))


def _power(base: int, exponent: int) -> tuple[str, str]:
    """Return base^exponent in words, and eight times that in bytes."""
    digits = exponent * np.log10(base)
    if digits > 300:
        return f"{base}^{exponent}", f"8·{base}^{exponent} bytes"
    return f"{base}^{exponent} = {float(base) ** exponent:.3g}", f"{8 * float(base) ** exponent:.3g} bytes"


def _check_pairs(pairs: ArrayLike, graph: Graph) -> Ids:
    given = np.asarray(pairs)
    if given.size == 0:
        return np.empty((0, 2), dtype=np.int32)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise DataError(f"pairs must be pairs of node numbers; got {given.dtype} of shape {given.shape}")
    if (bad := np.flatnonzero((given < 0).any(axis=1) | (given >= graph.n_nodes).any(axis=1))).size:
        raise DataError(f"pair {bad[0]} {tuple(given[bad[0]].tolist())}: nodes are numbered 0 … {graph.n_nodes - 1}")
    if (same := np.flatnonzero(given[:, 0] == given[:, 1])).size:
        raise DataError(f"pair {same[0]} is node {given[same[0], 0]} twice")
    graphs = np.searchsorted(graph.node_offsets, given, side="right") - 1
    if (apart := np.flatnonzero(graphs[:, 0] != graphs[:, 1])).size:
        g, h = graphs[apart[0]].tolist()
        raise DataError(f"pair {apart[0]} {tuple(given[apart[0]].tolist())} is of graphs {g} and {h}; expected one")
    return np.ascontiguousarray(given, dtype=np.int32)
