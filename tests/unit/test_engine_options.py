"""Options of inference engines are checked at once; copies of graphs, marginals and potentials."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from crfkit.errors import DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.field import untied_field
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.belief_propagation import BeliefPropagation
from crfkit.graph.inference.decoding import decode
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.gibbs import Gibbs
from crfkit.graph.inference.junction import Junction
from crfkit.graph.inference.max_product import MaxProduct
from crfkit.graph.inference.mean_field import MeanField
from crfkit.graph.inference.tree import Tree
from crfkit.graph.inference.tree_reweighted import TreeReweighted
from crfkit.graph.losses.likelihood import GraphLikelihood

ITERATIVE = [BeliefPropagation, TreeReweighted, MeanField, MaxProduct]


@pytest.mark.parametrize("engine", ITERATIVE)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_iterations", 10**10),
        ("max_iterations", 10.0),
        ("tolerance", "small"),
        ("tolerance", float("nan")),
        ("tolerance", None),
        ("damping", "strong"),
        ("damping", 1.0),
        ("n_threads", 0),
        ("n_threads", 2.5),
        ("n_threads", "2"),
    ],
)
def test_options_are_checked_when_given(engine: Any, option: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=option.removeprefix("max_")):
        engine(**{option: value})


@pytest.mark.parametrize("engine", [MeanField, MaxProduct])
def test_only_sum_product_chooses_its_damping(engine: Any) -> None:
    with pytest.raises(ParameterError, match="damping"):
        engine(damping=None)


@pytest.mark.parametrize("value", [0, 2.5, "2"])
def test_threads_of_gibbs(value: Any) -> None:
    with pytest.raises(ParameterError, match="n_threads"):
        Gibbs(n_threads=value)


def field(n_states: int = 2) -> Potentials:
    rng = np.random.default_rng(0)
    grid = Graph.grid((2, 2))
    return Potentials.from_tables(
        grid, rng.standard_normal((4, n_states)), rng.standard_normal((4, n_states, n_states))
    )


COPIES = [copy.copy, copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))]
ENGINES: list[Any] = [
    *(engine() for engine in ITERATIVE[:3]),
    BeliefPropagation(schedule="residual"),
    Gibbs(n_sweeps=4, burn_in=0, ais_steps=4),
    Junction(),
    Enumerate(),
]


@pytest.mark.parametrize("copied", COPIES)
def test_copies_of_graphs_are_as_read_only_as_they(copied: Any) -> None:
    graph = field().graph
    graph.blocks  # noqa: B018  what was made from it must not get in the way
    twin = copied(graph)
    for name in ("edges", "node_offsets", "edge_offsets"):
        assert not getattr(twin, name).flags.writeable
        np.testing.assert_array_equal(getattr(twin, name), getattr(graph, name))


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@pytest.mark.parametrize("copied", COPIES)
def test_copies_of_marginals(copied: Any, engine: Any) -> None:
    found = engine.run(field())
    twin = copied(found)
    for name in ("log_z", "nodes", "edges", "errors"):
        np.testing.assert_array_equal(getattr(twin, name), getattr(found, name))
    assert twin.status is found.status
    engine.run(field(), twin)  # a start that is of no use


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_potentials_of_other_types(engine: Any, dtype: Any) -> None:
    doubles = field()
    unary, coefficients = (np.round(4 * x).astype(dtype) for x in (doubles.unary, doubles.coefficients))
    given = Potentials(doubles.graph, unary, coefficients, doubles.basis.astype(dtype))
    expected = replace(doubles, unary=unary.astype(float), rows=coefficients.astype(float))
    np.testing.assert_array_equal(engine.run(given).log_z, engine.run(expected).log_z)
    np.testing.assert_array_equal(decode(given, "icm").labels, decode(expected, "icm").labels)


@pytest.mark.parametrize("part", ["unary", "rows", "basis"])
def test_potentials_of_wrong_shapes(part: str) -> None:
    for wrong in (getattr(field(), part)[:-1], getattr(field(), part)[..., :0], 0.0):
        with pytest.raises(DataError, match="shapes"):
            replace(field(), **{part: wrong})


def test_counts_must_fit_the_field() -> None:
    """Counts of states that a node cannot have would drop out of the loss."""
    rng = np.random.default_rng(0)
    data = GraphData.counts(Graph.path(3), rng.integers(0, 3, (20, 3)), 3)
    for states, message in ((2, "counts of 3 states"), (4, "counts of 3 states"), ([3, 2, 3], "node 1 .* state 2")):
        with pytest.raises(DataError, match=message):
            GraphLikelihood(data, untied_field(data, states), Junction())
    GraphLikelihood(data, untied_field(data, 3), Junction())


def test_graphs_are_taken_by_a_list_of_numbers() -> None:
    data = GraphData.make(Graph.path(2).repeat(3), labels=np.zeros(6, dtype=int), weights=[1.0, 2.0, 3.0])
    assert data.take(1).graph_weights.tolist() == [2.0]
    with pytest.raises(DataError, match="list"):
        data.take([[0, 1]])


def test_more_threads_than_there_is_work() -> None:
    """Room is made for the threads that run, not for those that were allowed."""
    path = Potentials.from_tables(Graph.path(3), np.zeros((3, 2)))
    engine = Tree(n_threads=1024)
    np.testing.assert_allclose(engine.run(path).log_z, 3 * np.log(2))
    assert engine.decode(path).tolist() == [0, 0, 0]
    assert engine.sample(path, 2).shape == (2, 3)
