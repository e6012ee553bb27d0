"""Message passing and mean field: exact on forests, bounds elsewhere, the same on every kernel and schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from crfkit import _core
from crfkit.errors import ParameterError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.belief_propagation import SCHEDULES, BeliefPropagation
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.marginals import InferenceStatus
from crfkit.graph.inference.max_product import MaxProduct
from crfkit.graph.inference.mean_field import MeanField
from crfkit.graph.inference.tree_reweighted import TreeReweighted, edge_appearances


def kernels():
    graph = Graph.path(2)
    field = Potentials.from_tables(graph, np.zeros((2, 2)))
    names = []
    for name in ("generic", "avx2", "avx512"):
        try:
            _core.SumProduct(graph.native, graph.blocks, field.unary, field.coefficients, field.basis, name, 1)
        except ValueError:
            continue
        names.append(name)
    return names


KERNELS = kernels()


def random_graph(rng, n, forest, density=0.5):
    pairs = []
    for j in range(1, n):
        if forest:
            if rng.random() < 0.85:
                pairs.append((int(rng.integers(j)), j))
        else:
            pairs += [(i, j) if rng.random() < 0.5 else (j, i) for i in range(j) if rng.random() < density]
    return Graph(n, pairs)


@st.composite
def fields(draw, forest=False, scales=(0.5, 2.0), forms=("tables", "potts", "shared", "symmetric"), forbid=True):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    K = draw(st.integers(2, 6 if forest else 3))
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    graph = Graph.join(random_graph(rng, n, forest) for n in sizes)
    scale = draw(st.sampled_from(scales))
    unary = scale * rng.normal(size=(graph.n_nodes, K))
    if forbid and draw(st.booleans()):
        unary[rng.random(unary.shape) < 0.2] = -np.inf
        unary[(unary == -np.inf).all(axis=1), 0] = 0.0
    form = draw(st.sampled_from(forms))
    if form == "tables":
        return Potentials.from_tables(graph, unary, scale * rng.normal(size=(graph.n_edges, K, K)))
    if form == "potts":
        return Potentials(graph, unary, min(scale, 50) * rng.normal(size=(graph.n_edges, 1)), np.eye(K)[None])
    table = scale * rng.normal(size=(K, K))
    return Potentials.from_tables(graph, unary, table + table.T if form == "symmetric" else table)


def assert_same(found, exact, accuracy):
    assert found.log_z == pytest.approx(exact.log_z, rel=accuracy, abs=accuracy)
    np.testing.assert_allclose(found.nodes, exact.nodes, atol=accuracy)
    np.testing.assert_allclose(found.edges, exact.edges, atol=accuracy)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kernel", KERNELS)
@given(field=fields(forest=True, scales=(0.5, 5.0, 50.0, 1000.0)))
def test_belief_propagation_is_exact_on_forests(schedule, kernel, field):
    engine = BeliefPropagation(schedule=schedule, kernels=kernel, tolerance=1e-11)
    found = engine.run(field)
    assert found.status is InferenceStatus.CONVERGED
    assert_same(found, Enumerate().run(field), 1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kernel", KERNELS)
@given(field=fields(forest=True, scales=(0.5, 5.0, 50.0, 1000.0)))
def test_tree_reweighted_is_exact_on_forests(schedule, kernel, field):
    engine = TreeReweighted(schedule=schedule, kernels=kernel, tolerance=1e-11)
    assert_same(engine.run(field), Enumerate().run(field), 1e-10)


@given(field=fields())
def test_tree_reweighted_has_one_fixed_point(field):
    """The bound is convex: schedules and kernels agree, in log-odds, in blocks of tables or one by one."""
    results = [
        TreeReweighted(schedule=schedule, kernels=kernel, tolerance=1e-11, max_iterations=5000).run(field)
        for schedule in SCHEDULES
        for kernel in KERNELS
    ]
    for other in results[1:]:
        assert other.status is InferenceStatus.CONVERGED
        assert_same(other, results[0], 1e-7)


@given(field=fields(forest=True, scales=(0.5, 5.0, 1000.0)))
def test_max_product_is_exact_on_forests(field):
    labels, converged = MaxProduct().decode(field)
    assert converged
    best = field.score(Enumerate().decode(field))
    np.testing.assert_allclose(field.score(labels), best, rtol=1e-12, atol=1e-12)


@given(field=fields())
def test_bounds(field):
    exact = Enumerate().run(field).log_z
    upper = TreeReweighted(tolerance=1e-10, max_iterations=5000).run(field)
    assert upper.status is InferenceStatus.CONVERGED
    assert (upper.log_z >= exact - 1e-8).all()
    for limit in (1, 2, 1000):
        lower = MeanField(max_iterations=limit).run(field)
        assert (lower.log_z <= exact + 1e-9).all()


@given(field=fields(forbid=False))
def test_mean_field_ascends(field):
    values = [MeanField(max_iterations=k, tolerance=0.0).run(field).log_z.sum() for k in (1, 2, 3, 5, 10, 30)]
    assert (np.diff(values) >= -1e-9).all()


@given(field=fields(), damping=st.sampled_from([0.0, 0.3]))
def test_schedules_and_kernels_find_the_same_fixed_point(field, damping):
    """With weak couplings there is one; flooding and sweeps, damped or not, in ratios, tables or logarithms."""
    weak = Potentials(field.graph, field.unary, 0.3 * field.coefficients, field.basis)
    results = [
        BeliefPropagation(schedule=schedule, kernels=kernel, damping=damping, tolerance=1e-12).run(weak)
        for schedule in SCHEDULES
        for kernel in KERNELS
    ]
    for other in results[1:]:
        assert other.status is InferenceStatus.CONVERGED
        assert_same(other, results[0], 1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("states", [2, 3, 5, 7])
def test_mean_field_kernels_agree_with_the_formula(kernel, states):
    rng = np.random.default_rng(states)
    graph = Graph.join([Graph.grid((5, 7), 8), Graph.complete(5)])
    shared = rng.normal(size=(states, states))
    for basis in (np.eye(states)[None], np.eye(states**2).reshape(-1, states, states), (shared + shared.T)[None]):
        coefficients = 0.3 * rng.normal(size=(graph.n_edges, len(basis)))
        if basis[0, 0, 1]:
            coefficients[:] = 0.3
        field = Potentials(graph, rng.normal(size=(graph.n_nodes, states)), coefficients, basis)
        found = MeanField(kernels=kernel, tolerance=1e-13).run(field)
        force = field.unary.copy()
        for e, (i, j) in enumerate(graph.edges):
            force[i] += field.tables[e] @ found.nodes[j]
            force[j] += field.tables[e].T @ found.nodes[i]
        p = np.exp(force - force.max(axis=1, keepdims=True))
        np.testing.assert_allclose(found.nodes, p / p.sum(axis=1, keepdims=True), atol=1e-10)


@pytest.mark.parametrize("engine", [BeliefPropagation, MeanField, TreeReweighted])
def test_threads_change_nothing(engine):
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph.grid((60, 50)), Graph.grid((10, 10), 8)])
    for states in (2, 3):
        field = Potentials.from_tables(
            graph, rng.normal(size=(graph.n_nodes, states)), 0.3 * rng.normal(size=(graph.n_edges, states, states))
        )
        one, two = (engine(n_threads=n, max_iterations=30, tolerance=0.0).run(field) for n in (1, 2))
        assert np.array_equal(one.log_z, two.log_z)
        assert np.array_equal(one.nodes, two.nodes)
        assert np.array_equal(one.edges, two.edges)


@pytest.mark.parametrize("engine", [BeliefPropagation(), MeanField(), TreeReweighted()], ids=lambda e: e.name)
def test_a_warm_start_is_quicker_and_ends_at_the_same_place(engine):
    rng = np.random.default_rng(3)
    graph = Graph.grid((20, 20))
    field = Potentials.from_tables(graph, rng.normal(size=(400, 2)), [[0.4, 0.0], [0.0, 0.4]])
    cold = engine.run(field)
    near = Potentials(graph, field.unary + 1e-4 * rng.normal(size=(400, 2)), field.coefficients, field.basis)
    warm, again = engine.run(near, cold), engine.run(near)
    assert warm.iterations < again.iterations
    np.testing.assert_allclose(warm.nodes, again.nodes, atol=1e-6)


def test_what_does_not_converge_says_so():
    rng = np.random.default_rng(0)
    graph = Graph.complete(10)
    field = Potentials(
        graph, 0.1 * rng.normal(size=(10, 2)), 3 * rng.normal(size=(45, 1)), np.array([[[1.0, -1], [-1, 1]]])
    )
    found = BeliefPropagation(max_iterations=20, damping=0.0).run(field)
    assert found.status is InferenceStatus.NOT_CONVERGED
    assert "damping" in str(found.status)
    assert found.residual > 1e-8
    assert np.isfinite(found.nodes).all()


def test_edge_appearances_are_a_mixture_of_spanning_forests():
    graph = Graph.join([Graph.grid((4, 5)), Graph.complete(6), Graph.path(4), Graph(3, [])])
    rho = edge_appearances(graph, 16)
    sizes = [20 - 1, 6 - 1, 4 - 1, 0]
    np.testing.assert_allclose(graph.sum_edges(rho), sizes)
    assert (rho > 0).all()
    assert (rho <= 1).all()
    assert (rho[graph.edge_offsets[2] : graph.edge_offsets[3]] == 1).all()


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "graph",
    [Graph.complete(60), Graph.grid((30, 20)), Graph.join([Graph.complete(9)] * 20), Graph.path(5), Graph(4, [])],
    ids=["dense", "grid", "many", "path", "none"],
)
def test_a_spanning_forest_costs_least(graph, ties):
    costs = np.random.default_rng(0).random(graph.n_edges)
    costs = 1 + np.floor(5 * costs) if ties else 1 + costs
    found = graph.native.spanning_forest(costs)
    i, j = graph.edges.T
    shape = (graph.n_nodes, graph.n_nodes)
    least = minimum_spanning_tree(coo_array((costs, (i, j)), shape=shape).tocsr())
    assert len(found) == least.nnz
    assert (np.diff(costs[found]) >= 0).all()
    np.testing.assert_allclose(costs[found].sum(), least.sum())
    tree = coo_array((np.ones(len(found)), (i[found], j[found])), shape=shape)
    assert connected_components(tree, directed=False)[0] == graph.n_nodes - len(found)  # no cycle


@pytest.mark.parametrize("name", ["bp", "trw", "mean-field"])
def test_nothing_to_infer(name):
    engine = make_engine(name)
    for graph in (Graph(0, []), Graph.join([]), Graph(3, []), Graph.join([Graph(0, []), Graph.path(2), Graph(0, [])])):
        field = Potentials.from_tables(graph, np.zeros((graph.n_nodes, 2)))
        found = engine.run(field)
        assert found.log_z.shape == (graph.n_graphs,)
        np.testing.assert_allclose(found.log_z, np.diff(graph.node_offsets) * np.log(2), atol=1e-12)
        assert found.edges.shape == (graph.n_edges, 2, 2)


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("bp", {"schedule": "random"}),
        ("bp", {"damping": 1.0}),
        ("bp", {"max_iterations": 0}),
        ("bp", {"tolerance": float("nan")}),
        ("trw", {"n_trees": 0}),
        ("trw", {"kernels": "fast"}),
        ("mean-field", {"kernels": None}),
        ("mean-field", {"damping": -0.1}),
        ("bp", {"speed": 3}),
        ("belief", {}),
    ],
)
def test_options_that_make_no_sense(engine, options):
    with pytest.raises(ParameterError):
        make_engine(engine, **options)


def test_many_states_and_a_high_degree():
    rng = np.random.default_rng(5)
    star = Graph(60, [(0, j) for j in range(1, 60)])
    field = Potentials.from_tables(star, rng.normal(size=(60, 70)), 0.01 * rng.normal(size=(59, 70, 70)))
    exact_leaves = np.log(np.exp(field.tables + field.unary[1:, None, :]).sum(axis=2)).sum(axis=0) + field.unary[0]
    expected = np.log(np.exp(exact_leaves - exact_leaves.max()).sum()) + exact_leaves.max()
    for schedule in SCHEDULES:
        assert BeliefPropagation(schedule=schedule).run(field).log_z[0] == pytest.approx(expected, rel=1e-11)
