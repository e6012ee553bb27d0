"""Exact engines on graphs against enumeration over all labellings, against each other and against closed forms."""

import gc
import itertools
import time
import tracemalloc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from graph_cases import fields, random_field, random_forest, random_graph, random_potentials
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crfkit.errors import DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.basis import unit_tables
from crfkit.graph.fields.field import GraphField
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.defaults import default_engine
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.halves import Halves
from crfkit.graph.inference.junction import Junction
from crfkit.graph.inference.marginals import InferenceStatus, Marginals
from crfkit.graph.inference.tree import Tree
from crfkit.graph.losses.likelihood import GraphLikelihood

ENGINES = {"tree": Tree(n_threads=1), "junction": Junction(n_threads=1)}
every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


def assert_same(found: Marginals, expected: Marginals) -> None:
    assert found.status is InferenceStatus.EXACT
    assert_allclose(found.log_z, expected.log_z, rtol=1e-10, atol=1e-10)
    assert_allclose(found.nodes, expected.nodes, rtol=0, atol=1e-10)
    assert_allclose(found.edges, expected.edges, rtol=0, atol=1e-10)


@given(fields(forest=True))
def test_forests_are_enumerated(potentials):
    expected = Enumerate().run(potentials)
    for engine in ENGINES.values():
        assert_same(engine.run(potentials), expected)


@given(fields())
def test_graphs_are_enumerated(potentials):
    assert_same(Junction(n_threads=1).run(potentials), Enumerate().run(potentials))


@pytest.mark.parametrize("size", [1e3, -1e3])
@every_engine
def test_terms_that_underflow_one_by_one(engine, size):
    """Every labelling has the score `size`, as the sum of ±1e3; no product of exponentials is a double."""
    graph = Graph.path(6) if engine.name == "tree" else Graph.grid((2, 3))
    unary = np.array([[0.0, -size]] * 6)
    potentials = Potentials.from_tables(graph, unary, np.zeros((graph.n_edges, 2, 2)))
    shifted = Potentials.from_tables(graph, unary, _absorb(graph, unary))
    assert_same(engine.run(potentials), Enumerate().run(potentials))
    found = engine.run(shifted)
    assert_allclose(found.log_z, 6 * np.log(2), rtol=1e-10)
    assert_allclose(found.nodes, 0.5, rtol=1e-10)


def _absorb(graph: Graph, unary: np.ndarray) -> np.ndarray:
    """Tables that cancel the unary potentials of every node, at one of its edges."""
    tables = np.zeros((graph.n_edges, 2, 2))
    for i in range(graph.n_nodes):
        e, end = np.argwhere(graph.edges == i)[-1]
        tables[e] -= unary[i][:, None] if end == 0 else unary[i][None, :]
    return tables


@given(fields(forest=True), fields())
def test_decoding_finds_the_best_score(forest, loopy):
    for engine, potentials in ((ENGINES["tree"], forest), (ENGINES["junction"], forest), (ENGINES["junction"], loopy)):
        best = potentials.score(Enumerate().decode(potentials))
        labels = engine.decode(potentials)
        assert labels.dtype == np.int32
        assert_allclose(potentials.score(labels), best, rtol=1e-10, atol=1e-10)


def test_ties_go_to_the_lowest_state():
    rng = np.random.default_rng(0)
    graph = random_forest(rng, 30)
    unary = np.zeros((30, 3))
    unary[7, 0] = -np.inf
    expected = np.zeros(30)
    expected[7] = 1
    assert_array_equal(Tree().decode(Potentials.from_tables(graph, unary)), expected)


@every_engine
def test_samples_have_the_marginals(engine):
    potentials = random_field(3, n_states=3, forest=engine.name == "tree", n_graphs=3, impossible=0.2)
    n = 20_000
    samples = engine.sample(potentials, n, seed=5)
    exact = Enumerate().run(potentials)
    assert samples.shape == (n, potentials.graph.n_nodes)
    nodes = np.stack([(samples == k).mean(axis=0) for k in range(3)], axis=1)
    i, j = potentials.graph.edges.T
    edges = np.stack([[((samples[:, i] == a) & (samples[:, j] == b)).mean(axis=0) for b in range(3)] for a in range(3)])
    for found, p in ((nodes, exact.nodes), (np.moveaxis(edges, 2, 0), exact.edges)):
        assert_array_equal(found[p == 0], 0)
        assert (np.abs(found - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


@every_engine
def test_samples_are_of_whole_labellings(engine):
    """Joint frequencies, which node and edge marginals do not settle; and samples are independent of each other."""
    graph = Graph.path(4) if engine.name == "tree" else Graph.grid((2, 2))
    potentials = random_potentials(np.random.default_rng(1), graph, 2)
    n = 20_000
    codes = engine.sample(potentials, n, seed=1) @ (1 << np.arange(4))
    p = np.array([potentials.score(np.array(y, dtype=np.int32))[0] for y in itertools.product((0, 1), repeat=4)])
    p = np.exp(p - Enumerate().run(potentials).log_z[0])
    p = p.reshape(2, 2, 2, 2).transpose(3, 2, 1, 0).ravel()
    assert (np.abs(np.bincount(codes, minlength=16) / n - p) <= 5 * np.sqrt(p * (1 - p) / n)).all()
    pairs = np.bincount(codes[:-1] * 16 + codes[1:], minlength=256).reshape(16, 16) / n
    joint = np.outer(p, p)
    assert (np.abs(pairs - joint) <= 6 * np.sqrt(joint / n) + 1e-3).all()


@every_engine
def test_seeds(engine):
    potentials = random_field(4, n_states=3, forest=True, n_graphs=5)
    first = engine.sample(potentials, 50, seed=1)
    assert_array_equal(engine.sample(potentials, 50, seed=1), first)
    assert_array_equal(engine.sample(potentials, 20, seed=1), first[:20])
    assert (engine.sample(potentials, 50, seed=2) != first).any()
    assert engine.sample(potentials, 0).shape == (0, potentials.graph.n_nodes)


@pytest.mark.parametrize("make", [Tree, Junction])
@pytest.mark.parametrize("seed", range(4))
def test_threads_give_the_same_bits(make, seed):
    potentials = random_field(seed, n_states=3, forest=make is Tree, n_graphs=20, impossible=0.2, max_labellings=10**5)
    one, two = make(n_threads=1), make(n_threads=2)
    a, b = one.run(potentials), two.run(potentials)
    for name in ("log_z", "nodes", "edges"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert_array_equal(one.decode(potentials), two.decode(potentials))
    assert_array_equal(one.sample(potentials, 7, seed=3), two.sample(potentials, 7, seed=3))


@pytest.mark.parametrize("make", [Tree, Junction])
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_graphs_with_nothing_in_them(make, n_states):
    rng = np.random.default_rng(0)
    empty, alone = Graph(0, []), Graph(3, [])
    none = Graph(0, np.empty((0, 2)), np.array([0]), np.array([0]))
    for graph in (none, empty, alone, Graph.join([empty, alone, empty, Graph.path(3), empty])):
        potentials = random_potentials(rng, graph, n_states)
        engine = make()
        assert_same(engine.run(potentials), Enumerate().run(potentials))
        assert_allclose(potentials.score(engine.decode(potentials)), potentials.score(Enumerate().decode(potentials)))
        assert engine.sample(potentials, 2).shape == (2, graph.n_nodes)


@given(st.integers(0, 10**6))
def test_clamping_conditions(seed):
    """Z restricted to a label, over Z, is the label's probability."""
    potentials = random_field(seed, n_states=3)
    labels = np.full(potentials.graph.n_nodes, -1)
    labels[0] = seed % 3
    engine = Junction(n_threads=1)
    free, fixed = engine.run(potentials), engine.run(potentials.clamp(labels))
    assert_allclose(np.exp(fixed.log_z - free.log_z)[0], free.nodes[0, labels[0]], rtol=1e-9)


@given(fields())
def test_pairs_need_no_edge(potentials):
    graph = potentials.graph
    pairs = [
        pair
        for begin, end in itertools.pairwise(graph.node_offsets.tolist())
        for pair in itertools.permutations(range(begin, end), 2)
    ]
    pairs = np.random.default_rng(0).permutation(np.array(pairs, dtype=np.int32).reshape(-1, 2))[:12]
    found = Junction(n_threads=1).pair_marginals(potentials, pairs)
    assert_array_equal(Junction(n_threads=2).pair_marginals(potentials, pairs), found)
    # The same field with edges of no effect where there are none.
    joined = {tuple(sorted(edge)): e for e, edge in enumerate(graph.edges.tolist())}
    complete, tables = [], []
    for begin, end in itertools.pairwise(graph.node_offsets.tolist()):
        part = [pair for pair in itertools.combinations(range(begin, end), 2) if pair not in joined]
        own = [e for e in range(graph.n_edges) if begin <= graph.edges[e, 0] < end]
        edges = np.array([*(np.array(part).reshape(-1, 2) - begin), *(graph.edges[own] - begin)])
        complete.append(Graph(end - begin, edges.reshape(-1, 2).astype(np.int32)))
        tables += [*np.zeros((len(part), *potentials.tables.shape[1:])), *potentials.tables[own]]
    K = potentials.n_states
    full = Potentials.from_tables(Graph.join(complete), potentials.unary, np.reshape(tables, (-1, K, K)))
    exact = Enumerate().run(full).edges
    places = {tuple(edge): e for e, edge in enumerate(full.graph.edges.tolist())}
    for (i, j), p in zip(pairs.tolist(), found, strict=True):
        expected = exact[places[i, j]] if (i, j) in places else exact[places[j, i]].T
        assert_allclose(p, expected, rtol=0, atol=1e-10)


def test_pairs_are_checked():
    potentials = random_potentials(np.random.default_rng(0), Graph.path(3).repeat(2), 2)
    engine = Junction()
    assert engine.pair_marginals(potentials, []).shape == (0, 2, 2)
    for pairs, message in (
        ([[0, 6]], r"pair 0 \(0, 6\): nodes are numbered 0 … 5"),
        ([[0, 1], [2, 2]], "pair 1 is node 2 twice"),
        ([[0, 1], [2, 3]], r"pair 1 \(2, 3\) is of graphs 0 and 1"),
        ([0, 1], "pairs of node numbers"),
        ([[0.5, 1.0]], "pairs of node numbers"),
    ):
        with pytest.raises(DataError, match=message):
            engine.pair_marginals(potentials, pairs)


# --- refusals


def test_a_cycle_is_named():
    graph = Graph.join([Graph.path(4), Graph(0, []), Graph.complete(3), Graph.complete(3)])
    potentials = random_potentials(np.random.default_rng(0), graph, 2)
    for call in (Tree().run, Tree().decode, lambda p: Tree().sample(p, 1)):
        with pytest.raises(ParameterError, match=r"graph 2 has a cycle.*'junction'.*'bp'"):
            call(potentials)


def test_tables_too_large_are_named():
    graph = Graph.join([Graph.path(4), Graph.complete(7), Graph.complete(5)])
    potentials = random_potentials(np.random.default_rng(0), graph, 3)
    assert Junction(max_table=3**7).fits(graph, 3)
    assert not Junction(max_table=3**7 - 1).fits(graph, 3)
    assert Junction().table_size(graph, 3) == 3**7
    Junction(max_table=3**7).run(potentials)
    for call in ("run", "decode"):
        with pytest.raises(ParameterError, match=r"graph 1 has width 6: .*3\^7 = 2.19e\+03 entries \(1.75e\+04 bytes"):
            getattr(Junction(max_table=3**7 - 1), call)(potentials)


def test_all_tables_together_are_bounded():
    """A sweep along a ladder has many tables as large as the largest."""
    graph = Graph.grid((3, 200))
    engine = Junction(max_table=2 ** (Junction().table_size(graph, 2).bit_length() - 1))
    assert not engine.fits(graph, 2)
    with pytest.raises(ParameterError, match=r"graph 0: .* in all, more than 8 times max_table.*raise max_table"):
        engine.run(random_potentials(np.random.default_rng(0), graph, 2))


def test_an_order_that_stopped_short_is_searched_again():
    graph = Graph.grid((150, 150))
    assert not Junction(max_table=64).fits(graph, 2)
    assert not Junction().fits(graph, 2)
    with pytest.raises(ParameterError, match=r"graph 0 has width (at least )?\d+.*'bp' or 'trw'"):
        Junction().run(Potentials.from_tables(graph, np.zeros((graph.n_nodes, 2))))


@pytest.mark.parametrize(
    ("graph", "fits"),
    [
        (lambda: Graph.grid((2000, 2000)), False),
        (lambda: Graph.complete(2000), False),
        (lambda: Graph.complete(400), False),
        (lambda: Graph.grid((180, 180)), False),
        (lambda: Graph.grid((2, 20_000)), True),
        (lambda: Graph(50_000, [(0, i) for i in range(1, 50_000)]), True),
        (lambda: Graph.path(300_000), True),
    ],
    ids=["huge grid", "huge complete", "complete", "grid", "ladder", "star", "path"],
)
def test_fitting_is_decided_quickly(graph, fits):
    made = graph()
    began = time.perf_counter()
    assert Junction().fits(made, 2) is fits
    assert time.perf_counter() - began < 5.0


def test_options_are_checked():
    for make, options in (
        (Tree, {"n_threads": 0}),
        (Junction, {"n_threads": "two"}),
        (Junction, {"max_table": 0}),
        (Junction, {"max_table": 2.5}),
    ):
        with pytest.raises(ParameterError, match=f"{next(iter(options))} must be"):
            make(**options)
    potentials = random_field(0, forest=True)
    for engine in ENGINES.values():
        with pytest.raises(ParameterError, match="number of samples"):
            engine.sample(potentials, -1)
        with pytest.raises(ParameterError, match="seed"):
            engine.sample(potentials, 1, seed=-1)


# --- sizes


@every_engine
def test_a_long_path_has_its_closed_form(engine):
    """Z of a path of equal spins is 2 (e^a + e^−a)^(n−1), and neighbours agree with probability e^a / (e^a + e^−a)."""
    n, a = 1_000_000 if engine.name == "tree" else 100_000, 0.7
    graph = Graph.path(n)
    potentials = Potentials.from_tables(graph, np.zeros((n, 2)), [[a, -a], [-a, a]])
    found = engine.run(potentials)
    assert_allclose(found.log_z, np.log(2) + (n - 1) * np.log(2 * np.cosh(a)), rtol=1e-13)
    assert_allclose(found.nodes, 0.5, rtol=1e-10)
    assert_allclose(found.edges[:, 0, 0] + found.edges[:, 1, 1], 1 / (1 + np.exp(-2 * a)), rtol=1e-10)
    assert (engine.decode(potentials) == 0).all()
    y = engine.sample(potentials, 1)[0]
    agree = 1 / (1 + np.exp(-2 * a))
    assert abs((y[1:] == y[:-1]).mean() - agree) < 5 * np.sqrt(agree * (1 - agree) / n)


def test_a_grid_by_its_rows():
    """log Z of a 5 × 30 grid by transfer matrices over rows of 32 states."""
    rng = np.random.default_rng(0)
    graph = Graph.grid((30, 5))
    potentials = random_potentials(rng, graph, 2, scale=2.0)
    rows = np.array(list(itertools.product((0, 1), repeat=5)))
    within, between = np.zeros((30, 32)), np.zeros((29, 32, 32))
    for i in range(150):
        within[i // 5] += potentials.unary[i, rows[:, i % 5]]
    for (i, j), table in zip(graph.edges.tolist(), potentials.tables, strict=True):
        if i // 5 == j // 5:
            within[i // 5] += table[rows[:, i % 5], rows[:, j % 5]]
        else:
            between[i // 5] += table[rows[:, i % 5][:, None], rows[:, j % 5][None, :]]
    alpha, best = within[0], within[0]
    for r in range(1, 30):
        alpha = np.logaddexp.reduce(alpha[:, None] + between[r - 1], axis=0) + within[r]
        best = (best[:, None] + between[r - 1]).max(axis=0) + within[r]
    engine = Junction(n_threads=1)
    assert_allclose(engine.run(potentials).log_z, np.logaddexp.reduce(alpha), rtol=1e-11)
    assert_allclose(potentials.score(engine.decode(potentials)), best.max(), rtol=1e-11)


@given(st.integers(0, 10**6), st.integers(2, 14), st.floats(0.1, 0.9))
def test_width_is_that_of_plain_min_fill(seed, n_nodes, density):
    """The search with running counts takes the nodes that a search from scratch takes."""
    graph = random_graph(np.random.default_rng(seed), n_nodes, density)
    around = {i: set() for i in range(n_nodes)}
    for i, j in graph.edges.tolist():
        around[i].add(j)
        around[j].add(i)

    def missing(v: int) -> int:
        return sum(b not in around[a] for a, b in itertools.combinations(around[v], 2))

    largest = 0
    while around:
        v = min(around, key=lambda i: (missing(i), i))
        largest = max(largest, len(around[v]) + 1)
        for a, b in itertools.combinations(around[v], 2):
            around[a].add(b)
            around[b].add(a)
        for u in around.pop(v):
            around[u].discard(v)
    assert Junction().table_size(graph, 2) == 2**largest


def test_copies_share_one_order_and_plans_go_with_their_graph():
    rng = np.random.default_rng(0)
    graph = Graph.complete(5).repeat(40)
    potentials = random_potentials(rng, graph, 3)
    whole = Junction().run(potentials)
    for g in (0, 7, 39):
        part, nodes, edges = graph.take([g])
        alone = Junction().run(Potentials.from_tables(part, potentials.unary[nodes], potentials.tables[edges]))
        assert_array_equal(whole.nodes[nodes], alone.nodes)
        assert_array_equal(whole.log_z[g], alone.log_z[0])
    gone = weakref.ref(graph)
    del graph, potentials, whole
    gc.collect()
    assert gone() is None


def test_engines_by_name():
    assert isinstance(make_engine("tree"), Tree)
    assert make_engine("junction", max_table=100) == Junction(max_table=100)
    assert default_engine(Graph.path(5), 3) == "tree"
    assert default_engine(Graph.complete(5), 3) == "junction"
    assert default_engine(Graph.complete(30), 3) == "trw"


@pytest.mark.parametrize("seed", range(12))
def test_halves_of_copies_agree_with_enumeration(seed, monkeypatch):
    """Copies that share their edges, with impossible states, scores beyond the range of floats and small blocks."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr("crfkit.graph.inference.halves.BLOCK", int(rng.choice([4, 40, 1 << 20])))
    nodes, K, copies, scale = rng.integers(1, 6), rng.integers(2, 4), rng.integers(1, 6), rng.choice([0.5, 5, 800])
    one = Graph.complete(nodes) if seed % 2 else Graph.path(nodes)
    unary = rng.normal(size=(copies * nodes, K)) * scale
    unary[rng.random(unary.shape) < 0.2] = -np.inf
    unary[np.isinf(unary).all(axis=1)] = 0.0
    rows = rng.normal(size=(one.n_edges, K * K)) * scale
    places = np.tile(np.arange(one.n_edges), copies)
    field = Potentials(one.repeat(copies), unary, rows, unit_tables(K), places)
    found, exact = Halves().run(field), Enumerate().run(field)
    assert_allclose(found.log_z, exact.log_z, rtol=1e-12, atol=1e-9)
    assert_allclose(found.nodes, exact.nodes, atol=1e-9)
    assert_allclose(found.edges, exact.edges, atol=1e-9)
    weights = rng.random(copies)
    sums = np.einsum("g,g...->...", weights, exact.edges.reshape(copies, one.n_edges, K, K))
    assert_allclose(found.edge_sums(weights), sums, atol=1e-9)
    assert_allclose(field.score(Halves().decode(field)), field.score(Enumerate().decode(field)), rtol=1e-12)


def test_tables_whose_edges_share_potentials_take_no_memory_per_row():
    """Two columns of many labels: a table of labels² is kept once, not for every row."""
    rng = np.random.default_rng(0)
    states = rng.integers(0, 60, (300, 2))
    data = GraphData.table(300, Graph.complete(2), rng.normal(size=(300, 1)), states)
    data = replace(data, edge_features=np.ones((1, 1)), edge_rows=np.zeros(300, dtype=np.int32))
    loss = GraphLikelihood(data, GraphField([60, 60], 2, 1, 1, "reference", "full", [[0, 1]]), Halves())
    w = rng.normal(size=loss.size) / 10
    exact = GraphLikelihood(data, loss.field, Tree()).at(w)
    assert exact.value > 0  # computed here, and not while memory is counted
    tracemalloc.start()
    found = loss.at(w)
    assert_allclose(found.value, exact.value, rtol=1e-12)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300 * 60 * 60 * 8 / 2  # one table for each row would take twice that
    assert_allclose(found.grad, exact.grad, atol=1e-9)
