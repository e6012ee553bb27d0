"""Chains of ratings: edges found and wrong ones, with one weight per edge and with tables of weights.

Six items, 400 rows, couplings of either sign and uneven shares of the levels. Two-label items have the coupling with
which the forms should agree.
"""

from __future__ import annotations

import numpy as np

from crfkit import StructureLearner
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.tree import Tree

ITEMS, ROWS, SEED = 6, 400, 100
# levels, coupling, form
KINDS = (
    (2, 0.45, "ising"),
    (2, 0.45, "ordinal"),
    (5, 0.9, "full"),
    (5, 0.9, "ordinal"),
    (7, 1.0, "full"),
    (7, 1.0, "ordinal"),
)


def counts(levels: int, coupling: float, form: str, chains: int) -> dict[str, int]:
    """Return how many edges of all chains are found, how many are wrong, and how many there are."""
    true = {(i, i + 1) for i in range(ITEMS - 1)}
    found = wrong = 0
    for seed in range(SEED, SEED + chains):
        learner = StructureLearner(form=form, refit="pl", n_threads=1).fit(chain(levels, coupling, seed))
        edges = {edge[:2] for edge in learner.edges_}
        found += len(edges & true)
        wrong += len(edges - true)
    others = ITEMS * (ITEMS - 1) // 2 - len(true)
    return {"found": found, "wrong": wrong, "edges": chains * len(true), "others": chains * others}


def chain(levels: int, coupling: float, seed: int) -> np.ndarray:
    """Return rows of a chain of ordinal items."""
    rng = np.random.default_rng(seed)
    s = np.linspace(-1, 1, levels)
    weights = rng.choice([-coupling, coupling], ITEMS - 1)
    edges = np.array([[i, i + 1] for i in range(ITEMS - 1)])
    biases = 0.3 * rng.normal(size=(ITEMS, levels))
    field = Potentials.from_tables(Graph(ITEMS, edges), biases, weights[:, None, None] * np.outer(s, s))
    return Tree().sample(field, ROWS, seed)
