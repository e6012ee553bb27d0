"""Inference by listing every labelling: slow, obvious, and what the other engines are tested against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crfkit._types import Floats, Ids
from crfkit.errors import ParameterError, sample_error
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.inference.marginals import InferenceStatus, Marginals


@dataclass(frozen=True)
class Enumerate:
    """Exact; for graphs of at most `max_labellings` labellings. It runs on one thread whatever `n_threads` is.

    >>> from crfkit.graph.graph import Graph
    >>> pair = Potentials.from_tables(Graph.path(2), np.zeros((2, 2)), np.log([[3.0, 1.0], [1.0, 3.0]]))
    >>> np.exp(Enumerate().run(pair).log_z).round(3).tolist()
    [8.0]
    """

    max_labellings: int = 1 << 22
    n_threads: int | None = None

    name = "enumerate"
    bound = "exact"

    def run(self, potentials: Potentials, warm: Marginals | None = None) -> Marginals:
        graph, K = potentials.graph, potentials.n_states
        log_z = np.zeros(graph.n_graphs)
        nodes = np.zeros((graph.n_nodes, K))
        edges = np.zeros((graph.n_edges, K, K))
        for g, (labellings, scores, first_node, edge_ids) in enumerate(_graphs(potentials, self.max_labellings)):
            top = scores.max(initial=-np.inf)
            p = np.exp(scores - top)
            total = p.sum()
            log_z[g] = top + np.log(total)
            p /= total
            for i, states in enumerate(labellings.T):
                nodes[first_node + i] = np.bincount(states, weights=p, minlength=K)
            for e in edge_ids:
                i, j = graph.edges[e] - first_node
                codes = labellings[:, i] * K + labellings[:, j]
                edges[e] = np.bincount(codes, weights=p, minlength=K * K).reshape(K, K)
        return Marginals(log_z, nodes, lambda: edges, InferenceStatus.EXACT)

    def decode(self, potentials: Potentials) -> Ids:
        """Return an array [n]: a labelling of the highest score."""
        best = [labellings[scores.argmax()] for labellings, scores, *_ in _graphs(potentials, self.max_labellings)]
        return np.concatenate([np.empty(0, np.int32), *best]).astype(np.int32)

    def sample(self, potentials: Potentials, n_samples: int, seed: int = 0) -> Ids:
        """Return independent labellings [n_samples, n]."""
        rng = np.random.default_rng(seed)
        parts = []
        for labellings, scores, *_ in _graphs(potentials, self.max_labellings):
            p = np.exp(scores - scores.max())
            parts.append(labellings[rng.choice(len(p), n_samples, p=p / p.sum())])
        return np.concatenate([np.empty((n_samples, 0), np.int32), *parts], axis=1).astype(np.int32)


def _graphs(potentials: Potentials, limit: int):  # type: ignore[no-untyped-def]
    """Return (all labellings [M, n], their scores [M], first node, ids of edges) of every graph."""
    graph = potentials.graph
    for g in range(graph.n_graphs):
        begin, end = graph.node_offsets[g : g + 2].tolist()
        edge_ids = range(*graph.edge_offsets[g : g + 2].tolist())
        states = [np.flatnonzero(potentials.allowed[i]) for i in range(begin, end)]
        count = 1
        for choices in states:
            count *= len(choices)
        if count > limit:
            shown = f"{count:.3g}" if count < 10**15 else f"about 10^{sum(np.log10([len(c) for c in states])):.0f}"
            raise sample_error(
                ParameterError,
                g,
                f" has {end - begin} nodes and {shown} labellings, more than max_labellings = {limit}; use 'tree' or "
                "'junction', which are exact as well, or 'trw', 'bp' or 'max-product' where the graph is too wide for "
                "them",
            )
        # The first node changes slowest, as in nested loops.
        labellings = np.zeros((count, len(states)), dtype=np.int64)
        inner = count
        for i, choices in enumerate(states):
            inner //= len(choices)
            labellings[:, i] = np.resize(np.repeat(choices, inner), count)
        scores: Floats = np.zeros(count)
        for i in range(begin, end):
            scores += potentials.unary[i, labellings[:, i - begin]]
        for e in edge_ids:
            i, j = graph.edges[e] - begin
            scores += potentials.tables[e][labellings[:, i], labellings[:, j]]
        yield labellings, scores, begin, edge_ids
