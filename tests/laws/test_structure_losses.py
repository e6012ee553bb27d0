"""Losses with switchable edges: against the losses of known graphs, enumeration and finite differences."""

import numpy as np
import pytest

from crfkit.errors import CapabilityError, DataError, ParameterError
from crfkit.graph.data import GraphData
from crfkit.graph.graph import Graph
from crfkit.graph.inference.engines import make_engine
from crfkit.graph.losses.likelihood import GraphLikelihood
from crfkit.graph.losses.pseudo import PseudoLikelihood
from crfkit.penalties import L1, L2, Blockwise, ByBlock, GroupLinf
from crfkit.solvers import GradientNorm, make_solver
from crfkit.structure.losses import pseudo as structure_pseudo
from crfkit.structure.losses.likelihood import StructureLikelihood, learning_engine
from crfkit.structure.losses.ordinal import pseudo_likelihood
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.losses.table_patterns import PatternEvaluation
from crfkit.structure.observations import Observations

NORMS = {"max": lambda g: np.abs(g).max(), "l1": lambda g: np.abs(g).sum(), "l2": np.linalg.norm}
CASES = ["ising", "states", "mixed", "inputs", "ising inputs", "plain edges", "ordinal", "ordinal inputs"]
CASES += ["reference", "reference inputs", "ordinal some", "ordinal some inputs"]


def make_table(case, seed=0, rows=40, p=4):
    rng = np.random.default_rng(seed)
    K = (
        np.array([2, 3, 2, 4])[:p]
        if case in ("mixed", "inputs") or case.startswith(("ordinal", "reference"))
        else np.full(p, 3 if case == "states" else 2)
    )
    Y = rng.integers(0, K, size=(rows, p))
    Y[:, 1] = np.where(rng.random(rows) < 0.6, Y[:, 0], Y[:, 1])
    X = None
    if case.endswith("inputs") or case == "plain edges":
        X = np.hstack([np.ones((rows, 1)), rng.normal(size=(rows, 2))])
    weights = rng.uniform(0.5, 2.0, rows)
    ising = case.startswith("ising")
    ordinal = case.startswith("ordinal")
    some = np.array([True, False, True, False])[:p] if "some" in case else None
    forms = ordinal, case.startswith("reference"), some
    return Observations.of(Y, K, X, weights, ising, case != "plain edges", None, *forms), Y, K, X, weights


def known(table, Y, X, weights, edges):
    data = GraphData.table(len(Y), Graph(table.n_variables, edges), X, Y, weights, intercept=X is None)
    if X is not None and not table.edge_inputs:
        from dataclasses import replace

        data = replace(data, edge_features=np.ones((1, 1)), edge_rows=np.zeros(data.graph.n_edges, dtype=np.int32))
    return data


def make_loss(kind, table, active=(), engine="junction", pairs=None):
    if kind == "pl":
        return pseudo_likelihood(table, pairs, active)
    return StructureLikelihood(table, pairs, active, make_engine(engine))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["pl", "likelihood"])
def test_same_as_the_loss_of_a_known_graph(kind, case):
    table, Y, _, X, weights = make_table(case)
    loss = make_loss(kind, table, [0 * 4 + 1, 1 * 4 + 3, 0 * 4 + 2])
    w = np.random.default_rng(1).normal(size=loss.size)
    data = known(table, Y, X, weights, loss.edges)
    other = (
        PseudoLikelihood(data, loss.field)
        if kind == "pl"
        else GraphLikelihood(data, loss.field, make_engine("enumerate"))
    )
    a, b = loss.at(w), other.at(w)
    assert a.value == pytest.approx(b.value, rel=1e-10)
    np.testing.assert_allclose(a.grad, b.grad, atol=1e-8)
    if kind == "pl":
        v = np.random.default_rng(2).normal(size=loss.size)
        np.testing.assert_allclose(a.hessp(v), b.hessp(v), atol=1e-8)
        np.testing.assert_allclose(a.hessian() @ v, a.hessp(v), atol=1e-8)
        h = 1e-5
        numeric = [(loss.at(w + h * e).grad - loss.at(w - h * e).grad) @ e / (2 * h) for e in np.eye(loss.size)]
        np.testing.assert_allclose(a.hess_diag(), numeric, atol=1e-4)
        assert loss.lipschitz() == pytest.approx(other.lipschitz(), rel=5e-3)
        for found, at in zip(a.conditionals, b.conditionals.reshape(len(Y), 4, -1).transpose(1, 0, 2), strict=True):
            assert np.abs(found.sum(axis=1) - 1).max() < 1e-12
            if X is not None:
                np.testing.assert_allclose(found, at[:, : found.shape[1]], atol=1e-10)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("pl", ""),
        ("likelihood", "junction"),
        ("likelihood", "enumerate"),
        ("likelihood", "bp"),
        ("likelihood", "mean-field"),
    ],
)
@pytest.mark.parametrize("norm", NORMS)
def test_candidates_are_the_gradient_of_edges_at_zero(kind, engine, case, norm):
    table, *_ = make_table(case, seed=3)
    loss = make_loss(kind, table, [1, 2 * 4 + 3], engine)
    w = 0.1 * np.random.default_rng(4).normal(size=loss.size)  # small: mean field has several optima elsewhere
    ids, scores = loss.candidates(loss.at(w), norm)
    assert (np.diff(scores) <= 0).all()
    assert set(ids.tolist()) == {2, 3, 6, 7}
    for edge, score in zip(ids.tolist(), scores, strict=True):
        larger, place = loss.activate([edge])
        new = np.zeros(larger.size)
        new[place] = w
        assert larger.at(new).value == pytest.approx(loss.at(w).value, rel=1e-8)
        block = larger.at(new).grad[larger.block_index == edge]
        assert NORMS[norm](block) == pytest.approx(score, abs=1e-3 if engine in ("bp", "mean-field") else 1e-8)
    few, high = loss.candidates(loss.at(w), norm, above=float(scores[1]))
    assert few.tolist() == ids[:1].tolist()
    assert high[0] == scores[0]


@pytest.mark.parametrize("case", ["inputs", "ordinal", "ordinal inputs", "reference", "reference inputs"])
def test_gradient_by_differences(case):
    table, *_ = make_table(case, seed=5)
    loss = pseudo_likelihood(table, active=[1, 6])
    rng = np.random.default_rng(6)
    w, v = rng.normal(size=loss.size), rng.normal(size=loss.size)
    h = 1e-5
    slope = (loss.at(w + h * v).value - loss.at(w - h * v).value) / (2 * h)
    assert loss.at(w).grad @ v == pytest.approx(slope, rel=1e-6)


def test_large_weights_do_not_overflow():
    for case in ("ising", "states", "ordinal"):
        loss = pseudo_likelihood(make_table(case)[0], active=[1])
        evaluation = loss.at(np.full(loss.size, 1e3))
        assert np.isfinite(evaluation.value)
        assert np.isfinite(evaluation.grad).all()


def test_switching_on():
    table, *_ = make_table("mixed")
    loss = StructurePseudoLikelihood(table, [(1, 0), (2, 3), (0, 3)])
    assert (loss.n_candidates, loss.active_ids.tolist(), loss.candidate_ids.tolist()) == (3, [], [1, 3, 11])
    larger, place = loss.activate([11, 1])
    assert place.tolist() == list(range(loss.size))
    assert (larger.n_candidates, larger.active_ids.tolist()) == (1, [11, 1])
    assert np.unique(larger.block_index, return_counts=True)[1].tolist() == [11, 6, 8]
    more = larger.add_candidates([(1, 2)])
    assert (more.n_candidates, more.size, more.table) == (2, larger.size, larger.table)
    assert loss.with_active([3]).edges.tolist() == [[0, 3]]
    for bad in ([1], [2], [-1], [99]):
        with pytest.raises(ParameterError):
            larger.activate(bad)
    with pytest.raises(ParameterError):
        StructurePseudoLikelihood(table, [(0, 9)])
    with pytest.raises(DataError):
        StructurePseudoLikelihood(Observations.of(np.zeros((0, 2), dtype=int), 2))


def test_rows_count_as_often_as_they_occur():
    Y = np.random.default_rng(0).integers(0, 2, (200, 3))
    table = Observations.of(Y, 2, ising=True)
    assert len(table.states) <= 8
    assert table.total == 200
    one, all_rows = np.ones((200, 1)), StructurePseudoLikelihood(Observations.of(Y, 2, np.ones((200, 1)), ising=True))
    loss = StructurePseudoLikelihood(table)
    w = np.array([0.1, -0.2, 0.3])
    assert len(one) == len(all_rows.table.states)
    assert loss.at(w).value == pytest.approx(all_rows.at(w).value)
    half = table.reweighted(np.where(np.arange(len(table.states)) % 2, 1.0, 0.0))
    assert half.total == len(half.states) == len(table.states) // 2


def test_one_engine_for_all_graphs():
    small, large = np.zeros((2, 8), dtype=int), np.zeros((2, 60), dtype=int)
    assert learning_engine(Observations.of(small, 2)) == "junction"
    assert learning_engine(Observations.of(large, 2)) == "trw"
    assert learning_engine(Observations.of(large, 2), [(i, i + 1) for i in range(59)]) == "junction"


@pytest.mark.parametrize("form", ["ising", "full", "ordinal"])
def test_a_loss_that_grows_carries_its_evaluation(form):
    rng = np.random.default_rng(0)
    table = Observations.of(rng.integers(0, 2, (40, 5)), 2, ising=form == "ising", ordinal=form == "ordinal")
    loss = pseudo_likelihood(table, None, [1, 13])
    w = rng.normal(size=loss.size)
    larger, place = loss.activate([2, 9])
    carried = larger.carry(loss.at(w), place)
    afresh = larger.at(carried.w)
    np.testing.assert_allclose(carried.value, afresh.value, rtol=1e-13)
    np.testing.assert_allclose(carried.grad, afresh.grad, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(carried.w[place], w)


@pytest.mark.parametrize("form", ["ising", "full", "ordinal"])
def test_rows_in_blocks(form, monkeypatch):
    rng = np.random.default_rng(1)
    options = {"ising": form == "ising", "ordinal": form == "ordinal"}
    table = Observations.of(rng.integers(0, 2, (200, 6)), 2, rng.normal(size=(200, 2)), None, **options)
    loss = pseudo_likelihood(table, None, [1, 8, 17])
    w = rng.normal(size=loss.size)
    whole = loss.at(w)
    assert len(loss.blocks) == 1
    assert np.isfinite(whole.grad).all()  # now, in one block
    monkeypatch.setattr(structure_pseudo, "BLOCK", 1)
    blocks = pseudo_likelihood(table, None, [1, 8, 17]).at(w)
    assert len(blocks._loss.blocks) > 1
    np.testing.assert_allclose(blocks.value, whole.value, rtol=1e-13)
    np.testing.assert_allclose(blocks.grad, whole.grad, rtol=1e-10, atol=1e-11)


def test_owlqn_on_all_edges_has_the_optimum_of_grafting():
    rng = np.random.default_rng(2)
    Y = rng.integers(0, 2, (300, 6))
    Y[:, 1] = np.where(rng.random(300) < 0.7, Y[:, 0], Y[:, 1])
    loss = StructurePseudoLikelihood(Observations.of(Y, 2, ising=True))
    penalty = ByBlock(L1, 20.0, L2(1.0))
    few = make_solver("grafting-light", stopping=GradientNorm(1e-8)).minimize(loss, penalty, np.zeros(loss.size))
    every, _ = loss.activate(loss.candidate_ids)
    full = make_solver("owlqn", stopping=GradientNorm(1e-8)).minimize(every, penalty, np.zeros(every.size))
    np.testing.assert_allclose(full.value, few.value, rtol=1e-10)
    assert every.nonzero_ids(full.w).tolist() == few.loss.nonzero_ids(few.w).tolist()
    with pytest.raises(CapabilityError):
        make_solver("owlqn").minimize(every, ByBlock(GroupLinf, 20.0, L2(1.0)), np.zeros(every.size))


def test_patterns_are_the_loss_of_rows():
    """Rows that agree in the neighbours of a variable count once; many neighbours, unequal weights, rare states."""
    rng = np.random.default_rng(5)
    K = np.array([3, 2, 5, 4, 3, 2])
    Y = np.minimum(rng.integers(0, 9, size=(200, 6)), K - 1)
    table = Observations.of(Y, K, None, rng.uniform(0.5, 2.0, 200))
    for active in ([], [1, 2, 3, 4, 5], [1, 8, 15, 22, 29], [1, 2, 3, 4, 5, 8, 9, 10, 11, 15, 16]):
        loss = StructurePseudoLikelihood(table, active=active)
        assert loss.patterned
        w = rng.normal(size=loss.size)
        a, b = loss.at(w), structure_pseudo.StructureEvaluation(loss, w)
        assert isinstance(a, PatternEvaluation)
        assert a.value == pytest.approx(b.value, rel=1e-12)
        v = rng.normal(size=loss.size)
        for found, expected in (
            (a.grad, b.grad),
            (a.pairs, b.pairs),
            (a.hessp(v), b.hessp(v)),
            (a.hess_diag(), b.hess_diag()),
            (a.hessian(), b.hessian()),
            (a.curvature, b.curvature),
            (np.hstack(a.conditionals), np.hstack(b.conditionals)),
        ):
            np.testing.assert_allclose(found, expected, atol=1e-10)
        larger, place = loss.activate([12 + 5])
        carried = larger.carry(a, place)
        np.testing.assert_allclose(carried.grad, larger.at(carried.w).grad, atol=1e-10)


def test_patterns_of_neighbours_with_very_many_states():
    table = Observations.of(np.tile(np.arange(40), (30, 1)).T % 40, np.full(30, 40))
    loss = StructurePseudoLikelihood(table, active=np.arange(1, 30))
    assert loss.at(np.zeros(loss.size)).value == pytest.approx(40 * 30 * np.log(40))


def test_newtons_factored_direction_is_the_dense_one():
    rng = np.random.default_rng(6)
    K = np.array([3, 4, 2, 3])
    Y = rng.integers(0, K, size=(80, 4))
    Y[:, 1] = np.where(rng.random(80) < 0.7, Y[:, 0], Y[:, 1])
    loss = StructurePseudoLikelihood(Observations.of(Y, K), active=[1, 6, 11])
    penalty = Blockwise({"node": L2(1.0), "edge": L2(0.01)}, loss.layout)
    found = [
        make_solver("newton", direction=direction, stopping=GradientNorm(1e-9)).minimize(
            loss, penalty, np.zeros(loss.size)
        )
        for direction in ("dense", "sparse", "factored")
    ]
    assert all(result.status.converged for result in found)
    for result in found[1:]:
        np.testing.assert_allclose(result.w, found[0].w, atol=1e-7)
