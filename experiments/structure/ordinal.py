"""Chains of ratings: edges found and wrong ones, with one weight per edge and with tables of weights.

    python experiments/structure/ordinal.py     # about half a minute

Six items, 400 rows, 20 chains of each kind with couplings of either sign and uneven shares of the levels. Two-label
items have the coupling with which the forms should agree.
"""

from __future__ import annotations

import warnings

import numpy as np

from crfkit import StructureLearner
from crfkit.data.graph import Graph
from crfkit.fields.potentials import Potentials
from crfkit.inference.tree import Tree

ITEMS, ROWS, SEEDS = 6, 400, range(100, 120)


def chain(levels: int, coupling: float, seed: int) -> np.ndarray:
    """Return rows of a chain of ordinal items."""
    rng = np.random.default_rng(seed)
    s = np.linspace(-1, 1, levels)
    weights = rng.choice([-coupling, coupling], ITEMS - 1)
    edges = np.array([[i, i + 1] for i in range(ITEMS - 1)])
    biases = 0.3 * rng.normal(size=(ITEMS, levels))
    field = Potentials.from_tables(Graph(ITEMS, edges), biases, weights[:, None, None] * np.outer(s, s))
    return Tree().sample(field, ROWS, seed)


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # of empty graphs
    true = {(i, i + 1) for i in range(ITEMS - 1)}
    print("levels  coupling  form     found  wrong")
    for levels, coupling, forms in (
        (2, 0.45, ("ising", "ordinal")),
        (5, 0.9, ("full", "ordinal")),
        (7, 1.0, ("full", "ordinal")),
    ):
        for form in forms:
            found = wrong = 0
            for seed in SEEDS:
                learner = StructureLearner(form=form, refit="pl").fit(chain(levels, coupling, seed))
                edges = {edge[:2] for edge in learner.edges_}
                found += len(edges & true)
                wrong += len(edges - true)
            print(f"{levels:6}  {coupling:8}  {form:7}  {found:5}  {wrong:5}", flush=True)


if __name__ == "__main__":
    main()
