"""Paths of strengths: they meet weak and rare edges beside strong ones, and end where no edge is worth its price."""

import warnings

import numpy as np
import pytest
from structure_cases import planted

from crfkit import StructureLearner
from crfkit.structure.losses.evaluation import StructureEvaluation
from crfkit.structure.losses.pseudo import StructurePseudoLikelihood
from crfkit.structure.observations import Observations
from crfkit.structure.options import StructureOptions
from crfkit.structure.select import Selection
from crfkit.structure.solve import EdgeSolver, Solution

CHAIN = {(i, i + 1) for i in range(9)}
RULES = ("ebic", "cv", "stability")


def chain(rows, agree, seed):
    rng = np.random.default_rng(seed)
    columns = [rng.random(rows) < 0.5]
    for _ in range(9):
        columns.append(np.where(rng.random(rows) < agree, columns[-1], ~columns[-1]))
    return np.stack(columns, axis=1).astype(int), rng


def pairs(learner):
    return {edge[:2] for edge in learner.edges_}


@pytest.mark.parametrize("rule", RULES)
def test_a_copy_of_a_column_costs_no_edge(rule):
    Y, _ = chain(1000, 0.75, 3)
    with pytest.warns(UserWarning, match="copies of each other"):
        found = StructureLearner(edge_strength=rule, n_subsamples=10, n_folds=3).fit(np.hstack([Y, Y[:, 4:5]]))
    assert pairs(found) == CHAIN | {(4, 10)}
    assert np.isfinite(found.model_.w).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_pair_that_is_almost_equal_hides_no_weak_edge(rule):
    Y, rng = chain(2000, 0.65, 3)
    first = rng.random(2000) < 0.5
    second = np.where(rng.random(2000) < 0.99, first, ~first)
    Y = np.hstack([Y, np.stack([first, second], axis=1).astype(int)])
    found = StructureLearner(edge_strength=rule, n_subsamples=10, n_folds=3).fit(Y)
    assert pairs(found) == CHAIN | {(10, 11)}


def test_rare_pairs_beside_a_balanced_chain():
    Y, rng = chain(2000, 0.7, 5)
    rare = []
    for share in (0.02, 0.05, 0.1):
        first = rng.random(2000) < share
        rare += [first, np.where(rng.random(2000) < 0.7, first, rng.random(2000) < share)]
    Y = np.hstack([Y, np.stack(rare, axis=1).astype(int)])
    assert pairs(StructureLearner().fit(Y)) == CHAIN | {(10, 11), (12, 13), (14, 15)}
    # with standardised columns rare pairs come in with the others, not after them
    strengths = {edge[:2]: edge[2] for edge in StructureLearner(edge_strength="path").fit(Y).entry_order_}
    raw = StructureLearner(edge_strength="path", standardize=False, n_strengths=60).fit(Y)
    late = {edge[:2]: edge[2] for edge in raw.entry_order_}
    assert strengths[10, 11] > 0.5 * strengths[0, 1]
    assert late[10, 11] < 0.2 * late[0, 1]


def test_a_path_whose_last_score_is_best_goes_on():
    Y, true = planted(3, p=10, n_edges=12, rows=1500)
    table = Observations.of(Y, 2, ising=True)
    selection = Selection(StructureOptions(n_strengths=4, strength_ratio=0.5))
    steps = list(selection.by_ebic(StructurePseudoLikelihood(table)))
    assert len(steps) > 4
    assert steps[-1].strength < 0.5 * steps[0].strength
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = StructureLearner(n_strengths=4).fit(Y)
    assert pairs(found) == true


def test_the_chosen_edges_cannot_be_bettered_one_by_one():
    Y, _ = planted(4, p=10, n_edges=14, rows=300, low=0.2, high=0.6)
    selection = Selection()
    solver, supports = selection.solver, selection.supports
    loss = StructurePseudoLikelihood(Observations.of(Y, 2, ising=True))
    *_, last = selection.by_ebic(loss)
    best = supports.completed(last.model.refitted)
    score = supports.ebic(best)
    slack = 0.1 * supports.prices.of_active(best.loss, 0.0)[0]  # edges are judged to second order
    for edge in best.loss.candidate_ids.tolist():
        assert supports.ebic(solver.refit(best.grown(np.array([edge])))) > score - slack
    for edge in best.loss.active_ids.tolist():
        kept = np.setdiff1d(best.loss.active_ids, [edge])
        assert supports.ebic(solver.refit(Solution(*best.loss.keep(kept, best.w)))) > score - slack


def test_pruning_is_the_elimination_of_one_edge_after_another():
    """Dropping edges one by one, inverting the whole Hessian each time, ends with the same edges and weights."""
    from crfkit.structure.worth import eliminated

    Y, _ = planted(6, p=9, n_edges=8, rows=500)
    loss = StructurePseudoLikelihood(Observations.of(Y, 2, ising=True))
    full = EdgeSolver().refit(Solution(loss.with_active(loss.candidate_ids), np.zeros(9 + 36)))
    ridge = np.full(45, 0.01)
    ridge[:9] = 1.0
    price = 12.0
    dropped, w = eliminated(full.loss, full.w, ridge=ridge, prices=np.full(36, price), priors=np.zeros(37), certain=2.0)
    A = np.linalg.inv(full.loss.at(full.w).hessian() + np.diag(ridge))
    v, order, alive = full.w.copy(), [], list(range(36))
    while True:
        costs = [v[9 + e] ** 2 / A[9 + e, 9 + e] for e in alive]
        k = int(np.argmin(costs))
        if costs[k] >= price:
            break
        e = 9 + alive[k]
        order.append(alive.pop(k))
        gain = A[:, e] / A[e, e]
        v -= gain * v[e]
        A -= np.outer(gain, A[e])
    assert 0 < len(dropped) < 36
    assert dropped.tolist() == order
    np.testing.assert_allclose(w, v, atol=1e-8)


@pytest.mark.parametrize("rows", [200, 1500])
def test_refits_are_at_the_optimum(rows):
    Y, _ = planted(5, p=10, n_edges=12, rows=rows)
    found = StructureLearner().fit(Y)
    tight = StructureLearner(tolerance=1e-10).fit(Y)
    assert pairs(found) == pairs(tight)
    np.testing.assert_allclose(found.model_.w, tight.model_.w, atol=5e-4)


def test_sparse_evaluations_are_those_of_all_pairs():
    Y, _ = planted(1, p=12, n_edges=10, rows=300)
    table = Observations.of(Y, 2, ising=True)
    loss = StructurePseudoLikelihood(table, None, [1, 14, 27, 119])
    assert loss.sparse
    w = np.random.default_rng(0).normal(size=loss.size)
    sparse, dense = loss.at(w), StructureEvaluation(loss, w)
    assert sparse.value == pytest.approx(dense.value, rel=1e-12)
    np.testing.assert_allclose(sparse.grad, dense.grad, atol=1e-9)
    np.testing.assert_allclose(sparse.pairs[0], dense.pairs[0], atol=1e-9)
    np.testing.assert_allclose(sparse.hessian(), dense.hessian(), atol=1e-9)
    np.testing.assert_allclose(sparse.hessp(w), dense.hessian() @ w, atol=1e-8)


def test_entry_order(tmp_path):
    Y, _ = chain(1000, 0.75, 3)
    found = StructureLearner().fit(Y)
    strengths = [edge[2] for edge in found.entry_order_]
    assert strengths == sorted(strengths, reverse=True)
    assert {edge[:2] for edge in found.entry_order_} >= pairs(found)
    found.save(tmp_path / "m.crf")
    assert StructureLearner.load(tmp_path / "m.crf").entry_order_ == found.entry_order_


def test_independent_columns_have_no_edges():
    rng = np.random.default_rng(11)
    for _ in range(5):
        with pytest.warns(UserWarning, match="no edge"):
            assert StructureLearner().fit((rng.random((200, 20)) < 0.4).astype(int)).edges_ == []
