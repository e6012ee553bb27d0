"""Random pairwise fields small enough to enumerate: graphs, forests, many graphs joined, impossible states."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph


def random_graph(rng: np.random.Generator, n_nodes: int, density: float = 0.5) -> Graph:
    """Every pair is joined with this probability, in random order and direction."""
    pairs = [pair for pair in itertools.combinations(range(n_nodes), 2) if rng.random() < density]
    return Graph(n_nodes, _shuffled(rng, pairs))


def random_forest(rng: np.random.Generator, n_nodes: int, joined: float = 0.8) -> Graph:
    """Every node but the first hangs, with this probability, on a node before it; then nodes are renumbered."""
    names = rng.permutation(n_nodes)
    pairs = [(names[rng.integers(i)], names[i]) for i in range(1, n_nodes) if rng.random() < joined]
    return Graph(n_nodes, _shuffled(rng, pairs))


def random_potentials(
    rng: np.random.Generator, graph: Graph, n_states: int, scale: float = 1.0, impossible: float = 0.0
) -> Potentials:
    """Normal log-potentials times scale; a state is impossible with the probability given, never all of a node."""
    unary = scale * rng.standard_normal((graph.n_nodes, n_states))
    banned = rng.random(unary.shape) < impossible
    banned[np.arange(graph.n_nodes), rng.integers(n_states, size=graph.n_nodes)] = False
    unary[banned] = -np.inf
    return Potentials.from_tables(graph, unary, scale * rng.standard_normal((graph.n_edges, n_states, n_states)))


def random_field(
    seed: int,
    n_states: int = 2,
    forest: bool = False,
    n_graphs: int = 1,
    scale: float = 1.0,
    impossible: float = 0.0,
    max_labellings: int = 4096,
) -> Potentials:
    """A field on so many graphs, of 0 nodes up to as many as can be enumerated."""
    rng = np.random.default_rng(seed)
    most = int(np.log(max_labellings) / np.log(n_states))
    make = random_forest if forest else random_graph
    graphs = [make(rng, int(rng.integers(0 if n_graphs > 1 else 1, most + 1))) for _ in range(n_graphs)]
    return random_potentials(rng, Graph.join(graphs), n_states, scale, impossible)


@st.composite
def fields(draw: st.DrawFn, forest: bool = False, scales: tuple[float, ...] = (0.0, 1.0, 10.0, 1e3)) -> Potentials:
    """Fields of 2 … 5 states on 1 … 4 graphs, with and without impossible states."""
    return random_field(
        draw(st.integers(0, 2**32 - 1)),
        n_states=draw(st.integers(2, 5)),
        forest=forest,
        n_graphs=draw(st.integers(1, 4)),
        scale=draw(st.sampled_from(scales)),
        impossible=draw(st.sampled_from((0.0, 0.3))),
        max_labellings=1024,
    )


def _shuffled(rng: np.random.Generator, pairs: list[tuple[int, int]]) -> np.ndarray:
    edges = rng.permutation(np.array(pairs, dtype=np.int32).reshape(-1, 2))
    flip = rng.random(len(edges)) < 0.5
    edges[flip] = edges[flip][:, ::-1]
    return edges
