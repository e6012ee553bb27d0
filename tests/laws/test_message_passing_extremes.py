"""Message passing in extreme cases: hubs, damping close to one, warm starts, NaN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.belief_propagation import BeliefPropagation
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.gibbs import Gibbs
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.graph.inference.mean_field import MeanField
from crfkit.graph.inference.tree import Tree
from crfkit.graph.inference.tree_reweighted import TreeReweighted


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


ITERATIVE = [
    BeliefPropagation(),
    BeliefPropagation(schedule="flooding"),
    BeliefPropagation(schedule="residual"),
    TreeReweighted(),
    MeanField(),
]


def small_field(n_states: int = 2, seed: int = 0) -> Potentials:
    rng = np.random.default_rng(seed)
    grid = Graph.grid((2, 3))
    tables = rng.standard_normal((grid.n_edges, n_states, n_states))
    return Potentials.from_tables(grid, rng.standard_normal((6, n_states)), tables)


@pytest.mark.parametrize("n_states", [2, 3])
@pytest.mark.parametrize("engine", ITERATIVE, ids=repr)
@pytest.mark.parametrize("damping", [0.9, 0.99, 1 - 1e-9, 1 - 1e-15])
def test_damping_is_no_convergence(engine: Any, damping: float, n_states: int) -> None:
    """What says that it converged is as close to the fixed point as without damping, however small its steps are."""
    field = small_field(n_states)
    found = replace(engine, damping=damping, max_iterations=5000).run(field)
    assert (found.status is InferenceStatus.CONVERGED) == (damping < 0.999)
    if found.status.settled:
        np.testing.assert_allclose(found.nodes, engine.run(field).nodes, atol=1e-6)


@pytest.mark.parametrize("n_states", [2, 3])
@pytest.mark.parametrize("engine", ITERATIVE, ids=repr)
@pytest.mark.parametrize("where", ["unary", "rows"])
def test_nan_is_no_convergence(engine: Any, where: str, n_states: int) -> None:
    field = small_field(n_states)
    values = getattr(field, where).copy()
    values[2, 1] = np.nan
    assert engine.run(replace(field, **{where: values})).status is InferenceStatus.NOT_CONVERGED


@pytest.mark.parametrize("n_states", [2, 3])
@pytest.mark.parametrize("engine", [replace(engine, damping=0.5) for engine in ITERATIVE], ids=repr)
def test_warm_start_where_states_have_become_impossible(engine: Any, n_states: int) -> None:
    field = small_field(n_states)
    clamped = field.clamp([0, -1, -1, 1, -1, -1])
    found, cold = engine.run(clamped, engine.run(field)), engine.run(clamped)
    assert (found.nodes[~clamped.allowed] == 0).all()
    np.testing.assert_allclose(found.log_z, cold.log_z, rtol=1e-7)
    nowhere = engine.run(field.clamp([1, 0, 0, 0, 0, 0]))  # all of it on impossible states
    np.testing.assert_allclose(engine.run(clamped, nowhere).log_z, cold.log_z, rtol=1e-7)


@pytest.mark.parametrize("engine", ITERATIVE, ids=repr)
@pytest.mark.parametrize("other", [*ITERATIVE, Gibbs(n_sweeps=2, ais_steps=2), Enumerate()], ids=repr)
def test_warm_start_from_elsewhere(engine: Any, other: Any) -> None:
    """Results of another graph, another number of states or another engine are at worst of no use."""
    field = small_field()
    path = Potentials.from_tables(Graph.path(3), np.zeros((3, 2)), np.eye(2))
    for elsewhere in (small_field(3), path, small_field(seed=1)):
        found = engine.run(field, other.run(elsewhere))
        np.testing.assert_allclose(found.nodes, engine.run(field).nodes, atol=1e-6)
