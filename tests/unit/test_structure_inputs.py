"""Inputs of StructureLearner: features that variables share, features of each, both; against fields of known graphs."""

import numpy as np
import pytest
from scipy.stats import chi2

from crfkit import GraphCRF, StructureLearner
from crfkit.errors import DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.encoding.table_inputs import split_inputs
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.structure.losses.likelihood import StructureLikelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations
from crfkit.structure.options import StructureOptions
from crfkit.structure.price import EdgePrices
from crfkit.structure.select import Selection
from crfkit.structure.solve import Solution
from crfkit.synthetic import random_pairwise

NORMS = {"max": lambda g: np.abs(g).max(), "l1": lambda g: np.abs(g).sum(), "l2": np.linalg.norm}
CASES = ["ising", "mixed", "shared too", "ising shared too", "plain edges"]
P = 4


def make_table(case, rows=30, seed=0, d=2):
    rng = np.random.default_rng(seed)
    K = np.array([2, 3, 2, 4]) if case == "mixed" else np.full(P, 2)
    Y = rng.integers(0, K, size=(rows, P))
    X = np.ones((rows, 1))
    if case.endswith("shared too"):
        X = np.hstack([X, rng.normal(size=(rows, 3))])
    own = rng.normal(size=(rows, P, d))
    weights = rng.uniform(0.5, 2.0, rows)
    edge_inputs = case != "plain edges"
    return Observations.of(Y, K, X, weights, case.startswith("ising"), edge_inputs, own), X, own


def known(table, X, own, edges):
    """By hand: a graph for every row, node features [x, f_i], edge features [x, f_i, f_j]."""
    rows = len(X)
    nodes = [np.concatenate([X[n], own[n, i]]) for n in range(rows) for i in range(P)]
    if table.edge_inputs:
        pairs = [np.concatenate([X[n], own[n, i], own[n, j]]) for n in range(rows) for i, j in edges]
    else:
        pairs = [np.ones(1) for _ in range(rows) for _ in edges]
    return GraphData(
        Graph(P, edges).repeat(rows),
        np.array(nodes),
        np.array(pairs),
        node_types=np.tile(np.arange(P), rows),
        edge_types=np.tile(np.arange(len(edges)), rows),
        labels=table.states.ravel(),
        weights=table.weights,
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["pl", "likelihood"])
def test_same_as_the_loss_of_a_known_graph(kind, case):
    table, X, own = make_table(case)
    active = [0 * P + 1, 1 * P + 3, 0 * P + 2]
    loss = (StructurePseudoLikelihood if kind == "pl" else StructureLikelihood)(table, None, active)
    data = known(table, X, own, loss.edges)
    engine = make_engine("enumerate")
    other = PseudoLikelihood(data, loss.field) if kind == "pl" else GraphLikelihood(data, loss.field, engine)
    w = np.random.default_rng(1).normal(size=loss.size)
    a, b = loss.at(w), other.at(w)
    assert a.value == pytest.approx(b.value, rel=1e-10)
    np.testing.assert_allclose(a.grad, b.grad, atol=1e-8)
    if kind == "pl":
        v = np.random.default_rng(2).normal(size=loss.size)
        np.testing.assert_allclose(a.hessp(v), b.hessp(v), atol=1e-8)
        np.testing.assert_allclose(a.hessian() @ v, a.hessp(v), atol=1e-8)
        np.testing.assert_allclose(a.hess_diag(), np.diag(a.hessian()), atol=1e-8)
        assert loss.lipschitz() == pytest.approx(other.lipschitz(), rel=5e-3)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["pl", "junction", "mean-field"])
def test_candidates_are_the_gradient_of_edges_at_zero(kind, case, norm):
    table, *_ = make_table(case, seed=3)
    active = [1, 2 * P + 3]
    loss = (
        StructurePseudoLikelihood(table, None, active)
        if kind == "pl"
        else StructureLikelihood(table, None, active, make_engine(kind))
    )
    w = 0.1 * np.random.default_rng(4).normal(size=loss.size)
    ids, scores = loss.candidates(loss.at(w), norm)
    assert set(ids.tolist()) == {2, 3, 6, 7}
    for edge, score in zip(ids.tolist(), scores, strict=True):
        larger, place = loss.activate([edge])
        new = np.zeros(larger.size)
        new[place] = w
        block = larger.at(new).grad[larger.block_index == edge]
        assert NORMS[norm](block) == pytest.approx(score, abs=1e-3 if kind == "mean-field" else 1e-8)


@pytest.mark.parametrize("rows", [slice(0, 5), np.array([3, 7])])
def test_rows_keep_their_features(rows):
    table, X, own = make_table("shared too")
    part = table.take(np.arange(30)[rows])
    assert np.array_equal(part.own, own[rows])
    assert np.array_equal(part.inputs, X[rows])


# --- the estimator


def conditional(seed=0, rows=500):
    """Four variables, each with a feature of its own; 0 and 1 agree where the feature of 1 is positive."""
    rng = np.random.default_rng(seed)
    own = rng.normal(size=(rows, P, 1))
    noise = rng.normal(size=(rows, P))
    Y = (2 * own[:, :, 0] + noise > 0).astype(int)
    Y[:, 0] = np.where(own[:, 1, 0] > 0, Y[:, 1], Y[:, 0])
    return Y, own


@pytest.fixture(scope="module")
def learnt():
    Y, own = conditional()
    return StructureLearner(n_strengths=10).fit(Y, inputs=own)


def test_features_of_variables(learnt):
    Y, own = conditional(1)
    assert [edge[:2] for edge in learnt.edges_] == [(0, 1)]
    assert (learnt.predict(own) == Y).mean() > 0.75
    for p in learnt.predict_marginals(own[:7]):
        assert p.shape == (7, 2)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert learnt.sample(3, inputs=own[:5]).shape == (3, 5, P)
    joint = [learnt.log_likelihood(np.array([y]), inputs=own[:1])[0] for y in np.ndindex(*[2] * P)]
    assert np.exp(joint).sum() == pytest.approx(1.0)
    names = learnt.model_.edge_weights()
    assert ((("y0", "y1"), "f0 of y1", "equal")) in names
    holes = Y[:3].astype(object)
    holes[:, 0] = None
    assert (learnt.complete(holes, inputs=own[:3])[:, 1:] == Y[:3, 1:]).all()


def test_files(tmp_path, learnt):
    Y, own = conditional(2, 20)
    learnt.save(tmp_path / "m.crf")
    again = StructureLearner.load(tmp_path / "m.crf")
    assert again.edges_ == learnt.edges_
    assert np.array_equal(again.log_likelihood(Y, inputs=own), learnt.log_likelihood(Y, inputs=own))
    assert np.array_equal(GraphCRF.load(tmp_path / "m.crf").predict(own), learnt.predict(own))


def test_shared_and_own():
    Y, own = conditional(rows=200)
    shared = np.random.default_rng(5).normal(size=(200, 2))
    both = StructureLearner(edge_strength=20.0).fit(Y, inputs=(shared, own))
    assert both.predict((shared[:3], own[:3])).shape == (3, P)
    # features of rows are features that all variables have: the same field, of which the penalty sees copies
    copies = np.broadcast_to(shared[:, None, :1], (200, P, 1))
    one = StructureLearner(edge_strength=20.0, edge_features=False, tolerance=1e-9).fit(Y, inputs=shared[:, :1])
    other = StructureLearner(edge_strength=20.0, edge_features=False, tolerance=1e-9).fit(Y, inputs=copies)
    np.testing.assert_allclose(one.model_.w, other.model_.w, atol=1e-4)
    likelihood = StructureLearner(loss="likelihood", edge_strength=20.0, edge_features=False)
    np.testing.assert_allclose(
        likelihood.fit(Y, inputs=copies).model_.w, likelihood.fit(Y, inputs=shared[:, :1]).model_.w, atol=1e-3
    )


def test_methods_have_the_same_optimum():
    Y, own = conditional(rows=200)
    for norm in ("inf", "2"):
        values = [
            StructureLearner(method, group_norm=norm, edge_strength=8.0, tolerance=1e-9)
            .fit(Y, inputs=own)
            .result_.value
            for method in ("grafting-light", "agpm", "full")
        ]
        np.testing.assert_allclose(values, values[0], rtol=1e-6)


def test_inputs_of_wrong_shapes(learnt):
    Y, own = conditional(rows=50)
    shared = own[:, :, 0]
    hole = own.copy()
    hole[3, 2, 0] = np.inf
    for X, match in (
        (own[:, :3], "features of 3 variables"),
        (own[:40], "X has 40 rows, Y has 50"),
        ((shared[:40], own), "X has 40 rows, Y has 50"),
        (own[:, :, :0], "no features of variables"),
        (hole, "row 3, variable 2, feature 0 is inf"),
        ((own, shared), "tuple"),
        ((shared, shared), "tuple"),
        (own[..., None], "X must be"),
        (np.full((50, P, 1), "a"), "must be numbers"),
    ):
        with pytest.raises(DataError, match=match):
            StructureLearner().fit(Y, inputs=X)
    for X, match in (
        (None, "X is None"),
        (shared, r"X must be an array \[samples, 4, 1\]"),
        ((shared, own), r"X must be an array \[samples, 4, 1\]"),
        (np.zeros((5, P, 2)), "X has 2 features of each variable; the model has 1"),
    ):
        with pytest.raises(DataError, match=match):
            learnt.predict(X)
    assert split_inputs(([0.0, 1.0], [1.0, 0.0])) == (([0.0, 1.0], [1.0, 0.0]), None)  # a table of two rows


# --- rules, where edges have features


def test_pruning_ends_where_no_edge_is_missed():
    table = random_pairwise(8, 3, 400, seed=1)
    rows = Observations.of(table.Y, 2, np.ones((400, 1)), None, True, True, table.X)
    selection = Selection(StructureOptions(method="grafting-light", group_norm="2"))
    solver, supports = selection.solver, selection.supports
    empty = solver.empty(StructurePseudoLikelihood(rows))
    weak = solver.solve(empty, 0.05 * solver.critical_strength(empty))
    pruned = supports.refit(weak)
    assert supports.ebic(pruned) < supports.ebic(supports.refit(weak, prune=False))
    for edge in np.setdiff1d(weak.support, pruned.support):  # putting any edge back does not pay
        more, place = pruned.loss.activate([edge])
        start = np.full(more.size, 1e-9)
        start[place] = pruned.w
        assert supports.ebic(supports.refit(Solution(more, start), prune=False)) > supports.ebic(pruned)


def test_prices_of_edges_with_features():
    plain = Observations.of(np.zeros((50, 3), dtype=int), 2, np.ones((50, 1)), None, True)
    prices = EdgePrices(StructureOptions(ebic_gamma=0.5))
    pair = StructurePseudoLikelihood(plain, None, [1, 2])
    prior = prices.marginal(pair, 1)
    assert prior == pytest.approx(np.log(3))  # of three graphs with one edge
    assert prices.of_active(pair, prior).tolist() == pytest.approx([np.log(50) + np.log(3)] * 2)
    table, *_ = make_table("ising")
    many = prices.of_active(StructurePseudoLikelihood(table, None, [1]), prior)
    level = chi2.sf(np.log(table.total) + prior, 1)
    assert chi2.sf(many[0], 5) == pytest.approx(level)  # [1, f_i, f_j] of two features each


def test_one_variable_has_no_edges():
    with pytest.warns(UserWarning, match="there are no pairs to choose from; the graph is empty"):
        assert StructureLearner().fit([[0], [1], [1]]).edges_ == []


@pytest.mark.parametrize(("shift", "unit"), [(50.0, 1.0), (-3.0, 0.1)])
def test_edges_do_not_depend_on_where_an_input_begins_or_on_its_unit(shift, unit):
    """Adding 50 turned weights of .77, .69, .48, .45 into 39.4, 32.5, 1.99, .97: the intercept at x = 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    Y = np.zeros((400, 4), dtype=int)
    for k in range(4):
        chance = X[:, 0] * (Y[:, k - 1] - 0.5) + (2.0 * Y[:, k - 1] - 1.0 if k else 0.0)
        Y[:, k] = rng.random(400) < 1 / (1 + np.exp(-chance))
    options = {"edge_strength": 4.0, "tolerance": 1e-8}
    given = StructureLearner(**options).fit(Y, inputs=X)
    moved = StructureLearner(**options).fit(Y, inputs=(X + shift) * unit)
    assert len(given.edges_) >= 3
    assert [pair for *pair, _ in moved.edges_] == [pair for *pair, _ in given.edges_]
    np.testing.assert_allclose([w for *_, w in moved.edges_], [w for *_, w in given.edges_], rtol=1e-3)
    for one, other in zip(given.edge_records_, moved.edge_records_, strict=True):
        assert one["strongest"] == other["strongest"]
        assert one["inputs"] == pytest.approx(other["inputs"], rel=1e-3, abs=1e-6)


def test_the_order_of_arguments_of_other_estimators_is_recognised():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = (X + rng.normal(size=(200, 3)) > 0).astype(int)
    with pytest.raises(ParameterError, match=r"fit\(Y, inputs=X\), not fit\(X, Y\)"):
        StructureLearner().fit(X, Y)
    with pytest.warns(FutureWarning, match="inputs=…"):
        StructureLearner(edge_strength=20.0).fit(Y, X)


@pytest.mark.filterwarnings("ignore:inputs are missing")
def test_masked_inputs_are_missing_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = (X @ rng.normal(size=(2, 3)) + rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 3)) > 0).astype(int)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[::10, 0] = True
    by_mask = StructureLearner().fit(Y, inputs=np.ma.array(np.where(hidden, 1e6, X), mask=hidden))
    by_nan = StructureLearner().fit(Y, inputs=np.where(hidden, np.nan, X))
    assert by_mask.edges_ == by_nan.edges_ != []
    np.testing.assert_array_equal(by_mask.model_.w, by_nan.model_.w)
