"""Fields on graphs and their potentials: what is accepted, and that the adjoint is the transpose."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from graph_data_cases import PATH, data, labelled, random_data, random_graph
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from crfkit import _core
from crfkit.errors import CrfkitError, DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.fields.basis import expanded, is_unit, native_basis, projected, unit_tables
from crfkit.graph.fields.field import EDGE_FORMS, GraphField, tied_field, untied_field
from crfkit.graph.fields.potentials import Potentials
from crfkit.graph.graph import Graph
from crfkit.graph.inference.tree import Tree
from crfkit.graph.losses.likelihood import GraphLikelihood

# --- GraphField


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1], 1, 1), {}, DataError, r"a node has 1 state; a field needs at least 2"),
        (([2, 1], 1, 1), {}, DataError, "node 1 has 1 state"),
        (([], 1, 1), {}, ParameterError, "at least one type"),
        (([2], 1, 1), {"node_form": "potts"}, ParameterError, "unknown node form 'potts'"),
        (
            ([2], 1, 1),
            {"edge_form": "pots"},
            ParameterError,
            r"unknown edge form 'pots' .*'potts'.*expected one of full, ",
        ),
        (([3], 1, 1), {"edge_form": "ising"}, ParameterError, "two states, not 3; use 'potts'"),
        (([3], 1, 1), {"node_form": "ising"}, ParameterError, "two states"),
        (([2, 3], 1, 1), {"edge_form": "potts"}, ParameterError, "needs the same states at all nodes"),
        (([2, 3], 1, 1), {}, ParameterError, "edge_ends must name the types"),
    ],
)
def test_bad_fields(arguments, options, error, message):
    with pytest.raises(error, match=message):
        GraphField(*arguments, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GraphField([2], -1, 1),
        lambda: GraphField([2], 1, 1, -1).size,
        lambda: GraphField([2.7], 1, 1),
        lambda: GraphField([2, 3], 1, 1, 1, edge_ends=np.array([[0, 5]])).size,
    ],
    ids=["features", "edge types", "states", "ends"],
)
def test_more_bad_fields(make):
    with pytest.raises(CrfkitError):
        make()


@pytest.mark.parametrize(
    ("field", "options", "message"),
    [
        (GraphField([2], 2, 1), {}, "1 node features; the field has weights for 2"),
        (GraphField([2], 1, 2), {}, "1 edge features; the field has weights for 2"),
        (GraphField([2, 2], 1, 1), {}, "2 types of nodes, but the data do not give the type"),
        (GraphField([2], 1, 1, 2), {}, "2 types of edges, but the data do not give the type"),
        (GraphField([2, 2], 1, 1), {"node_types": [0, 2, 1]}, "node 1 has type 2; the field has 2"),
        (GraphField([2], 1, 1, 2), {"edge_types": [0, 2]}, "edge 1 has type 2; the field has 2"),
        (GraphField([2], 1, 1), {"labels": [0, 1, 2]}, "node 2 has label 2; its states are 0 … 1"),
        (
            GraphField([2, 3], 1, 1, edge_ends=np.array([[0, 1]])),
            {"labels": [0, 2, 1], "node_types": [0, 1, 0]},
            None,
        ),
        (
            GraphField([2, 3], 1, 1, edge_ends=np.array([[0, 1]])),
            {"labels": [2, 2, 1], "node_types": [0, 1, 0]},
            "node 0 has label 2; its states are 0 … 1",
        ),
    ],
)
def test_data_that_do_not_fit_a_field(field, options, message):
    made = data(Graph(3, [[0, 1], [2, 1]]), **options)
    if message is None:
        field.check(made)
    else:
        with pytest.raises(DataError, match=message):
            field.check(made)


def test_edges_join_the_types_they_say():
    field = GraphField([2, 3], 1, 1, edge_ends=np.array([[0, 0]]))
    with pytest.raises(DataError):
        field.check(data(node_types=[0, 1, 1]))


def test_unknown_labels_are_not_observed():
    partly = data(labels=[-1, 0, 0])
    try:
        nodes, _ = tied_field(partly, 2).observed(partly)
    except DataError:
        return
    assert nodes[0].tolist() == [0, 0]


def tables(rng, K, n_samples=4, sparse=False):
    graph = random_graph(rng, 4, 0.7)
    X = rng.normal(size=(n_samples, 2))
    states = np.broadcast_to(K, (4,))
    Y = rng.integers(0, states, size=(n_samples, 4))
    return GraphData.table(n_samples, graph, csr_array(X) if sparse else X, Y), states


FORMS = [(n, e, K) for n in ("full", "reference") for e in EDGE_FORMS for K in (2, 3) if e != "ising" or K == 2]
FORMS += [("ising", e, 2) for e in EDGE_FORMS]


def make_problem(kind, node_form, edge_form, K, sparse, seed):
    """(field, data) of every sort: with weights that are tied, of a few types, or a set per variable."""
    rng = np.random.default_rng(seed)
    if kind == "untied":
        made, states = tables(rng, K, sparse=sparse)
        return untied_field(made, states, node_form, edge_form), made
    if kind == "ragged":
        made, states = tables(rng, np.array([2, 3, 4, 2]), sparse=sparse)
        return untied_field(made, states, node_form, edge_form), made
    parts = [random_graph(rng, n) for n in (4, 0, 1, 3)]
    made = random_data(rng, parts, sparse, labels=False, weights=False)
    types = {}
    if kind == "typed":
        n, E = made.graph.n_nodes, made.graph.n_edges
        types = {"node_types": rng.integers(2, size=n), "edge_types": rng.integers(3, size=E)}
    labels = rng.integers(K, size=made.graph.n_nodes)
    made = GraphData(made.graph, made.node_features, made.edge_features, labels=labels, **types)
    if kind == "tied":
        return tied_field(made, K, node_form, edge_form), made
    return GraphField([K, K], 3, 4, 3, node_form, edge_form), made


CASES = [(kind, *form) for kind in ("tied", "typed", "untied") for form in FORMS]
CASES += [("ragged", n, e, 0) for n in ("full", "reference") for e in ("full", "reference", "minimal", "ordinal")]
every_case = pytest.mark.parametrize(("kind", "node_form", "edge_form", "K"), CASES)
either = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


@every_case
@either
def test_adjoint_is_the_transpose(kind, node_form, edge_form, K, sparse):
    """<A w, z> = <w, Aᵀ z>"""
    for seed in range(3):
        field, made = make_problem(kind, node_form, edge_form, K, sparse, seed)
        field.check(made)
        rng = np.random.default_rng(seed)
        w = rng.normal(size=field.size)
        potentials = field.potentials(made, w)
        potentials.check()
        nodes, edges = rng.normal(size=potentials.unary.shape), rng.normal(size=potentials.coefficients.shape)
        image = np.vdot(np.where(potentials.allowed, potentials.unary, 0), nodes)
        image += np.vdot(potentials.coefficients, edges)
        assert_allclose(w @ field.adjoint(made, nodes, edges), image, rtol=1e-11, atol=1e-11)


@every_case
def test_a_score_is_linear_in_what_is_observed(kind, node_form, edge_form, K):
    """score(labels) = w · Aᵀ observed, and by the formula, node by node and edge by edge."""
    field, made = make_problem(kind, node_form, edge_form, K, False, 7)
    w = np.random.default_rng(7).normal(size=field.size)
    potentials = field.potentials(made, w)
    total = potentials.score(made.labels).sum()
    assert_allclose(total, w @ field.adjoint(made, *field.observed(made)), rtol=1e-11)
    node_weights, edge_weights = field.unpack(w)
    y, naive = made.labels, 0.0
    for i in range(made.graph.n_nodes):
        t = 0 if made.node_types is None else made.node_types[i]
        h = made.node_features[i if made.node_rows is None else made.node_rows[i]]
        naive += sum(node_weights[t, b] @ h * table[y[i]] for b, table in enumerate(field.node_basis))
    for e, (i, j) in enumerate(made.graph.edges):
        s = 0 if made.edge_types is None else made.edge_types[e]
        g = made.edge_features[e if made.edge_rows is None else made.edge_rows[e]]
        naive += sum(edge_weights[s, b] @ g * table[y[i], y[j]] for b, table in enumerate(field.edge_basis))
    assert_allclose(total, naive, rtol=1e-11)


@every_case
def test_pack_undoes_unpack(kind, node_form, edge_form, K):
    field, _ = make_problem(kind, node_form, edge_form, K, False, 3)
    w = np.random.default_rng(3).normal(size=field.size)
    assert_array_equal(field.pack(*field.unpack(w)), w)
    assert field.layout["node"].stop == field.layout["edge"].start == field.n_node_weights
    assert field.layout["edge"].stop == field.size


@every_case
def test_potentials_of_some_graphs_are_some_of_the_potentials(kind, node_form, edge_form, K):
    field, made = make_problem(kind, node_form, edge_form, K, False, 5)
    w = np.random.default_rng(5).normal(size=field.size)
    ids = [3, 0, 0]
    _, nodes, edges = made.graph.take(ids)
    part, whole = field.potentials(made.take(ids), w), field.potentials(made, w)
    assert_allclose(part.unary, whole.unary[nodes])
    assert_allclose(part.tables, whole.tables[edges])


@pytest.mark.parametrize(
    ("edge_form", "K", "size"),
    [("full", 3, 9), ("symmetric", 3, 6), ("potts", 3, 1), ("ising", 2, 1), ("reference", 3, 8), ("minimal", 3, 4)],
)
def test_numbers_of_edge_weights(edge_form, K, size):
    assert GraphField([K], 1, 1, edge_form=edge_form).n_edge_weights == size
    assert GraphField([K], 1, 5, 2, edge_form=edge_form).n_edge_weights == 10 * size


def test_ragged_states_are_impossible_and_have_no_weights():
    field, made = make_problem("ragged", "full", "full", 0, False, 0)
    potentials = field.potentials(made, np.ones(field.size))
    states = field.n_states[made.node_types]
    assert_array_equal(potentials.allowed, np.arange(4) < states[:, None])
    ends = field.n_states[field.edge_ends]
    assert field.n_edge_weights == ends.prod(axis=1).sum() * field.n_edge_features


def test_an_untied_field_without_edges():
    made = GraphData.table(4, Graph(2, []), labelled()[:4, :2], np.zeros((4, 2), dtype=int))
    field = untied_field(made, 2)
    assert field.potentials(made, np.ones(field.size)).tables.shape == (0, 2, 2)
    assert field.adjoint(made, np.ones((8, 2)), np.ones((0, 4))).shape == (field.size,)


def test_a_field_without_features():
    made = GraphData.make(PATH, np.zeros((3, 0)), None, intercept=False)
    field = tied_field(made, 2)
    assert_array_equal(field.potentials(made, np.ones(field.size)).unary, np.zeros((3, 2)))


def test_an_untied_field_of_no_rows():
    with pytest.raises(DataError):
        untied_field(GraphData.table(0, PATH), 2)


# --- Potentials


@pytest.mark.parametrize(
    ("unary", "pairs", "message"),
    [
        ([[0, 0], [np.nan, 0], [0, 0]], None, "potentials of node 1 are"),
        ([[0, 0], [0, 0], [0, np.inf]], None, "potentials of node 2 are"),
        ([[-np.inf, -np.inf], [0, 0], [0, 0]], None, "potentials of node 0 are"),
        (np.zeros((2, 2)), None, "a row for each of 3 nodes"),
        (np.zeros((3, 0)), None, "shape"),
        (np.zeros(3), None, "matrix"),
        ([["a", "b"]] * 3, None, "matrix"),
        (np.zeros((3, 2)), np.zeros((3, 3)), r"tables have shape \(3, 3\); expected \(2, 2\) or \(2, 2, 2\)"),
        (np.zeros((3, 2)), np.zeros((3, 2, 2)), "tables have shape"),
        (np.zeros((3, 2)), [np.zeros((2, 2)), [[0, np.nan], [0, 0]]], r"potentials of edge 1 \(1, 2\) are not finite"),
        (np.zeros((3, 2)), [np.zeros((2, 2)), [[0, -np.inf], [0, 0]]], "edge 1"),
    ],
)
def test_bad_potentials(unary, pairs, message):
    with pytest.raises(DataError, match=message):
        Potentials.from_tables(PATH, unary, pairs)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_shared_table_is_finite(value):
    with pytest.raises(DataError):
        Potentials.from_tables(PATH, np.zeros((3, 2)), [[0, value], [0, 0]])


def test_one_table_for_all_edges_is_that_table_on_each():
    rng = np.random.default_rng(0)
    unary, table = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    shared, own = (Potentials.from_tables(PATH, unary, t) for t in (table, [table, table]))
    assert_allclose(shared.tables, own.tables)
    for y in product(range(3), repeat=3):
        expected = sum(unary[range(3), y]) + table[y[0], y[1]] + table[y[1], y[2]]
        assert_allclose([shared.score(y), own.score(y)], expected)
    assert_array_equal(Potentials.from_tables(PATH, unary).tables, np.zeros((2, 3, 3)))


def test_clamped_states_are_the_only_ones():
    potentials = Potentials.from_tables(PATH, [[1, 2], [3, 4], [5, 6]]).clamp([-1, 0, 1])
    assert_array_equal(potentials.unary, [[1, 2], [3, -np.inf], [-np.inf, 6]])
    assert potentials.score([0, 0, 1]).tolist() == [10]
    for again in ([-1, 1, -1], [-1, -1, 0], [2, -1, -1]):
        with pytest.raises(DataError, match=r"node \d has label \d; its states are"):
            potentials.clamp(again)
    with pytest.raises(DataError, match=r"node 2 has label 0; its states are \[1\]"):
        potentials.score([0, 0, 0])
    with pytest.raises(DataError, match="node 0 has label -1"):
        potentials.score([-1, 0, 1])


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0, 0.0], ["a", "b", "c"], [[0, 1, 0]], [0, 1, 2]])
def test_bad_labellings(labels):
    with pytest.raises(DataError, match="label"):
        Potentials.from_tables(PATH, np.zeros((3, 2))).score(labels)


def test_large_labels_are_no_states():
    with pytest.raises(DataError):
        Potentials.from_tables(PATH, np.zeros((3, 2))).score([2**32, 0, 0])


def test_unit_tables_are_a_view_of_few_numbers():
    for K in (2, 3, 5):
        tables = unit_tables(K)
        np.testing.assert_array_equal(tables.reshape(K * K, K * K), np.eye(K * K))
        assert is_unit(tables)
        assert is_unit(np.eye(K * K).reshape(K * K, K, K))
        assert not is_unit(np.ones((K * K, K, K)))
        c = np.random.default_rng(K).normal(size=(4, K * K))
        np.testing.assert_array_equal(expanded(c, tables), expanded(c, np.ones((1, K, K)) * tables))
        np.testing.assert_array_equal(projected(c.reshape(4, K, K), tables), c)
    assert len(native_basis(unit_tables(3))) == 0
    assert len(native_basis(2.0 * unit_tables(3))) == 9


def test_the_core_takes_no_tables_for_all_unit_tables():
    rng, graph, K = np.random.default_rng(0), Graph.grid((3, 3)), 3
    unary, c = rng.normal(size=(9, K)), rng.normal(size=(graph.n_edges, K * K))
    labels, weights = rng.integers(0, K, 9).astype(np.int32), np.ones(9)
    dense, none = np.eye(K * K).reshape(K * K, K, K), np.empty((0, K, K))
    for call in (_core.pseudo_value, _core.composite_value):
        for mine, other in zip(
            *(call(graph.native, unary, c, b, labels, weights, 1) for b in (dense, none)), strict=True
        ):
            np.testing.assert_array_equal(mine, other)
    for engine in (_core.SumProduct, _core.MeanField):
        made = [engine(graph.native, graph.blocks, unary, c, b, "auto", 1) for b in (dense, none)]
        np.testing.assert_array_equal(*(m.log_z(1) for m in made))


def test_many_states_take_memory_for_their_weights_alone():
    """Tables [K², K, K] of 300 states would take 65 GB."""
    K, rng = 300, np.random.default_rng(0)
    Y = rng.integers(0, K, (50, 2))
    tracemalloc.start()
    try:
        data = GraphData.counts(Graph.path(2), Y, K)
        field = GraphField([K, K], 1, 1, 1, "reference", "reference", [[0, 1]])
        loss = GraphLikelihood(data, field, Tree())
        assert loss.at(np.zeros(field.size)).value == pytest.approx(50 * np.log(K * K))
        assert np.isfinite(loss.at(np.zeros(field.size)).grad).all()
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    with pytest.raises(DataError, match="'symmetric' is for at most 128 states"):
        GraphField([K], 1, 1, edge_form="symmetric")
    with pytest.raises(DataError, match="at most 46,340"):
        GraphField([46_341], 1, 1)
