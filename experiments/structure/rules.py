"""The rules that choose a strength, on Markov random fields of 20 binary variables, 24 edges, 3,000 exact samples."""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np
from scores import f1

from crfkit import StructureLearner
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import GraphField
from crfkit.graph.graph import Graph
from crfkit.graph.inference.junction import Junction

RULES = ("ebic", "cv", "stability")
P, EDGES, ROWS = 20, 24, 3000


def trial(seed: int) -> dict[str, Any]:
    """Return F1, the number of edges and seconds of every rule on the field of a seed."""
    rng = np.random.default_rng(1000 + seed)
    pairs = np.array(list(combinations(range(P), 2)), dtype=np.int32)
    edges = pairs[np.sort(rng.choice(len(pairs), EDGES, replace=False))]
    couplings = rng.uniform(0.5, 0.9, EDGES) * rng.choice([-1.0, 1.0], EDGES)
    field = GraphField(np.full(P, 2), 1, 1, EDGES, "ising", "ising", edges)
    w = np.concatenate([rng.uniform(-0.3, 0.3, P), couplings])
    potentials = field.potentials(GraphData.table(1, Graph(P, edges)), w)
    Y = Junction().sample(potentials, ROWS, seed=seed).reshape(ROWS, P)
    true = {(i, j) for i, j in edges.tolist()}
    out = {}
    for rule in RULES:
        begin = time.process_time()
        learner = StructureLearner(edge_strength=rule, n_threads=1).fit(Y)
        found = {(i, j) for i, j, _ in learner.edges_}
        out[rule] = {"f1": f1(found, true), "edges": len(found), "seconds": time.process_time() - begin}
    return out
