"""What a hard look at pairwise fields found: hubs, damping close to one, warm starts, numbers that are none."""

from __future__ import annotations

import numpy as np
import pytest

from crfkit.data.graph import Graph
from crfkit.fields.potentials import Potentials
from crfkit.inference.belief_propagation import BeliefPropagation
from crfkit.inference.tree import Tree


@pytest.mark.parametrize("schedule", ["sweep", "flooding"])
@pytest.mark.parametrize("form", ["tables", "potts", "shared"])
@pytest.mark.parametrize("n_states", [3, 8])
def test_hub_of_many_neighbours(schedule: str, form: str, n_states: int) -> None:
    """Products of as many messages as a hub has neighbours neither vanish nor overflow."""
    n, K = 1500, n_states
    rng = np.random.default_rng(0)
    star = Graph(n, [(0, i) if i % 2 else (i, 0) for i in range(1, n)])
    unary = rng.standard_normal((n, K))
    if form == "tables":
        field = Potentials.from_tables(star, unary, 0.01 * rng.standard_normal((n - 1, K, K)))
    elif form == "potts":
        field = Potentials(star, unary, 0.01 * rng.standard_normal((n - 1, 1)), np.eye(K)[None])
    else:
        table = 0.01 * rng.standard_normal((K, K))
        field = Potentials.from_tables(star, unary, table + table.T)
    found, exact = BeliefPropagation(schedule=schedule).run(field), Tree().run(field)
    np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-10)
    np.testing.assert_allclose(found.nodes, exact.nodes, atol=1e-7)
    np.testing.assert_allclose(found.edges, exact.edges, atol=1e-7)
