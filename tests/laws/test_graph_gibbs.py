"""Laws of Gibbs sampling: sweeps leave the field's distribution as it is, estimates agree with enumeration."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from crfkit.errors import DataError, ParameterError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.gibbs import Gibbs, gibbs_plan, gibbs_sweeps, uses_blocks
from crfkit.graph.inference.marginals import InferenceStatus


def star():
    """And node 5 alone."""
    return Graph(6, [(3, 0), (1, 3), (3, 2), (4, 2)])


def ring(n):
    return Graph(n, [(i, (i + 1) % n) for i in range(n)])


GRAPHS = {
    "path": lambda: Graph.path(4),
    "star": star,
    "grid": lambda: Graph.grid((2, 3)),
    "complete": lambda: Graph.complete(4),
    "many": lambda: Graph.join([Graph.grid((2, 2)), Graph(0, []), Graph(2, []), Graph.path(3), Graph.complete(3)]),
}
CASES = [(name, K) for name in GRAPHS for K in (2, 3, 4)]
every_case = pytest.mark.parametrize(("name", "K"), CASES)
both_ways = pytest.mark.parametrize("block", [True, False])


def field(name, K, strength=1.0, impossible=True, seed=0):
    """Random potentials; with more than two states some nodes lack one."""
    graph, rng = GRAPHS[name](), np.random.default_rng([seed, K, len(name)])
    unary = rng.normal(size=(graph.n_nodes, K))
    if impossible and K > 2:
        for i in range(0, graph.n_nodes, 2):
            unary[i, rng.integers(K)] = -np.inf
    return Potentials.from_tables(graph, unary, strength * rng.normal(size=(graph.n_edges, K, K)))


def assert_mean(draws, expected, sigmas=6.0):
    """The mean of independent estimates [S, …] is `expected`, up to so many of its standard errors."""
    draws = np.asarray(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - expected) <= sigmas * error + 1e-12).all()


def copies(potentials, n):
    graph = potentials.graph.repeat(n)
    unary, tables = np.tile(potentials.unary, (n, 1)), np.tile(potentials.tables, (n, 1, 1))
    return Potentials.from_tables(graph, unary, tables)


def assert_distribution(labels, potentials, sigmas=5.0):
    """[S, n] labellings have the frequencies of the field, each within so many standard deviations."""
    K, n = potentials.n_states, potentials.graph.n_nodes
    every = np.stack(np.meshgrid(*[np.arange(K)] * n, indexing="ij"), axis=-1).reshape(-1, n)
    possible = potentials.allowed[np.arange(n), every].all(axis=1)
    scores = np.full(len(every), -np.inf)
    scores[possible] = [potentials.score(y.astype(np.int32)).sum() for y in every[possible]]
    p = np.exp(scores - scores.max())
    p /= p.sum()
    codes = np.ravel_multi_index(np.asarray(labels).T, (K,) * n)
    counts = np.bincount(codes, minlength=len(p))
    assert (counts[~possible] == 0).all()
    S, spread = len(labels), np.sqrt(p * (1 - p))
    assert (np.abs(counts / S - p) <= sigmas * spread / np.sqrt(S) + sigmas / S).all()


# --- sweeps


@pytest.mark.parametrize(("name", "K"), [("path", 3), ("star", 2), ("grid", 2), ("complete", 3), ("grid", 3)])
@both_ways
def test_a_sweep_leaves_the_distribution_as_it_is(name, K, block):
    """From exact samples one sweep leads to exact samples again; every copy of the graph is one."""
    potentials, S = field(name, K), 6000
    exact = Enumerate().sample(potentials, S, seed=1)
    swept = gibbs_sweeps(copies(potentials, S), exact.ravel(), 1, seed=2, block=block, n_threads=1)
    swept = swept.reshape(S, -1)
    assert (swept != exact).any(axis=0).all()
    assert_distribution(swept, potentials)


@pytest.mark.parametrize(("name", "K"), [("path", 3), ("star", 2), ("path", 4)])
def test_a_block_on_a_forest_is_an_exact_and_independent_draw(name, K):
    potentials = field(name, K, strength=2.0)
    drawn = Gibbs(n_threads=1, n_chains=4).sample(potentials, 8000, seed=3)
    assert_distribution(drawn, potentials)
    # From one and the same start as well, after a single sweep.
    start = Enumerate().decode(potentials)
    swept = gibbs_sweeps(copies(potentials, 8000), np.tile(start, 8000), 1, seed=4, n_threads=1)
    assert_distribution(swept.reshape(8000, -1), potentials)
    # Successive draws of a chain (every fourth) do not depend on each other.
    chains = drawn.reshape(-1, 4, drawn.shape[1])
    for i in range(drawn.shape[1]):
        before, after = (chains[:-1, :, i] == start[i]).ravel(), (chains[1:, :, i] == start[i]).ravel()
        if before.std() > 0:
            assert abs(np.corrcoef(before, after)[0, 1]) < 5 / np.sqrt(len(before))


def test_blocks_move_where_single_nodes_stick():
    """Rings of strong couplings, all in state 0: half of the nodes should leave it."""
    n, S = 12, 300
    potentials = Potentials.from_tables(ring(n).repeat(S), np.zeros((n * S, 2)), 3.0 * np.eye(2))
    start = np.zeros(n * S, dtype=np.int32)
    single, blocked = (gibbs_sweeps(potentials, start, 60, block=b, n_threads=1).mean() for b in (False, True))
    assert single < 0.3
    assert abs(blocked - 0.5) < 0.1


def test_no_sweeps_change_nothing_and_labels_are_checked():
    potentials = field("grid", 3)
    start = Enumerate().decode(potentials)
    assert_array_equal(gibbs_sweeps(potentials, start, 0), start)
    impossible = start.copy()
    impossible[0] = int(np.flatnonzero(~potentials.allowed[0])[0])
    with pytest.raises(DataError, match="node 0 has label"):
        gibbs_sweeps(potentials, impossible)


# --- the forest


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 14), st.floats(0, 1), st.integers(0, 1000))
def test_the_forest_has_no_cycle_and_no_node_could_join_it(n, density, seed):
    made = nx.gnp_random_graph(n, density, seed=seed)
    graph, _ = Graph.from_networkx(made)
    for sweep in (1, 2):
        bounds, nodes = gibbs_plan(graph).forest(sweep)
        assert nx.is_forest(made.subgraph(nodes.tolist()))
        for i in set(range(n)) - set(nodes.tolist()):
            assert not nx.is_forest(made.subgraph([*nodes.tolist(), i]))
        trees = {frozenset(nodes[a:b].tolist()) for a, b in pairwise(bounds)}
        assert trees == {frozenset(tree) for tree in nx.connected_components(made.subgraph(nodes.tolist()))}
    assert gibbs_plan(graph).n_outside == n - len(gibbs_plan(graph).forest(1)[1])


@pytest.mark.parametrize("shape", [((7, 9),), ((5, 6), 8), ((3, 4, 3),)])
def test_two_forests_cover_a_grid(shape):
    """So that every node moves with others in one of two sweeps."""
    graph = Graph.grid(*shape)
    covered = {i for sweep in (1, 2) for i in gibbs_plan(graph).forest(sweep)[1].tolist()}
    assert covered == set(range(graph.n_nodes))


def test_a_forest_is_its_own_block():
    graph = star()
    assert gibbs_plan(graph).n_outside == 0
    assert gibbs_plan(graph) is gibbs_plan(graph)


def test_auto_takes_blocks_where_couplings_are_strong():
    def ising(J, graph):
        return Potentials.from_tables(graph, np.zeros((graph.n_nodes, 2)), J * np.array([[1.0, -1.0], [-1.0, 1.0]]))

    assert uses_blocks(ising(0.6, ring(8)), "auto")
    assert not uses_blocks(ising(0.4, ring(8)), "auto")
    assert uses_blocks(ising(0.4, ring(8)), True)
    assert not uses_blocks(ising(0.6, ring(8)), False)
    assert uses_blocks(ising(0.1, star()), "auto")
    assert not uses_blocks(ising(0.6, Graph.grid((10, 10))), "auto")
    # What a table says of one end alone is no interaction.
    separate = Potentials.from_tables(ring(8), np.zeros((8, 2)), [[50.0, 0.0], [50.0, 0.0]])
    assert not uses_blocks(separate, "auto")


# --- estimates


@every_case
@both_ways
def test_marginals_are_those_of_enumeration(name, K, block):
    potentials = field(name, K)
    exact = Enumerate().run(potentials)
    options = {"n_sweeps": 300, "burn_in": 60, "n_chains": 2, "ais_steps": 1, "ais_runs": 2, "n_threads": 1}
    runs = [Gibbs(seed=s, block=block, **options).run(potentials) for s in range(24)]
    assert_mean([run.nodes for run in runs], exact.nodes)
    assert_mean([run.edges for run in runs], exact.edges)
    run = runs[0]
    assert run.status is InferenceStatus.SAMPLED
    assert (run.nodes[~potentials.allowed] == 0).all()
    np.testing.assert_allclose(run.nodes.sum(axis=1), 1.0)
    np.testing.assert_allclose(run.edges.sum(axis=(1, 2)), 1.0)


@every_case
@both_ways
def test_log_z_is_within_its_standard_errors(name, K, block):
    potentials = field(name, K)
    exact = Enumerate().run(potentials).log_z
    engine = Gibbs(n_sweeps=2, burn_in=0, n_chains=1, ais_steps=300, ais_runs=32, block=block, n_threads=1)
    run = engine.run(potentials)
    assert run.log_z.shape == run.errors.shape == (potentials.graph.n_graphs,)
    assert (np.abs(run.log_z - exact) <= 4 * run.errors + 1e-9).all()
    assert (run.errors < 0.1).all()


def test_standard_errors_are_those_that_are_made():
    potentials = field("grid", 3)
    exact = Enumerate().run(potentials).log_z[0]
    options = {"n_sweeps": 2, "burn_in": 0, "n_chains": 1, "ais_steps": 60, "ais_runs": 50, "n_threads": 1}
    runs = [Gibbs(seed=s, **options).run(potentials) for s in range(100)]
    z = np.array([(run.log_z[0] - exact) / run.errors[0] for run in runs])
    assert 0.8 < z.std() < 1.25
    assert abs(z.mean()) < 0.4
    # It is the weights whose mean is right, not their logarithms'.
    assert_mean([np.exp(run.log_z[0] - exact) for run in runs], 1.0, 4.0)


def test_samples_have_the_distribution_of_the_field():
    potentials = field("grid", 2)
    drawn = Gibbs(n_chains=2000, burn_in=40, n_threads=1).sample(potentials, 2000, seed=5)  # a chain each
    assert drawn.shape == (2000, 6)
    assert_distribution(drawn, potentials)
    longer = Gibbs(n_chains=3, thin=20, n_threads=1).sample(potentials, 2000)
    assert_distribution(longer, potentials)
    assert Gibbs().sample(potentials, 0).shape == (0, 6)


def test_clamped_labels_stay():
    potentials = field("grid", 3, impossible=False)
    known = np.array([1, -1, 2, -1, -1, 0])
    run = Gibbs(n_sweeps=50, n_threads=1).run(potentials.clamp(known))
    i = np.flatnonzero(known >= 0)
    np.testing.assert_allclose(run.nodes[i, known[i]], 1.0)


@both_ways
def test_large_potentials(block):
    """One labelling has all the probability."""
    rng = np.random.default_rng(0)
    graph = Graph.join([Graph.grid((3, 3)), Graph.path(4)])
    unary = 1e3 * rng.normal(size=(13, 3))
    unary[::3, 1] = -np.inf
    potentials = Potentials.from_tables(graph, unary, 50 * rng.normal(size=(graph.n_edges, 3, 3)))
    run = Gibbs(n_sweeps=20, block=block, n_threads=1).run(potentials)
    exact = Enumerate().run(potentials)
    np.testing.assert_allclose(run.nodes, exact.nodes, atol=1e-9)
    np.testing.assert_allclose(run.edges, exact.edges, atol=1e-9)
    assert (np.abs(run.log_z - exact.log_z) <= 4 * run.errors + 1e-6).all()
    flat = Potentials.from_tables(graph, np.zeros((13, 3)), 1e3 * rng.normal(size=(graph.n_edges, 3, 3)))
    run = Gibbs(n_sweeps=20, block=block, n_threads=1).run(flat)
    assert np.isfinite(run.log_z).all()
    assert np.isfinite(run.nodes).all()


# --- seeds, threads, starts


@both_ways
def test_threads_do_not_change_a_bit(block):
    graph = Graph.join([Graph.grid((40, 30)), Graph.grid((5, 5)).repeat(20), Graph(3, [])])
    rng = np.random.default_rng(1)
    tables = rng.normal(size=(graph.n_edges, 3, 3))
    potentials = Potentials.from_tables(graph, rng.normal(size=(graph.n_nodes, 3)), tables)
    options = {"n_sweeps": 6, "burn_in": 2, "ais_steps": 4, "ais_runs": 5, "block": block}
    one, two, three = (Gibbs(n_threads=t, **options).run(potentials) for t in (1, 2, 3))
    for other in (two, three):
        for what in ("nodes", "edges", "log_z", "errors"):
            assert_array_equal(getattr(one, what), getattr(other, what))
        assert_array_equal(one.state.labels, other.state.labels)
    samples = [Gibbs(n_threads=t, **options).sample(potentials, 12) for t in (1, 2)]
    assert_array_equal(*samples)
    big = copies(field("grid", 2), 2000)
    start = np.zeros(big.graph.n_nodes, dtype=np.int32)
    assert_array_equal(*(gibbs_sweeps(big, start, 3, block=block, n_threads=t) for t in (1, 2)))


@both_ways
def test_the_seed_decides(block):
    potentials = field("grid", 3)

    def numbers(seed, stream=0):
        run = Gibbs(n_sweeps=10, seed=seed, block=block, n_threads=1).run(potentials)
        y = np.zeros(600, dtype=np.int32)
        many = copies(field("grid", 2), 100)
        swept = gibbs_sweeps(many, y, 1, seed, stream, block, 1)
        return run.nodes, run.edges, run.log_z, Gibbs(block=block).sample(potentials, 30, seed), swept

    for a, b, c in zip(numbers(7), numbers(7), numbers(8), strict=True):
        assert_array_equal(a, b)
        assert (a != c).any()
    assert (numbers(7)[-1] != numbers(7, 1)[-1]).any()


def test_chains_do_not_depend_on_how_many_there_are():
    potentials = field("grid", 3)
    few, many = (Gibbs(n_sweeps=9, n_chains=c, n_threads=1).run(potentials).state.labels for c in (2, 5))
    assert_array_equal(few, many[:, :2])


def test_a_warm_start_goes_on():
    potentials = field("grid", 3)
    options = {"burn_in": 0, "ais_steps": 1, "ais_runs": 2, "n_threads": 1, "thin": 1}
    first = Gibbs(n_sweeps=7, **options).run(potentials)
    then = Gibbs(n_sweeps=5, **options).run(potentials, first)
    whole = Gibbs(n_sweeps=12, **options).run(potentials)
    assert_array_equal(then.state.labels, whole.state.labels)
    np.testing.assert_allclose((7 * first.nodes + 5 * then.nodes) / 12, whole.nodes)
    # The state of another engine, or of other numbers of chains, is no start.
    assert_array_equal(Gibbs(n_sweeps=7, **options).run(potentials, Enumerate().run(potentials)).nodes, first.nodes)
    assert Gibbs(n_sweeps=7, n_chains=3, **options).run(potentials, first).state.labels.shape == (6, 3)


# --- the edges of the contract


@pytest.mark.parametrize("sizes", [[0], [], [3], [0, 1]])
@both_ways
def test_graphs_without_nodes_or_edges(sizes, block):
    graph = Graph.join(Graph(n, []) for n in sizes)
    potentials = Potentials.from_tables(graph, np.zeros((graph.n_nodes, 2)))
    run = Gibbs(n_sweeps=5, block=block).run(potentials)
    np.testing.assert_allclose(run.log_z, np.log(2) * np.diff(graph.node_offsets))
    assert (run.errors == 0).all()
    np.testing.assert_allclose(run.nodes, np.full((graph.n_nodes, 2), 0.5))
    assert run.edges.shape == (graph.n_edges, 2, 2)
    assert Gibbs(block=block).sample(potentials, 3).shape == (3, graph.n_nodes)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_sweeps": 0},
        {"n_sweeps": 3, "thin": 4},
        {"burn_in": -1},
        {"n_chains": 0},
        {"n_chains": True},
        {"thin": 0},
        {"seed": -1},
        {"seed": 1.5},
        {"ais_runs": 1},
        {"ais_steps": 0},
        {"block": "yes"},
        {"block": 1},
    ],
)
def test_options_are_checked(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Gibbs(**bad)


def test_by_name():
    assert make_engine("gibbs", n_sweeps=5) == Gibbs(n_sweeps=5)
    assert (Gibbs.name, Gibbs.bound) == ("gibbs", "estimate")
