"""Decoding: exact methods find the best labelling, the others a local optimum of their kind, and say which."""

import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crfkit.errors import CapabilityError, CrfkitError, DataError, ParameterError
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference import decoding
from crfkit.graph.inference.cuts import alpha_expansion, graph_cut, is_attractive
from crfkit.graph.inference.decoding import METHODS, decode
from crfkit.graph.inference.enumerate import Enumerate
from crfkit.graph.inference.icm import icm

SCALES = (1e-3, 1.0, 1e3)


# --- fields


def make_graph(rng, sizes, density=0.6):
    parts = []
    for n in sizes:
        pairs = [(i, j) for i in range(n) for j in range(i)]
        chosen = [pair[:: rng.choice((-1, 1))] for pair in pairs if rng.random() < density]
        parts.append(Graph(n, np.array(chosen, dtype=np.int32).reshape(-1, 2)))
    return Graph.join(parts)


def forbid(rng, unary, rate):
    """Some states become impossible, never all of a node."""
    forbidden = rng.random(unary.shape) < rate
    forbidden[np.arange(len(unary)), rng.integers(unary.shape[1], size=len(unary))] = False
    unary[forbidden] = -np.inf
    return unary


def make_field(seed, sizes, K, kind="any", scale=1.0, forbidden=0.0, ties=False):
    """kind: "any" table; "attractive" (binary: any table with P00 + P11 ≥ P01 + P10); "potts" with a coupling ≥ 0 per
    edge, on one shared table; "metric": per edge −|distance| of points on a line, plus unary terms."""
    rng = np.random.default_rng(seed)
    graph = make_graph(rng, sizes)
    E = graph.n_edges

    def draw(*shape):
        return (rng.integers(-2, 3, size=shape) if ties else rng.normal(size=shape)) * scale

    unary = forbid(rng, draw(graph.n_nodes, K), forbidden)
    if kind == "potts":
        return Potentials(graph, unary, abs(draw(E, 1)), np.eye(K)[None])
    tables = draw(E, K, K)
    if kind == "attractive":
        tables[:, 0, 0] += np.maximum(0, tables[:, 0, 1] + tables[:, 1, 0] - tables[:, 0, 0] - tables[:, 1, 1])
    elif kind == "metric":
        places = draw(E, K)
        tables = -abs(places[:, :, None] - places[:, None, :]) + draw(E, K, 1) + draw(E, 1, K)
    return Potentials.from_tables(graph, unary, tables)


def fields(K=(2, 3), kind="any"):
    return st.builds(
        make_field,
        seed=st.integers(0, 2**32 - 1),
        sizes=st.lists(st.integers(0, 6), max_size=3),
        K=st.sampled_from(K),
        kind=st.just(kind) if isinstance(kind, str) else st.sampled_from(kind),
        scale=st.sampled_from(SCALES),
        forbidden=st.sampled_from((0.0, 0.3)),
        ties=st.booleans(),
    )


def size_of(field):
    """What rounding is relative to."""
    finite = np.where(field.allowed, field.unary, 0.0)
    return 1e-300 + abs(finite).sum() + abs(field.tables).sum()


def best_score(field):
    return field.score(Enumerate().decode(field))


def assert_no_change_helps(field, labels):
    """No change of one node improves the score."""
    score = field.score(labels).sum()
    for i, k in zip(*np.nonzero(field.allowed), strict=True):
        changed = labels.copy()
        changed[i] = k
        assert field.score(changed).sum() <= score + 1e-12 * size_of(field)


# --- exact methods


@settings(max_examples=150)
@given(field=fields(K=(2,), kind=("attractive", "potts")))
def test_a_graph_cut_is_the_best_labelling(field):
    found = decode(field, "graph-cut")
    assert found.optimal
    assert found.labels.dtype == np.int32
    assert_allclose(found.score, field.score(found.labels))
    assert_allclose(found.score, best_score(field), rtol=0, atol=1e-13 * size_of(field))


@given(field=fields(K=(2,), kind="attractive"), seed=st.integers(0, 99))
def test_potentials_that_differ_by_magnitudes_do_not_distort_a_cut(field, seed):
    """Some unary potentials of ±1e3 among small ones: what the cut gets wrong must be rounding of the small ones."""
    rng = np.random.default_rng(seed)
    unary = field.unary / max(1.0, abs(field.unary[field.allowed]).max(initial=0.0))
    unary[rng.random(unary.shape) < 0.3] *= 1e3
    field = Potentials.from_tables(field.graph, unary, field.tables / max(1.0, abs(field.tables).max(initial=0.0)))
    assert_allclose(field.score(graph_cut(field)), best_score(field), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "method",
    [
        "enumerate",
        "junction",
        "tree",
    ],
)
def test_exact_methods_agree(method):
    for seed in range(20):
        field = make_field(seed, (5, 0, 2, 6), 3, scale=SCALES[seed % 3], forbidden=0.2)
        if method == "tree":
            paths = Graph.join(map(Graph.path, (5, 0, 2, 6)))
            field = Potentials.from_tables(paths, field.unary, field.tables[: paths.n_edges])
        found = decode(field, method)
        assert found.method == method
        assert found.optimal
        assert_allclose(found.score, best_score(field), rtol=1e-12)


def test_enumeration_of_few_labellings_of_many_nodes():
    field = Potentials.from_tables(Graph.path(70), np.eye(2)[[0, 1] * 35]).clamp([0, 1] * 34 + [-1, -1])
    assert decode(field, "enumerate").labels.tolist() == [0, 1] * 35


def test_a_cut_is_refused_where_different_states_are_preferred():
    tables = np.zeros((4, 2, 2))
    tables[2] = [[0, 1], [1, 0]]
    field = Potentials.from_tables(Graph.grid((2, 2)), np.zeros((4, 2)), tables)
    with pytest.raises(CapabilityError, match=r"edge 2 \(0, 2\) has the table .*use 'max-product'"):
        decode(field, "graph-cut")
    # With one end known the edge is a unary term.
    known = field.clamp([0, -1, -1, -1])
    assert is_attractive(known)
    assert not is_attractive(field)
    assert decode(known, "graph-cut").score == best_score(known)


def test_a_table_attractive_up_to_rounding_is_cut():
    table = np.array([[0.1 + 0.2, 0.3], [0.3, 0.3]])
    for shift in (0.0, -1e-15):
        field = Potentials.from_tables(Graph.complete(4), np.zeros((4, 2)), table + np.diag([shift, 0]))
        assert is_attractive(field)
        graph_cut(field)


def test_a_cut_is_for_two_states():
    with pytest.raises(CapabilityError, match="has 3; use 'alpha-expansion'"):
        decode(make_field(0, (4,), 3), "graph-cut")


# --- ICM


@settings(max_examples=100)
@given(field=fields(K=(1, 2, 3, 5)), seed=st.integers(0, 99))
def test_icm_ends_where_no_single_change_helps(field, seed):
    draws = np.where(field.allowed, np.random.default_rng(seed).random(field.unary.shape), -1)
    for start in (None, draws.argmax(axis=1)):
        found = decode(field, "icm", start=start)
        assert not found.optimal
        assert_no_change_helps(field, found.labels)
        before = field.score(field.unary.argmax(axis=1) if start is None else start)
        assert (found.score >= before - 1e-12 * size_of(field)).all()


@given(field=fields())
def test_icm_stays_at_the_best_labelling(field):
    """Also where others are as good: ties keep the state."""
    best = Enumerate().decode(field)
    assert_array_equal(icm(field, best), best)


@given(field=fields(), seed=st.integers(0, 99))
def test_restarts_never_hurt_any_graph(field, seed):
    once, more = decode(field, "icm"), decode(field, "icm", n_restarts=5, seed=seed)
    assert (more.score >= once.score).all()
    assert_no_change_helps(field, more.labels)
    assert_array_equal(more.labels, decode(field, "icm", n_restarts=5, seed=seed).labels)


def test_restarts_help():
    field = make_field(1, (12,) * 5, 2)
    assert decode(field, "icm", n_restarts=30).score.sum() > decode(field, "icm").score.sum()


def test_shared_tables_are_as_good_as_tables_of_their_own():
    rng = np.random.default_rng(5)
    graph = make_graph(rng, (20, 15))
    coefficients = rng.integers(-3, 4, size=(graph.n_edges, 1)).astype(float)  # exact arithmetic, so the same path
    shared = Potentials(graph, rng.integers(-9, 9, size=(35, 3)) / 4, coefficients, rng.integers(-4, 4, (1, 3, 3)) / 2)
    own = Potentials.from_tables(graph, shared.unary, shared.tables)
    assert_array_equal(icm(shared), icm(own))


# --- expansions


def expansions(field, labels):
    """Every labelling that one expansion leads to."""
    for alpha in range(field.n_states):
        movable = np.flatnonzero(field.allowed[:, alpha] & (labels != alpha))
        for goes in product((False, True), repeat=len(movable)):
            moved = labels.copy()
            moved[movable[list(goes)]] = alpha
            yield moved


@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(("potts", "metric")), scale=st.sampled_from(SCALES))
def test_no_expansion_improves_the_result(seed, kind, scale):
    field = make_field(seed, (5,), 3, kind, scale, forbidden=0.2)
    labels = alpha_expansion(field)
    score = field.score(labels)[0]
    assert all(field.score(other)[0] <= score + 1e-11 * size_of(field) for other in expansions(field, labels))


@settings(max_examples=60)
@given(field=fields(K=(1, 2, 3, 4), kind=("potts", "metric")))
def test_expansions_never_lose_to_icm(field):
    found = decode(field, "alpha-expansion")
    assert not found.optimal
    assert (found.score >= decode(field, "icm").score - 1e-12 * size_of(field)).all()
    assert_no_change_helps(field, found.labels)


def lack(field, labels):
    """[G] how much a labelling's score lacks of every node's and edge's best."""
    graph = field.graph
    ideal = graph.sum_nodes(field.unary.max(axis=1)) + graph.sum_edges(field.tables.max(axis=(1, 2)))
    return ideal - field.score(labels)


@given(field=fields(K=(3, 4), kind="potts"))
def test_potts_is_within_a_factor_of_two(field):
    best = lack(field, Enumerate().decode(field))
    assert (lack(field, alpha_expansion(field)) <= 2 * best + 1e-12 * size_of(field)).all()


def test_expansions_usually_find_the_best():
    field = make_field(0, (6,) * 100, 3, "potts")
    equal = np.isclose(decode(field, "alpha-expansion").score, best_score(field), rtol=1e-12)
    assert equal.mean() > 0.9
    assert equal.mean() >= np.isclose(decode(field, "icm").score, best_score(field), rtol=1e-12).mean()


def test_an_expansion_is_refused_where_a_move_is_no_cut():
    tables = np.broadcast_to(np.eye(3), (4, 3, 3)).copy()
    tables[3] = -np.eye(3)  # edge (1, 3)
    field = Potentials.from_tables(Graph.grid((2, 2)), np.eye(3)[[0, 1, 0, 1]] * 0.1, tables)
    with pytest.raises(CapabilityError, match=r"edge 3 \(1, 3\) has P\(\d,\d\) \+ P.*cannot be expanded"):
        decode(field, "alpha-expansion", start=[0, 1, 0, 1])
    assert not is_attractive(field)


@given(field=fields(K=(3, 4), kind=("any", "potts", "metric")))
def test_attractive_is_what_every_expansion_needs(field):
    P = field.tables
    K = field.n_states
    size = abs(P).max(initial=0.0)
    worst = [
        (P[:, a, a] + P[:, b, c] - P[:, b, a] - P[:, a, c]).min(initial=0.0) for a, b, c in product(range(K), repeat=3)
    ]
    assert is_attractive(field) == (min(worst) >= -1e-11 * size)


# --- all methods


def grid_field(K, coupling, seed=0):
    graph = Graph.grid((90, 90))
    unary = np.random.default_rng(seed).normal(size=(graph.n_nodes, K))
    return Potentials.from_tables(graph, unary, coupling * np.eye(K))


@pytest.mark.parametrize(
    ("method", "K", "coupling"),
    [("icm", 8, 0.5), ("icm", 8, -0.5), ("alpha-expansion", 4, 0.5), ("graph-cut", 2, 0.5)],
)
def test_threads_do_not_change_the_labels(method, K, coupling):
    field = grid_field(K, coupling)
    one, two, three = (decode(field, method, n_threads=n).labels for n in (1, 2, 3))
    assert_array_equal(one, two)
    assert_array_equal(one, three)


@pytest.mark.parametrize(
    ("make", "arguments", "method"),
    [
        (make_field, (0, (0, 2, 1), 4), "tree"),
        (make_field, (0, (), 4), "tree"),
        (make_field, (0, (5, 6), 2, "attractive"), "graph-cut"),
        (make_field, (0, (5, 6), 2), "junction"),
        (make_field, (0, (5, 6), 3, "potts"), "junction"),
        (grid_field, (2, 0.5), "graph-cut"),
        (grid_field, (2, -0.5), "qpbo"),
        (grid_field, (3, 0.5), "alpha-expansion"),
        (grid_field, (3, -0.5), "max-product"),
    ],
)
def test_auto_takes_the_strongest(make, arguments, method):
    field = make(*arguments)
    found = decode(field)
    assert found.method == method
    assert found.optimal == (method in ("tree", "junction", "graph-cut", "qpbo"))
    if found.optimal and field.graph.n_nodes < 20:
        assert_allclose(found.score, best_score(field), rtol=1e-12)
    assert (found.score >= decode(field, "icm").score - 1e-9).all()
    assert (found.score >= decode(field, method).score - 1e-9).all()


@pytest.mark.parametrize("K", [2, 3])
def test_without_pymaxflow(K, monkeypatch):
    monkeypatch.setitem(sys.modules, "maxflow", None)
    found = decode(grid_field(K, 0.5))
    assert found.method == "max-product"
    assert "pip install 'crfkit[cuts]'" in found.status
    assert "pip" not in decode(grid_field(K, -0.5)).status


def test_auto_polishes_what_max_product_finds(monkeypatch):
    """Never worse than max-product, nor than ICM by itself, in any graph."""
    field = make_field(3, (6,) * 20, 3)
    monkeypatch.setattr(decoding, "default_decoder", lambda potentials: "max-product")
    for seed in range(3):
        start = np.random.default_rng(seed).integers(3, size=field.graph.n_nodes).astype(np.int32)
        monkeypatch.setitem(METHODS, "max-product", lambda potentials, n_threads, y=start: (y, False, "stub"))
        found = decode(field)
        assert (found.score >= field.score(start)).all()
        assert (found.score >= decode(field, "icm").score).all()
        assert (found.score >= field.score(icm(field, start))).all()
        assert_no_change_helps(field, found.labels)


@pytest.mark.parametrize("method", ["graph-cut", "alpha-expansion"])
def test_a_cut_without_pymaxflow_says_what_to_install(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "maxflow", None)
    with pytest.raises(CrfkitError, match=r"pip install 'crfkit\[cuts\]'") as caught:
        decode(grid_field(2, 0.5), method)
    assert isinstance(caught.value, ImportError)


def test_marginals_decode_node_by_node():
    field = make_field(2, (4, 5), 3, forbidden=0.3)
    marginals = Enumerate().run(field)
    for options in ({"marginals": marginals}, {"engine": "enumerate"}, {"engine": Enumerate()}):
        found = decode(field, "marginal", **options)
        assert_array_equal(found.labels, marginals.nodes.argmax(axis=1))
        assert not found.optimal
    with pytest.raises(ParameterError, match="not both"):
        decode(field, "marginal", marginals=marginals, engine="enumerate")
    with pytest.raises(ParameterError, match="shape"):
        decode(make_field(2, (3,), 3), "marginal", marginals=marginals)


@pytest.mark.parametrize("method", ["enumerate", "icm", "graph-cut", "alpha-expansion"])
@pytest.mark.parametrize("sizes", [(), (0,), (0, 1, 0)])
def test_next_to_nothing_decodes(method, sizes):
    found = decode(make_field(0, sizes, 2), method)
    assert len(found.labels) == sum(sizes)
    assert found.score.shape == (len(sizes),)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("icn", {}, "unknown decoder 'icn' \\(did you mean 'icm'\\?\\); expected one of auto, enumerate"),
        ("icm", {"restarts": 3}, "no option 'restarts'; its options: start, n_restarts, seed"),
        ("graph-cut", {"start": None}, "no option 'start'; its options: none"),
        ("icm", {"n_restarts": -1}, "n_restarts must be an integer >= 0, not -1"),
        ("icm", {"seed": None}, "seed must be an integer >= 0, not None"),
        ("enumerate", {"limit": 3}, "limit"),
    ],
)
def test_options_are_checked(method, options, message):
    with pytest.raises(ParameterError, match=message):
        decode(make_field(0, (3,), 2, "attractive"), method, **options)


@pytest.mark.parametrize("method", ["icm", "alpha-expansion"])
def test_a_start_must_be_a_labelling(method):
    field = make_field(0, (3,), 3, "potts").clamp([-1, 2, -1])
    for start in ([0, 1, 0], [0, 2, 3], [0, 2]):
        with pytest.raises(DataError, match="label"):
            decode(field, method, start=start)
