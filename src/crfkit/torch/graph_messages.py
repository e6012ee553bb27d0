"""Mean field and loopy belief propagation on graphs: all directed messages of a sweep at once, on tensors.

m_{j→i}(k) = log Σ_l exp(P_ij(k, l) + b_j(l) − m_{i→j}(l)),    b_i = U_i + Σ_j m_{j→i}
log Z ≈ Σ_i (1 − degree_i) · log Σ_k exp b_i(k) + Σ_ij log Σ_kl exp(P_ij + b_i − m_{j→i} + b_j − m_{i→j})
mean field: q_i ∝ exp(U_i + Σ_j P_ij q_j),    log Z ≥ Σ_i q_i·(U_i − log q_i) + Σ_ij q_i·P_ij q_j
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from crfkit.torch.chain_scores import tensor
from crfkit.torch.grouped_sums import GroupedSums

if TYPE_CHECKING:
    from crfkit.graph.fields.potentials import Potentials


@dataclass(frozen=True, eq=False)
class GraphScores:
    """Log-potentials of n nodes and E edges in G graphs, on a device. −inf in `unary` forbids a state."""

    unary: Tensor  # [n, K]
    tables: Tensor  # [R, K, K]
    edges: Tensor  # [E, 2]
    node_graphs: Tensor  # [n] the graph of each node
    n_graphs: int = 1
    places: Tensor | None = None  # [E] the table of each edge; None: its own

    @classmethod
    def of(cls, potentials: Potentials, device: torch.device, dtype: torch.dtype) -> GraphScores:
        """Return the potentials of the CPU on a device."""
        from crfkit.graph.fields.basis import expanded

        graph = potentials.graph
        offsets = tensor(graph.node_offsets, device, torch.int64)
        return cls(
            tensor(potentials.unary, device, dtype),
            tensor(expanded(potentials.rows, potentials.basis), device, dtype),
            tensor(graph.edges, device, torch.int64),
            torch.repeat_interleave(torch.arange(graph.n_graphs, device=device), offsets.diff()),
            graph.n_graphs,
            None if potentials.places is None else tensor(potentials.places, device, torch.int64),
        )

    @cached_property
    def by_node(self) -> GroupedSums:
        """Sums by node over messages [2E, ·]: to all first ends, then to all second ends."""
        return GroupedSums.by_group(torch.cat([self.edges[:, 0], self.edges[:, 1]]), len(self.unary))

    @cached_property
    def by_graph(self) -> tuple[GroupedSums, GroupedSums]:
        """Sums by graph, over nodes and over edges."""
        edge_graphs = self.node_graphs[self.edges[:, 0]]
        return tuple(GroupedSums.by_group(of, self.n_graphs) for of in (self.node_graphs, edge_graphs))  # type: ignore[return-value]

    @cached_property
    def each(self) -> Tensor:
        """The tables [E, K, K], or [1, K, K] where all edges have the same."""
        if self.places is None or len(self.tables) == 1:
            return self.tables
        return self.tables[self.places]

    def total(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Return the sums of node values [n] and edge values [E] by graph, [G], in double."""
        by_node, by_edge = self.by_graph
        return by_node(nodes[:, None].double())[:, 0] + by_edge(edges[:, None].double())[:, 0]


class SumProduct:
    """Messages [2E, K] in logarithms: to all first ends of edges, then to all second ends."""

    def __init__(self, scores: GraphScores, messages: Tensor | None = None) -> None:
        self._scores = scores
        shape = 2 * len(scores.edges), scores.unary.shape[1]
        self.messages = scores.unary.new_zeros(shape) if messages is None else messages

    def beliefs(self) -> Tensor:
        return self._scores.unary + self._scores.by_node(self.messages)

    def _cavities(self) -> tuple[Tensor, Tensor]:
        """Return the scores of both ends [E, K] without what they have from each other."""
        b, (first, second) = self.beliefs(), self._scores.edges.unbind(1)
        to_first, to_second = self.messages.chunk(2)
        return b[first] - to_first, b[second] - to_second

    def sweep(self, damping: float, look: bool = True) -> Tensor | None:
        """Send all messages, from those of the last sweep; return the largest change, as it would be undamped."""
        if len(self.messages) == 0:
            return self.messages.new_zeros(())
        first, second = self._cavities()
        tables = self._scores.each
        to_first = torch.logsumexp(tables + second[:, None, :], dim=2)
        to_second = torch.logsumexp(tables + first[:, :, None], dim=1)
        new = torch.log_softmax(torch.cat([to_first, to_second]), dim=1)
        change = (new - self.messages).abs().amax() if look else None
        self.messages = torch.lerp(new, self.messages, damping) if damping else new
        return change

    def nodes(self) -> Tensor:
        """Return marginals [n, K]."""
        return torch.softmax(self.beliefs(), dim=1)

    def edges(self) -> Tensor:
        """Return marginals [E, K, K]."""
        first, second = self._cavities()
        joint = self._scores.each + first[:, :, None] + second[:, None, :]
        return torch.softmax(joint.flatten(1), dim=1).view_as(joint)

    def log_z(self) -> Tensor:
        """Return the Bethe approximation of log Z of each graph, [G]."""
        scores, (first, second) = self._scores, self._cavities()
        degrees = torch.bincount(scores.edges.flatten(), minlength=len(scores.unary))
        nodes = (1 - degrees) * torch.logsumexp(self.beliefs(), dim=1)
        edges = torch.logsumexp((scores.each + first[:, :, None] + second[:, None, :]).flatten(1), dim=1)
        return scores.total(nodes, edges)


class NaiveMeanField:
    """Marginals [n, K] of independent nodes; all are updated at once, so couplings that repel may need damping."""

    def __init__(self, scores: GraphScores, q: Tensor | None = None) -> None:
        self._scores = scores
        self.q = torch.softmax(scores.unary, dim=1) if q is None else q

    def sweep(self, damping: float, look: bool = True) -> Tensor | None:
        """Update all marginals; return the largest change, as it would be undamped."""
        scores, (first, second) = self._scores, self._scores.edges.unbind(1)
        tables = scores.each
        to_first, to_second = _product(tables, self.q[second]), _product(tables.transpose(1, 2), self.q[first])
        new = torch.softmax(scores.unary + scores.by_node(torch.cat([to_first, to_second])), dim=1)
        change = None
        if look:
            change = (new - self.q).abs().amax() if new.numel() else new.new_zeros(())
        self.q = torch.lerp(new, self.q, damping) if damping else new
        return change

    def nodes(self) -> Tensor:
        return self.q

    def edges(self) -> Tensor:
        first, second = self._scores.edges.unbind(1)
        return self.q[first][:, :, None] * self.q[second][:, None, :]

    def log_z(self) -> Tensor:
        """Return the lower bound of log Z of each graph, [G]."""
        scores, (first, second) = self._scores, self._scores.edges.unbind(1)
        q, used = self.q, self.q > 0
        terms = torch.where(used, q * (torch.where(used, scores.unary, 0.0) - torch.where(used, q, 1.0).log()), 0.0)
        return scores.total(terms.sum(1), (q[first] * _product(scores.each, q[second])).sum(1))


def _product(tables: Tensor, q: Tensor) -> Tensor:
    """Return Σ_l P(k, l) q(l) of each edge, [E, K]; tables [E, K, K] or [1, K, K]."""
    if len(tables) == 1:
        return q @ tables[0].T
    return torch.bmm(tables, q[:, :, None])[:, :, 0]
