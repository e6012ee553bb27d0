"""Tables drawn from fields whose edges are known."""

import numpy as np

from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.junction import Junction

ISING = np.array([[1.0, -1.0], [-1.0, 1.0]])


def planted(seed=0, p=8, n_edges=8, rows=1000, low=0.5, high=0.9):
    """(Y [rows, p] of 0 and 1, the edges as a set of pairs)."""
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(p, 1), axis=1)
    edges = pairs[np.sort(rng.choice(len(pairs), n_edges, replace=False))]
    couplings = rng.uniform(low, high, n_edges) * rng.choice([-1, 1], n_edges)
    bias = rng.uniform(-0.3, 0.3, p)
    field = Potentials.from_tables(Graph(p, edges), np.stack([-bias, bias], 1), couplings[:, None, None] * ISING)
    return Junction().sample(field, rows, seed), {tuple(edge) for edge in edges.tolist()}


def f1(found, true):
    found = {tuple(edge[:2]) for edge in found}
    return 2 * len(found & true) / (len(found) + len(true))
