"""Laws of inference engines, over every member of the registry, with enumeration as the judge."""

import numpy as np
import pytest
from graph_cases import random_field
from numpy.testing import assert_allclose

from crfkit.errors import CrfkitError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import ENGINES, make_engine
from crfkit.graph.inference.enumerate import Enumerate

every_engine = pytest.mark.parametrize("name", list(ENGINES))
SEEDS = range(4)
seeds = pytest.mark.parametrize("seed", SEEDS)


def example(seed, forest):
    return random_field(seed, n_states=2 + seed % 2, forest=forest, n_graphs=2, scale=0.5, max_labellings=256)


def has_loops(seed, forest):
    graph = example(seed, forest).graph
    return graph.n_edges > graph.n_nodes - n_parts(graph)


def n_parts(graph):
    part = np.arange(graph.n_nodes)
    for _ in range(graph.n_nodes):
        for i, j in graph.edges:
            part[[i, j]] = min(part[i], part[j])
    return len(set(part))


def is_for_forests(name):
    """Whether the engine refuses a triangle."""
    triangle = Potentials.from_tables(Graph(3, [[0, 1], [0, 2], [1, 2]]), np.zeros((3, 2)), np.zeros((2, 2)))
    try:
        make_engine(name).run(triangle)
    except CrfkitError:
        return True
    return False


OF_FORESTS = {name for name in ENGINES if is_for_forests(name)}
# (engine, seed, forest): all but loops with engines that are for forests.
CASES = [
    pytest.param(name, seed, forest, id=f"{'forest' if forest else 'loops'}-{seed}-{name}")
    for forest in (True, False)
    for seed in SEEDS
    for name in ENGINES
    if not (name in OF_FORESTS and has_loops(seed, forest))
]
every_case = pytest.mark.parametrize(("name", "seed", "forest"), CASES)


def inferred(name, seed, forest):
    """(the field, its marginals by the engine, exact ones, the engine)"""
    field, engine = example(seed, forest), make_engine(name)
    return field, engine.run(field), Enumerate().run(field), engine


@pytest.mark.parametrize("name", sorted(OF_FORESTS))
def test_engines_of_forests_refuse_loops(name):
    loops = [seed for seed in SEEDS if has_loops(seed, False)]
    assert len(loops) >= 2
    for seed in loops:
        with pytest.raises(CrfkitError):
            make_engine(name).run(example(seed, False))


@every_engine
def test_it_has_a_name_and_says_what_log_z_is(name):
    engine = make_engine(name)
    assert engine.name == name
    assert engine.bound in ("exact", "upper", "lower", "estimate")
    assert make_engine(engine) is engine


@every_case
def test_marginals_are_distributions(name, seed, forest):
    field, found, _, _ = inferred(name, seed, forest)
    graph, K = field.graph, field.n_states
    assert found.log_z.shape == (graph.n_graphs,)
    assert found.nodes.shape == (graph.n_nodes, K)
    assert found.edges.shape == (graph.n_edges, K, K)
    for p, axes in ((found.nodes, 1), (found.edges, (1, 2))):
        assert (p >= 0).all()
        assert_allclose(p.sum(axis=axes), 1.0, atol=1e-7)
    i, j = graph.edges.T
    tolerance = 1e-5 if found.errors is None else 0.05  # samples of nodes and of edges are not the same
    assert_allclose(found.edges.sum(axis=2), found.nodes[i], atol=tolerance)
    assert_allclose(found.edges.sum(axis=1), found.nodes[j], atol=tolerance)


@every_case
def test_log_z_is_what_it_says(name, seed, forest):
    _, found, exact, engine = inferred(name, seed, forest)
    gap = found.log_z - exact.log_z
    slack = 1e-7
    if engine.bound == "exact":
        assert_allclose(gap, 0.0, atol=1e-9)
        assert_allclose(found.nodes, exact.nodes, atol=1e-9)
        assert_allclose(found.edges, exact.edges, atol=1e-9)
    elif engine.bound == "upper":
        assert (gap >= -slack).all()
    elif engine.bound == "lower":
        assert (gap <= slack).all()
    elif found.errors is not None:  # a sample
        assert (np.abs(gap) <= 6.0 * found.errors + slack).all()


@every_engine
@seeds
def test_without_edges_it_is_exact(name, seed):
    field = random_field(seed, n_states=3, forest=True, scale=1.0, max_labellings=243)
    alone = Potentials.from_tables(Graph(field.graph.n_nodes, np.zeros((0, 2), dtype=int)), field.unary)
    found, exact = make_engine(name).run(alone), Enumerate().run(alone)
    if found.errors is None:
        assert_allclose(found.log_z, exact.log_z, atol=1e-9)
        assert_allclose(found.nodes, exact.nodes, atol=1e-9)
    else:
        assert_allclose(found.nodes, exact.nodes, atol=0.1)


@every_engine
@seeds
def test_the_same_again_from_its_own_result(name, seed):
    field, found, _, engine = inferred(name, seed, True)
    again = engine.run(field, found)
    tolerance = 1e-6 if found.errors is None else 0.1
    assert_allclose(again.nodes, found.nodes, atol=tolerance)
